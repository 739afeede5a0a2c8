"""The counting path of the door: the same sum as the dense path, the same bound, whatever the map returns.

The dense path, on which the guarantee rests: exact, clipped, and no farther apart than stated on neighboring tables.
"""

import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from toy_maps import Products, Trigonometric

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features import cells as features_cells
from likeness.features.base import CellMap, FeatureMap
from likeness.features.cells import Cells, CodedRows
from likeness.features.column_marginals import ColumnMarginals, Constant
from likeness.methods.marginals.column_steps import ColumnSteps, Steps
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.pair_products import PairProducts
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import AllRecords, BucketPairs, EachPerson, EachRecord, PositionPairs, Records
from likeness.release.sums import counts
from likeness.release.sums.backends import counted_sum
from likeness.release.sums.clipping import BLOCK, to_lattice
from likeness.release.sums.lattice_sum import block_rows, lattice_sum
from likeness.testing.maps import check_neighbors, distance_squared
from tests.contracts.method_examples import DOOR

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


class Unnumbered(EachPerson):
    """Leaves out how many rows a person has, so that each would count in full."""

    stream = EachRecord.stream


def test_rows_of_a_person_share_its_steps_and_lists_of_values_give_their_cells() -> None:
    cells = Cells(0, 3, (0.25, 0.5))
    for units in (np.array([0.1, 0.3, 0.9]), np.array([0.9, 0.1, 0.3])):
        rows = CodedRows({(0, 0, False): (np.array([0, 0, 1, 2], np.int8), units)}, 4, lambda: np.zeros((4, 1)))
        records = Records(rows, np.zeros(4, np.int64), np.array([0, 1, 1, 1]))
        query = Query("q", "privatize", ColumnMarginals((cells,)), contributions=EachPerson())
        step, (total,) = query.bounded_parts[0].steps(query.lattice_bits), lattice_sum(query, [records])
        expected = np.zeros(3, np.int64)
        np.add.at(expected, np.searchsorted([0.25, 0.5], units)[[0, 0, 1, 2]], [step, *[step // 3] * 3])
        assert total.tolist() == expected.tolist()
        numbered, query = replace(records, shared_by=np.ones(4, np.int64)), replace(query, contributions=Unnumbered())
        for wrong, asked in ((records, query), (numbered, replace(query, contributions=EachRecord()))):
            with pytest.raises(ReleaseError, match="rows share a contribution where"):
                lattice_sum(asked, [wrong])


SIDE_BY_SIDE = sorted({*np.linspace(0, 1, 9)[1:-1].tolist(), *(0.3 + np.arange(500) * 1e-8).tolist()})


@pytest.mark.parametrize(
    "edges", [(0.5,), sorted(np.random.default_rng(0).random(200) ** 4), (-0.5, 0, 1e-12, 1), SIDE_BY_SIDE]
)
def test_bins_are_those_of_a_search(edges: Sequence[float]) -> None:
    at = np.array([*edges, *np.random.default_rng(0).random(500), 0, 1, -0.0, 0.25, 1 / 4096])
    values = np.concatenate([at, np.nextafter(at, -1), np.nextafter(at, 2), [-1, 2, np.inf, -np.inf, -1e-20]])
    places = Cells(0, len(edges) + 1, tuple(edges)).cell_indices(values[:, None])
    assert np.array_equal(places, np.searchsorted(edges, values, side="right"))


@pytest.mark.process
@given(data=st.data())
def test_counts_and_cells_are_the_same_compiled_or_not(built_module: Callable[[str], Any], data: st.DataObject) -> None:
    """Of tables with columns in common, of any number of columns, and of rows of groups that the query lacks."""
    module = built_module("likeness.features.cell_counts")
    sizes = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=6))
    columns = [Cells(place, size, tuple(np.arange(1, size) / size)) for place, size in enumerate(sizes)]
    tables = data.draw(st.lists(st.lists(st.sampled_from(columns), max_size=3), min_size=1, max_size=12))
    rows, groups = data.draw(st.integers(0, 50)), data.draw(st.integers(1, 3))
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    cells = [generator.integers(0, size, rows) for size in sizes]
    x = np.stack([at / size for at, size in zip(cells, sizes, strict=True)], axis=1).reshape(rows, len(sizes))
    records = [Records(x, generator.integers(-1, groups + 1, rows))]
    query, found = Query("q", "auxiliary", Constant(), num_groups=groups), []
    for made_by in (module, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(counts, "compiled", made_by and made_by.count_cells)
            patch.setattr(features_cells, "find_cells", made_by and made_by.find_cells)
            found.append(counts.count_tables(query, tables, range(1, len(tables) + 1), records))
    expected = [np.zeros((groups, math.prod(column.size for column in table)), np.int64) for table in tables]
    for row in np.flatnonzero((records[0].labels >= 0) & (records[0].labels < groups)):
        for step, (table, total) in enumerate(zip(tables, expected, strict=True), 1):
            shape, at = [column.size for column in table], [cells[column.start][row] for column in table]
            total[records[0].labels[row], np.ravel_multi_index(at, shape) if table else 0] += step
    for every in found:
        assert all(np.array_equal(one, other) for one, other in zip(every, expected, strict=True))
    edges, values = np.append(np.sort(generator.random(9)), np.nan), np.append(generator.random(20) * 3 - 1, np.nan)
    firsts = np.searchsorted(edges[:-1], np.arange(4096) / 4096, side="right")
    cells_of_values = np.frombuffer(module.find_cells(values, edges, firsts), np.uint16)
    assert cells_of_values[:-1].tolist() == np.searchsorted(edges[:-1], values[:-1], side="right").tolist()
    for wrong in ((values, edges[:-1], firsts), (values, edges, firsts[1:]), (values, edges, firsts - 11)):
        with pytest.raises(ValueError, match="begins at one"):
            module.find_cells(*wrong)
    outside = np.array([4], np.uint16), np.zeros(5, np.int64)[:4]
    short = outside[0][1:]
    for places, shape in ((outside[:1], (2,)), (outside[:1], (4,)), ((short, outside[0]), (2, 2)), ((), ())):
        with pytest.raises(ValueError, match="in no cell"):
            module.count_cells(places, shape, outside[1])


def test_a_cell_outside_its_column_is_refused() -> None:
    """Its number would be that of a cell of another class."""
    for cell in (3, -1):
        rows = Records(CodedRows({(0, 3, False): np.array([cell])}, 1, lambda: np.zeros((1, 3))), np.zeros(1, np.int64))
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

    bounded_parts = (Part(2**16, Fraction(1), nonnegative=True), Part(2, Fraction(4), nonnegative=True))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        raise AssertionError("the dense path is not for cell maps")

    def cell_indices(self, x: np.ndarray) -> Any:
        return self.answer

    def spec(self) -> dict[str, Any]:
        return {"map": "liar"}


@pytest.mark.parametrize("answer", [[[2**16, -1]], [[1, 1]], [[-(2**63), 2**63 - 1]], [[0, 5]], [[10**5, 100]]])
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
        *(np.array([[0.0, 1.0]]), np.array([[0]]), np.array([0, 1]), np.array([[0, 1], [0, 1]])),
        *(np.array([[0, 1]], dtype=np.int8), np.array([[0, 1]], dtype=np.uint64), "cell_indices"),
    ],
)
def test_places_of_another_shape_or_kind_are_refused(answer: Any) -> None:
    query = Query("q", "privatize", Liar(answer), num_groups=2)
    with pytest.raises(ReleaseError, match="one int64 place a part"):
        lattice_sum(query, [Records(np.zeros((1, 1)), np.array([0]))])


