"""The counting path of the door: the same sum as the dense path, the same bound, whatever the map returns."""

import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_maps import Trigonometric

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import CellMap, FeatureMap
from likeness.features.cells import Cells, CodedRows
from likeness.features.column_marginals import ColumnMarginals, Constant
from likeness.methods.marginals.column_steps import ColumnSteps, Steps
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.pair_products import PairProducts
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import AllRecords, EachPerson, EachRecord, Records
from likeness.release.sums.clipping import to_lattice
from likeness.release.sums.lattice_sum import lattice_sum

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE
COLUMNS = (Cells(0, 3), Cells(3, 4, (0.25, 0.5, 0.75)), Cells(4, 3, (0.5,), missing=True))
PLAIN, WEIGHTED = PairMarginals(COLUMNS), PairMarginals(COLUMNS, (1, 5, 2))
SOME = PairMarginals(COLUMNS, (1, 5), pairs=((0, 1), (1, 2)))
TABLED = PairMarginals(COLUMNS, tables=((0,), (0, 1, 2)), squared_table_weight=0.7)


def table(n: int, seed: int, classes: int = 2) -> Records:
    generator = np.random.default_rng(seed)
    x = np.zeros((n, 6))
    x[np.arange(n), generator.integers(0, 3, n)] = 1
    x[:, 3:5] = generator.random((n, 2)).round(2)
    x[:, 5] = generator.random(n) < 0.3
    return Records(x, generator.integers(0, classes, n))


@pytest.mark.long
@pytest.mark.parametrize("feature", [PLAIN, WEIGHTED, SOME, TABLED])
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), n=st.integers(0, 60))
def test_counting_gives_the_sum_of_the_dense_features(feature: PairMarginals, seed: int, n: int) -> None:
    query, records = Query("q", "privatize", feature, num_groups=2), table(n, seed)
    dense = to_lattice(feature(records.x), feature.bounded_parts, query.lattice_bits)
    expected = np.stack([dense[records.labels == group].sum(axis=0) for group in range(2)])
    found = lattice_sum(query, [records])
    # The dense path shortens a vector of irrational length in steps; here the length is the largest integer.
    assert np.abs(found - expected).max(initial=0) <= max(1, n) * 2
    if feature is PLAIN:
        assert np.array_equal(found, expected)


def coded(records: Records) -> Records:
    """The same rows, column by column."""
    x = np.asarray(records.x)
    columns = {
        (0, 3, False): x[:, :3].argmax(axis=1),
        (3, 0, False): x[:, 3],
        (4, 0, True): np.where(x[:, 5] > 0.5, np.nan, x[:, 4]),
    }
    return Records(CodedRows(columns, len(x), lambda: x), records.labels, records.persons)


@pytest.mark.parametrize(
    "feature",
    [
        TABLED,
        ColumnMarginals(COLUMNS),
        ColumnMarginals(
            (Cells(0, 2), Cells(1, 2, (0.5,)), Cells(0, 2, (0.5,)), Cells(4, 2, (0.5,)))
        ),  # not as they are encoded
        ColumnSteps((Steps(3, 0, 10, (5.0, 1.0)), Steps(4, 0, 10, (2.0,), missing=True))),
        PairProducts(COLUMNS, ((0, 1, 2), (0,) * 4, (0, 0, 1)), ((1.0,) * 3, (-1.0, -0.3, 0.3, 1.0), (-0.5, 0.7, 1.0))),
        Trigonometric(4, 6, 1.5, seed=0),
    ],
    ids=lambda feature: feature.name,
)
@pytest.mark.parametrize("contributions", [EachRecord(), AllRecords(), EachPerson()], ids=lambda one: one.terms)
def test_columns_give_the_sum_of_dense_rows(feature: Any, contributions: EachRecord) -> None:
    """Rows on edges, missing, of a class that no group has, and several of a person."""
    rows = table(400, 5, 3)
    rows = Records(rows.x, rows.labels - 1, np.sort(np.random.default_rng(6).integers(0, 90, 400)))
    query = Query("q", "privatize", feature, num_groups=2, contributions=contributions)
    if query.is_per_person and not isinstance(feature, CellMap):
        return
    chunks = [coded(rows)[:150], coded(rows)[150:]]
    assert np.array_equal(lattice_sum(query, chunks), lattice_sum(query, [rows]))


