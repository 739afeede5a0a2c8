"""A first schema of people with histories by question and answer: one question for each column of both tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from likeness.core.errors import LikenessError
from likeness.data.histories.schema import HistorySchema
from likeness.data.schema.column_keys import DROP
from likeness.onboarding.answers import chosen, column_called, pieces
from likeness.onboarding.interview import Interview, Question
from likeness.preflight.faults import faults_of_tables

_ANY_ORDER = {"kind": "integer", "lower": 0, "upper": 1}  # stands in for an open order
_FIXED = "Columns that never change for a person, names or numbers (Enter: none): "
_FIXED_HELP = "As sex or year of birth. A person has the value of the first event. Example: 1 4-9 lab_*"
_ENDS = "Values that no event follows, as state: dead (Enter: none): "
_ENDS_HELP = "The last event of a history, as a death. Of several columns: state: dead, moved; ward: morgue"


@dataclass
class HistoryInterview(Interview):
    """Questions about people and events. A column that both tables have is asked about once.

    The answers make a schema of histories. Its events are those of the first table of ``kinds`` that is no column of
    people. An order takes the place of a label: no value of it is missing.

    Attributes:
        order: the column of events by which a history is ordered.
        tables: names of the columns of ``people``, if there is such a table, and of ``events``.
    """

    order: str | None = None
    tables: Mapping[str, Sequence[str]] = field(default_factory=dict)

    most_words = "Most events of one person that count: "
    most_help = "Later events of one person are left out. The noise does not grow with the number."

    def __post_init__(self) -> None:
        """Let the order be asked about as a label is."""
        self.label = self.order or ""

    def _start(self) -> None:
        super()._start()
        self._fixed: tuple[str, ...] | None = () if "people" in self.tables else None
        self._ends: dict[str, list[str]] | None = None

    def _next(self) -> Question | None:
        question = super()._next()
        if question is not None and question.key.startswith(("source", "column ")):
            return question
        if self._fixed is None and self._able_to_stay:
            return Question("fixed", _FIXED, _FIXED_HELP)
        if self._ends is None and any("categories" in self._specs[name] for name in self.tables["events"]):
            return Question("ends", _ENDS, _ENDS_HELP)
        return question

    @property
    def _able_to_stay(self) -> list[str]:
        return [name for name in self.kinds if name != self.order and self._specs[name]["kind"] != DROP]

    def _take(self, key: str, line: str) -> Sequence[str]:
        if key == "fixed" and self._fixed is None:
            names = chosen(line, list(self.kinds), self._able_to_stay)
            fixed = tuple(name for name in self.kinds if name in names)
            self._refuse_faults({**self._mapping(), "fixed": list(fixed)})
            self._fixed = fixed
        elif key == "ends" and self._ends is None:
            ends = self._ends_of(line)
            self._refuse_faults({**self._mapping(), "ends": ends})
            self._ends = ends
        else:
            return super()._take(key, line)
        self._taken.append((key, line))
        return ()

    def _ends_of(self, line: str) -> dict[str, list[str]]:
        """Categories by column."""
        ends = {}
        for part in filter(None, map(str.strip, line.split(";"))):
            name, _, values = part.partition(":")
            ends[column_called(name, list(self.kinds))] = pieces(values)
        return ends

    def _check_most(self, most: int) -> None:
        super()._check_most(most)
        self._refuse_faults({**self._mapping(), "most": most})

    def _mapping(
        self,
        specs: Mapping[str, Any] | None = None,
        label: str | None = None,
        codes: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        content = super()._mapping(specs, label, codes)
        columns = content["columns"]
        if self.order is not None and self.order not in {**self._specs, **(specs or {})}:
            columns[self.order] = _ANY_ORDER
        return {
            "name": content["name"],
            "source": content["source"],
            "person": self.person,
            "order": self.order,
            "most": 2 if self._max_rows is None else self._max_rows,
            "which": "first",
            **({"ends": self._ends} if self._ends else {}),
            **({} if "people" in self.tables else {"fixed": list(self._fixed or ())}),
            **{table: {name: columns[name] for name in names} for table, names in self.tables.items()},
        }

    def _faults(self, mapping: Mapping[str, Any]) -> list[str]:
        faults = faults_of_tables(mapping)
        if not faults:
            try:
                HistorySchema.from_dict(mapping)
            except LikenessError as error:
                return [str(error).removeprefix("schema: ")]
        return faults
