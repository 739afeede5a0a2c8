"""What the core asks of this wing: rows of a query that stay in Spark."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from likeness.config.params import NONE
from likeness.core.extras import need
from likeness.core.paths import ProjectPaths, row_set_file
from likeness.data.private_tables import write_private
from likeness.data.schema.column import SPLIT_COLUMN
from likeness.data.schema.schema import Schema
from likeness.data.source.cells import type_table
from likeness.data.source.databases import Database
from likeness.data.table_columns import with_columns
from likeness.pipeline.counts import ANSWERS, COUNTED, CountBackend
from likeness_spark.executor import NAME, Pass, versions
from likeness_spark.reader import SparkReader, SparkRows

if TYPE_CHECKING:
    from likeness.ledger.ledger import Ledger
    from likeness.release.query import Query


@dataclass(frozen=True)
class SparkCounts(CountBackend):
    """Rows of a query that stay in Spark, whose executors count them."""

    def __post_init__(self) -> None:
        """Refuse an environment without Spark's package."""
        need("pyspark", "ingest.source: spark://")

    def reasons(self) -> list[str]:
        """Settings and schema say why, or else the types of columns."""
        model = self.model
        conditions = {
            "privacy.series chooses people for each night": self.sources.params.privacy.series != NONE,
            "the schema is one of images": model.records.image is not None,
            "the schema is one of histories": model.event_schema is not None,
            "the schema has private categories. List them": bool(model.records.open_columns),
            "the schema has private bounds. Give lower and upper": bool(model.records.unbounded_columns),
        }
        reasons = [reason for reason, holds in conditions.items() if holds]
        return reasons or [
            f"column '{name}' has a zone. CAST it AS TIMESTAMP_NTZ" for name in self._rows.zoned_columns()
        ]

    def digest(self, key: bytes) -> str:
        """All used rows, and the training rows."""
        ANSWERS.clear()
        rows = self._rows
        train, test, _ = rows.sums()
        ANSWERS.append(((rows, key), (train, test)))  # for ingest
        return f"{rows.digest(key, train, test)} {rows.digest(key, train)}"

    def ingest(self, ledger: "Ledger", paths: ProjectPaths) -> None:
        """Tables without rows. COUNTED holds SHA-256 of the pass."""
        from likeness.pipeline.ingest import manifest_of

        rows, params = self._rows, self.model.complete(self.sources.params)
        sums = [answer for question, answer in ANSWERS if question == (rows, ledger.key)]
        ANSWERS.clear()  # another ingest looks again
        train, test = sums[0] if sums else rows.sums()[:2]
        digest, whole = rows.digest(ledger.key, train), [rows.digest(ledger.key, train, test)]
        manifest = manifest_of(params, ledger.id, digest, train.count, whole, test.count)
        ledger.check_owner(manifest["identity"], digest, manifest["rows_digests"])
        manifest[COUNTED] = rows.digest_of_pass((), False)
        for prefix, (schema, _) in self.model.encodings.items():
            no_cells = pd.DataFrame({name: pd.Series(dtype=object) for name in schema.names})
            table = with_columns(type_table(no_cells, schema, NAME), {SPLIT_COLUMN: pd.Series(dtype=object)})
            write_private(table, row_set_file(paths.table, prefix), manifest)

    def reader(self, digest: str, key: bytes, complete: Schema | None = None, index: int = 0) -> SparkReader:
        """The rows of the only row set."""
        return SparkReader(self._rows, digest, key)

    def script(self, complete: Schema | None, queries: "Iterable[tuple[int, Query]]") -> Iterator[str]:
        """The query, and of each question its tables: executors run Python, and no SQL counts."""
        from likeness.release.sums.backends import counted_tables

        yield f"-- Executors run likeness_spark.executor.count of likeness-dp {versions()[0]} over this query."
        yield f"-- Numbers of rows, sums of their hashes and counts of cells come.\n{self._rows.database.statement};"
        for _, query in queries:
            tables, by_class = counted_tables(query)
            yield f"\n-- {query.name}: {self._rows.digest_of_pass(tables, by_class)}"
            yield f"-- {len(tables)} tables, {'by class' if by_class else 'all classes together'}"

    @cached_property
    def _rows(self) -> SparkRows:
        """The rows. Nothing is asked yet."""
        (database,) = [source for source in self.sources.all_sources if isinstance(source, Database)]
        return SparkRows(database, Pass(self.sources.params, self.model.records, versions()))
