"""The statements that type, hash, split and count the rows of a source. Their answers hold no cell of a row.

Each is one ``SELECT``. Its first steps are the same:

1. ``likeness_source``: the query of the settings, as it is written there
2. ``likeness_raw``, ``likeness_read``, ``likeness_typed``: the columns (:mod:`likeness_postgres.columns`)
3. ``likeness_rows``: ``h``, SHA-256 of each row's text (:mod:`likeness.data.source.row_texts`)
4. ``likeness_parts``: ``train``, 1 for a training row and 0 for a test row (:mod:`likeness.data.source.split`); 2 for a
   row beyond those of its person that are used (:mod:`likeness.data.source.contribution_bounding`)
5. to count: ``likeness_rules_1`` and so on, the training rows mapped by rules (:mod:`likeness_postgres.rules`)
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

from likeness.data.encoding.layout import Layout
from likeness.data.schema.schema import Schema
from likeness.data.source.row_digests import MIXING
from likeness.data.source.split import COPIES_STEP, WORDS, factor_and_start, held_out_words
from likeness_postgres import columns, rules
from likeness_postgres.edges import Axis, bin_starts, binary_search
from likeness_postgres.functions import expand_functions
from likeness_postgres.rules import Steps

LIMBS = 8
"""Numbers of 32 bits that a hash has. Sums of each are exact for 2**31 rows."""
_TABLES = 300  # of a statement: the server plans all of its parts at once
_TINY = "1E-290"  # a smaller number would make PostgreSQL refuse a quotient, and lies in the same cell as 0


@dataclass(frozen=True)
class Split:
    """The split of the settings.

    Attributes:
        fraction: of test rows, by content; 0: there are none.
        seed: of the split by content.
        column: the quoted name of the public column that splits; empty: by content.
        name: its name.
        train: text of training rows there.
        test: text of test rows.
    """

    fraction: float
    seed: int
    column: str = ""
    name: str = ""
    train: str = ""
    test: str = ""


@dataclass(frozen=True)
class People:
    """The column that names the person of each row.

    Attributes:
        name: of the column that names people.
        max_rows: the most rows of a person in each part of the split; 0: all.
        column: its quoted name in the source.
    """

    name: str
    max_rows: int
    column: str = ""


@dataclass(frozen=True)
class Statements:
    """The statements that ask a database about the rows of one query.

    Attributes:
        query: the query of the settings.
        schema: public, without images.
        complete: the same with the released categories of its open columns, which only :meth:`counts` needs.
        forms: of the cells of each column, by its name.
        names: of each column in the source, by its name; the quoted one.
        split: into training and test rows.
        unit: whose row each is; None: a row is a person.
        mark: begins the names of steps.
    """

    query: str
    schema: Schema
    complete: Schema
    forms: Mapping[str, str]
    names: Mapping[str, str]
    split: Split
    unit: People | None = None
    mark: str = "likeness"
    held_steps: ClassVar[str] = "likeness_(raw|read|typed|rows|bounded_.*|parts|rules_.*|cells)"
    """Names of steps that are computed once, though later ones use them several times."""
    group: ClassVar[str] = ""
    """The column beside the cells of a row that tells groups apart; empty: the label does."""

    def survey(self) -> str:
        """A statement whose answer is one row: faults, numbers and sums.

        First the largest fault of each column, that of the split, and that of the column of people. Then, of training
        rows and of test rows, their number and the sums of the limbs of their hashes.
        """
        indices = range(len(self.schema.columns))
        faults = [f"MAX(f_{k})" for k in indices] + ["MAX(CASE WHEN train IS NULL THEN 1 ELSE 0 END)"]
        faults.append("0" if self.unit is None else "MAX(CASE WHEN p IS NULL THEN 1 ELSE 0 END)")
        sums = [f"SUM(CASE WHEN train = {part} THEN {what} ELSE 0 END)" for part in (1, 0) for what in ("1", *limbs())]
        return self._statement([], f"SELECT {', '.join([*faults, *sums])} FROM {self.mark}_parts")

    def counts(self, tables: Sequence[Sequence[Axis]], by_class: bool) -> Iterator[str]:
        """Statements that count the training rows in each cell of some tables.

        Their rows are the table and one text: each cell with a count that is not 0 (:func:`parse_counts`). That is a
        fifth of the bytes of a row a cell. A cell is class · cells of the table + cell, where those of the last axis
        are side by side. The cells of table -1 are the sums of the limbs of the hashes. That of table -2 is the number
        of rows, and that of table -3 the most rows of a person.

        Args:
            tables: axes of each.
            by_class: whether classes are counted apart; else their number is 0.

        Raises:
            DataError: an edge between cells cannot be found exactly.
        """
        axes = {
            axis: f"c_{index}" for index, axis in enumerate(dict.fromkeys(axis for table in tables for axis in table))
        }
        steps, modeled = self.transform_steps()
        cells = [f"{(self.group or modeled[str(self.schema.label)]) if by_class else 0} AS g"]
        cells += [*(f"{self._cell(axis, modeled)} AS {name}" for axis, name in axes.items()), *self._group_columns]
        steps.append(("likeness_cells", f"SELECT {', '.join(cells)} FROM {self.mark}_units"))
        for start in range(0, max(1, len(tables)), _TABLES):
            some = tables[start : start + _TABLES]
            questions = []
            for index, table in enumerate(some, start):
                cell = flat_index([(axes[axis], axis.size) for axis in table])
                counted = f"SELECT {index} AS part, CAST({cell} AS TEXT) AS cell, COUNT(*) AS count"
                questions.append(f"{counted} FROM likeness_cells GROUP BY {cell}")
            yield self._join_questions(steps, [*questions, *self._total_questions()])

    def texts(self, name: str) -> str:
        """A statement that counts the training rows with each text of an open column, by SHA-256 of the text.

        Its rows are as those of :meth:`counts`, with the digits of the hash as the cell. No text is among them.
        """
        text, counted = self._text(name)
        each = f"SELECT 0 AS part, L_SHA({text}) AS cell, COUNT(*) AS count {counted} GROUP BY L_SHA({text})"
        return self._join_questions([], [each, *self._total_questions()])

    def texts_of(self, name: str, hashes: Iterable[str]) -> str:
        """A statement for the texts of an open column that have these hashes, each behind its hash."""
        text, counted = self._text(name)
        chosen = columns.sql_list(map(columns.text_literal, ["", *hashes]))
        return self._statement(
            [], f"SELECT DISTINCT L_SHA({text}) AS hash, {text} {counted} AND L_SHA({text}) IN {chosen}"
        )

    @property
    def _group_columns(self) -> list[str]:
        """The column of the groups, where it is not the label."""
        return [self.group] if self.group else []

    def _text(self, name: str) -> tuple[str, str]:
        """The name of the text of an open column, and where training rows have one."""
        text = f"v_{self.schema.names.index(name)}"
        return text, f"FROM likeness_parts WHERE train = 1 AND {text} IS NOT NULL"

    def _total_questions(self) -> list[str]:
        """Questions about all training rows."""
        whole = ["SELECT -2 AS part, '0' AS cell, COUNT(*) AS count FROM likeness_parts WHERE train = 1"]
        whole += [
            f"SELECT -1, '{k}', SUM({limb}) FROM likeness_parts WHERE train = 1" for k, limb in enumerate(limbs())
        ]
        return whole if self.unit is None else [*whole, self._most_rows()]

    def _most_rows(self) -> str:
        """The question about the most training rows of a person."""
        each = "SELECT COUNT(*) AS rows_of_one FROM likeness_parts WHERE train = 1 GROUP BY p"
        return f"SELECT -3 AS part, '0' AS cell, MAX(rows_of_one) AS count FROM ({each}) AS people"

    def transform_steps(self) -> tuple[list[tuple[str, str]], dict[str, str]]:
        """Steps to the training rows as a method sees them, by row, and the names of the values of modeled columns."""
        mapped, values = Steps(), {name: f"v_{k}" for k, name in enumerate(self.schema.names)}
        train = ", ".join([*values.values(), *self._group_columns])
        steps = [(f"{self.mark}_train", f"SELECT {train} FROM {self.mark}_parts WHERE train = 1")]
        for column in self.schema.open_columns:
            text = values[column.name]
            values[column.name] = mapped.add(columns.released_category_index(self.complete.column(column.name), text))
        modeled = rules.transform(self.complete.constrained_table, values, mapped) if self.schema.rules else values
        added = [*mapped.steps, ["0 AS x", *self._units(modeled)]]
        names = ["train", *(f"rules_{k}" for k in range(1, len(added))), "units"]
        steps += [
            (f"{self.mark}_{name}", f"SELECT *, {', '.join(some)} FROM {self.mark}_{before}")
            for (before, name), some in zip(pairwise(names), added, strict=True)
        ]
        return steps, modeled

    def _join_questions(self, steps: Sequence[tuple[str, str]], questions: Sequence[str]) -> str:
        """A statement that asks questions, each for rows of table, cell and count: one text a table."""
        cell = "cell || CASE WHEN count = 1 THEN '' ELSE ' ' || CAST(count AS TEXT) END"
        answers = ("likeness_answers", " UNION ALL ".join(questions))
        last = f"SELECT part, STRING_AGG({cell}, ',') AS counts FROM likeness_answers GROUP BY part"
        return self._statement([*steps, answers], last)

    def _statement(self, steps: Sequence[tuple[str, str]], last: str) -> str:
        """A statement in full. The queries of the settings stand in it as they are."""
        chain = [
            f"{name} AS MATERIALIZED ({text})" if re.fullmatch(self.held_steps, name) else f"{name} AS ({text})"
            for name, text in [*self._steps(), *steps]
        ]
        text = f"WITH {', '.join(chain)} {last}"
        ours = self._translations[text] = self._translations.get(text) or expand_functions(text)
        sources = ", ".join(f"{name}_source AS (\n{query}\n)" for name, query in self._queries())
        return f"WITH {sources}, {ours.removeprefix('WITH ')}"

    def _queries(self) -> list[tuple[str, str]]:
        """The queries of the settings, by the mark of their steps."""
        return [(self.mark, self.query)]

    @cached_property
    def _translations(self) -> dict[str, str]:
        """Statements in full by their texts with ``L_...``: a receipt and a count need the same ones."""
        return {}

    def _steps(self) -> list[tuple[str, str]]:
        raw, read, typed = [], [], []
        for k, column in enumerate(self.schema.columns):
            form = self.forms[column.name]
            raw.append(f"{columns.raw_cell(column, form, self.names[column.name])} AS r_{k}")
            read.append(f"{columns.cell_value(column, form, f'r_{k}')} AS u_{k}")
            missing = columns.is_missing(column, form, f"r_{k}", f"u_{k}")
            typed.append(f"{columns.typed_value(column, missing, f'u_{k}')} AS v_{k}")
            typed.append(f"{columns.cell_fault(column, missing, f'u_{k}')} AS f_{k}")
        row = " || ".join(columns.row_text(column, f"v_{k}") for k, column in enumerate(self.schema.columns))
        others, split, unit = ["s"] if self.split.column else [], self.split, self.unit
        if split.column:
            raw.append(f"L_TEXT(L_ORDER({split.column})) AS s")
            cases = f"WHEN {columns.text_literal(split.train)} THEN 1 WHEN {columns.text_literal(split.test)} THEN 0"
            train = f"CASE s {cases} END"
        else:
            train = self._hash_split()
        if unit is not None:
            others.append("p")
            raw.append(f"{columns.person_text(self.forms[unit.name], unit.column)} AS o")
            read.append("L_PERSON(o) AS p")
        steps = [
            ("raw", f"SELECT {', '.join(raw)} FROM {self.mark}_source"),
            ("read", f"SELECT *, {', '.join(read)} FROM {self.mark}_raw"),
            ("typed", f"SELECT {', '.join([*typed, *others])} FROM {self.mark}_read"),
            ("rows", f"SELECT *, L_SHA({row}) AS h FROM {self.mark}_typed"),
        ]
        if unit is None:
            copies = "ROW_NUMBER() OVER (PARTITION BY h ORDER BY h) - 1 AS n"
            steps.append(("copies", f"SELECT *, {copies} FROM {self.mark}_rows"))
        if unit is not None and unit.max_rows:
            steps += _bounding_steps(self.mark, train, unit.max_rows)
        else:
            steps.append(("parts", f"SELECT *, {train} AS train FROM {self.mark}_{steps[-1][0]}"))
        return [(f"{self.mark}_{name}", text) for name, text in steps]

    def _hash_split(self) -> str:
        """Split as :class:`likeness.data.source.split.SplitByContent`, or by person. All numbers stay below 2^63."""
        (factor, start), below = factor_and_start(self.split.seed), held_out_words(self.split.fraction)
        if not below:
            return "1"
        if self.unit is not None:
            name = f"L_SHA({columns.text_literal(f'likeness person {self.split.seed} ')} || p)"
            return f"CASE WHEN L_HEX(SUBSTRING({name}, {8 * LIMBS - 7}, 8)) < {below} THEN 0 ELSE 1 END"
        word = f"L_HEX(SUBSTRING(h, {8 * LIMBS - 7}, 8)) * {factor} % {WORDS} + n * {COPIES_STEP} % {WORDS} + {start}"
        return f"CASE WHEN ({word}) % {WORDS} < {below} THEN 0 ELSE 1 END"

    def _units(self, values: Mapping[str, str]) -> list[str]:
        """``x_..``: a number on its column's unit scale, as :meth:`likeness.data.schema.kinds.Kind.encode`."""
        units = []
        for column in self.complete.model_schema.columns:
            if not column.is_categorical and column.transform == "none":
                value, (lower, upper) = values[column.name], column.bounds
                above, width = f"({value} - {columns.float_literal(lower)})", columns.float_literal(upper - lower)
                unit = f"CASE WHEN {above} < {_TINY} THEN 0.0 ELSE {above} / {width} END"
                units.append(f"CASE WHEN {value} IS NOT NULL THEN {unit} END AS x_{value}")
        return units

    def _cell(self, axis: Axis, values: Mapping[str, str]) -> str:
        """The cell of an axis, from the names of modeled values by column."""
        starts = {start: name for name, start in Layout.from_schema(self.complete.model_schema).starts.items()}
        column = self.complete.model_schema.column(starts[axis.start])
        value = values[column.name]
        if column.is_categorical:
            return f"COALESCE({value}, {len(column.categories)})"
        if (expression := getattr(axis, "expression", None)) is not None:
            return str(expression(f"x_{value}", columns.float_literal))
        shown = str if column.is_integral else columns.float_literal
        firsts = [shown(first) for first in bin_starts(column, axis)]
        cell = binary_search(value, firsts)
        return f"CASE WHEN {value} IS NULL THEN {axis.size - 1} ELSE {cell} END" if column.nullable else cell


