"""Rows that stay in a database: what is asked there, and the few numbers that come back."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.core.hashing import sha256_bytes
from likeness.data.schema.schema import Schema
from likeness.data.source.cells import check_names, refusal
from likeness.data.source.databases import Database
from likeness.data.source.row_digests import TypedDigest
from likeness_postgres import columns, rules
from likeness_postgres.edges import Axis
from likeness_postgres.functions import FORMS
from likeness_postgres.statements import LIMBS, People, Split, Statements, parse_counts

MOST_COLUMNS = 500
"""A step has up to three columns a column of the schema, and PostgreSQL takes 1,664."""
_MOST_CELLS = 1 << 24  # that are counted by class without need, 128 MB


@dataclass(frozen=True)
class Sums:
    """Some rows, as a number and a sum of their hashes. Private.

    Attributes:
        count: number of rows.
        total: sum of SHA-256 of their texts.
        shares: of histories, whose people these rows are: the pairs of events by how many their person has, ascending.
    """

    count: int
    total: int
    shares: "tuple[tuple[int, Sums], ...]" = ()


@dataclass(frozen=True)
class SourceSummary:
    """The facts that a run knows of rows that stay before it asks about cells. Private.

    Attributes:
        digest: keyed, of the training rows.
        whole: keyed, of all rows of each table; empty without rows.
        count: number of training records.
        held_out: number of test records.
        events, strangers: of histories: the number of events, and of those of nobody among the people.
    """

    digest: str
    whole: tuple[str, ...]
    count: int
    held_out: int
    events: int = 0
    strangers: int = 0


@dataclass(frozen=True)
class RemoteRows:
    """The rows of a query, which stay in their database.

    Attributes:
        database: with its query.
        schema: public, without images.
        split: of the settings, by the name of its column.
        unit: of the settings; None: a row is a person.
        complete: the schema with the released categories of its open columns; None: it has none, or none are released.
    """

    database: Database
    schema: Schema
    split: Split
    unit: People | None = None
    complete: Schema | None = None
    is_per_person: ClassVar[bool] = False
    """Whether the rows of a person share one contribution, so that they are counted by the number of these rows."""

    @cached_property
    def _types(self) -> dict[str, tuple[str, str]]:
        """Name and type of each column in the database."""
        types = self.database.types()
        others = [name for name in (self.split.name, "" if self.unit is None else self.unit.name) if name]
        wanted = list(dict.fromkeys([*self.schema.names, *others]))
        check_names(self.database.columns(), wanted, self.database.name, f"{self.database.key} must give")
        return types

    @cached_property
    def _forms(self) -> dict[str, str | None]:
        return {name: FORMS.get(code) for name, (_, code) in self._types.items()}

    @cached_property
    def reasons(self) -> list[str]:
        """The reasons why the rows must come, a sentence a column; empty where they can stay.

        Raises:
            DataError: the database cannot be reached, or a column is missing.
        """
        reasons = [(each.name, columns.reason_against(each, self._forms[each.name])) for each in self.schema.columns]
        if self.split.name and self._forms[self.split.name] != "text":
            reasons.append((self.split.name, "it splits the rows and holds no texts"))
        if self.unit is not None and self._forms[self.unit.name] not in ("text", "whole"):
            reasons.append((self.unit.name, "it names people and holds neither texts nor whole numbers"))
        many = [f"the schema has over {MOST_COLUMNS} columns"] if len(self.schema.columns) > MOST_COLUMNS else []
        if re.search(r"\blikeness_", self.database.query, re.IGNORECASE):
            many.append(
                f"{self.database.key} has a name that begins with likeness_, as steps here. Name a view otherwise"
            )
        many += rules.reasons_against(self.schema.constrained_table)
        return [*many, *(f"column '{name}': {reason}" for name, reason in reasons if reason)]

    def check_reasons(self) -> None:
        """Refuse rows that must come.

        Raises:
            DataError: they must.
        """
        if self.reasons:
            raise DataError(f"{self.database.name}: rows cannot be counted there: {'; '.join(self.reasons)}.")

    @cached_property
    def statements(self) -> Statements:
        """The statements that are asked.

        Raises:
            DataError: the rows must come.
        """
        self.check_reasons()
        names = {name: columns.quoted_name(original) for name, (original, _) in self._types.items()}
        split = replace(self.split, column=names[self.split.name] if self.split.name else "")
        forms = {name: form for name, form in self._forms.items() if form is not None}
        query = self.database.statement.rstrip().removesuffix(";")
        unit = None if self.unit is None else replace(self.unit, column=names[self.unit.name])
        return Statements(query, self.schema, self.complete or self.schema, forms, names, split, unit)

    @property
    def survey_statements(self) -> list[str]:
        """The statements of :meth:`summarize`."""
        return [self.statements.survey()]

    def summarize(self, key: bytes) -> SourceSummary:
        """Read what a run knows of the rows.

        Args:
            key: of the ledger.

        Raises:
            DataError: as :meth:`count_rows`.
        """
        train, test = self.count_rows()
        return SourceSummary(self.digest(key, train), (self.digest(key, train, test),), train.count, test.count)

    def digest(self, key: bytes, *sums: Sums) -> str:
        """The keyed digest of rows: a database has no order of rows."""
        return digest_of_sums(self.schema, *sums).digest(key)

    def count_training_rows(self) -> Sums:
        """The training rows as they are now.

        Raises:
            DataError: as :meth:`count_rows`.
        """
        return self.count_rows()[0]

    def record_count(self, sums: Sums) -> int:
        """The number of rows that are counted."""
        return sums.count

    def count_rows(self) -> tuple[Sums, Sums]:
        """The training rows, and the test rows.

        Raises:
            DataError: a cell breaks a rule of the schema, or the rows must come, or the database refuses.
        """
        (answer,) = self.database.answers(self.survey_statements)
        return self.read_survey(answer)

    def read_survey(self, answer: Sequence[Sequence[Any]]) -> tuple[Sums, Sums]:
        """The training rows, and the test rows, from the answer of the survey.

        Raises:
            DataError: a cell breaks a rule of the schema.
        """
        (row,) = answer
        numbers = [int(number or 0) for number in row]
        count = len(self.schema.columns)
        faults, split_fault, nobody = numbers[:count], numbers[count], numbers[count + 1]
        refused = [
            str(refusal(columns.FAULTS[fault], column, self.database.name))
            for column, fault in zip(self.schema.columns, faults, strict=True)
            if fault
        ]
        if split_fault:
            refused.append(
                f"split column '{self.split.name}' has a value other than '{self.split.train}' and "
                f"'{self.split.test}'. Correct ingest.split."
            )
        if self.unit is not None and nobody:
            refused.append(
                f"{self.database.name}: column '{self.unit.name}' of ingest.unit must hold a text or a whole number "
                "in each row. Correct the source, or leave such rows out."
            )
        if refused:
            raise DataError("\n".join(refused))
        sums = numbers[count + 2 :]
        parts = sums[: LIMBS + 1], sums[LIMBS + 1 :]
        train, test = (Sums(part[0], _total(part[1:])) for part in parts)
        return train, test

    def counts(
        self, tables: Sequence[Sequence[Axis]], num_groups: int, by_class: bool
    ) -> tuple[list[NDArray[np.int64]], Sums]:
        """The counts of training rows in each cell of some tables, and the rows that were counted.

        All counts see the rows of one moment. Rows of a class beyond the groups count nowhere.

        Args:
            tables: axes of each.
            num_groups: number of classes.
            by_class: whether classes are counted apart.

        Returns:
            for each table an array of shape (num_groups, cells), its last axis side by side; and the sums.

        Raises:
            DataError: the rows must come, the database refuses, two statements saw other rows, or a person has more
                rows than may be used.
        """
        answer, sums = self._ask_counts(list(self.statements.counts(tables, by_class)))
        sizes = [int(np.prod([axis.size for axis in table], dtype=np.int64)) for table in tables]
        counts = [np.zeros((num_groups, size), dtype=np.int64) for size in sizes]
        for index, cell, count in answer:
            if not 0 <= index < len(counts):
                raise DataError(f"{self.database.name}: the database counts what nobody asked. Check the database.")
            if 0 <= int(cell) < counts[index].size:
                counts[index].flat[int(cell)] = count
        return counts, sums

    def count_statements(self, tables: Sequence[Sequence[Axis]], by_class: bool) -> list[str]:
        """The statements that count some tables."""
        return list(self.statements.counts(tables, self.num_groups(tables, 1, by_class)[1]))

    def num_groups(self, tables: Sequence[Sequence[Axis]], groups: int, by_class: bool) -> tuple[int, bool]:
        """The number of groups that are counted, and whether apart.

        Pairs are counted by class, also for a question about all classes: answers to later questions follow.
        """
        label = self.statements.complete.label
        if by_class or label is None or all(len(table) < 2 for table in tables):
            return groups, by_class
        column, cells = self.statements.complete.column(label), sum(math.prod(axis.size for axis in t) for t in tables)
        apart = column.is_categorical and not column.nullable and cells * len(column.categories) <= _MOST_CELLS
        return (len(column.categories), True) if apart else (groups, False)

    def texts(self, name: str) -> tuple[dict[str, int], Sums]:
        """The number of training rows with each text of an open column, by SHA-256 of the text, and the rows.

        Raises:
            DataError: as :meth:`counts`.
        """
        answer, sums = self._ask_counts([self.statements.texts(name)])
        return {text: count for _, text, count in answer}, sums

    def texts_of(self, name: str, hashes: Sequence[str]) -> dict[str, str]:
        """The texts of an open column that have some hashes, by these.

        Raises:
            DataError: the database refuses, or has others.
        """
        statement = self.statements.texts_of(name, hashes)
        texts: dict[str, str] = dict(self.database.answers([statement])[0])
        if set(texts) != set(hashes) or any(sha256_bytes(text.encode()) != digest for digest, text in texts.items()):
            raise DataError(f"{self.database.name}: rows changed while they were counted. Run it again.")
        return texts

    def _ask_counts(self, statements: Sequence[str]) -> tuple[list[tuple[int, str, int]], Sums]:
        """The counts in the answers of statements, and the rows that they are about."""
        return self._read_counts(self.database.answers(statements))

    def _read_counts(self, answers: Iterable[Iterable[Sequence[Any]]]) -> tuple[list[tuple[int, str, int]], Sums]:
        """The same from the answers."""
        seen, counts = set(), []
        for answer in answers:
            limbs, records = defaultdict[int, list[int]](lambda: [0] * LIMBS), {0: 0}
            for row in parse_counts(answer):
                part, cell, count = row
                if part == -1:
                    limbs[int(cell) // LIMBS][int(cell) % LIMBS] = count
                elif part == -2:
                    records[int(cell)] = count
                elif part == -3:
                    if self.unit is None or count > self.unit.max_rows:
                        raise DataError(f"{self.database.name}: a person has more rows than ingest.unit.max_rows.")
                else:
                    counts.append(row)
            (_, first), *shares = ((key, Sums(count, _total(limbs[key]))) for key, count in sorted(records.items()))
            seen.add(replace(first, shares=tuple(shares)))
        if len(seen) > 1:
            raise DataError(f"{self.database.name}: rows changed while they were counted. Run it again.")
        return counts, seen.pop()

    def digest_of_texts(self, name: str) -> str:
        """SHA-256 of the texts of both statements about an open column, the second without a hash."""
        return sha256_bytes(f"{self.statements.texts(name)}\n;\n{self.statements.texts_of(name, ())}".encode())

    def digest_of_statements(self, tables: Sequence[Sequence[Axis]], by_class: bool) -> str:
        """SHA-256 of the text of all statements that count some tables."""
        return sha256_bytes("\n;\n".join(self.count_statements(tables, by_class)).encode())


def digest_of_sums(schema: Schema, *sums: Sums) -> TypedDigest:
    """The digest of rows in any order."""
    digest = TypedDigest(schema, ordered=False)
    for some in sums:
        digest.put(some.total, some.count)
    return digest


def _total(limbs: Sequence[int]) -> int:
    """The sum of hashes from the sums of their numbers of 32 bits."""
    return sum(limb << (32 * index) for index, limb in enumerate(reversed(limbs)))
