"""Cells that rules forbid: no private row has them, and the fitted mixture hardly any."""

import numpy as np
from ruled import SCHEMA, rows

from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.constrained_tables import forward_transform
from likeness.methods.base import Context
from likeness.methods.marginals.method import Marginals
from likeness.methods.marginals.objective import CountedTable, MarginalObjective, Measurement, Singles
from likeness.methods.marginals.release_state import ReleaseState
from likeness.methods.marginals.structural_zeros import StructuralZeros
from likeness.methods.marginals.training import minimize

CONTEXT = Context(SCHEMA.model_schema, "add_remove_one", None, 0)
METHOD = Marginals()


def test_no_row_that_keeps_the_rules_lies_in_a_forbidden_cell() -> None:
    """And the forbidden cells of the three rules are all there: every pair of their bins is forbidden or taken."""
    columns = ReleaseState(CONTEXT, {}, 16).bins
    zeros, encoder = StructuralZeros(SCHEMA.model_schema, columns), Encoder(SCHEMA.model_schema)
    codes = encoder.encode(forward_transform(rows(20_000), SCHEMA))
    x, labels = encoder.expand(codes), encoder.labels(codes)
    places = [cells.cell_indices(x) for cells, _ in columns]
    names = [column.name for column in SCHEMA.model_schema.feature_columns]
    forbidden = {}
    for i in range(len(names)):
        for j in range(i + 1, len(names)):
            sizes = columns[i][0].size, columns[j][0].size
            mask = np.broadcast_to(zeros.forbidden_cells(i, j), (2, *sizes))
            assert not mask[labels, places[i], places[j]].any()
            forbidden[names[i], names[j]] = mask
    age, state, place = (names.index(name) for name in ("age", "state", "place"))
    young = np.array(columns[age][1].highs) < 15 / 99
    assert (forbidden["age", "state"][0] == np.outer(young, [False, True, True])).all()
    assert (forbidden["age", "income"][0][:, :-1] == young[:, None]).all()
    assert not forbidden["age", "income"][0][:, -1].any()
    assert forbidden["sex", "place"][1].tolist() == [[True, False, False], [False, False, False]]
    infants = np.array(columns[age][1].highs) < 3 / 99
    assert (forbidden["age", "sex"][1] == infants[:, None]).all() and not forbidden["age", "sex"][0].any()
    assert state and place


def test_the_fit_leaves_little_where_a_rule_says_none() -> None:
    """Two columns, a forbidden quarter in which the noise put many records: the mixture follows the rule."""
    random = np.random.default_rng(0)
    counts = 1_000 * np.array([[[0.5, 0.2], [0.3, 0.0]]]) + np.array([[[0, 0], [0, 150.0]]])

    class Zeros:
        def forbidden_cells(self, i: int, j: int) -> np.ndarray:
            return np.array([[[False, False], [False, True]]])

        def clear_forbidden(self, blocks: list) -> list:
            return [(i, j, np.where(self.forbidden_cells(i, j), 0.0, counts)) for i, j, counts in blocks]

    def leak(zeros: Zeros | None) -> float:
        blocks = [(0, 1, counts)]
        objective = MarginalObjective(
            Measurement([2, 2], np.ones(1), records=1_000.0, noise_std=50.0, information=0.02),
            [CountedTable((i, j), counts, 1) for i, j, counts in (zeros.clear_forbidden(blocks) if zeros else blocks)],
            kl_penalty=1.5,
            singles=Singles(np.full(4, 0.5), np.full(4, np.inf)),
            zeros=zeros,
        )
        logits, weights = random.standard_normal((20, 4), dtype=np.float32), np.zeros((1, 20), dtype=np.float32)
        minimize(objective, logits, weights, METHOD.training, lambda *_: None)
        cells = np.exp(logits.reshape(20, 2, 2))
        cells /= cells.sum(axis=2, keepdims=True)
        shares = np.exp(weights[0] - weights.max())
        return float((shares / shares.sum() * cells[:, 0, 1] * cells[:, 1, 1]).sum())

    assert leak(Zeros()) < 0.01 < 0.08 < leak(None)
