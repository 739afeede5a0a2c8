"""Measures of histories against chains whose laws are known."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from evidence.histories import distinct_people, next_event_accuracy
from likeness.data.source.files import read_frame_people
from likeness_histories.measures import discrimination, history_distances, shuffle_row_sets
from likeness_histories.row_sets import HistoryRows, history_rows
from likeness_histories.schema import HistorySchema

STATES = ["a", "b", "c"]
SPEC: dict[str, Any] = {
    "name": "chain", "source": "made up", "person": "id", "order": "day", "most": 6,
    "people": {"sex": {"kind": "categorical", "categories": ["f", "m"]}},
    "events": {
        "day": {"kind": "integer", "lower": 0, "upper": 99},
        "state": {"kind": "categorical", "categories": STATES},
    },
}  # fmt: skip
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
    assert distinct_people(SCHEMA, ROUND) == 2 / 400
    assert distinct_people(SCHEMA, chain(1, 1)) == 1
