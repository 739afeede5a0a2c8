"""The statements that make both row sets of people with histories, and count them.

Steps that begin with ``likeness_events`` and ``likeness_people`` type and hash the tables, as
:mod:`likeness_postgres.statements` says. In the next ones ``p`` names the person:

1. ``likeness_persons``: ``k``, 1 for that row of a person among the people which counts
2. ``likeness_together``: both tables. ``t`` is 0 for a row of people, whose columns are ``a_k``, and 1 for an event.
3. ``likeness_placed``: ``i``, the place of an event in its history, from 1 on, and 0 for the row of people; ``e``, 1
   for an event that nothing follows; ``u``, 1 for somebody who is not among the people; ``g_k``, column k of the people
4. ``likeness_ended``, ``likeness_counted``: the events that count, and ``l``, how many the person has
5. ``likeness_beside``, ``likeness_gaps``: ``n_k``, ``b_k`` and ``s_k``, column k of the next event, of that before and
   of the first one; ``gap`` to the next event, and ``gap_before``
6. ``likeness_ranked``, ``likeness_usual``: ``y_k`` and ``y_gap``, what is usual for the person
7. ``likeness_first_parts`` and ``likeness_next_parts``: a row a person, and a row a pair of events that follow each
   other, with columns ``v_k`` of their schemas. ``m`` is the number of rows of the person in that set.
8. ``likeness_first_hashed`` and ``likeness_next_hashed``: ``h``, SHA-256 of each row as the rules map it

No step joins tables: a planner that knows nothing of steps could compare each person with each event.

**Privacy.** Each window is over the rows of one person (``PARTITION BY p``). Nothing else looks at two rows before they
are counted. So what a person adds to a set depends on that person's rows alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from likeness.data.schema.row_sets import GAP, GAP_BEFORE, LENGTH, NUMBER, STEP, USUAL_GAP, EventSchema
from likeness.data.schema.schema import Schema
from likeness_postgres import columns, rules
from likeness_postgres.edges import binary_search
from likeness_postgres.statements import LIMBS, Statements, limbs

_EVENTS, _PEOPLE = "likeness_events", "likeness_people"
_MARKS = ("likeness_first", "likeness_next")  # of the row sets
_WHOLE, _IN_ORDER = "OVER (PARTITION BY p)", "OVER (PARTITION BY p ORDER BY i)"
_BESIDE = {"n": "LEAD", "b": "LAG"}
Steps = list[tuple[str, str]]


def reasons_against(history: EventSchema) -> list[str]:
    """List the reasons why a database cannot make the row sets as Python does; empty where it can."""
    return [reason for rows in history.row_sets.values() for reason in rules.reasons_against(rows.constrained_table)]


@dataclass(frozen=True)
class HistoryStatements(Statements):
    """The statements about people with histories. ``schema`` is that of the row set that is counted.

    Attributes:
        history: public.
        tables: statements about the events and, where there is such a table, about the people.
    """

    history: EventSchema = field(kw_only=True)
    tables: Sequence[Statements] = field(kw_only=True)
    held_steps = ".*"
    group = "m"

    @classmethod
    def from_row_set(cls, history: EventSchema, index: int, tables: Sequence[Statements]) -> "HistoryStatements":
        """The statements that count one of both row sets.

        Args:
            history: public.
            index: of the row set.
            tables: as above.
        """
        schema, of, mark = list(history.row_sets.values())[index], tables[0], _MARKS[index]
        return cls(of.query, schema, schema, {}, {}, of.split, of.unit, mark, history=history, tables=tables)

    def sums(self) -> str:
        """A statement about the rows of both sets, as those of :meth:`counts` without a cell."""
        return self._join_questions([], self._total_questions())

    def survey(self) -> str:
        """Ask as :meth:`sums`. Table -4 has the number of events, of strangers among them, and of test people."""
        return self._join_questions([], [*self._survey_questions(), *self._total_questions()])

    def _survey_questions(self) -> list[str]:
        """The questions of table -4."""
        listed = f"EXISTS (SELECT 1 FROM {_PEOPLE}_rows AS a WHERE a.p = b.p)" if self._has_people else "1 = 1"
        strangers = f"FROM {_EVENTS}_rows AS b WHERE NOT {listed}"
        held_out = f"FROM (SELECT DISTINCT p FROM {self._table_statements[-1].mark}_parts WHERE train = 0) AS people"
        counts = (f"FROM {_EVENTS}_rows", strangers, held_out)
        return [f"SELECT -4 AS part, '{index}' AS cell, COUNT(*) AS count {rest}" for index, rest in enumerate(counts)]

    def transform_steps(self) -> tuple[Steps, dict[str, str]]:
        """The names of the values of modeled columns. The steps to them are among those of every statement."""
        return [], super().transform_steps()[1]

    def _total_questions(self) -> list[str]:
        """Questions about all training rows of both sets, by the number of rows of their person; 0: those of people."""
        each = "FROM likeness_hashes GROUP BY m"
        counts = f"SELECT -2 AS part, CAST(m AS TEXT) AS cell, COUNT(*) AS count {each}"
        sums = [f"SELECT -1, CAST({LIMBS} * m + {k} AS TEXT), SUM({limb}) {each}" for k, limb in enumerate(limbs())]
        return [counts, *sums]

    @property
    def _has_people(self) -> bool:
        """Tell whether there is a table of people."""
        return len(self.tables) > 1

    def _queries(self) -> list[tuple[str, str]]:
        return [(table.mark, table.query) for table in self._table_statements]

    @cached_property
    def _table_statements(self) -> list[Statements]:
        """The statements about the tables, whose steps have names of their own. Those about events may bound them."""
        most = self.history.most_events if self.history.which_events == "hash" else 0
        return [
            replace(table, mark=mark, unit=table.unit and replace(table.unit, max_rows=rows))
            for table, mark, rows in zip(self.tables, (_EVENTS, _PEOPLE), (most, 0), strict=False)
        ]

    def _steps(self) -> Steps:
        steps = [step for table in self._table_statements for step in table._steps()]
        steps += [*self._row_steps(), *self._event_steps(), *self._usual_steps(), *self._part_steps()]
        for mark, schema in zip(_MARKS, self.history.row_sets.values(), strict=True):
            mapped, names = Statements.transform_steps(replace(self, schema=schema, complete=schema, mark=mark))
            row = " || ".join(columns.row_text(column, names[column.name]) for column in schema.model_schema.columns)
            steps += [*mapped, (f"{mark}_hashed", f"SELECT m, L_SHA({row}) AS h FROM {mark}_units")]
        first, following = (f"FROM {mark}_hashed" for mark in _MARKS)
        return [*steps, ("likeness_hashes", f"SELECT 0 AS m, h {first} UNION ALL SELECT m, h {following}")]

    def _row_steps(self) -> Steps:
        """The training rows: events, and before those of a person the row among the people, as one of place 0."""
        every = [f"v_{k}" for k in range(len(self.history.events.columns))]
        events = f"SELECT p, 1 AS t, h, {', '.join(every)} FROM {_EVENTS}_parts WHERE train = 1"
        if not self._has_people:
            return [("likeness_together", events)]
        indices = range(len(self.tables[1].schema.columns))
        people = ["p", "0 AS t", "h", *(f"NULL AS {name}" for name in every), *(f"v_{k} AS a_{k}" for k in indices)]
        rank = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY p ORDER BY L_ORDER(h)) AS k FROM {_PEOPLE}_parts"
        first = f"SELECT {', '.join(people)} FROM likeness_persons WHERE k = 1 AND train = 1"
        events = events.replace(" FROM", "".join(f", NULL AS a_{k}" for k in indices) + " FROM", 1)
        return [("likeness_persons", rank), ("likeness_together", f"{first} UNION ALL {events}")]

    def _event_steps(self) -> Steps:
        """The rows that count, each with those beside it and with the gaps between them."""
        history, every, before = self.history, range(len(self.history.events.columns)), self.history.least - 1
        at = "" if history.order is None else f"{self._event_column('v', history.order)}, "
        ends = [self._is_end(name, texts) for name, texts in history.ends.items() if texts]
        placed = [f"ROW_NUMBER() OVER (PARTITION BY p ORDER BY t, {at}L_ORDER(h)) + {before} AS i"]
        placed += [f"CASE WHEN {' OR '.join(ends) or '1 = 0'} THEN 1 ELSE 0 END AS e", f"MIN(t) {_WHOLE} AS u"]
        if self._has_people:
            placed += [f"MAX(a_{k}) {_WHOLE} AS g_{k}" for k in range(len(self.tables[1].schema.columns))]
        beside = [f"{window}(v_{k}) {_IN_ORDER} AS {word}_{k}" for word, window in _BESIDE.items() for k in every]
        beside += [f"NTH_VALUE(v_{k}, {1 - before}) {_IN_ORDER} AS s_{k}" for k in every]
        gaps = ["0 AS gap", "0 AS gap_before"]
        if history.order is not None:
            last, following, earlier = (self._event_column(word, history.order) for word in "vnb")
            gaps = [f"{following} - {last} AS gap", f"{last} - {earlier} AS gap_before"]
        counted = f"WHERE i <= {history.most_events} AND ended = 0 AND u = {history.least}"
        return [
            ("likeness_placed", f"SELECT *, {', '.join(placed)} FROM likeness_together"),
            ("likeness_ended", f"SELECT *, SUM(e) {_IN_ORDER} - e AS ended FROM likeness_placed"),
            ("likeness_counted", f"SELECT *, COUNT(*) {_WHOLE} + {before} AS l FROM likeness_ended {counted}"),
            ("likeness_beside", f"SELECT *, {', '.join(beside)} FROM likeness_counted"),
            ("likeness_gaps", f"SELECT *, {', '.join(gaps)} FROM likeness_beside"),
        ]

    def _event_column(self, word: str, name: str) -> str:
        """The name of a column of events in the steps."""
        return f"{word}_{self.history.events.names.index(name)}"

    def _is_end(self, name: str, texts: Iterable[str]) -> str:
        categories = self.history.events.column(name).categories
        return f"{self._event_column('v', name)} IN {columns.sql_list(str(categories.index(text)) for text in texts)}"

    def _usual_steps(self) -> Steps:
        """The most frequent category of the events of each person, or the smaller middle number."""
        history, ranked, usual = self.history, list[str](), list[str]()
        values = {
            self._event_column("v", column.name): (self._event_column("y", column.name), column.is_categorical)
            for column in history.states
        }
        values |= {} if history.order is None else {"gap": ("y_gap", False)}
        for value, (name, is_categorical) in values.items():
            last = f"PARTITION BY p ORDER BY CASE WHEN {value} IS NULL THEN 1 ELSE 0 END"
            if is_categorical:
                ranked.append(f"COUNT(*) OVER (PARTITION BY p, {value}) AS r_{name}")
                usual.append(f"FIRST_VALUE({value}) OVER ({last}, r_{name} DESC, {value}) AS {name}")
            else:
                ranked.append(f"ROW_NUMBER() OVER ({last}, {value}) AS r_{name}, COUNT({value}) {_WHOLE} AS c_{name}")
                middle = f"2 * r_{name} IN (c_{name}, c_{name} + 1)"
                usual.append(f"MAX(CASE WHEN {middle} THEN {value} END) {_WHOLE} AS {name}")
        steps = (("likeness_ranked", ranked, "likeness_gaps"), ("likeness_usual", usual, "likeness_ranked"))
        every = [(name, f"SELECT *, {', '.join(added)} FROM {before}") for name, added, before in steps]
        return every if history.usual else []

    def _part_steps(self) -> Steps:
        """Both row sets: the first row of each person, and the events that another one follows."""
        history, states = self.history, [column.name for column in self.history.states]
        word, event = ("g", "n") if self._has_people else ("s", "v")
        names = self.tables[-1].schema.names
        static = {column.name: f"{word}_{names.index(column.name)}" for column in history.person_columns}
        static |= {f"usual {name}": self._event_column("y", name) for name in states} | {USUAL_GAP: "y_gap"}
        first = {f"first {column.name}": self._event_column(event, column.name) for column in history.time_varying}
        first[NUMBER] = f"l - {history.least}"
        marks = {"first": "s", "before": "b", "last": "v", "next": "n"}
        following = {f"{key} {name}": self._event_column(word, name) for key, word in marks.items() for name in states}
        following |= {f"same {name}": self._is_same(name) for name in states} | {GAP: "gap", GAP_BEFORE: "gap_before"}
        for name, value, starts in ((LENGTH, "l", history.length_starts), (STEP, "i", history.step_starts)):
            following[name] = binary_search(value, [str(start) for start in starts[1:]])
        rows = "FROM likeness_usual" if history.usual else "FROM likeness_gaps"
        single, pair = (
            f"1 AS m, 1 AS train {rows} WHERE i = {history.least}",
            f"l - 1 AS m, 1 AS train {rows} WHERE i > 0 AND i < l",
        )
        sets = zip(_MARKS, history.row_sets.values(), (static | first, static | following), (single, pair), strict=True)
        return [
            (f"{mark}_parts", f"SELECT {_select_list(schema, values)}, {rest}") for mark, schema, values, rest in sets
        ]

    def _is_same(self, name: str) -> str:
        last, following = (self._event_column(word, name) for word in "vn")
        return f"CASE WHEN {last} = {following} OR ({last} IS NULL AND {following} IS NULL) THEN 1 ELSE 0 END"


def _select_list(schema: Schema, values: Mapping[str, str]) -> str:
    """The columns of a row set, from their expressions by name."""
    return ", ".join(f"{values[name]} AS v_{k}" for k, name in enumerate(schema.names))
