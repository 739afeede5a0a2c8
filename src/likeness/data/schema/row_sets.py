"""Which of the row sets of a schema a query or a question is about.

A schema has its row sets by the beginning of the names of their queries. The first one begins with nothing.
"""

from collections.abc import Collection, Mapping
from typing import Any, Protocol, Self

from likeness.data.schema.schema import Schema


class PublicSchema(Protocol):
    """Public knowledge of a data set: of a table, or of what a wing adds."""

    @property
    def row_sets(self) -> Mapping[str, Schema]:
        """Schemas of the rows that a method is asked about, by the beginning of the names of their queries."""
        ...

    @property
    def published(self) -> Self:
        """It without the columns that are left out."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The content of a schema file."""
        ...


def prefix_of(row_sets: Mapping[str, Schema], query: str) -> str:
    """The prefix of the row set that a query is about, from the query's name."""
    return [prefix for prefix in row_sets if query.startswith(prefix)][-1]


def prefix_with(row_sets: Mapping[str, Schema], names: Collection[str]) -> str:
    """The prefix of the first row set that has all of some columns, else that of the last one."""
    fits = (prefix for prefix, rows in row_sets.items() if set(names) <= set(rows.names))
    return next(fits, [*row_sets][-1])
