"""Both row sets of people with histories: of one person alone, in order, at most k events."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from likeness.core.errors import DataError, SchemaError
from likeness.core.paths import ProjectPaths, row_set_file
from likeness.data.private_tables import write_private
from likeness.data.schema.row_sets import GAP, GAP_BEFORE, LENGTH, NUMBER, STEP, USUAL_GAP
from likeness.data.source.files import read_frame_people
from likeness.pipeline.ingest import PERSON, SPLIT
from likeness_histories.private_rows import digest_of_histories, strangers, written_histories
from likeness_histories.row_sets import HistoryRows, classes, history_rows
from likeness_histories.rules import NextEqual
from likeness_histories.schema import NEXT, HistorySchema

SPEC: dict[str, Any] = {
    "name": "visits",
    "source": "made up",
    "person": "id",
    "order": "day",
    "most": 4,
    "ends": {"state": ["dead"]},
    "fixed": ["sex"],
    "events": {
        "day": {"kind": "date", "lower": "2020-01-01", "upper": "2020-12-31"},
        "state": {"kind": "categorical", "categories": ["well", "ill", "dead"]},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
    },
}
KEY = b"k" * 32
PEOPLE = {"people": {"age": {"kind": "integer", "lower": 0, "upper": 99}}, "fixed": []}


def visits(*cells: tuple[int, str, str, str]) -> pd.DataFrame:
    return pd.DataFrame(cells, columns=["id", "day", "state", "sex"])


def made(table: pd.DataFrame, people: pd.DataFrame | None = None, **changes: Any) -> HistoryRows:
    schema = HistorySchema.from_dict({**SPEC, **(PEOPLE if people is not None else {}), **changes})
    more = () if people is None or schema.people is None else read_frame_people(people, schema.people, "id")
    return history_rows(schema, *read_frame_people(table, schema.events, "id"), *more)


TABLE = visits(
    (1, "2020-03-05", "ill", "f"), (1, "2020-03-01", "well", "f"), (2, "2020-05-01", "well", "m"),
    (1, "2020-03-15", "dead", "f"), (1, "2020-04-01", "well", "f"),
)  # fmt: skip


def test_rows_of_people_and_of_transitions() -> None:
    rows = made(TABLE)
    assert rows.people["sex"].tolist() == ["f", "m"]
    assert rows.people[NUMBER].tolist() == ["3", "1"]  # nothing follows the end
    assert rows.people["first state"].tolist() == ["well", "well"]
    assert rows.transitions[["last state", "next state"]].to_numpy().tolist() == [["well", "ill"], ["ill", "dead"]]
    assert rows.transitions[GAP].tolist() == [4, 10] and rows.numbers.tolist() == [0, 0]
    assert list(rows.transitions) == ["sex", LENGTH, STEP, "last state", "next state", GAP]
    assert rows.transitions[STEP].tolist() == ["1", "2 to 3"] and set(rows.transitions[LENGTH]) == {"3"}


def test_a_step_says_whether_a_column_of_many_categories_repeats() -> None:
    """Two missing values are the same; few categories have no such column."""
    wards = {"kind": "categorical", "categories": [str(ward) for ward in range(11)], "nullable": True}
    events = {**SPEC["events"], "ward": wards}
    table = TABLE.assign(ward=[None, None, "1", "7", "7"])  # in order of days: none, none, 7
    rows = made(table, events=events)
    assert rows.transitions["same ward"].tolist() == ["yes", "no"]
    assert list(rows.transitions)[-2:] == ["same ward", GAP] and "same state" not in rows.transitions
    with pytest.raises(SchemaError, match="'same ward' of people has a name that histories use"):
        made(table.assign(**{"same ward": ["f"] * 5}), events={**events, "same ward": wards}, fixed=["same ward"])


def test_transitions_remember_the_first_event_and_that_before_the_last() -> None:
    """The second event has nothing before the last, and nobody remembers an event of somebody else."""
    days = ["2020-01-02", "2020-01-05", "2020-01-12", "2020-02-12"]
    states = ["ill", "well", "well", "dead"]
    rows = made(visits(*((who, day, state, "f") for who in (1, 2) for day, state in zip(days, states, strict=True))),
                memory=["first", "before", "gap"], fixed=["sex"])  # fmt: skip
    steps = rows.transitions
    assert steps["first state"].tolist() == ["ill"] * 6 and steps["last state"].tolist() == states[:3] * 2
    assert steps["before state"].astype(object).where(steps["before state"].notna(), None).tolist() == [
        None, "ill", "well", None, "ill", "well"]  # fmt: skip
    assert steps[GAP].tolist() == [3, 7, 31] * 2 and steps[GAP_BEFORE].fillna(-1).tolist() == [-1, 3, 7] * 2
    assert len(set(rows.people)) == len(made(TABLE).people.columns)


def test_what_is_usual_is_the_middle_number_and_the_most_frequent_category() -> None:
    """Of two middle numbers the smaller one, of two categories the first. Missing cells and strangers do not count."""
    days = ["2020-01-02", "2020-01-05", "2020-01-12", "2020-02-12"]
    cells = {1: ("ill", "well", "ill", "well"), 2: ("ill", "ill", "well"), 3: ("ill",)}
    table = visits(*((who, day, state, "f") for who, of in cells.items() for day, state in zip(days, of, strict=False)))
    table["score"] = [5, None, 1, 2, 9, 7, 8, None]
    score = {"kind": "integer", "lower": 0, "upper": 9, "nullable": True}
    events = {**{k: v for k, v in SPEC["events"].items() if k != "sex"}, "score": score}
    people = pd.DataFrame({"id": [2, 1, 3, 4], "age": 30})
    rows = made(table.drop(columns="sex").sample(frac=1, random_state=0), people, events=events, memory=["usual"])
    assert rows.people["usual state"].astype(object).fillna("none").tolist() == ["ill", "well", "ill", "none"]
    assert rows.people["usual score"].fillna(-1).tolist() == [8, 2, -1, -1]
    assert rows.people[USUAL_GAP].fillna(-1).tolist() == [3, 7, -1, -1]
    assert rows.transitions["usual state"].tolist() == ["ill"] * 2 + ["well"] * 3
    assert rows.transitions[USUAL_GAP].tolist() == [3] * 2 + [7] * 3


def test_people_without_events_and_events_of_strangers() -> None:
    people = pd.DataFrame({"id": [2, 7, 2], "age": [30, 40, 31]})
    rows = made(TABLE.drop(columns="sex"), people, events={k: v for k, v in SPEC["events"].items() if k != "sex"})
    assert len(rows.people) == 2 and sorted(rows.people[NUMBER].tolist()) == ["0", "1"]
    assert rows.people["first state"].isna().sum() == 1 and rows.transitions.empty


@pytest.mark.long
@pytest.mark.parametrize("which", ["first", "hash"])
def test_rows_of_a_person_depend_on_that_person_alone(which: str) -> None:
    """The others' rows stay as they are, in any order of the table, when somebody comes or goes."""
    generator = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", "2020-12-31").strftime("%Y-%m-%d").to_numpy()
    count = 300
    table = visits(*zip(generator.integers(0, 40, count), generator.choice(days, count),
                        generator.choice(["well", "ill"], count), ["f"] * count, strict=True))  # fmt: skip
    whole = made(table, which=which)
    shuffled = made(table.sample(frac=1, random_state=1), which=which)
    without = made(table[table["id"] != 5], which=which)

    def texts(rows: HistoryRows) -> list[list[str]]:
        counts = rows.transitions.groupby(rows.numbers)
        of = {person: sorted(map(str, part.to_numpy().tolist())) for person, part in counts}
        people = rows.people.to_numpy().tolist()
        return sorted([str(row), *of.get(place, [])] for place, row in enumerate(people))

    assert texts(shuffled) == texts(whole)
    left = [person for person in texts(whole) if person not in texts(without)]
    assert len(left) == 1 and len(texts(whole)) == len(texts(without)) + 1
    assert np.bincount(whole.numbers).max() == 3 and (np.diff(whole.numbers) >= 0).all()