SIDE_BY_SIDE = sorted({*np.linspace(0, 1, 9)[1:-1].tolist(), *(0.3 + np.arange(500) * 1e-8).tolist()})


@pytest.mark.parametrize(
    "edges", [(0.5,), sorted(np.random.default_rng(0).random(200) ** 4), (-0.5, 0, 1e-12, 1), SIDE_BY_SIDE]
)
def test_bins_are_those_of_a_search(edges: Sequence[float]) -> None:
    at = np.array([*edges, *np.random.default_rng(0).random(500), 0, 1, -0.0, 0.25, 1 / 4096])
    values = np.concatenate([at, np.nextafter(at, -1), np.nextafter(at, 2), [-1, 2, np.inf, -np.inf, -1e-20]])
    places = Cells(0, len(edges) + 1, tuple(edges)).cell_indices(values[:, None])
    assert np.array_equal(places, np.searchsorted(edges, values, side="right"))


def test_a_cell_outside_its_column_is_refused() -> None:
    """Its number would be that of a cell of another class."""
    rows = Records(CodedRows({(0, 3, False): np.array([3])}, 1, lambda: np.zeros((1, 3))), np.zeros(1, np.int64))
    with pytest.raises(ReleaseError, match="in no cell"):
        lattice_sum(Query("q", "privatize", ColumnMarginals(COLUMNS[:1]), num_groups=2), [rows])


@pytest.mark.long
@pytest.mark.parametrize("feature", [PLAIN, WEIGHTED, SOME, TABLED])
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 30), classes=st.integers(1, 3))
def test_neighbors_are_no_farther_apart_than_stated(
    feature: PairMarginals, adjacency: Adjacency, seed: int, n: int, classes: int
) -> None:
    query = Query("q", "privatize", feature, num_groups=classes)
    one, other = table(n, seed, classes), table(n, seed + 1, classes)
    if adjacency is ADD:
        neighbor = Records(one.x[:-1], one.labels[:-1])
    else:
        neighbor = Records(np.r_[one.x[:-1], other.x[-1:]], np.r_[one.labels[:-1], other.labels[-1:]])
    difference = lattice_sum(query, [one]) - lattice_sum(query, [neighbor])
    assert int((difference.astype(object) ** 2).sum()) <= query.sensitivity_squared(adjacency)


def test_the_stated_sensitivity_is_reached() -> None:
    """No slack: all of the first row's cells differ from the second's, and so do the classes."""
    for classes, adjacency in ((1, ADD), (1, REPLACE), (2, REPLACE)):
        query = Query("q", "privatize", PLAIN, num_groups=classes)
        x = np.array([[1, 0, 0, 0.1, 0.1, 0], [0, 1, 0, 0.9, 0.9, 0]], dtype=np.float64)
        labels = np.array([0, classes - 1])
        one = lattice_sum(query, [Records(x[:1], labels[:1])])
        other = lattice_sum(query, [Records(x[1:], labels[1:])]) if adjacency is REPLACE else np.zeros_like(one)
        distance = int(((one - other).astype(object) ** 2).sum())
        assert distance == query.sensitivity_squared(adjacency)


