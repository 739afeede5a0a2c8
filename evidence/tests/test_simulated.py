"""The benchmark's mixture, its scores, and simulated people of histories: all follow the laws that they state."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evidence import mixture
from evidence.histories import STATES, broken, buys_again, chain, habits, households, law_error
from evidence.mixture import GaussianGrid


def points(shift: float) -> pd.DataFrame:
    x, labels = GaussianGrid().sample(200, 1)
    return pd.DataFrame({"x": x[:, 0] + shift, "y": x[:, 1], "class": labels.astype(str)})


def test_the_file_is_the_papers_and_always_the_same(tmp_path: Path) -> None:
    for name in ("one.parquet", "other.parquet"):
        mixture.build(tmp_path / name)
    table = pd.read_parquet(tmp_path / "one.parquet")
    assert table.equals(pd.read_parquet(tmp_path / "other.parquet"))
    assert table["split"].value_counts().to_dict() == {"train": 90_000, "test": 10_000}
    assert list(table.columns) == ["x", "y", "class", "split"] and table["class"].nunique() == 5


def test_scores_by_what_is_known() -> None:
    """5,000 true rows: 1.1 % are far (standard error .15 %); half a step aside all are between the Gaussians."""
    true, aside = mixture.score(points(0)), mixture.score(points(0.5))
    assert true["far"] == pytest.approx(0.0111, abs=0.008) and true["modes"] == 25
    assert true["nll_as_published"] == pytest.approx(3.17e5, rel=0.02)  # a standard error is .2 %
    assert aside["far"] > 0.2 and aside["nll"] > 2 * true["nll"]
    half = points(0)[lambda table: table["x"] < 2.5]  # three of five columns of Gaussians
    assert mixture.score(half)["modes"] == 15


def test_every_class_has_one_gaussian_in_each_row_and_column() -> None:
    classes = GaussianGrid().center_classes.reshape(5, 5)
    for lines in (classes, classes.T):
        assert all(sorted(line) == [0, 1, 2, 3, 4] for line in lines)
    assert classes[0].tolist() == [0, 1, 2, 3, 4] and classes[1].tolist() == [2, 3, 4, 0, 1]  # as in the papers' code
    assert GaussianGrid().centers[7].tolist() == [1, 2]


def test_density_by_hand_and_in_sum() -> None:
    grid = GaussianGrid()
    x = np.array([[0.1, 0.0], [2.0, 2.3]])
    expected = []
    for point, label in zip(x, (0, 1), strict=True):
        at = [c for c, own in zip(grid.centers, grid.center_classes, strict=True) if own == label]
        value = sum(math.exp(-((point - c) ** 2).sum() / 0.08) / (2 * math.pi * 0.04) for c in at) / 25
        expected.append(math.log(value))
    assert grid.log_density(x, np.array([0, 1])) == pytest.approx(expected)
    # Over the plane and the classes the density sums to 1.
    side = np.linspace(-1.5, 5.5, 201)
    plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    mass = sum(np.exp(grid.log_density(plane, np.full(len(plane), label))).sum() for label in range(5))
    assert mass * (side[1] - side[0]) ** 2 == pytest.approx(1, abs=1e-6)


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
