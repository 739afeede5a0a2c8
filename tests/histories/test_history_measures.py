"""Measures of histories against chains whose laws are known.

People exchange drawn events within their group until these fit; each event stays, and stays in its group.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from toys import visits_of

from evidence.histories import distinct_people, next_event_accuracy
from likeness.core.rng import public
from likeness.data.source.files import read_frame_people
from likeness_histories.exchange import exchange_events
from likeness_histories.measures import discrimination, history_distances, shuffle_row_sets
from likeness_histories.row_sets import HistoryRows, history_rows
from likeness_histories.schema import HistorySchema

STATES = ["a", "b", "c"]
SPEC = visits_of("chain", 6, STATES)
SCHEMA = HistorySchema.from_dict(SPEC)


def chain(people: int, step: int, gap: int = 3, length: int = 5, seed: int = 0) -> HistoryRows:
    """State s is followed by s + step; events lie ``gap`` days apart; women start in a, men in b."""
    random = np.random.default_rng(seed)
    men = random.random(people) < 0.5
    names, places = np.repeat(np.arange(people), length), np.tile(np.arange(length), people)
    states = np.array(STATES)[(men[names] + step * places) % 3]
    events = pd.DataFrame({"id": names, "day": gap * places, "state": states})
    table = pd.DataFrame({"id": range(people), "sex": np.where(men, "m", "f")})
    return history_rows(
        SCHEMA, *read_frame_people(events, SCHEMA.events, "id"), *read_frame_people(table, SCHEMA.people, "id")
    )


ROUND, BACK = chain(400, 1), chain(400, 2)


def test_equal_tables_have_no_distance() -> None:
    assert set(history_distances(SCHEMA, ROUND, ROUND).values()) == {0.0}


@pytest.mark.parametrize(
    ("other", "far"),
    [
        (BACK, {"transitions", "last_events", "events_by_step", "person_and_next_event"}),
        (
            chain(400, 1, gap=30, length=4),
            {"lengths", "gaps", "last_events", "events_by_step", "person_and_first_event"},
        ),
        (chain(400, 1, gap=20), {"gaps"}),
        (
            chain(400, 1, length=2),
            {"lengths", "events_by_step", "transitions", "person_and_next_event", "person_and_first_event"},
        ),
    ],
)
def test_each_law_moves_its_own_measure(other: HistoryRows, far: set[str]) -> None:
    measures = history_distances(SCHEMA, ROUND, other)
    assert {name for name, value in measures.items() if value > 0.2} == far


def test_transitions_of_disjoint_chains_have_distance_one() -> None:
    assert history_distances(SCHEMA, ROUND, BACK)["transitions"] == pytest.approx(1)
    assert history_distances(SCHEMA, ROUND, chain(400, 1, length=4))["lengths"] == pytest.approx(1)


def test_the_floor_keeps_single_columns_and_loses_the_links() -> None:
    measures = history_distances(SCHEMA, ROUND, shuffle_row_sets(ROUND, 1))
    assert measures["lengths"] == measures["first_events"] == measures["gaps"] == 0
    assert measures["transitions"] == pytest.approx(2 / 3, abs=0.05)
    assert measures["person_and_first_event"] == pytest.approx(1 / 6, abs=0.03)  # lengths and first days are equal


def test_people_without_events_leave_out_what_has_no_rows() -> None:
    assert "transitions" not in history_distances(SCHEMA, ROUND, chain(10, 1, length=1))


@pytest.mark.long
def test_discrimination() -> None:
    assert discrimination(SCHEMA, ROUND, BACK) == pytest.approx(1, abs=0.01)
    assert discrimination(SCHEMA, ROUND, chain(400, 1, seed=1)) == pytest.approx(0.5, abs=0.07)
    assert np.isnan(discrimination(SCHEMA, ROUND, chain(3, 1)))


@pytest.mark.long
def test_next_event() -> None:
    assert next_event_accuracy(SCHEMA, ROUND, chain(200, 1, seed=1), "state") == 1
    assert next_event_accuracy(SCHEMA, BACK, chain(200, 1, seed=1), "state") == 0


def test_distinct_people() -> None:
    assert distinct_people(SCHEMA, ROUND) == 2 / 400 and distinct_people(SCHEMA, chain(1, 1)) == 1


Places = NDArray[np.int64]


def late(limits: NDArray[np.float64], times: NDArray[np.float64]):  # type: ignore[no-untyped-def]
    """An event fits a person whose limit it keeps."""
    return lambda people, events: np.maximum(times[events] - limits[people], 0.0)


@given(st.integers(0, 1000), st.integers(1, 60), st.integers(1, 4))
def test_events_stay_in_their_group_and_no_fault_grows(seed: int, count: int, groups: int) -> None:
    random = np.random.default_rng(seed)
    group, faults = random.integers(0, groups, count), late(random.random(count), random.random(count))
    events = exchange_events(group, faults, public(seed, "test"))
    everybody = np.arange(count)
    assert sorted(events) == everybody.tolist() and (group[events] == group).all()
    assert faults(everybody, events).sum() <= faults(everybody, everybody).sum()
    settled = faults(everybody, everybody) == 0
    if settled.all():
        assert (events == everybody).all()


def test_events_that_fit_somebody_of_the_group_find_them() -> None:
    """Half of the people take early events alone, and each second early event is theirs: at first half of it is not."""
    count = 4000
    limits, group = np.where(np.arange(count) % 4 < 2, 0.5, 1.0), np.arange(count) // 1000
    times = np.where(np.arange(count) % 2 == 0, 0.4, 0.9)
    faults = late(limits, times)
    events = exchange_events(group, faults, public(0, "test"))
    assert (faults(np.arange(count), np.arange(count)) > 0).mean() == 0.25
    assert (faults(np.arange(count), events) > 0).mean() < 0.01


def test_what_fits_nobody_of_the_group_stays() -> None:
    limits, times = np.array([0.5, 0.5, 1.0]), np.array([0.9, 0.8, 0.1])
    events = exchange_events(np.array([0, 0, 1]), late(limits, times), public(0, "test"))
    assert sorted(events[:2]) == [0, 1] and events[2] == 2
