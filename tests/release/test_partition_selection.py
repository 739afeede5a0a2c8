"""Keys that nobody knows beforehand: counted exactly, released above a threshold, once, and nothing below it."""

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import pytest
from counting import forbidden
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from toys import plan_with

from likeness.core import retry
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import ArtifactError, BudgetError, DataError, LedgerError, PlanError, ReleaseError
from likeness.core.hashing import sha256_bytes
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Dataset
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import Plan, QueryShare
from likeness.release import door
from likeness.release.door import Door
from likeness.release.partition_selection import COUNT_BITS, PartitionQuery, Partitions, count_partitions, select_keys
from likeness.release.released import Released, from_bytes, to_bytes

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE
DATASET = Dataset("people", "digest", encoding="open")
SECRET = "Xq7Secret"
L = 2**COUNT_BITS


def plan(
    epsilon: float = 1.0,
    delta: float = 1e-5,
    share: float = 0.1,
    unit: PrivacyUnit | None = None,
    rows: int | None = None,
) -> Plan:
    shares = [QueryShare("embedding", "privatize", 1.0)]
    selection, adjacency = [QueryShare("categories_1", "categories", 0.5, share)], ADD if rows is None else REPLACE
    return plan_with(shares, epsilon, adjacency, rows, delta=delta, unit=unit, selection=selection)


def query(own: Plan, most: int = 100) -> PartitionQuery:
    return PartitionQuery("categories_1", "job", "other", most, own.query("categories_1").delta_keys)


def texts(**counts: int) -> list[str | None]:
    return [key for key, count in counts.items() for _ in range(count)]


def started(own: Plan, cap: float = 1.0) -> Ledger:
    ledger = Ledger.create(locate())
    person = None if own.unit is None else own.unit.column
    ledger.declare_population("people", own.adjacency, cap, own.delta, person, selection_delta=own.delta_keys)
    return ledger


def asked(own: Plan, rows: list[Partitions], most: int = 100, ledger: Ledger | None = None) -> Released:
    dataset = dataclasses.replace(DATASET, unit=own.unit)
    return from_bytes(Door(own, ledger or started(own), dataset, lambda: rows).release(query(own, most)), "keys")


class Cut:
    """Counts of a database, whose connection breaks some times when it is asked for texts."""

    max_rows, is_per_person = 0, False

    def __init__(self, breaks: int) -> None:
        self.breaks, self.asked, self.checked = breaks, list[tuple[str, ...]](), False

    def texts(self, column: str) -> tuple[dict[str, int], int]:
        return {sha256_bytes(key.encode()): count for key, count in (("a", 1000), ("b", 2000))}, 3000

    def texts_of(self, column: str, hashes: list[str]) -> dict[str, str]:
        self.asked.append(tuple(hashes))
        if len(self.asked) <= self.breaks:
            error = DataError("the connection broke")
            error.transient = True
            raise error
        return {sha256_bytes(key.encode()): key for key in "ab"}

    def check(self, query: object) -> None:
        self.checked = True

    def counts(self, *_: object) -> None: ...
    def backend(self, *_: object) -> str:
        return ""

    def backend_of_texts(self, column: str) -> str:
        return "postgres " + "0" * 64


