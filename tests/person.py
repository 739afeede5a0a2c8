"""A person who answers the questions of a draft from a table of answers."""

from collections.abc import Mapping
from typing import Any

from likeness.data.schema.draft import SchemaDraft
from likeness.preflight.interview import Completed, Interview

GUESSED = {"age": "integer", "ward": "categorical", "pay": "numeric", "day": "date", "seen": "datetime"}
GUESSED |= {"sick": "boolean", "note": "drop", "town": "categorical", "rank": "integer"}
MORE = "  and: "


class Person:
    """Answers from a table, ``first`` with other lines; notices a question that comes again without a word why."""

    def __init__(self, known: Mapping[str, str], first: Mapping[str, list[str]] | None = None) -> None:
        self.known, self.first = known, {key: list(lines) for key, lines in (first or {}).items()}
        self.asked: list[str] = []
        self.told: list[str] = []
        self.heard = 0

    def ask(self, question: str) -> str:
        assert len(self.asked) < 200, self.told[-3:]
        if question != MORE:
            if self.asked and question.partition(",")[0] == self.asked[-1].partition(",")[0]:
                assert len(self.told) > self.heard
            self.asked.append(question)
            self.heard = len(self.told)
        key = next((key for key in self.known if self.asked[-1].startswith(key)), "")
        lines = self.first.get(key)
        return lines.pop(0) if lines else self.known.get(key, "") if question != MORE else ""

    def interview(self, kinds: Mapping[str, str] = GUESSED, draft: SchemaDraft | None = None, **more: Any) -> Completed:
        return Interview(self.ask, self.told.append, draft or SchemaDraft(kinds, "own"), **more).run()
