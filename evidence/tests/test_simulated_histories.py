"""The simulated people of the benchmark of histories follow the laws that they state."""

import numpy as np
import pandas as pd
import pytest

from evidence.histories import STATES, broken, buys_again, chain, habits, households, law_error


def test_households_keep_their_rules_and_a_broken_one_is_seen() -> None:
    tables = households(500, 0)
    assert broken(tables) == 0
    assert tables["events"].groupby("id").size().between(1, 8).all()
    for fault in ({"role": "partner"}, {"role": "child"}):
        events = tables["events"].copy()
        events.loc[0, list(fault)] = list(fault.values())
        assert broken({**tables, "events": events}) == pytest.approx(1 / 500)


def test_the_chain_moves_by_the_class() -> None:
    tables = chain(4000, 0)
    states = tables["events"]["state"].map({state: number for number, state in enumerate(STATES)}).to_numpy()
    jumps = np.diff(states.reshape(-1, 6), axis=1) % 12
    up = tables["people"]["class"].to_numpy() == "up"
    assert (jumps[up] == 1).mean() == pytest.approx(0.8 + 0.2 / 12, abs=0.01)
    assert (jumps[~up] == 11).mean() == pytest.approx(0.8 + 0.2 / 12, abs=0.01)


def test_the_error_of_transitions_is_that_from_the_law() -> None:
    """A law without classes has the right transitions, and a wrong one beside each class."""
    tables = chain(20_000, 0)
    right = law_error(tables)
    assert right["law_transitions"] < right["law_by_class"] < 0.02
    mixed = tables["people"].assign(**{"class": np.where(tables["people"]["id"] % 2, "up", "down")})
    wrong = law_error({**tables, "people": mixed})
    assert wrong["law_transitions"] == right["law_transitions"] and wrong["law_by_class"] == pytest.approx(
        0.4, abs=0.01
    )


def test_a_purchase_within_90_days_counts_and_an_uncovered_one_is_left_out() -> None:
    dates = ["1997-01-01", "1997-04-01", "1997-07-01", "1998-05-01"]
    events = pd.DataFrame({"customer_id": 1, "date": dates, "quantity": 1, "amount": 2.0})
    seen, label = buys_again(events)
    assert label.tolist() == [True, False, False]
    assert seen["number"].tolist() == [1, 2, 3] and seen["gap"].tolist()[1:] == [90, 91]


def test_a_habit_of_a_customer_is_seen_at_any_distance() -> None:
    random = np.random.default_rng(0)
    people, turns = np.repeat(np.arange(400), 6), np.tile(np.arange(6), 400)
    rates = np.repeat(random.normal(3, 1, 400), 6)
    dates = pd.Timestamp("1997-01-01") + pd.to_timedelta(turns * np.repeat(random.integers(1, 40, 400), 6), unit="D")
    events = pd.DataFrame({"customer_id": people, "date": dates, "quantity": 1})
    lasting = habits(events.assign(amount=np.exp(rates + random.normal(0, 0.3, 2400))))
    fleeting = habits(events.assign(amount=np.exp(random.permutation(rates))))
    assert min(lasting.values()) > 0.85 and abs(fleeting["correlation_amounts_4"]) < 0.15
