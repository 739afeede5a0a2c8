"""People exchange drawn events within their group until these fit; each event stays, and stays in its group."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from likeness.core.rng import public
from likeness_histories.exchange import exchange_events

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
    assert sorted(events) == everybody.tolist()
    assert (group[events] == group).all()
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
