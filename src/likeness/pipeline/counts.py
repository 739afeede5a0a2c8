"""Rows that stay where they are: what the core asks of the wing that counts them.

An entry point of the group ``likeness.counts`` names a :class:`CountBackend` by the scheme of ``ingest.source``. Typed
and encoded tables of such a project hold no row. Their manifest has the keyed digest of the training rows, that of
:class:`likeness.data.source.row_digests.TypedDigest`. So the ledger recognizes the rows wherever they come from.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likeness.core.wings import Wings

if TYPE_CHECKING:
    from likeness.core.paths import ProjectPaths
    from likeness.data.schema.schema import Schema
    from likeness.ledger.ledger import Ledger
    from likeness.pipeline.datasets.model import DataModel
    from likeness.pipeline.sources import Sources
    from likeness.release.query import Query
    from likeness.release.sums.backends import CountReader

COUNTED = "counted"
"""The key of a manifest whose rows stay in their database."""

ANSWERS: list[tuple[Any, Any]] = []
"""Questions about rows and answers in this process. They are private, never written, and end with the run."""


def memory_of(rows: Any) -> dict[Any, Any]:
    """The memory of counts of rows, which is that of equal rows in this process."""
    memory: dict[Any, Any] | None = next((memory for reader, memory in ANSWERS if reader == rows), None)
    if memory is None:
        memory = {}
        ANSWERS.append((rows, memory))
    return memory


@dataclass(frozen=True)
class CountBackend(ABC):
    """The rows of a project's sources, which stay where they are. Nothing is asked before a method is called.

    Attributes:
        sources: with the settings of the project.
        model: the data model of the public schema as it is written.

    Raises:
        MissingPackageError: a package that the backend needs is not installed.
    """

    sources: "Sources"
    model: "DataModel"

    @abstractmethod
    def reasons(self) -> list[str]:
        """Say why the rows must come, by settings, schema and types of columns; empty where they can stay.

        Raises:
            DataError: the database cannot be reached, or a column is missing.
        """

    def later_reasons(self, maps: Iterable[type]) -> list[str]:
        """Say why the rows must come for a later stage; no database is asked.

        Args:
            maps: that the method may ask.
        """
        params = self.sources.params
        counted = all(hasattr(kind, "counted_tables") or hasattr(kind, "axes") for kind in maps)
        conditions = {
            "tracking.internal_metrics asks for comparisons with real rows": params.tracking.internal_metrics,
            f"method {params.method} asks for more than counts of cells": not counted,
        }
        return [reason for reason, holds in conditions.items() if holds]

    @abstractmethod
    def digest(self, key: bytes) -> str:
        """Keyed digest of all rows, for the stage ``fingerprint``.

        Args:
            key: of the ledger.

        Raises:
            DataError: a cell breaks a rule of the schema, or the database refuses.
        """

    @abstractmethod
    def ingest(self, ledger: "Ledger", paths: "ProjectPaths") -> None:
        """Write typed tables without rows, with the manifest of those that stay. It has the key :data:`COUNTED`.

        Args:
            ledger: whose key makes the digests.
            paths: where they are written.

        Raises:
            DataError: as :meth:`digest`; or there is no training row.
            LedgerError: the rows belong to another population.
        """

    @abstractmethod
    def reader(self, digest: str, key: bytes, complete: "Schema | None" = None, index: int = 0) -> "CountReader":
        """Give the reader that counts the training rows for the door.

        Args:
            digest: of the rows that the cost is for. Others are refused.
            key: of the ledger.
            complete: one row a record, with released categories; None: before they are.
            index: of the row set that is counted.
        """

    @abstractmethod
    def script(self, complete: "Schema | None", queries: "Iterable[tuple[int, Query]]") -> Iterator[str]:
        """All that is asked, as text for a reviewer.

        Args:
            complete: as for :meth:`reader`.
            queries: each with the place of its row set.
        """


COUNTS: Wings[type[CountBackend]] = Wings("likeness.counts", {})


def backend_of(sources: "Sources", model: "DataModel") -> CountBackend:
    """The backend that counts the rows of a source.

    Raises:
        MissingPackageError: its wing, or a package that it needs, is not installed.
    """
    scheme = sources.ingest.source.partition(":")[0].partition("+")[0]
    subject = f"ingest.rows: stay needs the part of Likeness that counts in {scheme}."
    return COUNTS.need(scheme, subject)(sources, model)