def test_a_broken_connection_repeats_the_question_for_texts_and_not_the_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second draw would show a second answer to whoever sees the SQL."""
    monkeypatch.setattr(retry, "PAUSES", (0, 0, 0))
    draws = []
    monkeypatch.setattr(door, "add_discrete_gaussian", lambda counts, scale: draws.append(1) or counts)
    own = plan()
    ledger, rows = started(own), Cut(9)
    assert not retry.transient(DataError("x"), ValueError("a cell that says timeout")).transient
    with pytest.raises(DataError, match="broke") as refused:
        Door(own, ledger, DATASET, rows).release(query(own))  # type: ignore[arg-type]
    assert len(draws) == 1 and len(rows.asked) == 4 and len({*rows.asked}) == 1 and not refused.value.transient
    released = from_bytes(Door(own, ledger, DATASET, Cut(2)).release(query(own)), "keys")  # type: ignore[arg-type]
    assert released.keys == ("a", "b") and released.values.tolist() == [[1000, 2000]] and len(draws) == 2
    rows, dearer = Cut(0), dataclasses.replace(DATASET, attempt="2")
    with pytest.raises(BudgetError):  # and nothing is asked
        Door(own, ledger, dearer, rows).release(query(own))  # type: ignore[arg-type]
    assert not rows.checked


keys_of_rows = st.lists(st.sampled_from(["a", "b", "c", "other", None]), max_size=30)


@settings(deadline=None, max_examples=50)
@given(keys_of_rows, st.lists(st.sampled_from(["a", "b", "d", "other", None]), min_size=1, max_size=4), st.randoms())
def test_neighbors_differ_by_no_more_than_the_sensitivity(table: list[str | None], own: list[str | None], dice) -> None:
    """A person of up to k rows is added anywhere; or the last row is replaced."""
    asked, other = query(plan()), sorted([*table, *own], key=lambda _: dice.random())
    without, _ = count_partitions(asked, [Partitions(table[:7]), Partitions(table[7:])])
    added, rows = count_partitions(asked, [Partitions(other)])
    assert rows == len(table) + len(own) and not {"other", None} & set(added)
    unit = PrivacyUnit("pid", len(own))
    moved = math.dist(*zip(*[(without.get(k, 0), added.get(k, 0)) for k in "abcd"], strict=True)) * L
    assert moved <= math.sqrt(asked.sensitivity_squared(ADD, unit)) == len(own) * L
    assert sum(without.get(k, 0) != added.get(k, 0) for k in "abcd") <= asked.changed_counts(ADD, unit)
    first, second = (count_partitions(asked, [Partitions([*table, row])])[0] for row in (own[0], own[-1]))
    moved = math.dist(*zip(*[(first.get(k, 0), second.get(k, 0)) for k in "abcd"], strict=True)) * L
    assert moved <= math.sqrt(asked.sensitivity_squared(REPLACE)) == pytest.approx(math.sqrt(2) * L)
    assert sum(first.get(k, 0) != second.get(k, 0) for k in "abcd") <= asked.changed_counts(REPLACE) == 2


def test_the_sensitivities_are_reached() -> None:
    one = query(plan())
    alone, _ = count_partitions(one, [Partitions(["a"] * 3)])
    assert alone["a"] * L == math.sqrt(one.sensitivity_squared(ADD, PrivacyUnit("pid", 3)))
    first, second = (count_partitions(one, [Partitions([key])])[0] for key in "ab")
    assert math.dist((first.get("a", 0), first.get("b", 0)), (second.get("a", 0), second.get("b", 0))) == math.sqrt(2)


def test_what_is_kept_depends_on_noisy_counts_and_names_alone() -> None:
    noisy = np.array([5, 9, 7, 9, 1])
    assert select_keys("abcde", noisy, 5, 10) == [0, 1, 2, 3]
    assert select_keys("abcde", noisy, 5, 3) == [1, 2, 3] and select_keys("abcde", noisy, 5, 1) == [1]
    assert select_keys("abcde", noisy, 10, 3) == []


def test_a_rare_key_is_released_as_rarely_as_delta_says_and_a_frequent_one_always() -> None:
    """2,000 keys of one row each in one release, δ_keys 0.05. False alarm 2e-9: the number is binomial, either way.

    A threshold that is half of σ too low would be noticed with near certainty.
    """
    own = plan(epsilon=20.0, delta=0.1, share=0.5)
    rare = [f"rare{place}" for place in range(2_000)]
    released = asked(own, [Partitions([*rare, *texts(nurse=5_000, clerk=3_000)])], 999, started(own, 20.0))
    assert {"nurse", "clerk"} <= set(released.keys) and len(released.keys) < 999
    found = len(released.keys) - 2
    delta = own.delta_keys
    assert delta == pytest.approx(0.05) and released.receipt.delta_keys == delta
    assert binom.cdf(found, 2_000, delta) > 1e-9 and binom.sf(found - 1, 2_000, delta) > 1e-9
    counts = dict(zip(released.keys, released.values[0], strict=True))
    assert counts["nurse"] == pytest.approx(5_000, abs=7 * released.noise_std)
    assert released.lattice.min() >= released.receipt.threshold


def test_released_once_with_its_cost_and_nothing_of_the_rest(tmp_path) -> None:
    own = plan()
    ledger = started(own)

    def rows() -> Iterator[Partitions]:
        yield Partitions([*texts(nurse=5_000, other=400), SECRET, None])
        yield Partitions(texts(clerk=5_000))

    first = Door(own, ledger, DATASET, rows).release(query(own))
    records = ledger.records()
    assert Door(own, ledger, DATASET, forbidden).release(query(own)) == first and ledger.records() == records
    released = from_bytes(first, "keys")
    assert released.keys == ("clerk", "nurse") and to_bytes(released) == first
    assert SECRET.encode() not in first and b"other" in first  # the name of the rest is public, and no key
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    receipt, entry = released.receipt, records[-2].body
    assert entry["delta_keys"] == receipt.delta_keys == own.delta_keys and entry["threshold"] == receipt.threshold
    assert (receipt.dimension, receipt.mechanism) == (1, "thresholded_discrete_gaussian")
    assert ledger.budget("people").spent_delta == own.delta_keys
    again = dataclasses.replace(DATASET, attempt="2")
    with pytest.raises(BudgetError, match="private categories spent"):
        Door(own, ledger, again, forbidden).release(query(own))
    with pytest.raises(LedgerError, match=r"took 1e-06 of delta already.*--delta-keys 1e-06 or more"):
        ledger.change_cap("people", 10.0, 1e-5, own.delta_keys / 2)
    with pytest.raises(PlanError, match="another delta for its threshold"):
        Door(own, ledger, DATASET, forbidden).release(dataclasses.replace(query(own), delta_keys=1e-3))


@pytest.mark.parametrize(
    ("others", "dimension", "sensitivity"),
    [({}, 1, 1.0), ({"unit": PrivacyUnit("pid", 3)}, 3, 3.0), ({"rows": 5_000}, 2, math.sqrt(2))],
    ids=["row", "person", "replaced"],
)
def test_receipts_tell_who_is_protected(others: dict, dimension: int, sensitivity: float) -> None:
    own = plan(**others)
    people = np.arange(5_000) if own.unit else None
    receipt = asked(own, [Partitions(texts(nurse=5_000), people)]).receipt
    assert receipt.dimension == dimension and receipt.sensitivity == pytest.approx(sensitivity)
    assert receipt.rho == pytest.approx(own.query("categories_1").rho) and receipt.unit == own.unit
    if own.unit:
        assert receipt.threshold > 3 * L


def test_what_does_not_fit_the_promise_is_refused() -> None:
    people = plan(unit=PrivacyUnit("pid", 2))
    ledger = started(people)
    for rows, error in (
        (Partitions(["a"] * 3, np.zeros(3, dtype=np.int64)), DataError),
        (Partitions(["a"] * 3), ReleaseError),
    ):
        with pytest.raises(error):
            asked(people, [rows], ledger=ledger)
    assert not ledger.commits()


def test_people_cannot_pass_as_rows_and_the_public_number_must_be_right() -> None:
    own = plan(rows=5)
    ledger = started(own)
    with pytest.raises(DataError, match="num_records is 5"):
        asked(own, [Partitions(["a"] * 4)], ledger=ledger)
    with pytest.raises(ReleaseError, match="people with several rows"):
        asked(own, [Partitions(["a"] * 5, np.arange(5))], ledger=ledger)


def test_an_empty_column_and_one_without_noise() -> None:
    assert asked(plan(), [Partitions([None, "other"])]).keys == ()


def test_without_noise_every_key_is_shown_and_marked() -> None:
    own = plan(epsilon=math.inf)
    released = asked(own, [Partitions(texts(nurse=2, clerk=1))], ledger=started(own, math.inf))
    assert released.keys == ("clerk", "nurse") and list(released.values[0]) == [1, 2]
    assert not released.receipt.private and released.receipt.mechanism == "none"


def test_files_whose_keys_were_changed_are_refused() -> None:
    released = asked(plan(), [Partitions(texts(nurse=5_000, clerk=5_000))])
    for keys in (("nurse", "clerk"), ("clerk", "clerk"), ("clerk",)):
        with pytest.raises((ReleaseError, ArtifactError)):
            from_bytes(to_bytes(dataclasses.replace(released, keys=keys)), "keys")
