"""Cells of single columns that noise hides: what ``marginals`` believes of them, and that no fit empties them."""

import dataclasses
import itertools

import numpy as np
import pytest
from toys import schema_with

from likeness.config.training import TrainingSettings
from likeness.features.cells import Cells
from likeness.methods.marginals.mixture import MixtureColumn, ProductMixture
from likeness.methods.marginals.objective import MarginalObjective
from likeness.methods.marginals.rare_cells import RareCells, believed, posterior_mean
from likeness.methods.marginals.structural_zeros import StructuralZeros
from likeness.methods.marginals.training import minimize

SHARES = np.array([0.92, 0.05, 0.02, 0.005, 0.003, 0.002])
SIX = {"kind": "categorical", "categories": [str(value) for value in range(6)]}
COLUMNS = [(Cells(6 * place, 6), None) for place in range(4)]
ROWS, NOISE = np.array([3_000.0, 1_000.0]), 15.0
OF_COLUMN = NOISE * np.sqrt(6 / 3)  # each column stands in three pairs of six cells


def zeros(*rules: object) -> StructuralZeros:
    """Those of a schema with a label of two classes."""
    label = {"kind": "categorical", "categories": ["no", "yes"]}
    return StructuralZeros(schema_with({**dict.fromkeys("abcd", SIX), "y": label}, "y", rules=list(rules)), COLUMNS)


def released(seed: int) -> list[tuple[int, int, np.ndarray]]:
    """Pairs of four independent columns in two classes, under noise."""
    random, cells = np.random.default_rng(seed), np.outer(SHARES, SHARES)
    pairs = itertools.combinations(range(4), 2)
    return [(i, j, ROWS[:, None, None] * cells + random.normal(0, NOISE, (2, 6, 6))) for i, j in pairs]


def margins(blocks: list[tuple[int, int, np.ndarray]], column: int) -> np.ndarray:
    """Mean counts of a column's cells by class."""
    found = [counts.sum(axis=2 if i == column else 1) for i, j, counts in blocks if column in (i, j)]
    return np.asarray(np.mean(found, axis=0))


def test_a_clear_count_stays_and_a_hidden_one_is_rare_and_never_empty() -> None:
    counts = np.array([-40.0, 0.0, 5.0, 20.0, 80.0])
    means = posterior_mean(counts, 10.0)
    assert (np.diff(means) > 0).all() and means[-1] == pytest.approx(80, abs=2)
    assert 0 < means[0] < means[1] < 2 and means[2] < 5


def test_hidden_cells_have_believed_counts_in_the_pairs_and_others_what_was_released() -> None:
    blocks = released(0)
    moved, rare = believed(blocks, [1.0] * 6, [OF_COLUMN] * 4, zeros())
    for column in range(4):
        before, after, hidden = margins(blocks, column), margins(moved, column), rare.hidden[column]
        assert (hidden == (before < 2 * OF_COLUMN)).all() and hidden.any() and not hidden.all()
        assert np.ptp(after - rare.counts[column], axis=1) == pytest.approx([0, 0], abs=1e-9)  # but for the rows
        assert rare.counts[column][~hidden] == pytest.approx(before[~hidden])
        assert rare.counts[column][hidden] == pytest.approx(posterior_mean(before[hidden], OF_COLUMN))
    assert rare.shares.reshape(2, 4, 6).sum(axis=2) == pytest.approx(np.ones((2, 4)))


def test_a_precise_pair_decides_what_is_believed_of_its_columns() -> None:
    """Pair (0, 1) has a million times the weight of the others, so its own sums are those of its columns."""
    blocks = released(0)
    _, rare = believed(blocks, [1e6, *[1.0] * 5], [OF_COLUMN] * 4, zeros())
    clear, alone = ~rare.hidden[0], blocks[0][2].sum(axis=2)
    assert clear.any() and rare.counts[0][clear] == pytest.approx(alone[clear], rel=1e-4)


def test_a_cell_that_a_rule_forbids_in_a_class_is_not_rare_there_but_empty() -> None:
    forbidding = zeros({"never": {"a": "5", "y": "yes"}})
    moved, rare = believed(forbidding.emptied(released(0)), [1.0] * 6, [OF_COLUMN] * 4, forbidding)
    assert rare.hidden[0][:, 5].tolist() == [True, False]
    assert rare.counts[0][1, 5] == margins(moved, 0)[1, 5] == 0 < rare.counts[0][0, 5]


def objective(blocks: list[tuple[int, int, np.ndarray]], rare: RareCells | None) -> MarginalObjective:
    return MarginalObjective(blocks, [6] * 4, [1.0] * 6, ROWS / ROWS.sum(), float(ROWS.sum()), NOISE, 1.5, rare=rare)


def test_the_divergence_of_hidden_cells_is_in_the_loss() -> None:
    """κ = n / σ over 24 cells; the model's cells have a sixth each."""
    moved, rare = believed(released(0), [1.0] * 6, [OF_COLUMN] * 4, zeros())
    model = np.zeros((5, 24), np.float32), np.zeros((2, 5), np.float32)
    shown = dataclasses.replace(rare, hidden=[np.zeros_like(cells) for cells in rare.hidden])
    without, whole = (objective(moved, one).loss(*model)[0] for one in (shown, rare))
    classes = (ROWS / ROWS.sum())[:, None]
    held, fitted = classes * rare.shares, classes / 6
    terms = np.concatenate(rare.hidden, axis=1) * (held * np.log(held / fitted) - held + fitted)
    assert whole - without == pytest.approx(ROWS.sum() / (24 * OF_COLUMN) * terms.sum(), rel=1e-4)


def divergence(seed: int, trusting: bool) -> float:
    """Mean KL divergence of the true single columns from those of a fit."""
    blocks, rare = released(seed), None
    if trusting:
        blocks, rare = believed(blocks, [1.0] * 6, [OF_COLUMN] * 4, zeros())
    mixture = ProductMixture([MixtureColumn(cells) for cells, _ in COLUMNS], 2, 50, 24)
    mixture.start_from(np.tile(SHARES, 4), np.random.default_rng(0))
    settings = TrainingSettings(300, 1, 0.2, "cosine")
    minimize(objective(blocks, rare), mixture.logits, mixture.weights, settings, lambda *_: None)
    parts, weights = mixture.exact()
    fitted = [np.maximum(weights @ part, 1e-6) for part in parts]
    return float(np.mean([(SHARES * np.log(SHARES / cells)).sum(axis=1) for cells in fitted]))


def test_a_fit_that_believes_them_has_two_thirds_of_the_divergence_in_single_columns() -> None:
    """Three releases; noise empties cells of the other fit."""
    before, after = (np.mean([divergence(seed, trusting) for seed in range(3)]) for trusting in (False, True))
    assert after < 2 / 3 * before
