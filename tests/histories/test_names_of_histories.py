"""Names and texts in schemas of histories: odd ones, harmful ones, and those of several spellings."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from harmful_texts import refuse_harmful_texts
from test_odd_names import AB, DIGIT, FASTEST, NAMES, OF_HISTORIES, REFUSED

from likeness import Ledger, Synthesizer
from likeness.core.errors import SchemaError
from likeness.data.encoding.dtypes import typed_again
from likeness.ledger.home import locate
from likeness_histories.generator import HistoryGenerator
from likeness_histories.row_sets import rows_of_tables
from likeness_histories.schema import HistorySchema

pytestmark = pytest.mark.long

SHARP = "gro\u0308ße"  # NFD
HEAD: dict[str, Any] = {
    **{"name": "t", "source": "s", "person": "pid", "most": 3},
    "events": {name: {"kind": "categorical", "categories": list("abc")} for name in "xyz"},
}
PLACES: dict[str, Callable[[Any], object]] = {
    "person": lambda text: HistorySchema.from_dict({**HEAD, "person": text}),
    "end": lambda text: HistorySchema.from_dict({**HEAD, "ends": {"x": [text]}}),
}


@pytest.mark.parametrize("place", PLACES)
def test_no_text_that_is_published_is_long_or_moves_a_terminal(place: str) -> None:
    refuse_harmful_texts(PLACES[place])


def test_names_of_histories_are_normal_too() -> None:
    event = {SHARP: {"kind": "integer", "lower": 0, "upper": 9}, "a": {"kind": "categorical", "categories": ["ö", "x"]}}
    mapping = {"name": "h", "source": "s", "person": "na\u00adme", "order": SHARP, "most": 3, "events": event}
    histories = HistorySchema.from_dict(mapping | {"ends": {"a": ["o\u0308"]}})
    assert (histories.person, histories.order, histories.ends) == ("name", "größe", {"a": ("ö",)})


@pytest.mark.parametrize("name", REFUSED)
def test_other_names_are_refused_by_the_schema(name: str) -> None:
    with pytest.raises(SchemaError, match=r"cannot have that name|has a text"):
        HistorySchema.from_dict(histories(name, "x", "y"))


def histories(person: str, people: str, event: str, **more: Any) -> dict[str, Any]:
    """The schema of people with one column each, and of events with two."""
    tables = {"people": {people: AB}, "events": {event: AB, "day": {**DIGIT, "upper": 30}}}
    return {"name": "h", "source": "s", "person": person, "order": "day", "most": 3, **more, **tables}


def test_every_name_works_in_histories() -> None:
    """As the key of a person, as a column of people, and as one of events, which each name is once."""
    Ledger.create(locate())
    people = pd.DataFrame({"self": range(80), "cls": ["a", "b"] * 40})
    events = pd.DataFrame({"self": np.repeat(range(80), 3), "index": ["b", "a", "b"] * 80, "day": [1, 5, 9] * 80})
    schema = HistorySchema.from_dict(histories("self", "cls", "index"))
    synthesizer = Synthesizer(schema=schema, population="people", settings=FASTEST, device="cpu")
    fitted = synthesizer.fit({"people": people, "events": events}, person="self")
    assert list(fitted.sample(3, where={"cls": "a"})["events"]) == ["self", "index", "day"]
    assert fitted.estimate("next index", by="cls").index.names == ["next index", "cls"]
    for place, person in enumerate(NAMES):
        one, other = NAMES[place - 1], NAMES[place - 2]
        if one in (*OF_HISTORIES[:7], *(f"{word} {other}" for word in ("first", "last", "next", "usual", "before"))):
            with pytest.raises(SchemaError, match="has a name that histories use"):
                HistorySchema.from_dict(histories(person, one, other))
            one = "person's"
        written = HistorySchema.from_dict(histories(person, one, other))
        generator = HistoryGenerator(*fitted._fitted.generators, written)
        tables = generator.tables(5, 0, {one: "b"})
        assert list(tables["people"]) == [person, one] and list(tables["events"]) == [person, other, "day"]
        assert (tables["people"][one] == "b").all() and set(tables["events"][person]) <= {1, 2, 3, 4, 5}
        typed = rows_of_tables(written, *(typed_again(tables[name], written.table_schemas[name]) for name in tables))
        assert list(typed.transitions) == list(written.next_rows.names)


def test_events_of_people_have_names_beside_those_of_histories() -> None:
    """A column of people cannot be called as one that histories make of the events; one of events can."""
    for name in OF_HISTORIES:
        memory = ["first", "before", "gap", "usual"]
        schema = HistorySchema.from_dict(histories("id", "age", name, memory=memory))
        assert (
            len(set(schema.next_rows.names)) == len(schema.next_rows.names)
            and f"usual {name}" in schema.first_rows.names
        )
    for name in (*OF_HISTORIES[:7], "first day", "last day", "next day", "usual x", "before x"):
        with pytest.raises(SchemaError, match=f"column '{name}' of people has a name that histories use"):
            HistorySchema.from_dict(histories("id", name, "x"))
