"""The public schema of people and their events, and the schemas of both row sets that are made from them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from likeness.core.bounds import MOST_CATEGORIES, PrivacyUnit
from likeness.core.errors import SchemaError
from likeness.core.text import choices, did_you_mean, normal_texts
from likeness.data.schema.column import Column
from likeness.data.schema.row_sets import GAP, GAP_BEFORE, LENGTH, NUMBER, STEP, USUAL_GAP
from likeness.data.schema.rule import Rule
from likeness.data.schema.rules import rules_section
from likeness.data.schema.schema import Schema, check_texts
from likeness_histories.rules import SINCE, rules_about, rules_among

KEYS = ("name", "source", "person", "order", "most", "which", "fixed", "ends", "memory", "rules", "people", "events")
WHICH = ("first", "hash")
MEMORY = ("first", "before", "gap", "usual")
NEXT = "next_"  # begins the names of queries about transitions
REPEATS = ("no", "yes")
_MANY = 10  # categories above which noise hides the cells of a column with itself one event later


@dataclass(frozen=True)
class HistorySchema:
    """Public knowledge of a table of people and a table of their events.

    Attributes:
        person: name of the key column of both tables. It is no column of either.
        events: columns of the events.
        people: columns of the people; None: people are made from their events.
        order: the number or date of an event by which a history is ordered. Ties, and histories without an order, are
            ordered by a public hash of the row.
        most: k, the most events of one person that count.
        which: of more events, ``first`` takes the first k in order, ``hash`` the k with the smallest public hashes.
        fixed: columns of events that never change for a person. The first event says them.
        ends: from columns of events to categories; no event follows one with such a category.
        memory: what the next event depends on beside the person, the length and the last event: the ``first`` event,
            that ``before`` the last, or the ``gap`` between these two. It carries what the columns of people lack.
            ``usual`` is what most events of the person are like, see :attr:`usual`.
        rules: within a person, as they stand in the file, see :mod:`likeness_histories.rules`.

    Raises:
        SchemaError: a rule is broken.
    """

    person: str
    events: Schema
    most_events: int
    people: Schema | None = None
    order: str | None = None
    which_events: str = WHICH[0]
    fixed: tuple[str, ...] = ()
    ends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    memory: tuple[str, ...] = ()
    rules: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        for key in ("person", "order", "fixed", "ends"):
            object.__setattr__(self, key, normal_texts(getattr(self, key)))
        if type(self.most_events) is not int or not 2 <= self.most_events < MOST_CATEGORIES:
            raise SchemaError(f"most must be a whole number from 2 to {MOST_CATEGORIES - 1}. Correct it.")
        if self.which_events not in WHICH:
            raise SchemaError(f"which '{self.which_events}' is no choice of events. Choices: {', '.join(WHICH)}.")
        for word in self.memory:
            if word not in MEMORY or self.memory.count(word) > 1:
                raise SchemaError(
                    f"memory: '{word}' must be one of {', '.join(MEMORY)}, each at most once."
                    f"{did_you_mean(word, MEMORY) or ' Correct it.'}"
                )
        if "gap" in self.memory and self.order is None:
            raise SchemaError("memory: a gap needs an order. Name the order, or leave gap out.")
        for schema in self.source_schemas.values():
            if self.person in schema.names:
                raise SchemaError(f"column '{self.person}' names people and is never released. Leave it out.")
            for column in (*schema.open_columns, *schema.unbounded_columns):
                what = "categories" if column.open else "bounds"
                raise SchemaError(
                    f"column '{column.name}' has private {what}, which histories do not support. Give public {what}."
                )
        if self.people is not None and self.fixed:
            raise SchemaError("fixed is for people who are made from events. Move these columns to people.")
        for name in [*self.fixed, *self.ends, *([] if self.order is None else [self.order])]:
            self.events.column(name)
        if self.order is not None:
            column = self.events.column(self.order)
            if column.is_categorical or column.nullable or self.order in self.fixed:
                raise SchemaError(
                    f"order '{self.order}' must be a number or date that each event has. Choose another column."
                )
        for name, categories in self.ends.items():
            left = [text for text in categories if text not in self.events.column(name).categories]
            if left:
                raise SchemaError(f"ends.{name}: '{left[0]}' is not a category of the column. Correct it.")
        if not self.time_varying:
            raise SchemaError("fixed names all columns of events. Leave at least one that changes.")
        of_histories = {NUMBER, LENGTH, STEP, GAP, GAP_BEFORE, USUAL_GAP, SINCE}
        prefixes = ("first", "last", "next", "same", *MEMORY)
        of_histories |= {f"{word} {column.name}" for word in prefixes for column in self.time_varying}
        for column in self.person_columns:
            if column.name in of_histories:
                raise SchemaError(f"column '{column.name}' of people has a name that histories use. Rename the column.")
        _ = self.table_schemas, self.parsed_rules

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any], where: str = "schema") -> "HistorySchema":
        """Check and build a schema, as :meth:`Schema.from_dict`."""
        check_texts(mapping, where)
        for key in mapping:
            if key not in KEYS:
                raise SchemaError(f"{where}: {key} is not a key of histories.{choices(key, KEYS, 'Keys')}")
        if mapping.get("person") is None:
            raise SchemaError(f"{where}: person is missing. Give the name of the column that names people.")
        head = {"name": mapping.get("name"), "source": mapping.get("source"), "task": "none"}

        def table(key: str) -> Schema:
            return Schema.from_dict({**head, "columns": mapping.get(key)}, f"{where}: {key}")

        ends = mapping.get("ends") or {}
        if not isinstance(ends, Mapping) or not all(isinstance(texts, list | tuple) for texts in ends.values()):
            raise SchemaError(f"{where}: ends must be a mapping from columns to lists of categories. Correct it.")
        order, people, memory = mapping.get("order"), mapping.get("people"), mapping.get("memory")
        memory = () if memory is None else memory
        if not isinstance(memory, str | list | tuple):
            raise SchemaError(f"{where}: memory must be a list of {', '.join(MEMORY)}. Correct it.")
        try:
            return cls(
                person=str(mapping["person"]),
                events=table("events"),
                most_events=mapping.get("most"),  # type: ignore[arg-type]  # checked there
                people=None if people is None else table("people"),
                order=None if order is None else str(order),
                which_events=str(mapping.get("which", WHICH[0])),
                fixed=tuple(map(str, mapping.get("fixed") or ())),
                ends={str(name): tuple(map(str, texts)) for name, texts in ends.items()},
                memory=(memory,) if isinstance(memory, str) else tuple(map(str, memory)),
                rules=mapping.get("rules") or (),
            )
        except SchemaError as error:
            text = str(error)
            raise SchemaError(text if text.startswith(where) else f"{where}: {text}") from None

    @property
    def published_schema(self) -> "HistorySchema":
        """The schema for others, see :attr:`Schema.published_schema`."""
        people = None if self.people is None else self.people.published_schema
        return replace(self, people=people, events=self.events.published_schema)

    def to_dict(self) -> dict[str, Any]:
        """JSON form; :meth:`from_dict` reads it back."""
        return {
            "name": self.events.name,
            "source": self.events.source,
            "person": self.person,
            "order": self.order,
            "most": self.most_events,
            "which": self.which_events,
            "fixed": list(self.fixed),
            "ends": {name: list(texts) for name, texts in self.ends.items()},
            **({"memory": list(self.memory)} if self.memory else {}),
            **rules_section(self.parsed_rules),
            **{key: schema.to_dict()["columns"] for key, schema in self.source_schemas.items()},
        }

    @property
    def source_schemas(self) -> dict[str, Schema]:
        """The schemas of the tables that are given, by name."""
        people = {} if self.people is None else {"people": self.people}
        return {**people, "events": self.events}

    @cached_property
    def person_columns(self) -> tuple[Column, ...]:
        """Columns that are constant for a person."""
        if self.people is not None:
            return self.people.columns
        return tuple(self.events.column(name) for name in self.fixed)

    @cached_property
    def time_varying(self) -> tuple[Column, ...]:
        """Columns that may change from event to event."""
        return tuple(column for column in self.events.columns if column.name not in self.fixed)

    @cached_property
    def states(self) -> tuple[Column, ...]:
        """Columns that may change, without the order."""
        return tuple(column for column in self.time_varying if column.name != self.order)

    @cached_property
    def repeatable_columns(self) -> tuple[Column, ...]:
        """Columns of many categories: a row of two events says of each whether the next one has the same category."""
        return tuple(column for column in self.states if column.is_categorical and len(column.categories) > _MANY)

    @property
    def unit(self) -> PrivacyUnit:
        """The unit that is protected: a person, with the events that count."""
        return PrivacyUnit(self.person, self.most_events)

    @property
    def least(self) -> int:
        """The smallest number of events: people who are made from events have one."""
        return 1 if self.people is None else 0

    @cached_property
    def first_rows(self) -> Schema:
        """One row a person: the person's columns, the number of events, and the first event."""
        return self._table(*self._first_columns)

    @cached_property
    def _first_columns(self) -> tuple[Column, ...]:
        numbers = tuple(str(number) for number in range(self.least, self.most_events + 1))
        first = (_rename_column(column, "first", self.least == 0) for column in self.time_varying)
        return (*self.static, Column(NUMBER, "categorical", categories=numbers, ordered=True), *first)

    @cached_property
    def usual(self) -> tuple[Column, ...]:
        """A column of both row sets for each column that may change, and for the gap, where memory asks for them.

        It holds the most frequent category, or the middle number, of the events that count. No table is written with
        it.
        """
        if "usual" not in self.memory:
            return ()
        states = (_rename_column(column, "usual", self.least == 0) for column in self.states)
        return (*states, *(replace(gap, name=USUAL_GAP, nullable=True) for gap in self._gap()))

    @cached_property
    def static(self) -> tuple[Column, ...]:
        """Columns of both row sets that are constant for a person."""
        return (*self.person_columns, *self.usual)

    @cached_property
    def next_rows(self) -> Schema:
        """One row a pair of events that follow each other.

        It holds the person's columns, a class of the length, whether the step is the first, the memory, the last event,
        the next, whether columns of many categories are the same in both, and the gap between them. The order itself is
        left out: each further column takes budget from all pairs of the others.
        """
        return self._table(*self._next_columns)

    @cached_property
    def _next_columns(self) -> tuple[Column, ...]:
        last, following = ([_rename_column(column, word) for column in self.states] for word in ("last", "next"))
        length = Column(
            LENGTH, "categorical", categories=_state_words(self.length_starts, self.most_events), ordered=True
        )
        step = Column(
            STEP, "categorical", categories=_state_words(self.step_starts, self.most_events - 1), ordered=True
        )
        return (*self.static, length, step, *self._memory_columns, *last, *following, *self._repeats, *self._gap())

    @property
    def _repeats(self) -> tuple[Column, ...]:
        return tuple(
            Column(f"same {column.name}", "categorical", categories=REPEATS) for column in self.repeatable_columns
        )

    @cached_property
    def _memory_columns(self) -> tuple[Column, ...]:
        """Events and the gap before the last event. The second event of a history has none before the last."""
        prefixes = (word for word in self.memory if word in ("first", "before"))
        events = (_rename_column(column, word, word == "before") for word in prefixes for column in self.states)
        gaps = self._gap() if "gap" in self.memory else ()
        return (*events, *(replace(gap, name=GAP_BEFORE, nullable=True) for gap in gaps))

    @cached_property
    def parsed_rules(self) -> tuple[Rule, ...]:
        """The rules within a person."""
        of_people, usual = self._first_columns, {column.name for column in self.usual}
        left_out = {LENGTH, STEP, *(column.name for column in (*self._memory_columns, *self._repeats))}
        of_steps = (column for column in self._next_columns if column.name not in left_out)
        columns = [column for column in (*of_people, *of_steps) if column.name not in usual]
        order = None if self.order is None else self.events.column(self.order)
        return rules_among(self.rules, columns, order, next(iter(self._gap()), None))

    @cached_property
    def rules_of_steps(self) -> tuple[Rule, ...]:
        """Rules about more than a row of people."""
        return tuple(rule for rule in self.parsed_rules if rule not in self.first_rows.rules)

    @property
    def row_sets(self) -> dict[str, Schema]:
        """Schemas of both row sets, by the beginning of the names of their queries."""
        return {"": self.first_rows, NEXT: self.next_rows}

    @property
    def table_schemas(self) -> dict[str, Schema]:
        """Schemas of both tables as they are written: each begins with the key."""
        key = Column(self.person, "integer", 1.0, 2.0**31)
        return {
            "people": self._table(key, *self.person_columns),
            "events": self._table(key, *self.events.columns),
        }

    @cached_property
    def length_starts(self) -> tuple[int, ...]:
        """The first number of events of each class of lengths."""
        return tuple(_starts(2, self.most_events))

    @property
    def step_starts(self) -> tuple[int, ...]:
        """The first step of each class of steps: the one from the first event to the second, and all later ones."""
        return (1, 2)[: self.most_events - 1]

    def _gap(self) -> tuple[Column, ...]:
        """The distance of two events in the order: none below 0, since a history is ordered."""
        if self.order is None:
            return ()
        column = self.events.column(self.order)
        lower, upper = column.bounds
        if column.is_integral:
            return (Column(GAP, "integer", 0.0, upper - lower, transform="log1p"),)
        return (Column(GAP, "numeric", 0.0, upper - lower),)

    def _table(self, *columns: Column) -> Schema:
        return Schema(
            self.events.name, self.events.source, "none", None, columns, rules=rules_about(self.parsed_rules, columns)
        )


def _rename_column(column: Column, word: str, missing: bool = False) -> Column:
    """A column of events as one of a row set, which may miss a value also for want of an event."""
    return replace(column, name=f"{word} {column.name}", dtype=None, nullable=column.nullable or missing)


def _starts(first: int, last: int) -> Iterator[int]:
    """Ascending from ``first``, at most half as much more each time."""
    start = first
    while start <= last:
        yield start
        start = max(start + 1, round(1.5 * start))


def _state_words(starts: tuple[int, ...], last: int) -> tuple[str, ...]:
    ends = [*(start - 1 for start in starts[1:]), last]
    pairs = zip(starts, ends, strict=True)
    return tuple(str(start) if start == end else f"{start} to {end}" for start, end in pairs)
