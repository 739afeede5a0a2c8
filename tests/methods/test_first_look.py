"""A first look at the pairs in ``marginals``: what it says of them, and the budgets that follow from it."""

import dataclasses
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from toys import plan_with, schema_with

from likeness import Synthesizer
from likeness.config.typed import build
from likeness.core.errors import ReleaseError
from likeness.features.cells import Cells
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods.base import EMBEDDING, Context
from likeness.methods.marginals.first_look import MEAN_WEIGHT, PAIRS_FIRST, allotted, both, squared_strengths
from likeness.methods.marginals.method import Marginals
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.pipeline.consistency import auxiliary_of, queries_of
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency
from likeness.release.records import Records
from likeness.release.request import check_answer
from likeness.release.sums.lattice_sum import lattice_sum

SIX = [str(value) for value in range(6)]
SCHEMA = schema_with({name: {"kind": "categorical", "categories": SIX} for name in "abcd"})
CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)
HEAVY = [{"columns": ["a"], "weight": 2}]


def method_of(**settings: Any) -> Marginals:
    return build(Marginals, {"privatize": settings}, "marginals")


def risk(strengths: list[float], noises: list[float], weights: tuple[int, ...]) -> float:
    variances = [noise * MEAN_WEIGHT / weight for noise, weight in zip(noises, weights, strict=True)]
    return math.fsum(d * v / (d + v) for d, v in zip(strengths, variances, strict=True))


def test_no_budget_that_moves_between_two_pairs_lowers_the_risk() -> None:
    strengths, noises = [900.0, 40.0, 300.0, 0.5, 60.0], [20.0, 10.0, 80.0, 30.0, 10.0]
    weights = allotted(strengths, noises)
    assert sum(weights) == MEAN_WEIGHT * 5 and min(weights) == weights[3] == MEAN_WEIGHT // 2
    for giver, taker in itertools.permutations(range(5), 2):
        moved = list(weights)
        moved[giver], moved[taker] = moved[giver] - 1, moved[taker] + 1
        if moved[giver] >= MEAN_WEIGHT // 2:
            assert risk(strengths, noises, tuple(moved)) > risk(strengths, noises, weights) * (1 - 1e-3)
    assert risk(strengths, noises, weights) < 0.9 * risk(strengths, noises, (MEAN_WEIGHT,) * 5)


@pytest.mark.parametrize(
    ("strengths", "noises"),
    [([0.0] * 3, [5.0] * 3), ([1e9] * 3, [5.0] * 3), ([7.0, 0.0, 1.0], [0.0] * 3)],
    ids=["nothing stands out", "all are far above the noise", "no noise"],
)
def test_budgets_are_even_where_no_pair_needs_more(strengths: list[float], noises: list[float]) -> None:
    assert allotted(strengths, noises) == (MEAN_WEIGHT,) * 3


def test_strengths_are_those_of_the_rows_without_the_noise() -> None:
    """10^4 rows of two columns that are one, and a third of its own, with σ = 30."""
    columns = tuple(Cells(6 * place, 6) for place in range(3))
    first, random = PairMarginals(columns), np.random.default_rng(0)
    base = random.integers(0, 6, 10_000)
    codes = np.stack([base, base, random.integers(0, 6, 10_000)], axis=1)
    blocks = []
    for i, j in first.column_pairs:
        counts = np.bincount(codes[:, i] * 6 + codes[:, j], minlength=36).reshape(1, 6, 6)
        blocks.append(counts + np.rint(random.normal(0, 30, (1, 6, 6))).astype(np.int64))
    one, *others = squared_strengths(first, blocks, 30.0)
    assert one == pytest.approx(10_000**2 * 5 / 36, rel=0.1)
    assert max(others) < 25_000  # of noise alone 36 · 30² would be left


def test_every_machine_computes_these_budgets() -> None:
    """The second query holds them, so another order of sums may not change one. Counts by a formula, in two classes."""
    columns = tuple(Cells(0, size) for size in (3, 4, 5))
    first = PairMarginals(columns)
    blocks = [
        np.array([(37 * k * k + 11 * k) % 101 * 2**20 for k in range(2 * a * b)], np.int64).reshape(2, a, b)
        for a, b in first.sizes
    ]
    strengths = squared_strengths(first, blocks, 2.0**23)
    assert [strength.hex() for strength in strengths] == STRENGTHS
    assert allotted(strengths, [block.size * 2.0**44 for block in blocks]) == WEIGHTS


