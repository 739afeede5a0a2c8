"""What the core asks of this wing: rows of queries that stay in PostgreSQL."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from likeness.config.params import NONE
from likeness.core.extras import need
from likeness.core.hashing import sha256_bytes
from likeness.core.paths import ProjectPaths, row_set_file
from likeness.data.private_tables import write_private
from likeness.data.schema.column import SPLIT_COLUMN
from likeness.data.schema.schema import Schema
from likeness.data.source.cells import type_table
from likeness.data.source.databases import Database
from likeness.data.table_columns import with_columns
from likeness.pipeline.counts import ANSWERS, COUNTED, CountBackend
from likeness_postgres.reader import PostgresReader

if TYPE_CHECKING:
    from likeness.ledger.ledger import Ledger
    from likeness.release.query import Query
    from likeness_postgres.rows import RemoteRows, SourceSummary
    from likeness_postgres.statements import Split

_WHAT_LEAVES = """-- These statements read, and write nothing. Each begins with the same steps, which hash rows.
-- Answers hold the largest fault of each column, numbers of rows, sums of their hashes, and counts of cells. They hold
-- no row, and only those texts of private categories that are released. Names and types of columns come too.
-- Above a query stands SHA-256 of its statements, without the last semicolon. A run asks none of what it has counted.
"""


@dataclass(frozen=True)
class PostgresCounts(CountBackend):
    """Rows of queries that stay in PostgreSQL, which counts them."""

    def __post_init__(self) -> None:
        """Refuse an environment without the parser of SQL."""
        need("sqlglot", "ingest.rows: stay")

    def reasons(self) -> list[str]:
        """Settings and schema say why, or else the types of columns."""
        conditions = {
            "privacy.series chooses people for each night": self.sources.params.privacy.series != NONE,
            "the schema is one of images": self.model.records.image is not None,
            "the schema has private bounds. Give lower and upper": bool(self.model.records.unbounded_columns),
        }
        return [reason for reason, holds in conditions.items() if holds] or self._source_rows.reasons

    def digest(self, key: bytes) -> str:
        """All rows of each table, and whose they are."""
        ANSWERS.clear()
        rows = self._source_rows
        summary = rows.summarize(key)
        ANSWERS.append(((rows, key), summary))  # for ingest
        return " ".join([*summary.whole, summary.digest])

    def ingest(self, ledger: "Ledger", paths: ProjectPaths) -> None:
        """Tables without rows. COUNTED holds SHA-256 of the statements that were asked."""
        from likeness.pipeline.ingest import manifest_of

        rows, params = self._source_rows, self.model.complete(self.sources.params)
        summaries: list[SourceSummary] = [answer for question, answer in ANSWERS if question == (rows, ledger.key)]
        ANSWERS.clear()  # another ingest looks again
        summary = summaries[0] if summaries else rows.summarize(ledger.key)
        self.model.check_strangers(summary.strangers, summary.events)
        manifest = manifest_of(params, ledger.id, summary.digest, summary.count, summary.whole, summary.held_out)
        ledger.check_owner(manifest["identity"], summary.digest, manifest["rows_digests"])
        manifest[COUNTED] = sha256_bytes("\n;\n".join(rows.survey_statements).encode())
        for prefix, (schema, _) in self.model.encodings.items():
            no_cells = pd.DataFrame({name: pd.Series(dtype=object) for name in schema.names})
            table = with_columns(
                type_table(no_cells, schema, rows.database.name), {SPLIT_COLUMN: pd.Series(dtype=object)}
            )
            write_private(table, row_set_file(paths.table, prefix), manifest)

    def reader(self, digest: str, key: bytes, complete: Schema | None = None, index: int = 0) -> PostgresReader:
        """The rows of one row set."""
        return PostgresReader(self.rows(complete, index), digest, key)

    def script(self, complete: Schema | None, queries: "Iterable[tuple[int, Query]]") -> Iterator[str]:
        """The statement of the stages fingerprint and ingest, then those of each query, below SHA-256 of them."""
        from likeness.release.partition_selection import query_name
        from likeness.release.sums.backends import counted_tables

        rows = self._source_rows
        yield _WHAT_LEAVES
        yield "-- fingerprint and ingest\n" + "\n".join(f"{survey};" for survey in rows.survey_statements)
        for index, column in enumerate(self.model.records.open_columns, start=1):
            name, statements = column.name, rows.statements
            yield f"\n-- {query_name(index)}: {rows.digest_of_texts(name)}\n{statements.texts(name)};"
            yield f"-- and of the hashes that are released:\n{statements.texts_of(name, ())};"
        of_sets: dict[int, RemoteRows] = {}
        for index, query in queries:
            rows = of_sets[index] = of_sets.get(index) or self.rows(complete, index)
            counted = counted_tables(query)
            yield f"\n-- {query.name}: {rows.digest_of_statements(*counted)}"
            yield from (f"{statement};" for statement in rows.count_statements(*counted))

    def rows(self, complete: Schema | None = None, index: int = 0) -> "RemoteRows":
        """The rows of one row set. Nothing is asked yet.

        Args:
            complete: one row a record, with released categories; None: before they are.
            index: of the row set.
        """
        from likeness_postgres.history_rows import RemoteHistories
        from likeness_postgres.rows import RemoteRows
        from likeness_postgres.statements import People

        databases = [source for source in self.sources.all_sources if isinstance(source, Database)]
        if (events := self.model.event_schema) is not None:
            return RemoteHistories.from_databases(events, databases, self._split(), index)
        unit = self.sources.ingest.unit
        people = None if unit is None else People(unit.column, unit.max_rows)
        return RemoteRows(databases[0], self.model.records, self._split(), people, complete)

    @cached_property
    def _source_rows(self) -> "RemoteRows":
        """The rows before their categories are released: names and types of columns are asked once."""
        return self.rows()

    def _split(self) -> "Split":
        """The split of the settings, as the database makes it."""
        from likeness_postgres.statements import Split

        split = self.sources.ingest.split
        if split.column is None:
            return Split(split.test_fraction, split.seed)
        return Split(0.0, split.seed, "", split.column, split.train, split.test)
