"""How the door counts rows that stay in PostgreSQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likeness.core.errors import DataError

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

    from likeness_postgres.rows import RemoteRows, Sums

_CHARGED, _UNSPENT = (
    "Nothing was released, and the cost of this query stays on record",
    "Nothing more was spent on this query",
)


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

        Raises:
            DataError: the rows are others, or the database refuses.
        """
        counts, sums = self.rows.counts(tables, num_groups, by_class)
        self._compare(sums, _CHARGED)
        return counts, self.rows.record_count(sums)

    def texts(self, column: str) -> tuple[dict[str, int], int]:
        """The counts by SHA-256 of a text, if they are about the rows that the cost is for, and the number of rows.

        Raises:
            DataError: as :meth:`counts`.
        """
        counts, sums = self.rows.texts(column)
        self._compare(sums, _CHARGED)
        return counts, sums.count

    def texts_of(self, column: str, hashes: Sequence[str]) -> dict[str, str]:
        """The texts of some hashes.

        Raises:
            DataError: they are not there, or the database refuses.
        """
        return self.rows.texts_of(column, hashes)

    def check(self) -> None:
        """Refuse rows that changed, before their cost is on record.

        Raises:
            DataError: they changed, or the database refuses.
        """
        self._compare(self.rows.count_training_rows(), _UNSPENT)

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