STRENGTHS = ["0x1.102a6499646e1p+52", "0x1.a0c666175ccbep+53", "0x1.245394d6a5428p+54"]
WEIGHTS = (17, 20, 23)


def test_both_releases_count_by_their_precision() -> None:
    ((i, j, counts),), weights = both([(0, 1, np.full((1, 2, 2), 6.0))], [3], [(0, 1, np.zeros((1, 2, 2)))], 1.5)
    assert (i, j, weights) == (0, 1, [4.5]) and (counts == 4.0).all()


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_both_queries_hold_their_sensitivity_on_neighbors_and_are_foreseen(adjacency: Adjacency) -> None:
    """One row more, or another one. The budgets are not known before the look, but what they sum to is."""
    columns = tuple(Cells(6 * place, 6) for place in range(4))
    counts, first, even = method_of(first_share=0.2).foreseen_queries(CONTEXT)
    uneven = dataclasses.replace(even, feature=PairMarginals(columns, (70, 10, 10, 10, 10, 10)))
    assert counts.name != first.name == PAIRS_FIRST and even.name == EMBEDDING
    assert even.lattice_bits == uneven.lattice_bits
    x = np.eye(6)[np.random.default_rng(0).integers(0, 6, (9, 4))].reshape(9, 24)
    labels = np.zeros(9, np.int64)
    for query in (first, uneven):
        other = x.copy()
        other[0] = np.roll(x[0].reshape(4, 6), 1, axis=1).reshape(24)
        less = Records(x[1:], labels[1:])
        neighbor = less if adjacency is Adjacency.ADD_REMOVE_ONE else Records(other, labels)
        moved = (lattice_sum(query, [Records(x, labels)]) - lattice_sum(query, [neighbor])).astype(object)
        assert int((moved**2).sum()) <= query.sensitivity_squared(adjacency)
        assert int((moved**2).sum()) == pytest.approx(query.sensitivity_squared(adjacency), rel=1e-6)
    assert uneven.sensitivity_squared(adjacency) == pytest.approx(even.sensitivity_squared(adjacency), rel=1e-6)


def test_check_notes_a_first_look_without_effect() -> None:
    (hint,) = method_of(first_share=0.25, workload=HEAVY).hints(CONTEXT.schema)
    assert "marginals.privatize.first_share has no effect" in hint
    assert method_of(first_share=0.25).hints(CONTEXT.schema) == [] == method_of(workload=HEAVY).hints(CONTEXT.schema)


def test_the_look_takes_its_part_of_the_embeddings_share_where_there_is_a_choice() -> None:
    shares = {share.query: share.share for share in method_of(first_share=0.25).shares(CONTEXT)}
    assert shares == {"class_counts": 0.03, PAIRS_FIRST: 0.97 * 0.25, EMBEDDING: 0.97 * 0.75}
    assert math.isclose(
        plan_with(method_of(first_share=0.25).shares(CONTEXT)).rho, plan_with(method_of().shares(CONTEXT)).rho
    )
    two = Context(
        schema_with({name: {"kind": "categorical", "categories": SIX} for name in "ab"}), "add_remove_one", None, 0
    )
    for method, context in ((method_of(), CONTEXT), (method_of(first_share=0.25, workload=HEAVY), CONTEXT),
                            (method_of(first_share=0.25), two)):  # fmt: skip
        assert [share.query for share in method.shares(context)] == ["class_counts", EMBEDDING]
        assert [query.name for query in method.foreseen_queries(context)] == ["class_counts", EMBEDDING]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    """Of 4,000 rows; b is a, the other columns are of their own."""
    folder, random = tmp_path_factory.mktemp("first_look"), np.random.default_rng(0)
    codes = random.integers(0, 6, (4_000, 4))
    codes[:, 1] = codes[:, 0]
    rows = pd.DataFrame({name: pd.Categorical.from_codes(codes[:, at], SIX) for at, name in enumerate("abcd")})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIKENESS_HOME", str(folder / "ledger"))
        patch.setenv("LIKENESS_ANCHOR", str(folder / "anchor"))
        Ledger.create(locate())
        settings = {"privatize": {"first_share": 0.2}, "train": {"num_components": 50, "iterations": 200}}
        return Synthesizer(schema=SCHEMA, population="people", epsilon=1.0, settings=settings).fit(rows)