class Liar:
    """A map that says places as it likes."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    bounded_parts = (Part(3, Fraction(1), nonnegative=True), Part(2, Fraction(4), nonnegative=True))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        raise AssertionError("the dense path is not for cell maps")

    def cell_indices(self, x: np.ndarray) -> Any:
        return self.answer

    def spec(self) -> dict[str, Any]:
        return {"map": "liar"}


@pytest.mark.parametrize("answer", [[[3, -1]], [[1, 1]], [[-(2**63), 2**63 - 1]], [[0, 5]], [[100, 100]]])
@pytest.mark.parametrize("label", [0, 1, 2, -1, -(2**63)])
def test_a_place_outside_its_part_or_class_counts_nothing(answer: list[list[int]], label: int) -> None:
    query = Query("q", "privatize", Liar(np.array(answer)), num_groups=2)
    assert isinstance(query.feature, CellMap)
    found = lattice_sum(query, [Records(np.zeros((1, 1)), np.array([label]))])
    own = [0 <= place < part.width for place, part in zip(answer[0], Liar.bounded_parts, strict=True)]
    expected = sum(int(part.norm_bound_squared) for part, inside in zip(Liar.bounded_parts, own, strict=True) if inside)
    if not 0 <= label < 2:
        expected = 0
    assert int((found.astype(object) ** 2).sum()) == expected * 4**query.lattice_bits


@pytest.mark.parametrize(
    "answer",
    [
        np.array([[0.0, 1.0]]),
        np.array([[0]]),
        np.array([0, 1]),
        np.array([[0, 1], [0, 1]]),
        np.array([[0, 1]], dtype=np.int8),
        np.array([[0, 1]], dtype=np.uint64),
        "cell_indices",
    ],
)
def test_places_of_another_shape_or_kind_are_refused(answer: Any) -> None:
    query = Query("q", "privatize", Liar(answer), num_groups=2)
    with pytest.raises(ReleaseError, match="one int64 place a part"):
        lattice_sum(query, [Records(np.zeros((1, 1)), np.array([0]))])


@pytest.mark.long
@pytest.mark.parametrize("feature", [PLAIN, Trigonometric(4, 6, 1.5, seed=0)])
@pytest.mark.parametrize(
    "labels",
    [np.zeros(9, np.int8), np.zeros(9), np.zeros(9, np.uint64), np.zeros(8, np.int64), np.zeros((9, 1), np.int64)],
)
def test_labels_that_could_overflow_are_refused(feature: FeatureMap, labels: np.ndarray) -> None:
    """A narrow type would wrap where class and width are multiplied, and put a record where its bound does not hold."""
    with pytest.raises(ReleaseError, match="one int64 a contribution"):
        lattice_sum(Query("q", "privatize", feature, num_groups=4), [Records(table(9, 0).x, labels)])


def test_chunks_and_order_do_not_change_the_sum() -> None:
    query, records = Query("q", "privatize", WEIGHTED, num_groups=2), table(500, 3)
    whole = lattice_sum(query, [records])
    order = np.random.default_rng(0).permutation(500)
    parts = [Records(records.x[block], records.labels[block]) for block in np.array_split(order, 7)]
    assert np.array_equal(lattice_sum(query, parts), whole)


@pytest.mark.parametrize("classes", [1, 3])
def test_records_are_counted_exactly(classes: int) -> None:
    """By cells, as by vectors: so many steps of a record's unit for each."""
    query, records = Query("q", "auxiliary", Constant(), num_groups=classes), table(57, 3, classes)
    counts = np.bincount(records.labels, minlength=classes)[:, None]
    assert np.array_equal(lattice_sum(query, [records]), counts * 2**query.lattice_bits)


@pytest.mark.process
def test_sums_of_marginals_and_moments_load_no_torch() -> None:
    """The small installation has no torch, and it would take as much memory as all the rest of a release."""
    code = """
import sys
import numpy as np
from likeness.features.column_marginals import Constant
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.features.cells import Cells
from likeness.release.door import Door
from likeness.release.sums.lattice_sum import lattice_sum
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.methods.maps import MAPS
rows = Records(np.eye(4), np.zeros(4, dtype=np.int64))
of_images = {"cosine_moments": (3, 1.0, 0.3), "cosine_norms": (3, 5), "cosine_levels": (3, 2, 0.5)}
of_images["level_counts"] = 2, 5
images = [MAPS[name]((2, 2), *arguments) for name, arguments in of_images.items() if name in MAPS]
for feature in (Constant(), PairMarginals((Cells(0, 2), Cells(2, 2))), *images):
    assert lattice_sum(Query("q", "auxiliary", feature, num_groups=1), [rows]).any()
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