def tied(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Events on three days, most beside others of their person, and people with up to three rows that differ."""
    generator = np.random.default_rng(seed)
    ids = np.repeat(np.arange(12), generator.integers(1, 8, 12))
    days, states = ["2020-01-01", "2020-01-02", "2020-06-01"], ["well", "ill"]
    events = pd.DataFrame(
        {"id": ids, "day": generator.choice(days, len(ids)), "state": generator.choice(states, len(ids))}
    )
    owners = np.repeat(np.arange(12), generator.integers(1, 4, 12))
    return events, pd.DataFrame({"id": owners, "age": generator.integers(0, 99, len(owners))})


EVENTS = {"events": {name: SPEC["events"][name] for name in ("day", "state")}}


def histories(rows: HistoryRows) -> list[list[str]]:
    """Each person's row, and the transitions in their order; people in an order of their own."""
    of = [rows.transitions[rows.numbers == place].to_numpy().tolist() for place in range(len(rows.people))]
    return sorted([str(row), *map(str, some)] for row, some in zip(rows.people.to_numpy().tolist(), of, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("which", ["first", "hash"])
def test_the_order_of_neither_table_says_anything(which: str) -> None:
    """Ties within a day go by a hash, and of several rows of a person that with the smallest hash counts."""
    schema = HistorySchema.from_dict({**SPEC, **PEOPLE, **EVENTS, "which": which})
    events, people = tied()
    whole, digests = histories(made(events, people, **EVENTS, which=which)), set()
    for seed in range(8):
        shuffled = [table.sample(frac=1, random_state=seed) for table in (events, people)]
        rows = read(schema, *shuffled)
        assert histories(rows) == whole
        digests.add(digest_of_histories(schema, rows, KEY))
    assert len(digests) == 1


@pytest.mark.long
def test_each_event_that_counts_is_part_of_the_digest() -> None:
    """Of people below the cap, at it and above it: else other rows would get the stored answer."""
    schema = HistorySchema.from_dict({**SPEC, **PEOPLE, **EVENTS})
    counts = [0, 1, 2, 3, 4, 4, 6]
    ids = np.repeat(np.arange(len(counts)), counts)
    days = [f"2020-01-{place + 1:02}" for count in counts for place in range(count)]
    events = pd.DataFrame({"id": ids, "day": days, "state": "well"})
    people = pd.DataFrame({"id": np.arange(len(counts)), "age": 30 + np.arange(len(counts))})

    def digest(events: pd.DataFrame, people: pd.DataFrame = people) -> str:
        return digest_of_histories(schema, read(schema, events, people), KEY)

    digests, counted = {digest(events)}, events.groupby("id").cumcount() < 4
    for place in np.flatnonzero(counted):
        digests.add(digest(events.assign(state=events["state"].where(events.index != place, "ill"))))
    for place in range(len(people)):
        digests.add(digest(events, people.assign(age=people["age"].where(people.index != place, 99))))
    assert len(digests) == 1 + counted.sum() + len(people)
    assert digest(events.assign(state=events["state"].where(counted, "ill"))) == digest(events)  # beyond the cap


def read(schema: HistorySchema, events: pd.DataFrame, people: pd.DataFrame) -> HistoryRows:
    """Both row sets of two frames."""
    assert schema.people is not None
    tables = [read_frame_people(events, schema.events, "id"), read_frame_people(people, schema.people, "id")]
    strangers(tables, "id")
    return history_rows(schema, *tables[0], *tables[1])


def linked(events: list[Any], people: list[Any]) -> HistoryRows:
    """Histories of events and people with these keys."""
    schema = HistorySchema.from_dict({**SPEC, **PEOPLE, **EVENTS})
    frames = (
        pd.DataFrame({"id": pd.Series(events), "day": "2020-01-01", "state": "well"}),
        pd.DataFrame({"id": pd.Series(people), "age": 30}),
    )
    return read(schema, *frames)


@pytest.mark.parametrize("spelled", [float, str, lambda key: f"{key}.0", lambda key: f" {key}\u00a0"])
def test_keys_link_however_they_are_written(spelled: Any) -> None:
    keys = [*range(20)]
    for rows in (linked([*map(spelled, keys)], keys), linked(keys, [*map(spelled, keys)])):
        assert set(rows.people[NUMBER]) == {"1"} and len(rows.people) == 20


def test_events_of_nobody_are_few_or_stop_the_run() -> None:
    people = [*range(100)]
    assert linked([*people[:95], *range(200, 205)], people).people[NUMBER].tolist() == ["1"] * 95 + ["0"] * 5
    for events in ([*people[:94], *range(200, 206)], [f"{key:05}" for key in people], [8675309]):
        with pytest.raises(DataError, match="more than 5% of the events name nobody among the people") as caught:
            linked(events, people)
        assert "Nothing was spent" in str(caught.value) and not {"6", "100", "8675309"} & {*str(caught.value).split()}
    with pytest.raises(DataError, match="name nobody"):
        linked([1], [])
    assert linked([], people).people[NUMBER].tolist() == ["0"] * 100


def test_halves_of_the_people_stand_for_held_out_ones(tmp_path: Path) -> None:
    rows = linked([key for key in range(9) for _ in range(key % 3)], list(range(9)))
    paths = ProjectPaths(tmp_path)
    for side, parts in (("train", ["train"] * 9), ("test", ["train", "test", "test"] * 3)):
        numbers = pd.Series(parts).groupby(parts).cumcount().to_numpy()
        marks = (np.array(parts), numbers), (np.array(parts)[rows.numbers], numbers[rows.numbers])
        for prefix, table, (part, number) in zip(("", NEXT), (rows.people, rows.transitions), marks, strict=True):
            write_private(table.assign(**{SPLIT: part, PERSON: number}), row_set_file(paths.table, prefix), {})
        halved = side == "train"
        written = written_histories(paths, 1, halved)
        assert sum(len(one.people) for one in written.values()) == 9 and len(written["test"].people) == (
            4 if halved else 6
        )
        for one in written.values():
            assert np.bincount(one.numbers, minlength=len(one.people)).tolist() == [
                max(int(count) - 1, 0) for count in one.people[NUMBER].astype(str)
            ]


def test_a_number_between_two_starts_is_of_the_class_before() -> None:
    assert classes(np.array([1, 2, 3, 4, 9]), (1, 2, 4)).tolist() == [0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({"most": 1}, "most must be a whole number"), ({"which": "last"}, "which 'last' is no choice")),
        ({"order": "state"}, "order 'state' must be a number or date"),
        ({"order": "hour"}, "'hour' is not a column"),
        ({"events": {**SPEC["events"], "day": {**SPEC["events"]["day"], "nullable": True}}}, "that each event has"),
        ({"ends": {"state": ["gone"]}}, "'gone' is not a category"),
        *(({"person": "sex"}, "names people and is never released"), ({"fixed": ["sex", "day"]}, "order 'day'")),
        ({"fixed": ["day", "sex", "state"], "order": None}, "names all columns"),
        ({"people": {"age": {"kind": "integer", "lower": 0, "upper": 9}}}, "fixed is for people who are made"),
        ({"colour": []}, "colour is not a key of histories"),
        ({"rules": [{"order": ["gap usually", "gap"]}], "memory": ["usual"]}, "'gap usually' is not a column"),
        ({"rules": [{"calendar": "first day"}]}, "histories take the rules if, never, order, equal alone"),
        ({"rules": [{"never": {"state": "ill", "sex": "f"}}]}, "'state' is not a column"),
        ({"rules": [{"equal": ["gap", [1, "since first"]]}]}, "equal computes a number of the next event"),
        ({"rules": [{"equal": ["next day", ["last day", "gap"]]}]}, "as 'next age', and not its order"),
        ({"memory": ["last"]}, "memory: 'last' must be one of first, before, gap"),
        ({"memory": ["gap", "gap"]}, "memory: 'gap' must be one of .* at most once"),
        ({"memory": "gap", "order": None}, "memory: a gap needs an order"),
        ({"memory": {"gap": 1}}, "memory must be a list of first, before, gap"),
        ({"memory": False}, "memory must be a list of first, before, gap"),
        *(({"person": None}, "person is missing"), ({"ends": ["dead"]}, "ends must be a mapping")),
    ],
)
def test_a_wrong_schema_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        HistorySchema.from_dict({**SPEC, **changes})


def test_a_schema_survives_its_json_form() -> None:
    schema = HistorySchema.from_dict(SPEC)
    assert HistorySchema.from_dict(schema.to_dict()) == schema and "memory" not in schema.to_dict()
    schema = HistorySchema.from_dict({**SPEC, "memory": ["before"]})
    assert HistorySchema.from_dict(schema.to_dict()) == schema


def test_a_number_of_the_next_event_follows_from_the_last_one() -> None:
    """Private rows that break the rule are mended."""
    age = {"kind": "integer", "lower": 0, "upper": 99}
    year = {"kind": "integer", "lower": 1990, "upper": 2030}
    table = TABLE.assign(age=[7, 30, 9, 41, 5], year=[2003, 2001, 2002, 2005, 2009])
    events = {**SPEC["events"], "age": age, "year": year}
    rule = {"equal": ["next age", ["last age", "gap"]]}
    rows = made(table, order="year", events=events, rules=[rule])
    assert rows.transitions[["last age", "next age", GAP]].to_numpy().tolist() == [[30, 32, 2], [7, 9, 2]]
    schema = HistorySchema.from_dict({**SPEC, "order": "year", "events": events, "rules": [rule]})
    assert HistorySchema.from_dict(schema.to_dict()).to_dict() == schema.to_dict()


@pytest.mark.parametrize("kind", ["product", "ratio"])
def test_no_warning_and_no_missing_number_depends_on_a_row(kind: str) -> None:
    """A product overflows, and a ratio divides by 0; its column is a whole number that may not be missing."""
    size = {"kind": "numeric", "lower": -1e300, "upper": 1e300}
    count = {"kind": "integer", "lower": 3, "upper": 9}
    rule = {"equal": ["next count", ["last size", "last size"]], "kind": kind}
    price = {"kind": "numeric", "lower": 0, "upper": 9, "decimals": 2}
    rounded = {"equal": ["next price", ["last size", 1e7]], "kind": "product"}
    events = {**SPEC["events"], "size": size, "count": count, "price": price}
    table = TABLE.assign(size=[0.0, 1e300, 1, 2, 3], count=5, price=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        rows = made(table, events=events, rules=[rule, rounded])
    assert rows.transitions["next count"].between(3, 9).all()
    whole = HistorySchema.from_dict({**SPEC, "events": events, "rules": [rule]}).parsed_rules[0]
    assert isinstance(whole, NextEqual)
    mended = whole.project_on_rule({"last size": np.array([0.0, 1e200, 1.0])})["next count"]
    assert mended.tolist() == [3.0, 3.0, 3.0]


def test_a_private_person_who_breaks_a_rule_counts_as_one_who_keeps_it() -> None:
    """Each row alone: nobody gains or loses a row."""
    rules = [
        {"if": {"sex": "f"}, "then": {"first state": "ill"}},
        {"never": {"last state": "well", "next state": "ill"}},
        {"order": ["first day", "next day"]},
    ]
    free, ruled = made(TABLE), made(TABLE, rules=rules)
    assert ruled.people["first state"].tolist() == ["ill", "well"]
    assert ruled.transitions[["last state", "next state"]].to_numpy().tolist() == [["well", "well"], ["ill", "dead"]]
    assert ruled.numbers.tolist() == free.numbers.tolist()
    schema = HistorySchema.from_dict({**SPEC, "rules": rules})
    assert HistorySchema.from_dict(schema.to_dict()).to_dict() == schema.to_dict() and "rules" in schema.to_dict()
    assert [len(rows.rules) for rows in (schema.first_rows, schema.next_rows)] == [1, 1]
