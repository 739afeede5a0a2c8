"""Exchange of drawn events among people with equal distributions, until the events fit the people.

Some fits depend on what the model of the next event does not see: the rules of a schema, and the end of the order. To
draw an event again until it fits would make events rare that fit seldom. Two people with equal conditions have events
of one distribution. So an exchange keeps each event, and how often it follows what the model sees.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 100

Places = NDArray[np.int64]


class Faults(Protocol):
    """A measure of how badly events fit people: 0 where one fits."""

    def __call__(self, people: Places, events: Places) -> NDArray[np.float64]:
        """The fault of each event beside its person, shape (n,), from the places of both."""
        ...


def exchange_events(groups: Places, faults: Faults, random: np.random.Generator) -> Places:
    """The place of the event that each person gets, shape (n,); at first each has the event of the same place.

    In a round everybody whose event does not fit meets somebody of the group. They exchange their events if the sum of
    their faults falls.

    Args:
        groups: of each person, shape (n,); people exchange within a group alone.
        faults: of events beside people.
        random: public.
    """
    everybody = np.arange(len(groups))
    events, fault = everybody.copy(), faults(everybody, everybody)
    members = np.argsort(groups, kind="stable")
    _, group, counts = np.unique(groups, return_inverse=True, return_counts=True)
    starts = np.cumsum(counts) - counts
    for _ in range(_ROUNDS):
        misfits = np.flatnonzero(fault > 0)
        if not len(misfits):
            break
        partners = members[starts[group[misfits]] + random.integers(0, counts[group[misfits]])]
        numbers, meeting = np.arange(len(misfits)), np.full(len(groups), -1)
        meeting[misfits] = numbers
        meeting[partners] = numbers  # of several meetings of a person the last one takes place
        takes_place = (meeting[misfits] == numbers) & (meeting[partners] == numbers) & (misfits != partners)
        misfits, partners = misfits[takes_place], partners[takes_place]
        after = faults(misfits, events[partners]), faults(partners, events[misfits])
        better = sum(after) < fault[misfits] + fault[partners]
        misfits, partners = misfits[better], partners[better]
        events[misfits], events[partners] = events[partners], events[misfits]
        fault[misfits], fault[partners] = after[0][better], after[1][better]
    return events
