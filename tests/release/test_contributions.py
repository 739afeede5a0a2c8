"""Stability: how many terms a record can touch, by search; rows of a person share one contribution.

The door with people of several rows: it counts for itself, its noise is so many times wider, its ledger knows.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from counting import forbidden
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_maps import Trigonometric
from toys import plan_with

from likeness.core.bounds import PrivacyUnit
from likeness.core.engine import Local
from likeness.core.errors import BudgetError, DataError, LikenessError, PlanError, ReleaseError
from likeness.core.hashing import sha256_json
from likeness.features.cells import Cells
from likeness.features.column_marginals import Constant
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Dataset
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.privacy.adjacency import Adjacency, Stability, lattice_sensitivity_squared
from likeness.privacy.plan import Plan, QueryShare
from likeness.privacy.receipt import Receipt
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import BucketPairs, EachPerson, EachRecord, PositionPairs, Records, WithClass
from likeness.release.released import Released, from_bytes
from likeness.release.request import REQUEST_KEYS, request_in, request_of
from likeness.release.sums.lattice_sum import lattice_sum
from likeness.release.sums.over_parts import exact_sum

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE


def stream(x: np.ndarray, chunk: int) -> Iterator[Records]:
    for start in range(0, len(x), chunk):
        part = x[start : start + chunk]
        yield Records(part, np.zeros(len(part), dtype=np.int64))


def pairs_of(terms: BucketPairs | PositionPairs, x: np.ndarray, chunk: int = 7) -> Counter[frozenset[float]]:
    """Pairs as unordered sets of record names; records are numbers here."""
    found = [row for part in terms.stream(stream(x[:, None], chunk)) for row in part.x]
    return Counter(frozenset(row.tolist()) for row in found)


def dice_for(x: np.ndarray, dice: dict[float, int], chunk: int) -> BucketPairs:
    """Bucket pairs in which each record keeps its own die, in and out of the table."""
    position = iter(x)

    def throw(count: int) -> np.ndarray:
        return np.array([dice[float(next(position))] for _ in range(count)], dtype=np.uint64)

    return BucketPairs(4, throw)


@given(st.integers(1, 40), st.integers(0, 10**6), st.integers(1, 9), st.data())
def test_removing_a_record_touches_one_bucket(n: int, seed: int, chunk: int, data: st.DataObject) -> None:
    x = np.arange(n, dtype=float)
    dice = dict(zip(x.tolist(), np.random.default_rng(seed).integers(0, 2**63, n).tolist(), strict=True))
    without = np.delete(x, data.draw(st.integers(0, n - 1)))
    before = pairs_of(dice_for(x, dice, chunk), x, chunk)
    after = pairs_of(dice_for(without, dice, chunk), without, chunk)
    assert sum((before - after).values()) <= 1 and sum((after - before).values()) <= 1 and sum(before.values()) <= 4
    assert before == pairs_of(dice_for(x, dice, 100), x, 100)  # chunking changes nothing


@given(st.integers(2, 40), st.integers(1, 9), st.data())
def test_replacing_a_record_replaces_one_pair(n: int, chunk: int, data: st.DataObject) -> None:
    terms = PositionPairs(4, seed=1)
    x = np.arange(n, dtype=float)
    other = x.copy()
    other[data.draw(st.integers(0, n - 1))] = -1.0
    before, after = pairs_of(terms, x, chunk), pairs_of(terms, other, chunk)
    assert sum(before.values()) == sum(after.values()) >= (n - 4) // 2 and sum((before - after).values()) <= 1
    assert all(len(pair) == 2 for pair in before)
    assert max(Counter(name for pair in before.elements() for name in pair).values(), default=0) <= 1
    assert before == pairs_of(terms, x, 100)


def test_secret_dice_differ_from_call_to_call() -> None:
    x = np.arange(2_000, dtype=float)
    assert pairs_of(BucketPairs(256), x) != pairs_of(BucketPairs(256), x)


def test_change_follows_the_adjacency() -> None:
    assert EachRecord().change(ADD) is Stability.ONE_APPEARS
    assert EachRecord().change(REPLACE) is Stability.ONE_REPLACED
    assert BucketPairs(4).change(ADD) is Stability.ONE_APPEARS_OR_REPLACED
    assert PositionPairs(4, 0).change(REPLACE) is Stability.ONE_REPLACED
    with pytest.raises(PlanError):
        BucketPairs(4).change(REPLACE)
    with pytest.raises(PlanError):
        PositionPairs(4, 0).change(ADD)


def test_a_name_that_map_and_terms_share_is_refused() -> None:
    """Else one seed would hide the other in the key, and another question would be answered from the store."""
    map_with_a_seed = Trigonometric(2, 4, 1.0, seed=3)
    with pytest.raises(ReleaseError, match="q: both map and contributions use the name seed"):
        Query("q", "auxiliary", map_with_a_seed, contributions=PositionPairs(4, seed=1)).spec()
    assert Query("q", "auxiliary", map_with_a_seed).spec()["seed"] == 3


@pytest.mark.parametrize("terms", [EachPerson(), WithClass(2), BucketPairs(4)])
def test_only_single_records_have_a_class(terms: EachRecord) -> None:
    with pytest.raises(ReleaseError, match="need contributions of single records"):
        WithClass(2, terms)


PAIRS = PairMarginals((Cells(0, 3), Cells(3, 4), Cells(7, 2)), (1, 5, 2))


def rows(lengths: list[int], seed: int, alike: bool = False, classes: int = 1) -> Records:
    """People with some rows each: any cells, or the first cell alone."""
    generator, count = np.random.default_rng(seed), sum(lengths)
    x, labels = np.zeros((count, 9)), np.zeros(count, dtype=np.int64)
    for start, width in ((0, 3), (3, 4), (7, 2)):
        x[np.arange(count), start + (0 if alike else generator.integers(0, width, count))] = 1
    if not alike:
        labels = generator.integers(0, classes, count)
    return Records(x, labels, np.repeat(np.arange(len(lengths)), lengths).astype(np.int64))


def joined(*parts: Records) -> Records:
    people, start = [], 0
    for part in parts:
        assert part.persons is not None
        people.append(part.persons + start)
        start += int(part.persons.max(initial=-1)) + 1
    x, labels = (np.concatenate(cells) for cells in ([p.x for p in parts], [p.labels for p in parts]))
    return Records(x, labels, np.concatenate(people))


def squared_distance(query: Query, one: Records, other: Records) -> int:
    return int(((lattice_sum(query, [one]) - lattice_sum(query, [other])).astype(object) ** 2).sum())


@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000), m=st.integers(1, 25), other=st.integers(0, 25), alike=st.booleans(),
    classes=st.integers(1, 3),
)  # fmt: skip
def test_neighbors_are_no_farther_apart_than_one_record(
    adjacency: Adjacency, seed: int, m: int, other: int, alike: bool, classes: int
) -> None:
    """The worst person has all rows in one cell; the division by m is what keeps the bound."""
    query = Query("q", "privatize", PAIRS, classes, EachPerson())
    rest, person = rows([3, 1, 7], seed, classes=classes), rows([m], seed + 1, alike, classes)
    replaced = rest if adjacency is ADD else joined(rest, rows([other] if other else [], seed + 2, classes=classes))
    bound = query.sensitivity_squared(adjacency, PrivacyUnit("pid", 26) if adjacency is ADD else None)
    assert squared_distance(query, joined(rest, person), replaced) <= bound
    assert bound == Query("q", "privatize", PAIRS, classes).sensitivity_squared(adjacency)


def test_the_bound_is_reached_by_rows_in_one_cell() -> None:
    """A power of two divides the steps, so floors take nothing."""
    query = Query("q", "privatize", Constant(), contributions=EachPerson())
    empty = rows([], 0)
    assert squared_distance(query, rows([16], 0, alike=True), empty) == query.sensitivity_squared(ADD)
    assert squared_distance(query, rows([1], 0), empty) == query.sensitivity_squared(ADD)


def test_rows_in_different_cells_stay_below_it() -> None:
    query = Query("q", "privatize", PairMarginals((Cells(0, 4), Cells(4, 4))), contributions=EachPerson())
    people = Records(np.tile(np.eye(4), 2), np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64))
    total = lattice_sum(query, [people])
    assert int((total.astype(object) ** 2).sum()) * 4 == query.sensitivity_squared(ADD)


def test_chunks_change_nothing() -> None:
    query, whole = Query("q", "privatize", PAIRS, contributions=EachPerson()), rows([5, 1, 9, 2, 30], 3)
    cuts = [whole[start : start + 4] for start in range(0, len(whole.x), 4)]
    assert np.array_equal(lattice_sum(query, cuts), lattice_sum(query, [whole]))


def test_workers_share_no_person() -> None:
    """Parts of a table would cut a person in two, so one process reads all rows, and the bytes are equal."""
    query, whole = Query("q", "privatize", PAIRS, contributions=EachPerson()), rows([5, 1, 9], 3)

    class Read:
        def __call__(self) -> list[Records]:
            return [whole]

        def split(self, most: int) -> list[Callable[[], list[Records]]]:
            return [lambda: [whole[:3]], lambda: [whole[3:]]]

    class Two(Local):
        workers = 2

    assert np.array_equal(exact_sum(query, Read(), Two()).total, lattice_sum(query, [whole]))


@pytest.mark.parametrize("people", [None, [0, 1, 0], [1, 0, 0], [-1, 0, 0], [0.0, 0.0, 1.0], [0, 1]])
def test_people_who_come_again_or_have_no_number_are_refused(people: list[float] | None) -> None:
    numbers = None if people is None else np.array(people)
    query = Query("q", "privatize", PAIRS, contributions=EachPerson())
    with pytest.raises(ReleaseError, match=r"each row must have the number|must be together"):
        lattice_sum(query, [Records(rows([3], 0).x, np.zeros(3, dtype=np.int64), numbers)])


def test_somebody_who_comes_again_in_a_later_chunk_is_refused() -> None:
    query, chunk = Query("q", "privatize", PAIRS, contributions=EachPerson()), rows([2, 2], 0)
    with pytest.raises(ReleaseError, match="must be together"):
        lattice_sum(query, [chunk, chunk])


def test_vectors_cannot_share() -> None:
    query = Query("q", "privatize", Trigonometric(9, 6, 1.5, seed=0), contributions=EachPerson())
    with pytest.raises(ReleaseError, match="only a map of cells"):
        lattice_sum(query, [rows([2], 0)])


@pytest.mark.long
def test_the_door_adds_the_noise_of_one_record_and_insists_on_people() -> None:
    ledger = Ledger.create(locate())
    ledger.declare_population("people", ADD, 5.0, 1e-5, "pid")
    unit = PrivacyUnit("pid", 20)

    def planned(unit: PrivacyUnit | None):
        return plan_with([QueryShare("q", "privatize", 1.0)], unit=unit)

    def read() -> Iterator[Records]:
        yield rows([4, 1], 0)

    query = Query("q", "privatize", PAIRS, contributions=EachPerson())
    receipt = from_bytes(
        Door(planned(unit), ledger, Dataset("people", "d", unit=unit), read).release(query), "r"
    ).receipt
    one = Query("q", "privatize", PAIRS).sensitivity_squared(ADD)
    assert receipt.sensitivity == one**0.5 * 2.0**-query.lattice_bits and receipt.feature["terms"] == "each_person"
    other = Ledger.create(replace(locate(), path=locate().path / "o", anchor=locate().anchor / "o"))
    other.declare_population("people", ADD, 5.0, 1e-5)
    with pytest.raises(ReleaseError, match="protects single rows"):
        Door(planned(None), other, Dataset("people", "d"), read).release(query)


UNIT = PrivacyUnit("pid", 3)
QUERY = Query("q", "privatize", Constant(), num_groups=2)
ROWS = Dataset("people", "digest", unit=UNIT)


def plan(unit: PrivacyUnit | None = UNIT) -> Plan:
    return plan_with([QueryShare("q", "privatize", 1.0)], unit=unit)


def rows_of_people(*chunks: list[int] | None) -> Iterator[Records]:
    for people in chunks:
        count = 4 if people is None else len(people)
        numbers = None if people is None else np.array(people, dtype=np.int64)
        yield Records(np.zeros((count, 1)), np.zeros(count, dtype=np.int64), numbers)


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger.create(locate())
    made.declare_population("people", ADD, 5.0, 1e-5, "pid")
    return made


def asked(ledger: Ledger, *chunks: list[int] | None, unit: PrivacyUnit = UNIT) -> Released:
    data = Door(plan(unit), ledger, replace(ROWS, unit=unit), lambda: rows_of_people(*chunks)).release(QUERY)
    return from_bytes(data, "r")


def test_noise_is_so_many_times_as_wide_at_the_same_cost(ledger: Ledger) -> None:
    three = asked(ledger, [0, 1, 1], [1, 2]).receipt
    one = asked(ledger, [0, 1, 2], unit=PrivacyUnit("pid", 1)).receipt
    assert three.noise_scale == pytest.approx(3 * one.noise_scale, rel=1e-12)
    assert three.sensitivity == 3 * one.sensitivity
    assert (three.noise_multiplier, three.rho) == pytest.approx((one.noise_multiplier, one.rho), rel=1e-12)
    assert three.unit == UNIT and three.rho <= plan().rho
    assert ledger.budget("people").spent_rho == pytest.approx(2 * plan().rho)  # bounds differ, the people do not


@pytest.mark.parametrize(
    ("chunks", "error", "message"),
    [
        ([[0, 1, 1], [1, 2, 1]], DataError, r"more training rows than ingest\.unit\.max_rows, 3. Nothing was released"),
        ([[0, 5, 5, 5, 5]], DataError, "more training rows"),
        ([None], ReleaseError, "must have the number of its person"),
        ([[0], [-1]], ReleaseError, "must have the number of its person"),
    ],
    ids=["in two chunks", "in one", "nobody's", "below zero"],
)
def test_the_door_counts_the_rows_of_each_person(
    ledger: Ledger, chunks: list[list[int] | None], error: type[LikenessError], message: str
) -> None:
    with pytest.raises(error, match=message):
        asked(ledger, *chunks)
    assert ledger.commits() == {} and list(ledger.home.releases.iterdir()) == []
    assert asked(ledger, [0, 1, 1], [1]).receipt.unit == UNIT  # the reservation is resumed with rows as they should be


def test_rows_and_plan_must_agree_on_who_is_protected(ledger: Ledger) -> None:
    for own, dataset in [
        (plan(), replace(ROWS, unit=PrivacyUnit("pid", 2))),
        (plan(None), ROWS),
        (plan(), Dataset("people", "d")),
    ]:
        before = ledger.records()
        with pytest.raises(PlanError, match=r"plan.json protects .*, the rows were prepared for"):
            Door(own, ledger, dataset, forbidden).release(QUERY)
        assert ledger.records() == before
    other = Ledger.create(replace(locate(), path=locate().path / "o", anchor=locate().anchor / "o"))
    other.declare_population("people", ADD, 1.0, 1e-5)
    with pytest.raises(ReleaseError, match="protects single rows"):
        Door(plan(None), other, Dataset("people", "d"), lambda: rows_of_people([0, 1])).release(QUERY)


def test_the_key_changes_with_column_and_rows(ledger: Ledger) -> None:
    without = request_of(QUERY, "add_remove_one", 5.0, Dataset("people", "digest"))
    assert tuple(without) == REQUEST_KEYS
    units = [UNIT, PrivacyUnit("pid", 4), PrivacyUnit("household", 3)]
    requests = [without, *(request_of(QUERY, "add_remove_one", 5.0, replace(ROWS, unit=unit)) for unit in units)]
    assert len({sha256_json(request) for request in requests}) == 4
    receipt = asked(ledger, [0]).receipt
    entry = next(record.body for record in ledger.records() if record.kind == "reserve")
    assert sha256_json(request_in(entry)) == receipt.key


def test_an_identity_keeps_its_unit_of_privacy(ledger: Ledger) -> None:
    for person in (None, "household"):
        with pytest.raises(BudgetError, match="with all rows of one value of 'pid' as the unit of privacy"):
            ledger.declare_population("people", ADD, 5.0, 1e-5, person)
    with pytest.raises(BudgetError, match="cannot be composed with the earlier ones"):
        Door(plan(None), ledger, Dataset("people", "digest"), forbidden).release(QUERY)
    ledger.change_cap("people", 6.0, 1e-5)
    ledger.declare_population("people", ADD, 6.0, 1e-5, "pid")  # a new cap forgets nothing
    ledger.declare_population("rows", ADD, 1.0, 1e-5)
    with pytest.raises(BudgetError, match=r"with a row as the unit of privacy. .* as it was: null\."):
        ledger.declare_population("rows", ADD, 1.0, 1e-5, "pid")


def test_what_another_bound_has_paid_for_is_not_paid_for_this_one(ledger: Ledger) -> None:
    """A plan that cannot finish does not start: its other query was answered at that cost, for other bounds."""
    shares = [QueryShare("q", "privatize", 0.5), QueryShare("other", "auxiliary", 0.5)]
    queries = plan_with(shares).queries
    plans = [replace(plan(unit), queries=queries) for unit in (UNIT, PrivacyUnit("pid", 2))]
    other = replace(QUERY, name="other", stage="auxiliary")
    ledger.change_cap("people", 1.3, 1e-5)  # room for three quarters of a plan more
    for query in (other, QUERY):
        Door(plans[0], ledger, ROWS, lambda: rows_of_people([0])).release(query)
    with pytest.raises(BudgetError, match="over budget"):
        Door(plans[1], ledger, replace(ROWS, unit=plans[1].unit), forbidden).release(QUERY)


def test_plans_and_receipts_keep_their_units(ledger: Ledger) -> None:
    for own in (plan(), plan(None)):
        assert Plan.from_dict(own.to_dict()) == own
    receipt = asked(ledger, [0]).receipt
    for one in (receipt, replace(receipt, unit=None)):
        assert Receipt.from_dict(one.to_dict(), "r") == one


@pytest.mark.parametrize("rows_of", [2.5, True, "3", None], ids=["fraction", "truth", "text", "nothing"])
def test_a_receipt_whose_rows_are_no_whole_number_is_refused(ledger: Ledger, rows_of: object) -> None:
    value = {**asked(ledger, [0]).receipt.to_dict(), "unit": {"column": "pid", "max_rows": rows_of}}
    with pytest.raises(ReleaseError, match="max_rows, a whole number"):
        Receipt.from_dict(value, "r")


def test_what_is_not_proved_is_refused() -> None:
    with pytest.raises(PlanError, match="max_rows must be at least 1"):
        lattice_sensitivity_squared(QUERY.bounded_parts, 8, Stability.ONE_APPEARS, rows=0)
    with pytest.raises(PlanError, match=r"needs privacy\.adjacency: add_remove_one"):
        lattice_sensitivity_squared(QUERY.bounded_parts, 8, Stability.ONE_REPLACED, rows=2)
    with pytest.raises(PlanError, match=r"Set privacy\.adjacency: add_remove_one"):
        plan_with([QueryShare("q", "privatize", 1.0)], adjacency=Adjacency.REPLACE_ONE, rows=9, unit=UNIT)
