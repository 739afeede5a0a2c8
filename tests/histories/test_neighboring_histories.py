"""Sets of people that differ in one person give sums within the sensitivity, from the tables on, for every query.

Names and texts in schemas of histories: odd ones, harmful ones, and those of several spellings.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from harmful_texts import refuse_harmful_texts
from pytest import MonkeyPatch
from test_odd_names import AB, DIGIT, FASTEST, NAMES, OF_HISTORIES, REFUSED
from toys import visits_of

from likeness import Ledger, Synthesizer
from likeness.core.errors import SchemaError
from likeness.data.encoding.dtypes import typed_again
from likeness.data.encoding.encoder import Encoder
from likeness.data.source.files import read_frame_people
from likeness.ledger.home import locate
from likeness.methods.base import Context
from likeness.methods.marginals.method import Marginals
from likeness.methods.row_set import RowSet
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import lattice_sum
from likeness_histories.generator import HistoryGenerator
from likeness_histories.row_sets import history_rows, rows_of_tables
from likeness_histories.schema import MEMORY, HistorySchema
from tests.campaigns.audit import audit, history_cases

pytestmark = pytest.mark.long

SPEC = visits_of("visits", 9) | {"rules": [{"never": {"last state": "b", "next state": "a"}}]}
Tables = tuple[pd.DataFrame, pd.DataFrame]


def people(lengths: list[int], seed: int, alike: bool = False, start: int = 0) -> Tables:
    """People with events; those who are ``alike`` have equal events, so all their transitions are one cell."""
    random, count = np.random.default_rng(seed), sum(lengths)
    ids = np.arange(len(lengths)) + start
    days, states = random.integers(0, 100, count), random.choice(["a", "b"], count)
    events = {"id": np.repeat(ids, lengths), "day": 7 if alike else days, "state": "a" if alike else states}
    return pd.DataFrame({"id": ids, "sex": random.choice(["f", "m"], len(ids))}), pd.DataFrame(events)


def joined(one: Tables, other: Tables) -> Tables:
    return pd.concat([one[0], other[0]]), pd.concat([one[1], other[1]])


def records(schema: HistorySchema, tables: Tables) -> dict[str, Records]:
    """Both row sets as the door sees them."""
    assert schema.people is not None
    given = read_frame_people(tables[1], schema.events, "id"), read_frame_people(tables[0], schema.people, "id")
    rows = history_rows(schema, *given[0], *given[1])
    numbers = np.arange(len(rows.people)), rows.numbers
    found = {}
    for (prefix, one), table, persons in zip(schema.row_sets.items(), rows[:2], numbers, strict=True):
        encoder = Encoder(one)
        x = encoder.expand(encoder.encode(table))
        found[prefix] = Records(x, np.zeros(len(x), dtype=np.int64), persons)
    return found


def queries(schema: HistorySchema) -> dict[str, list[Query]]:
    method = Marginals().adapt_to_histories()
    asked = {}
    for prefix, rows in schema.row_sets.items():
        of = RowSet(Context(rows, "add_remove_one", None, 0), "", prefix=prefix, is_per_person=True)
        asked[prefix] = [of.scope(query) for query in method.planned_queries(of.context)]
    return asked


@pytest.mark.parametrize(("which", "memory"), [("first", []), ("hash", list(MEMORY))])
def test_a_person_moves_no_sum_by_more_than_one_record(which: str, memory: list[str]) -> None:
    schema = HistorySchema.from_dict({**SPEC, "which": which, "memory": memory})
    rest = people([3, 0, 12, 1], seed=0)
    base, asked = records(schema, rest), queries(schema)
    reached = 0.0
    for seed, (length, alike) in enumerate([(0, False), (1, False), (9, True), (9, False), (40, False), (40, True)]):
        longer = records(schema, joined(rest, people([length], seed + 1, alike, 10)))
        replaced = records(schema, joined(rest, people([5], seed + 50, False, 10)))
        for prefix, some in asked.items():
            for query in some:
                sums = [lattice_sum(query, [one[prefix]]).astype(object) for one in (longer, base, replaced)]
                for other, adjacency in zip(sums[1:], Adjacency, strict=True):
                    share = ((sums[0] - other) ** 2).sum() / query.sensitivity_squared(adjacency)
                    assert share <= 1
                    reached = max(reached, share * (prefix != "" and adjacency is Adjacency.ADD_REMOVE_ONE))
    assert reached == pytest.approx(1)  # eight equal transitions of one person


@pytest.mark.long
@pytest.mark.parametrize("words", ["", " and memory"])
def test_rows_of_a_person_that_do_not_share_a_contribution_are_reported(words: str, monkeypatch: MonkeyPatch) -> None:
    case = next(case for case in history_cases() if case.name == f"marginals with histories{words} next_embedding")
    assert audit(case).failures == () and audit(case).reached == pytest.approx(1)
    monkeypatch.setattr(
        "likeness.release.records._number_shares",
        lambda rows: dataclasses.replace(rows, persons=None, shared_by=np.ones(len(rows.labels), np.int64)),
    )
    assert any("16 times the sensitivity apart" in failure for failure in audit(case).failures)


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