def test_counts_that_no_table_has_are_refused_and_a_person_s_steps_are_rounded_down() -> None:
    """Nine rows of people of three, and eighteen of people of six; each has its share of the steps."""
    query = Query("q", "privatize", Constant(), contributions=EachPerson())
    numbers = np.array([[0], [5], [0], [9], [0], [0], [18]])
    table = SimpleNamespace(max_rows=6, is_per_person=True, counts=lambda *_: ([numbers], 32))
    (step,) = (part.steps(query.lattice_bits) for part in query.bounded_parts)
    assert counted_sum(query, table)[0].item() == 5 * step + 9 * (step // 3) + 18 * (step // 6)
    for wrong, records in ((numbers, 31), (numbers - 1, 32), (numbers + 1, 99)):
        table.counts = lambda *_, answer=([wrong], records): answer
        with pytest.raises(ReleaseError, match=r"more records than there are|a person without rows"):
            counted_sum(query, table)


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


ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE
FEATURES: list[FeatureMap] = [
    Trigonometric(12, 4, 1.5, seed=0),
    Constant(),
    Products(((0, None), (1, None)), ((2, 4),), 3, ((0, 1), (1, 2)), 0.75),
    *DOOR["records"],
]


class Answering:
    """A map that declares a norm of 1 and returns whatever it likes."""

    def __init__(self, answer: Tensor, nonnegative: bool = False) -> None:
        self.answer = answer
        self.nonnegative = nonnegative

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        return (Part(self.answer.shape[1], Fraction(1), self.nonnegative),)

    def __call__(self, x: Tensor) -> Tensor:
        return self.answer[: len(x)] if len(x) <= len(self.answer) else self.answer.repeat(len(x), 1)[: len(x)]

    def spec(self) -> dict[str, Any]:
        return {"map": "liar"}


def mixed_table(n: int, seed: int, classes: int = 2) -> Records:
    generator = np.random.default_rng(seed)
    x = generator.random((n, 4)).round(1)
    x[:, 2:] = np.eye(2)[(x[:, 2] > 0.5).astype(int)]
    return Records(x, generator.integers(0, classes, n))


def chunks(records: Records, size: int) -> list[Records]:
    places = range(0, len(records.x), size)
    return [Records(records.x[p : p + size], records.labels[p : p + size]) for p in places]


@pytest.mark.long
@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.spec()["map"])
@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 30), seed=st.integers(0, 10**6), data=st.data())
def test_sensitivity_on_neighboring_tables(feature: FeatureMap, n: int, seed: int, data: st.DataObject) -> None:
    query = Query("q", "privatize", feature, num_groups=2)
    check_neighbors(query, mixed_table, n, seed, data.draw(st.integers(0, n - 1)))


