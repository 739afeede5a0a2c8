"""How the door counts rows that stay in PostgreSQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from likeness.core.errors import DataError
from likeness.pipeline.counts import memory_of

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

    from likeness.release.partition_selection import PartitionQuery
    from likeness.release.query import Query
    from likeness_postgres.rows import RemoteRows, Sums

_CHARGED, _UNSPENT = (
    "Nothing was released, and the cost of this query stays on record",
    "Nothing more was spent on this query",
)
_RECORDS = ""  # their number, beside tables and columns


@dataclass(frozen=True)
class PostgresReader:
    """The training rows in a database, for the door: a :class:`likeness.release.sums.backends.CountReader`.

    Attributes:
        rows: in the database.
        digest: of the rows that the cost is for.
        key: of the ledger.
    """

    rows: "RemoteRows"
    digest: str
    key: bytes

    @property
    def max_rows(self) -> int:
        """The most rows of a person that are counted; 0: a row is a person."""
        return 0 if self.rows.unit is None else self.rows.unit.max_rows

    @property
    def is_per_person(self) -> bool:
        """Tell whether the rows of a person share one contribution."""
        return self.rows.is_per_person

    def counts(
        self, tables: Sequence[Sequence[Any]], num_groups: int, by_class: bool
    ) -> "tuple[list[NDArray[int64]], int]":
        """The counts, if they are about the rows that the cost is for. The same statement sums up both.

        Nothing is asked if an earlier answer about these rows in this process holds all tables.

        Raises:
            DataError: the rows are others, or the database refuses.
        """
        return self._counts(tables, num_groups, by_class, _CHARGED)

    def _counts(
        self, tables: Sequence[Sequence[Any]], num_groups: int, by_class: bool, fate: str
    ) -> "tuple[list[NDArray[int64]], int]":
        groups, apart = self.rows.num_groups(tables, num_groups, by_class)
        keys = [(tuple(table), groups, apart) for table in tables]
        if not all(key in self._memory for key in (*keys, _RECORDS)):
            answers, sums = self.rows.counts(tables, groups, apart)
            self._compare(sums, fate)
            for key, table in zip(keys, answers, strict=True):
                if len(axes := key[0]) == 2:  # which says of each of both columns what it holds
                    cells = table.reshape(groups, axes[0].size, axes[1].size)
                    self._memory.update({((axis,), groups, apart): cells.sum(2 - at) for at, axis in enumerate(axes)})
                self._memory[key] = table
            self._memory[_RECORDS] = self.rows.record_count(sums)
        counts = [self._memory[key] for key in keys]
        if apart and not by_class:  # all are in the first group
            counts = [np.pad(each.sum(0, keepdims=True), ((0, num_groups - 1), (0, 0))) for each in counts]
        return counts, self._memory[_RECORDS]

    @cached_property
    def _memory(self) -> dict[Any, Any]:
        """The counts of these rows under this digest."""
        return memory_of(self)

    def texts(self, column: str) -> tuple[dict[str, int], int]:
        """The counts by SHA-256 of a text, if they are about the rows that the cost is for, and the number of rows.

        Raises:
            DataError: as :meth:`counts`.
        """
        return self._texts(column, _CHARGED)

    def _texts(self, column: str, fate: str) -> tuple[dict[str, int], int]:
        if column not in self._memory:
            counts, sums = self.rows.texts(column)
            self._compare(sums, fate)
            self._memory[column] = counts, sums.count
        counts, records = self._memory[column]
        return counts, records

    def texts_of(self, column: str, hashes: Sequence[str]) -> dict[str, str]:
        """The texts of some hashes.

        Raises:
            DataError: they are not there, or the database refuses.
        """
        return self.rows.texts_of(column, hashes)

    def check(self, query: "Query | PartitionQuery") -> None:
        """Refuse rows that changed, before their cost is on record. The same statement counts for the query.

        Raises:
            DataError: they changed, or the database refuses.
        """
        from likeness.release.partition_selection import PartitionQuery  # here: fingerprint asks nothing
        from likeness.release.sums.backends import question_of

        if isinstance(query, PartitionQuery):
            self._texts(query.column, _UNSPENT)
        else:
            self._counts(*question_of(query, self), _UNSPENT)

    def _compare(self, sums: "Sums", fate: str) -> None:
        if self.rows.digest(self.key, sums) != self.digest:
            raise DataError(
                f"{self.rows.database.name}: the rows changed since they were ingested. {fate}. Name a table that "
                "nobody writes to during a run, such as a snapshot, in ingest.query. Then run: likeness run"
            )

    def backend(self, tables: Sequence[Sequence[Any]], by_class: bool) -> str:
        """The database, and SHA-256 of the statements."""
        return f"{self.rows.database.dialect} {self.rows.digest_of_statements(tables, by_class)}"

    def backend_of_texts(self, column: str) -> str:
        """The same for the texts of an open column."""
        return f"{self.rows.database.dialect} {self.rows.digest_of_texts(column)}"