def _bounding_steps(mark: str, side: str, max_rows: int) -> list[tuple[str, str]]:
    """The parts, with at most some rows of each person in each.

    As :func:`likeness.data.source.contribution_bounding.bound_contributions`, which says why. Rows are equal if the
    first 128 bits of their hashes are.

    Args:
        mark: begins the names of steps.
        side: the part of a row by the split.
        max_rows: the most rows of a person in a part.
    """
    content = "SUBSTRING(h, 1, 32)"
    added = [
        f"L_SHA('likeness rows of ' || p) AS q, {side} AS side",
        f"ROW_NUMBER() OVER (PARTITION BY p, side, {content} ORDER BY h) - 1 AS n",
        "L_START(h, q, n) AS b",
        *(f"L_MIX_{shift}(b{last}) AS b{shift}" for (last, _), (shift, _) in pairwise((("", 0), *MIXING))),
        f"ROW_NUMBER() OVER (PARTITION BY p, side ORDER BY b{MIXING[-1][0]}, {content}, n) AS k",
        f"CASE WHEN k <= {max_rows} THEN side ELSE 2 END AS train",
    ]
    names = ["rows", *(f"bounded_{index}" for index in range(len(added) - 1)), "parts"]
    steps = zip(names[:-1], names[1:], added, strict=True)
    return [(name, f"SELECT *, {column} FROM {mark}_{before}") for before, name, column in steps]


def parse_counts(answer: Iterable[Sequence[Any]]) -> Iterator[tuple[int, str, int]]:
    """Table, cell and count of each cell in the answer of a statement. A count of 1 is not written."""
    for part, text in answer:
        for item in text.split(",") if text else ():
            cell, _, count = item.partition(" ")
            yield int(part), cell, int(count or 1)


def limbs() -> list[str]:
    """The numbers of 32 bits of a hash, the first digits first."""
    return [f"L_HEX(SUBSTRING(h, {8 * index + 1}, 8))" for index in range(LIMBS)]


def flat_index(axes: Sequence[tuple[str, int]]) -> str:
    """The place of a cell of a table behind its class, from the name and the number of cells of each axis.

    The last one runs fastest.
    """
    cell = "g"
    for name, size in axes:
        cell = f"({cell}) * {size} + {name}"
    return cell