@pytest.mark.parametrize(
    "feature", [Trigonometric(4, 8, 1.5, seed=0), *DOOR["pairs of records"]], ids=lambda f: f.spec()["map"]
)
@settings(deadline=None, max_examples=30)
@given(n=st.integers(2, 30), seed=st.integers(0, 10**6), data=st.data())
def test_sensitivity_of_pair_distances(feature: FeatureMap, n: int, seed: int, data: st.DataObject) -> None:
    records = mixed_table(n, seed)
    place = data.draw(st.integers(0, n - 1))
    dice = np.random.default_rng(seed).integers(0, 2**63, n).astype(np.uint64)
    kept = np.delete(np.arange(n), place)

    def bucket_sum(rows: np.ndarray) -> np.ndarray:
        query = Query("q", "auxiliary", feature, contributions=BucketPairs(4, lambda count: dice[rows]))
        return lattice_sum(query, [Records(records.x[rows], records.labels[rows])])

    add = Query("q", "auxiliary", feature, contributions=BucketPairs(4))
    assert distance_squared(bucket_sum(np.arange(n)), bucket_sum(kept)) <= add.sensitivity_squared(ADD)
    replace = Query("q", "auxiliary", feature, contributions=PositionPairs(2, 0))
    other = Records(records.x.copy(), records.labels)
    other.x[place] = mixed_table(1, seed + 1).x[0]
    moved = distance_squared(lattice_sum(replace, [records]), lattice_sum(replace, [other]))
    assert moved <= replace.sensitivity_squared(REPLACE)


def test_sensitivity_is_reached() -> None:
    """The bound is not slack: one record moves a characteristic function by its whole norm, up to truncation."""
    query = Query("q", "privatize", FEATURES[0])
    one = distance_squared(lattice_sum(query, [mixed_table(1, 0)]), np.zeros(1, dtype=np.int64))
    assert one >= query.sensitivity_squared(ADD) * (1 - 1e-6)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.spec()["map"])
@given(size=st.integers(1, 40), order_seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=10)
def test_chunks_and_order_change_no_bit(feature: FeatureMap, size: int, order_seed: int) -> None:
    query = Query("q", "privatize", feature, num_groups=2)
    records = mixed_table(40, 5)
    order = np.random.default_rng(order_seed).permutation(40)
    shuffled = Records(records.x[order], records.labels[order])
    assert np.array_equal(lattice_sum(query, [records]), lattice_sum(query, chunks(shuffled, size)))


