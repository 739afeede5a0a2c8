"""Distances to public counts: exact, no more sensitive than they say, and released once for each table."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import DataError
from likeness.features.cells import Cells
from likeness.features.low_order_marginals import LowOrderMarginals
from likeness.features.naive_bayes import trained
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import QueryShare, make_plan
from likeness.release.distances import MEAN, WORST, DistanceQuery
from likeness.release.door import Door
from likeness.release.records import Records
from likeness.release.released import from_bytes
from likeness.release.request import Dataset
from likeness.release.sums.lattice_sum import lattice_sum

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE
COLUMNS = (Cells(0, 3, (0.3, 0.6)), Cells(1, 2), Cells(3, 3, (0.5,), missing=True))
ONE = 2**24


def query(classes: int = 2, columns: int = 3, measures: tuple[str, ...] = (MEAN, WORST)) -> DistanceQuery:
    return DistanceQuery("distances", "card", LowOrderMarginals(COLUMNS[:columns]), classes, measures)


def table(n: int, seed: int, classes: int = 2) -> Records:
    random = np.random.default_rng(seed)
    x = random.random((n, 5))
    x[:, 1:3] = np.eye(2)[random.integers(0, 2, n)]
    x[:, 4] = random.integers(0, 2, n)
    return Records(x, random.integers(0, classes, n))


def joined(*tables: Records) -> Records:
    return Records(np.concatenate([one.x for one in tables]), np.concatenate([one.labels for one in tables]))


def measured(asked: DistanceQuery, rows: Records) -> np.ndarray:
    distances: np.ndarray = asked.distances(lattice_sum(asked.cells, [rows]))
    return distances


def by_hand(rows: Records, public: Records, records: float, classes: int) -> list[float]:
    """Mean and worst distance of columns and of pairs, the label among them, with a loop over cells."""
    tables = []
    for one in (rows, public):
        cells = [column.places(one.x) for column in COLUMNS]
        tables.append(np.stack([*cells, one.labels] if classes > 1 else cells, axis=1))
    by_order: dict[int, list[float]] = {1: [], 2: []}
    for order in (1, 2):
        for chosen in combinations(range(tables[0].shape[1]), order):
            private, synthetic = ([tuple(row) for row in one[:, chosen].tolist()] for one in tables)
            cells_here = {*private, *synthetic}
            scale = records / len(synthetic)
            by_order[order].append(sum(abs(private.count(cell) - scale * synthetic.count(cell)) for cell in cells_here))
    return [of(by_order[order]) for of in (lambda one: sum(one) / len(one), max) for order in (1, 2)]


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 2), st.integers(0, 1000))
def test_distances_are_those_of_a_loop_over_cells(n: int, m: int, classes: int, seed: int) -> None:
    rows, public = table(n, seed, classes), table(m, seed + 1, classes)
    asked = query(classes).about(query(classes).counts([public]), 1.3 * n)
    assert measured(asked, rows)[0] / ONE == pytest.approx(by_hand(rows, public, 1.3 * n, classes), abs=1e-4)


@pytest.mark.long
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 12), st.integers(1, 20), st.integers(1, 4), st.integers(0, 10_000))
def test_no_neighbor_moves_a_coordinate_farther_than_the_sensitivity(n: int, m: int, k: int, seed: int) -> None:
    """A person of k rows is added, or one row is replaced: in exact integers, every coordinate and all together."""
    asked = query().about(query().counts([table(m, seed)]), max(1.0, n + 0.7))
    rows, person = table(n, seed + 1), table(k, seed + 2)
    moved = measured(asked, joined(rows, person)) - measured(asked, rows)
    assert np.abs(moved).max() <= k * ONE
    assert int((moved**2).sum()) <= asked.sensitivity_squared(ADD, PrivacyUnit("pid", k)) == 4 * k * k * ONE**2
    moved = measured(asked, joined(rows, table(1, seed + 3))) - measured(asked, joined(rows, table(1, seed + 4)))
    assert np.abs(moved).max() <= 2 * ONE
    assert int((moved**2).sum()) <= asked.sensitivity_squared(REPLACE) == 16 * ONE**2


def test_the_sensitivities_are_reached() -> None:
    """Where cells of the reference are empty, every record counts fully; a record may leave and meet the reference."""
    here, there = (
        Records(np.array([[0.0, 1, 0, 0, 0]]), np.array([0])),
        Records(np.array([[1.0, 0, 1, 1, 1]]), np.array([1])),
    )
    asked = query().about(query().counts([there]), 1.0)
    empty = Records(np.zeros((0, 5)), np.zeros(0, dtype=np.int64))
    for k in (1, 3):
        moved = measured(asked, joined(*[here] * k)) - measured(asked, empty)
        assert int((moved**2).sum()) == asked.sensitivity_squared(ADD, PrivacyUnit("pid", k))
    moved = measured(asked, here) - measured(asked, there)
    assert int((moved**2).sum()) == asked.sensitivity_squared(REPLACE)


def test_a_mean_is_rounded_down_to_a_step_and_keeps_its_sensitivity() -> None:
    """Three distances of one step each are more than no step: a mean that is no whole number of steps."""
    asked = query(1, 3, (MEAN,))
    reference = np.zeros((1, sum(part.width for part in asked.feature.parts)), dtype=np.int64)
    reference[0, 0] = 1
    asked = replace(asked, digest="r", reference=reference)
    assert measured(asked, Records(np.zeros((0, 5)), np.zeros(0, dtype=np.int64))).tolist() == [[0, 0]]


def test_one_column_without_classes_has_no_pairs() -> None:
    assert query(1, 1).figures == ((MEAN, 1), (WORST, 1)) and query(2, 1).dimension == query(1, 2).dimension == 4


@pytest.mark.parametrize("unit", [None, PrivacyUnit("pid", 2)], ids=["row", "person"])
def test_released_once_for_a_table_and_paid_again_for_another(unit: PrivacyUnit | None) -> None:
    plan = make_plan(
        method="m", identity="people", shares=[QueryShare("embedding", "privatize", 1.0)], epsilon=1.0, delta=1e-5,
        adjacency=ADD, num_records=None, unit=unit, card=[QueryShare("distances", "card", 0.4)],
    )  # fmt: skip
    ledger = Ledger.create(locate())
    ledger.declare_population("people", ADD, 5.0, 1e-5, None if unit is None else unit.column)
    rows = table(3_000, 1)
    read: list[Records] = [replace(rows, persons=None if unit is None else np.arange(3_000) // 2)]
    asked = query().about(query().counts([table(500, 2)]), 3_000)

    def opened() -> Iterator[Records]:
        yield from read

    door = Door(plan, ledger, Dataset("people", "digest", unit=unit), opened)
    data = door.release(asked)
    records, released = ledger.records(), from_bytes(data, "distances")
    read = []
    assert door.release(asked) == data and ledger.records() == records
    receipt, k = released.receipt, 1 if unit is None else 2
    assert receipt.sensitivity == 2 * k and receipt.rho == pytest.approx(plan.query("distances").rho)
    assert records[-2].body["feature"]["reference"] == asked.digest and released.lattice.shape == (1, 4)
    assert np.abs(released.lattice - measured(asked, rows)).max() < 7 * receipt.noise_scale
    assert (released.lattice != measured(asked, rows)).any()
    read = [Records(rows.x[:9], rows.labels[:9], None if unit is None else np.zeros(9, dtype=np.int64))]
    another = query().about(query().counts([table(500, 3)]), 3_000)
    if unit is None:
        assert door.release(another) != data
        assert ledger.budget("people").spent_rho == pytest.approx(2 * receipt.rho)
    else:  # the door counts the rows of each person here too
        with pytest.raises(DataError, match="more training rows than"):
            door.release(another)


def test_the_share_of_a_card_comes_off_the_others_and_none_changes_nothing() -> None:
    usual = {"method": "m", "identity": "p", "epsilon": 1.0, "delta": 1e-5, "adjacency": ADD, "num_records": None}
    shares = [QueryShare("a", "auxiliary", 0.25), QueryShare("b", "privatize", 0.75)]
    without, card = make_plan(**usual, shares=shares), [QueryShare("c", "card", 0.2)]
    made = make_plan(**usual, shares=shares, card=card)
    assert make_plan(**usual, shares=shares, card=()).digest == without.digest
    assert [query.share for query in made.queries] == pytest.approx([0.2, 0.6, 0.2])
    parts = [query.rho / made.rho for query in made.queries]
    assert parts == pytest.approx([0.2, 0.6, 0.2]) and made.rho == pytest.approx(without.rho)


def test_naive_bayes_is_the_posterior_of_counts() -> None:
    public, columns = table(400, 5), COLUMNS[:2]
    counts = np.stack(
        [
            np.concatenate([np.bincount(c.places(public.x[public.labels == k]), minlength=c.size) for c in columns])
            for k in range(2)
        ]
    )
    chosen = trained(columns, counts).places(public.x)[:, 0]
    cells = np.stack([c.places(public.x) for c in columns], axis=1)
    sizes = np.bincount(public.labels, minlength=2)
    posterior = [
        [
            math.log((sizes[k] + 1) / 402)
            + math.log((counts[k, a] + 1) / (sizes[k] + 3))
            + math.log((counts[k, 3 + b] + 1) / (sizes[k] + 2))
            for k in range(2)
        ]
        for a, b in cells
    ]
    clear = [abs(a - b) > 0.05 for a, b in posterior]
    assert sum(clear) > 300 and (np.argmax(posterior, axis=1) == chosen)[clear].all()


@pytest.mark.long
def test_a_distance_of_exactly_0_has_the_noise_of_any_other() -> None:
    """A table that is its own reference. The lowest bits are uniform: false alarm 1e-9, by chi-square, and at the scale
    of the receipt. Neither a 0 nor a multiple of a record's steps may show that a distance was 0."""
    rows = table(64, 1)
    asked = query().about(query().counts([rows]), 64)
    assert measured(asked, rows).tolist() == [[0] * asked.dimension]
    plan = make_plan(
        method="m", identity="people", shares=[QueryShare("embedding", "privatize", 1.0)], epsilon=1.0, delta=1e-5,
        adjacency=ADD, num_records=None, card=[QueryShare("distances", "card", 0.4)],
    )  # fmt: skip
    ledger = Ledger.create(locate())
    ledger.declare_population("people", ADD, 50.0, 1e-5, None)
    released = []
    for attempt in range(40):  # each a deliberate second release
        door = Door(plan, ledger, Dataset("people", "digest", str(attempt)), lambda: [rows])
        released.append(from_bytes(door.release(asked), "distances"))
    lattice = np.concatenate([one.lattice.ravel() for one in released])
    for shift in (0, 8, 16, 21):  # up to the steps of a record, 2**24
        low = np.bincount((lattice >> shift) & 7, minlength=8)
        assert chi2.sf(((low - len(lattice) / 8) ** 2).sum() / (len(lattice) / 8), 7) > 1e-9
    spread = (lattice / released[0].receipt.noise_scale) ** 2
    assert 1e-9 < chi2.cdf(spread.sum(), len(lattice)) < 1 - 1e-9
    assert len(set(lattice.tolist())) == len(lattice)
