"""Which of the row sets of a schema a query or a question is about.

A schema has its row sets by the beginning of the names of their queries. The first one begins with nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, Self

from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema

NUMBER, LENGTH, STEP = "number of events", "length of history", "step"
GAP, GAP_BEFORE, USUAL_GAP = "gap", "gap before", "gap usually"
"""Columns of row sets of events: in the order, the distance to the next event, from that before, and the usual one."""


class PublicSchema(Protocol):
    """Public knowledge of a data set: of a table, or of what a wing adds."""

    @property
    def row_sets(self) -> Mapping[str, Schema]:
        """Schemas of the rows that a method is asked about, by the beginning of the names of their queries."""

    @property
    def published_schema(self) -> Self:
        """It without the columns that are left out."""

    def to_dict(self) -> dict[str, Any]:
        """The content of a schema file."""


class EventSchema(PublicSchema, Protocol):
    """Two row sets that are made of people's events: one row a person, and one row a pair of events in a row.

    It says enough to make them in any language. A column of a row set is one of the person, one of the names above, or
    has a word before the name of a column of events: ``first``, ``before``, ``last``, ``next``, ``usual``, ``same``.
    The person's first event, the two of a pair and that before them, what is usual, and whether the pair has the same.
    """

    @property
    def person(self) -> str:
        """The column of each table that names the person."""

    @property
    def events(self) -> Schema:
        """Columns of the events."""

    @property
    def people(self) -> Schema | None:
        """Columns of the people; None: people are made from their events."""

    @property
    def order(self) -> str | None:
        """The column of events by which they are ordered, then by the hash of their row; None: by the hash alone."""

    @property
    def most_events(self) -> int:
        """The most events of a person that count."""

    @property
    def least(self) -> int:
        """The fewest: 0 where people have a table."""

    @property
    def which_events(self) -> str:
        """The choice among more events: ``first`` takes the first, ``hash`` those with the smallest public hashes."""

    @property
    def ends(self) -> Mapping[str, Collection[str]]:
        """Categories by column of events. No event follows one with such a category."""

    @property
    def person_columns(self) -> Sequence[Column]:
        """Columns that are constant for a person."""

    @property
    def time_varying(self) -> Sequence[Column]:
        """The other columns of events."""

    @property
    def states(self) -> Sequence[Column]:
        """Those without the order."""

    @property
    def usual(self) -> Sequence[Column]:
        """Columns of what is usual for a person: the most frequent category, or the smaller middle number."""

    @property
    def length_starts(self) -> Sequence[int]:
        """The first number of events of each category of :data:`LENGTH`."""

    @property
    def step_starts(self) -> Sequence[int]:
        """The first place in a history of each category of :data:`STEP`."""


def prefix_of(row_sets: Mapping[str, Schema], query: str) -> str:
    """The prefix of the row set that a query is about, from the query's name."""
    return [prefix for prefix in row_sets if query.startswith(prefix)][-1]


def prefix_with(row_sets: Mapping[str, Schema], names: Collection[str]) -> str:
    """The prefix of the first row set that has all of some columns, else that of the last one."""
    fits = (prefix for prefix, rows in row_sets.items() if set(names) <= set(rows.names))
    return next(fits, [*row_sets][-1])