LIES = [
    *(torch.full((1, 3), 5.0, dtype=torch.float64), torch.full((1, 3), 1e300, dtype=torch.float64)),
    torch.tensor([[float("nan"), float("inf"), -float("inf")]], dtype=torch.float64),
    *(torch.tensor([[1.0, 1e-9, 0.0]], dtype=torch.float64), torch.tensor([[-1.0, 0.0, 1.0]], dtype=torch.float64)),
]


@pytest.mark.parametrize("answer", LIES, ids=["long", "huge", "not numbers", "a hair over", "signed"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_map_that_lies_about_its_bound_does_not_pass(answer: Tensor, nonnegative: bool) -> None:
    query = Query("q", "privatize", Answering(answer, nonnegative))
    total = lattice_sum(query, [mixed_table(1, 0)])
    assert distance_squared(total, np.zeros_like(total)) <= query.sensitivity_squared(ADD)
    if nonnegative:
        assert total.min() >= 0


@pytest.mark.long
@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), st.integers(1, 5), st.integers(0, 30))
def test_every_row_obeys_the_integer_bound(values: list[float], bound: int, bits: int) -> None:
    part = Part(3, Fraction(1, bound))
    lattice = to_lattice(np.array([values]), (part,), bits)
    assert sum(int(value) ** 2 for value in lattice[0]) <= part.lattice_bound_squared(bits)
    assert all(abs(int(integer)) <= abs(value) * 2.0**bits for integer, value in zip(lattice[0], values, strict=True))


def test_clipping_does_nothing_to_an_honest_map() -> None:
    features = FEATURES[0](torch.from_numpy(mixed_table(50, 0).x)).numpy()
    bits = Query("q", "privatize", FEATURES[0]).lattice_bits
    lattice = to_lattice(features, FEATURES[0].bounded_parts, bits)
    assert float(np.abs(lattice - features * 2.0**bits).max()) < 2


def test_a_map_of_another_width_is_refused() -> None:
    class Narrow(Answering):
        def __call__(self, x: Tensor) -> Tensor:
            return x[:, :1]

    with pytest.raises(ReleaseError, match="width"):
        lattice_sum(Query("q", "privatize", Narrow(LIES[0])), [mixed_table(1, 0)])


@pytest.mark.long
def test_a_wide_map_is_summed_in_smaller_blocks_to_the_same_sum() -> None:
    """A block's rows depend on the width alone, and the sum on neither chunks nor blocks, to the last bit."""
    wide = Trigonometric(2_500, 4, 1.5, seed=0)
    query = Query("q", "privatize", wide, num_groups=2)
    assert block_rows(query) == 256 and block_rows(Query("q", "privatize", Constant())) == BLOCK
    assert block_rows(Query("q", "privatize", Answering(torch.zeros(1, 80_000)))) == 16
    records = mixed_table(600, seed=4)
    expected = lattice_sum(query, [records])
    assert np.array_equal(lattice_sum(query, chunks(records, 100)), expected)
    one_by_one = sum(lattice_sum(query, [part]) for part in chunks(Records(records.x[:40], records.labels[:40]), 1))
    assert np.array_equal(one_by_one, lattice_sum(query, chunks(Records(records.x[:40], records.labels[:40]), 40)))


def test_the_map_always_sees_a_block_of_the_same_size() -> None:
    """However many rows are left: kernels of another shape could round otherwise."""
    seen: list[int] = []

    class Spy(Answering):
        def __call__(self, x: Tensor) -> Tensor:
            seen.append(len(x))
            assert x.min() >= 0 and x.max() <= 1  # of the unit cube, whatever comes
            return super().__call__(x)

    for width, expected in ((3, BLOCK), (80_000, 16)):
        seen.clear()
        query = Query("q", "privatize", Spy(torch.zeros(1, width)), num_groups=2)
        records = mixed_table(70, seed=5)
        lattice_sum(query, chunks(replace(records, x=3 * records.x - 1), 33))
        assert set(seen) == {expected}
