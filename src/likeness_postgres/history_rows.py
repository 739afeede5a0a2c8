"""People with histories who stay in a database: what is asked there, and the few numbers that come back."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.data.schema.row_sets import EventSchema
from likeness.data.source.databases import Database
from likeness.data.source.row_digests import digest_of_sets
from likeness_postgres.edges import Axis
from likeness_postgres.history_statements import HistoryStatements, reasons_against
from likeness_postgres.rows import MOST_COLUMNS, RemoteRows, SourceSummary, Sums, digest_of_sums
from likeness_postgres.statements import People, Split


@dataclass(frozen=True)
class RemoteHistories(RemoteRows):
    """People with histories in a database. The rows that are counted are those of one row set.

    Attributes:
        history: public.
        index: of the row set.
        tables: the events and, where there is such a table, the people.
    """

    history: EventSchema = field(kw_only=True)
    index: int = field(kw_only=True)
    tables: Sequence[RemoteRows] = field(kw_only=True)
    is_per_person = True

    @classmethod
    def from_databases(
        cls, history: EventSchema, databases: Sequence[Database], split: Split, index: int
    ) -> "RemoteHistories":
        """The rows of queries. Nothing is asked yet.

        Args:
            history: public.
            databases: with the query of the events and, where the schema has people, with that of the people.
            split: of the settings: of people, by a hash.
            index: of the row set.
        """
        schemas, name = [history.events, *([] if history.people is None else [history.people])], history.person
        tables = [
            RemoteRows(database, schema, split, People(name, 0))
            for database, schema in zip(databases, schemas, strict=True)
        ]
        schema, unit = list(history.row_sets.values())[index], People(name, history.most_events)
        return cls(databases[0], schema, split, unit, history=history, index=index, tables=tables)

    @cached_property
    def reasons(self) -> list[str]:
        """The reasons why the rows must come, as those of tables."""
        reasons = reasons_against(self.history)
        if any(len(rows.columns) > MOST_COLUMNS for rows in self.history.row_sets.values()):
            reasons.append(f"a row of events that follow each other has over {MOST_COLUMNS} columns")
        return reasons or [reason for table in self.tables for reason in table.reasons]

    @cached_property
    def statements(self) -> HistoryStatements:
        """The statements that are asked.

        Raises:
            DataError: the rows must come.
        """
        self.check_reasons()
        return HistoryStatements.from_row_set(self.history, self.index, [table.statements for table in self.tables])

    @property
    def survey_statements(self) -> list[str]:
        """The statements of :meth:`summarize`."""
        survey = self.statements.survey()
        return [*(table.statements.survey() for table in self.tables), survey]

    def counts(
        self, tables: Sequence[Sequence[Axis]], num_groups: int, by_class: bool
    ) -> tuple[list[NDArray[np.int64]], Sums]:
        """The counts of rows in each cell, by the number m of rows of their person, as those of rows.

        Raises:
            DataError: as there; or another number of rows lies in the cells of a table than the database says, or of m
                rows of a person, whose number is no multiple of m.
        """
        counts, sums = super().counts(tables, num_groups, by_class)
        rows = np.zeros(num_groups, np.int64)
        expected = {m: pairs.count for m, pairs in sums.shares} if self.index else {1: sums.count}
        wrong = any(not 0 < m < num_groups or count % m for m, count in expected.items())
        if not wrong:
            rows[[*expected]] = [*expected.values()]
        if wrong or any((table.sum(axis=1) != rows).any() for table in counts):
            raise DataError(
                f"{self.database.name}: counts of cells contradict the number of rows. Nothing was released. Check the "
                "database."
            )
        return counts, sums

    def summarize(self, key: bytes) -> SourceSummary:
        """Read what a run knows of the people, as of rows.

        Raises:
            DataError: a cell breaks a rule of the schema, or the rows must come, or the database refuses.
        """
        *answers, answer = self.database.answers(self.survey_statements)
        whole = []
        for table, rows in zip(self.tables, answers, strict=True):
            sums = table.read_survey(rows)
            whole.append(table.digest(key, *sums) if any(some.count for some in sums) else "")
        counts, train = self._read_counts([answer])
        numbers = {int(cell): count for _, cell, count in counts}
        return SourceSummary(self.digest(key, train), tuple(whole), train.count, numbers[2], numbers[0], numbers[1])

    def digest(self, key: bytes, *sums: Sums) -> str:
        """The keyed digest of both row sets, see :func:`likeness.data.source.row_digests.digest_of_sets`."""
        (train,), (first, following) = sums, self.history.row_sets.values()
        pairs = {share: digest_of_sums(following, some) for share, some in train.shares}
        return digest_of_sets(digest_of_sums(first, train), pairs, key)

    def count_training_rows(self) -> Sums:
        """The training rows as they are now."""
        return self._ask_counts([self.statements.sums()])[1]

    def record_count(self, sums: Sums) -> int:
        """The number of rows of the row set."""
        return sum(pairs.count for _, pairs in sums.shares) if self.index else sums.count