def test_a_fit_looks_first_and_says_so(fitted: Synthesizer) -> None:
    weights = fitted.releases_[EMBEDDING].receipt.feature["squared_weights"]
    assert weights[0] == max(weights) > MEAN_WEIGHT and sum(weights) == 6 * MEAN_WEIGHT
    note = f"Budgets of pairs of columns follow their dependence in the noisy release `{PAIRS_FIRST}`."
    assert note in fitted.privacy["notes"]


def test_a_strong_pair_comes_out_as_it_was_released(fitted: Synthesizer) -> None:
    """Its synthetic table lies within the noise of both releases together: no cell is off by five deviations."""
    project = Project(Path(), fitted.params(), SCHEMA)
    released = {one.receipt.query: one for one in fitted.releases_.values()}
    assert isinstance(project.method, Marginals)
    ((_, _, counts), *_), (weight, *_), _ = project.method._blocks(
        CONTEXT, auxiliary_of(released.values()), released[EMBEDDING]
    )
    noise = released[EMBEDDING].noise_std / math.sqrt(weight)
    rows = fitted.sample(4_000)
    table = pd.crosstab(rows["a"], rows["b"]).reindex(index=SIX, columns=SIX, fill_value=0).to_numpy()
    assert np.abs(table - counts[0]).max() < 5 * noise
    assert np.trace(table) > 0.9 * 4_000


def test_a_look_that_is_drawn_again_leaves_the_budgets_of_the_release(fitted: Synthesizer) -> None:
    """Replicates draw both again. Counts of one weight may not be read as those of another."""
    released, method = fitted.releases_, Project(Path(), fitted.params(), SCHEMA).method
    assert isinstance(method, Marginals)
    auxiliary = auxiliary_of(released.values())
    look = auxiliary[PAIRS_FIRST]
    other = dataclasses.replace(look, lattice=look.lattice // 1_000)
    _, weights, _ = method._blocks(CONTEXT, auxiliary, released[EMBEDDING])
    assert method._blocks(CONTEXT, {**auxiliary, PAIRS_FIRST: other}, released[EMBEDDING])[1] == weights
    assert len(list(fitted.sample(10, replicates=2))) == 3


def test_the_fit_believes_single_columns_by_the_noise_of_both_releases(fitted: Synthesizer) -> None:
    """Each pair measures a cell of its columns as the sum of six cells, in both releases."""
    released, method = fitted.releases_, Project(Path(), fitted.params(), SCHEMA).method
    assert isinstance(method, Marginals)
    auxiliary, embedding = auxiliary_of(released.values()), released[EMBEDDING]
    _, weights, rare = method._blocks(CONTEXT, auxiliary, embedding)
    assert rare is not None
    for column, noises in enumerate(rare.noises):
        pairs = itertools.combinations(range(4), 2)
        precision = sum(weight / 6 for pair, weight in zip(pairs, weights, strict=True) if column in pair)
        assert noises == pytest.approx(embedding.noise_std / math.sqrt(precision))
    assert method.objective(CONTEXT, auxiliary, embedding)._rare is not None
    exact = dataclasses.replace(embedding, receipt=dataclasses.replace(embedding.receipt, noise_scale=0.0))
    for other, answer in ((method.unpenalized(), embedding), (method, exact)):
        assert other._blocks(CONTEXT, auxiliary, answer)[2] is None


def test_other_budgets_than_those_of_the_first_look_are_another_query(fitted: Synthesizer) -> None:
    """Budgets that follow the rows would be learned for free. The query, made again, has those of the look."""
    released, project = fitted.releases_, Project(Path(), fitted.params(), SCHEMA)
    auxiliary, embedding = auxiliary_of(released.values()), released[EMBEDDING]
    queries = queries_of(project, project.plan, project.row_sets, auxiliary)
    check_answer(*queries[EMBEDDING], embedding, "embedding")
    feature = json.loads(json.dumps(embedding.receipt.feature))
    feature["squared_weights"][0] -= 1
    feature["squared_weights"][1] += 1
    lie = dataclasses.replace(embedding, receipt=dataclasses.replace(embedding.receipt, feature=feature))
    with pytest.raises(ReleaseError, match="answers another question"):
        check_answer(*queries[EMBEDDING], lie, "embedding")
    look = auxiliary[PAIRS_FIRST]
    hidden = dataclasses.replace(look, lattice=look.lattice // 1_000)  # nothing is left of the dependence
    others = queries_of(project, project.plan, project.row_sets, {**auxiliary, PAIRS_FIRST: hidden})
    with pytest.raises(ReleaseError, match="answers another question"):
        check_answer(*others[EMBEDDING], embedding, "embedding")
