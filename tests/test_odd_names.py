"""Odd names of columns, in every role: each works all the way, or the schema refuses it before anything is spent.

What is asked of a fit: rows, seeds, conditions, places and labels in every form that Python has, or a refusal.
"""

import errno
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from pytest import MonkeyPatch
from toys import schema_with
from typer.testing import CliRunner
from verdicts import verify

import likeness
from likeness import Ledger, Synthesizer
from likeness.cli.app import app
from likeness.cli.sample import sample
from likeness.core.errors import DataError, LikenessError, ParamsError, SchemaError
from likeness.core.refusals import storage_refusal
from likeness.data.schema.allowed import condition_setting
from likeness.data.schema.answers import parse_columns
from likeness.data.schema.column import Column
from likeness.data.schema.constrained_tables import forward_transform, inverse_transform
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.schema import entries
from likeness.data.schema.yaml import _CoreLoader, schema_text
from likeness.data.source.files import read_frame
from likeness.ledger.home import locate
from likeness.pipeline.datasets import read_schema
from likeness.pipeline.where import conditions, pairs

pytestmark = pytest.mark.long

WORDS = [
    *("self", "cls", "index", "level_0", "columns", "values", "size", "count", "name", "T", "shape", "class", "label"),
    *("split", "person", "1", "0.5", "1e5", "-2", "None", "null", "nan", "NaN", "True", "~", "select", "order"),
    *("con", "nul", "pixel_1", "Case", "case", "category", "estimate", "low", "column", "salt", "where", "group"),
]
SIGNS = [
    *("income, yearly", "a=b", '5" pipe', '"quoted"', "it's", "a/b", "a\\b", "../x", "100%", "%s", "{x}", "[y]"),
    *("#", "$x$", "*", "^x$", ".*", "?", "a.b", "a", "a×b", "a|b", "a:b", "a - b", "b - a", "<b>", "&amp;", "`x`"),
    *("-dash", "--columns", "_under", "__init", "x__", "!", "@", "é", "😀", "👩\u200d🔬", "العمر", "גיל", "年龄"),
    *("|", "{0}", "x" * 190),
]
OF_HISTORIES = [
    *("gap", "step", "number of events", "length of history", "gap before", "gap usually", "since first"),
    *("first x", "last x", "next x", "usual x", "before x"),
]
NAMES = [*WORDS, *SIGNS, *OF_HISTORIES]
TRIED = ["self", "cls", "income, yearly", "*", "a=b", '"quoted"', "--columns"]  # by each command
OTHERS = [name for name in NAMES if name not in TRIED]
REFUSED = [
    *("", " ", "\u200b", "two\nlines", "a\tb", "a\x00b", "\x1b[2J"),
    *("__init__", "__split__", "__person__", "__image__", "__index_level_0__"),
]
FASTEST: dict[str, Any] = {"privatize": {"bins": 3}, "train": {"iterations": 2, "num_components": 2}}
QUOTE = '"'
AB: dict[str, Any] = {"kind": "categorical", "categories": ["a", "b"]}
PRIVATE: dict[str, Any] = {"kind": "categorical", "categories": "private"}
DIGIT: dict[str, Any] = {"kind": "integer", "lower": 0, "upper": 9}


def table_of(columns: list[dict[str, Any]], rows: int) -> pd.DataFrame:
    """Cells of two categories, and whole numbers."""
    letters, digits = np.resize(["a", "b", "b"], rows), np.resize(np.arange(10), rows)
    return pd.DataFrame({one["name"]: letters if one["kind"] == "categorical" else digits for one in columns})


@pytest.mark.parametrize("names", [[*TRIED, *OTHERS[::2]], OTHERS[1::2]], ids=["tried", "others"])
def test_every_name_works_as_a_column(tmp_path: Path, names: list[str]) -> None:
    """Pairs of columns take time, so the names are in two tables."""
    kinds = [PRIVATE, {**DIGIT, "nullable": True}, {"kind": "numeric", "lower": 0, "upper": 9, "decimals": 1}]
    columns = [{"name": name, **kinds[NAMES.index(name) % 3]} for name in names]
    Ledger.create(locate())
    given = {"schema": schema_with(columns), "settings": FASTEST, "categories": {"share": 0.5, "most": 3}}
    people = Synthesizer(population="people", epsilon=1e4, cap=(1e5, 1e-4), device="cpu", **given)
    fitted = people.fit(table_of(columns, 100))
    drawn = fitted.sample(4)
    assert list(drawn) == names
    if "self" not in names:
        return
    for some in (["self"], ["income, yearly", "*"]):
        wanted = {name: drawn[name].astype(object).iloc[0] for name in some}
        same = fitted.sample(2, where=wanted)
        assert all((same[name] == wanted[name]).all() for name in some)
        assert fitted.sample(where=drawn[some])[some].equals(drawn[some])
    assert fitted.estimate("self", by="cls").index.names == ["self", "cls"]
    numbers = [name for name in names if NAMES.index(name) % 3][::6]
    assert list(fitted.estimate(numbers, statistic="mean").index) == numbers
    fitted.save(tmp_path / "saved")
    asked = ["estimate", str(tmp_path / "saved"), "--columns", '"income, yearly","""quoted"""', "--by", "a=b", "--json"]
    done = CliRunner().invoke(app, asked)
    assert 'has no joint counts of income, yearly, "quoted", a=b' in str(done.exception)
    some = ["a=b", '"quoted"', "income, yearly", "--columns"]
    conditions = [f'"{name.replace(QUOTE, 2 * QUOTE)}"={drawn[name].iloc[0]}' for name in some]
    out = tmp_path / "rows.csv"
    words = ["sample", str(tmp_path / "saved"), "--out", str(out), "--rows", "5"]
    done = CliRunner().invoke(app, [*words, *(word for one in conditions for word in ("--where", one))])
    assert done.exit_code == 0, done.output
    rows = pd.read_csv(out)
    assert list(rows) == names and all((rows[name] == drawn[name].iloc[0]).all() for name in some)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The fit of a table with a label, whose columns get other names."""
    with MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("classes")
        patch.setenv("LIKENESS_HOME", str(folder / "ledger"))
        patch.setenv("LIKENESS_ANCHOR", str(folder / "anchor"))
        Ledger.create(locate())
        columns = [{"name": "self", **AB}, {"name": "cls", **AB}, {"name": "index", **DIGIT}]
        given = {"schema": schema_with(columns, "self"), "settings": FASTEST, "device": "cpu", "population": "people"}
        table = table_of(columns, 200).assign(whose_row=np.arange(200))
        return Synthesizer(unit_column="whose_row", max_rows=2, **given).fit(table)._fitted


@pytest.mark.parametrize("name", NAMES)
def test_every_name_works_as_a_label_and_in_rules(name: str, classes: Any, tmp_path: Path) -> None:
    columns = [{"name": name, **AB}, {"name": "other", **AB}, {"name": "third", **DIGIT}]
    schema = schema_with(columns, name)
    labeled = replace(classes, project=replace(classes.project, given_schema=schema))
    drawn = labeled.sample(5, {name: "b", "third": {3, 4}}, 0)
    assert list(drawn) == [name, "other", "third"] and (drawn[name] == "b").all() and drawn["third"].isin([3, 4]).all()
    ruled = schema_with(
        [{"name": "other", **AB}, *({"name": one, **DIGIT} for one in (name, "third", "fourth", "fifth"))],
        rules=[
            {"if": {name: "> 4"}, "then": {"other": "a"}},
            {"never": {"other": "a", name: 0}},
            {"equal": ["fourth", [name, "fifth"]]},
        ],
        derived={f"{name} later": f"third - {name}"},
    )
    assert read_back(ruled, tmp_path / "schema.yaml").rules == ruled.rules
    table = read_frame(table_of(ruled.to_dict()["columns"], 30), ruled)
    complete, rejected = inverse_transform(forward_transform(table, ruled), ruled)
    assert list(complete) == list(ruled.names) and len(rejected) > 3
    one_of = schema_with(
        [{"name": one, "kind": "boolean"} for one in (name, "other", "third")], rules=[{"one_of": [name, "other"]}]
    )
    assert one_of.rules[0].computes == (name, "other")


def read_back(schema: Any, file: Path) -> Any:
    """A schema from its file."""
    file.write_text(schema_text(schema), encoding="utf-8")
    return read_schema(file)


@pytest.mark.parametrize("name", REFUSED)
def test_other_names_are_refused_by_the_schema(name: str) -> None:
    with pytest.raises(SchemaError, match="cannot have that name") as refused:
        Column(name, "boolean", categories=("no", "yes"))
    assert "Rename the column" in str(refused.value) and str(refused.value).isprintable()
    with pytest.raises(SchemaError, match=r"cannot have that name|has a text"):
        schema_with([{"name": name, **AB}, {"name": "x", **AB}])


def test_every_name_is_read_back_from_a_draft() -> None:
    kinds = {name: ("categorical", "integer", "drop")[place % 3] for place, name in enumerate(NAMES)} | {
        "1e5": "integer"
    }
    for answered in ((), NAMES[:-1:2]):
        for label in (None, "1e5"):
            draft = SchemaDraft(kinds, "toy")
            for name in answered:
                draft[name].settle(AB)
            draft.nullable, draft.label, draft.person = "none", label, NAMES[-1]
            assert [name for name, _ in entries(yaml.load(draft.text(), _CoreLoader)["columns"])] == NAMES
    quoted = ",".join(f'"{name.replace(QUOTE, 2 * QUOTE)}"' for name in NAMES)
    assert parse_columns(quoted, NAMES, NAMES) == set(NAMES)


SCHEMA = schema_with(
    {
        "age": {"kind": "integer", "lower": 0, "upper": 110},
        "cost": {"kind": "numeric", "lower": 0, "upper": 123456789, "decimals": 2, "nullable": True},
        "seen": {"kind": "date", "lower": "2020-01-01", "upper": "2020-12-31"},
        "ward": {"kind": "categorical", "categories": ["x", "y", "rest"], "other": "rest", "nullable": True},
        "size": {"kind": "categorical", "categories": ["s", "m", "l"], "ordered": True},
    }
)
FAST: dict[str, Any] = {"privatize": {"bins": 4}, "train": {"iterations": 10, "num_components": 4}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("requests")


@pytest.fixture
def fitted(home: Path, monkeypatch: MonkeyPatch) -> Synthesizer:
    """A fit that all tests share, with its ledger."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LIKENESS_HOME", str(home / "ledger"))
    monkeypatch.setenv("LIKENESS_ANCHOR", str(home / "anchor"))
    if (home / "model").exists():
        return Synthesizer.load("~/model")
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": random.integers(0, 111, 300),
            "cost": random.random(300) * 1e6,
            "seen": np.datetime64("2020-01-01") + random.integers(0, 366, 300),
            "ward": np.resize(["x", "y", None], 300),
            "size": np.resize(["s", "m", "l"], 300),
        }
    )
    Ledger.create(locate())
    fitted = Synthesizer(schema=SCHEMA, population="people", settings=FAST, device="cpu").fit(table)
    fitted.save("~/model")
    assert (home / "model").is_dir() and not Path("~").exists()
    return fitted


def test_rows_and_seeds_are_whole_numbers(fitted: Synthesizer) -> None:
    for wrong in (1.5, 1.0, True, "3", -1, 0, np.float64(2), np.True_, None, [3]):
        if wrong is not None:
            with pytest.raises(ParamsError, match="n must be a whole number from 1, got"):
                fitted.sample(wrong)
            with pytest.raises(ParamsError, match="n must be a whole number from 1, got"):
                fitted.bundle("~/bundle", n=wrong)
        if wrong not in (-1, 0):
            with pytest.raises(ParamsError, match="seed must be a whole number, got"):
                fitted.sample(3, seed=wrong)
            with pytest.raises(ParamsError, match="seed must be a whole number, got"):
                fitted.bundle("~/bundle", n=3, seed=wrong)
    with pytest.raises(ParamsError, match=r"replicates must be a whole number from 2, got 1\.5"):
        fitted.sample(3, replicates=1.5)  # type: ignore[call-overload]
    again = fitted.sample(np.int64(3), seed=np.uint8(7))
    assert again.equals(fitted.sample(3, seed=7)) and len(fitted.sample(3, seed=-7)) == 3


@pytest.mark.parametrize("rows", [10**11, 10**12, 10**400])
def test_more_rows_than_fit_in_memory_are_refused(fitted: Synthesizer, home: Path, rows: int) -> None:
    words = "needs more memory than there is. Ask for fewer rows"
    with pytest.raises(LikenessError, match=words):
        fitted.sample(rows)
    with pytest.raises(LikenessError, match=words):
        fitted.bundle("~/bundle", n=rows)
    assert "ulimit" in str(storage_refusal(OSError(errno.EMFILE, "Too many open files")))
    assert words in str(storage_refusal(MemoryError("Unable to allocate 7 TiB")))
    assert not (home / "bundle").exists()


def test_a_full_disk_leaves_no_part_of_a_table(fitted: Synthesizer, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    def full(_: object, path: Path, **__: object) -> None:
        path.write_text("half a ro")
        raise OSError(errno.ENOSPC, "No space left on device")

    fitted.save(tmp_path / "saved")
    monkeypatch.setattr("pandas.DataFrame.to_parquet", full)
    with pytest.raises(OSError, match=rf"No space left on device: '{re.escape(str(tmp_path / 'x.parquet'))}'"):
        sample(tmp_path / "saved", tmp_path / "x.parquet", rows=3)
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


@pytest.mark.parametrize("folder", ["~/file/x", "~/a\0b", "x" * 5000, None, 5])
def test_a_folder_that_cannot_be_is_refused_in_words(fitted: Synthesizer, folder: Any, home: Path) -> None:
    (home / "file").touch()
    for action in (fitted.save, fitted.bundle, Synthesizer.load):
        with pytest.raises(LikenessError):
            action(folder)


BEYOND: list[tuple[str, Any, str, str]] = [
    *(("age", 130, "130", "0 to 110, in steps of 1"), ("age", -1, "-1", "0 to 110")),
    *(("age", 30.5, "30.5", "in steps of 1"), ("age", (111, 130), "111..130", "0 to 110")),
    *(("age", [30, 130], "> 200", "0 to 110"), ("age", {40, 130}, "< -3", "0 to 110")),
    ("age", range(109, 113), "111..", "0 to 110"),
    ("cost", 123456790, "123456790", "0 to 123456789, in steps of 0.01"),
    *(("cost", 1.234, "1.234", "in steps of 0.01"), ("seen", "2021-01-01", "2021-01-01", "2020-01-01 to 2020-12-31")),
    ("seen", pd.Timestamp("1999-01-01"), "..1999-12-31", "2020-01-01 to 2020-12-31"),
]


@pytest.mark.parametrize(("name", "value", "word", "bounds"), BEYOND)
def test_a_value_beyond_the_bounds_is_refused_with_the_bounds(
    name: str, value: Any, word: str, bounds: str, fitted: Synthesizer
) -> None:
    said = rf"sample\.where\.{name}: column '{name}' has no such value\. Its values are .*{bounds}"
    with pytest.raises(ParamsError, match=said):
        fitted.sample(3, where={name: value})
    for where in ({name: value}, {name: word}, pairs([f"{name}={word}"])):  # Python, params.yaml, the command line
        with pytest.raises(ParamsError, match=said):
            conditions(where, SCHEMA)
    if np.isscalar(value) and value not in (30.5, 1.234):
        with pytest.raises(DataError, match=f"where: column '{name}' has a value beyond {bounds.partition(',')[0]}"):
            fitted.sample(where=pd.DataFrame({name: [value]}))


def test_a_frame_never_takes_another_category(fitted: Synthesizer) -> None:
    with pytest.raises(DataError, match="where: column 'ward' has a value that is not among its public categories"):
        fitted.sample(where=pd.DataFrame({"ward": ["x", "elsewhere"]}))
    assert fitted.sample(where=pd.DataFrame({"ward": ["x", "rest"]}))["ward"].tolist() == ["x", "rest"]


SAME: list[tuple[str, list[Any]]] = [
    ("ward", [None, pd.NA, pd.NaT, np.nan, float("nan"), Decimal("NaN"), np.datetime64("NaT")]),
    ("ward", [["x", "y"], {"x", "y"}, frozenset("xy"), np.array(["x", "y"]), pd.Series(["y", "x"])]),
    ("ward", [["x", None], {"x", pd.NA}, pd.Series(["x", None]), np.array(["x", None], object)]),
    ("age", [(30, 40), "30..40", (np.int64(30), np.float32(40))]),
    ("age", [list(range(30, 41)), range(30, 41), set(range(30, 41)), np.arange(30, 41)]),
    ("age", [(None, 40), (pd.NA, 40), "..40", "<= 40", "0..40"]),
    ("age", [[3, 5], {5, 3}, range(3, 6, 2), pd.Index([3, 5]), np.array([3.0, 5.0])]),
    ("size", [("s", "m"), "s..m", ["s", "m"], {"m", "s"}]),
]


@pytest.mark.parametrize(("name", "values"), SAME)
def test_conditions_in_all_forms_of_python_mean_the_same(name: str, values: list[Any]) -> None:
    expected = conditions({name: values[0]}, SCHEMA)
    for value in values:
        assert conditions({name: value}, SCHEMA) == expected
        plain = condition_setting(value)
        assert conditions({name: plain}, SCHEMA) == expected and type(plain) in (type(None), str, list, int, float)


def test_a_bundle_holds_the_condition_that_was_asked(fitted: Synthesizer, home: Path) -> None:
    where = {"age": (np.int64(30), 60), "ward": {"x", pd.NA}, "seen": (pd.Timestamp("2020-03-01"), None)}
    fitted.bundle("~/asked", n=40, where=where)
    wrong = [check for check in verify(home / "asked") if not check.passed]
    assert not [check for check in wrong if check.passed is False], wrong
    drawn = pd.read_parquet(home / "asked" / "synthetic.parquet")
    assert drawn["age"].between(30, 60).all() and set(drawn["ward"].dropna()) <= {"x"}


def test_rules_that_leave_no_row_are_named(fitted: Synthesizer) -> None:
    town = {"kind": "categorical", "categories": ["x", "y"]}
    land = {"kind": "categorical", "categories": ["a", "b", "c"]}
    columns = {"ward": town, "land": land}
    ruled = schema_with(columns, "ward", rules=[{"determines": ["ward", "land"], "table": {"x": "a", "y": "b"}}])
    from likeness.pipeline.drawn_rows import DrawnRows
    from likeness.pipeline.where import allowed_values

    with pytest.raises(ParamsError, match="the rules of the schema leave no such row"):
        DrawnRows(fitted.generator_, ruled).draw_where(3, 0, allowed_values({"land": "c"}, ruled))


@pytest.mark.parametrize("word", ["age", "=3", '"age=3', 'a"b"c'])
def test_a_condition_of_another_form_is_refused(word: str) -> None:
    with pytest.raises(ParamsError, match="must have the form COLUMN=VALUE"):
        pairs([word])


def test_names_are_quoted_as_in_csv(fitted: Synthesizer, home: Path) -> None:
    assert pairs(['"a=b"=c=d', "e=f=g", '"say ""x"""=', 'h"=2']) == {
        "a=b": "c=d",
        "e": "f=g",
        'say "x"': None,
        'h"': "2",
    }
    for columns in ('"age', '"age"x', "age,,"):
        done = CliRunner().invoke(app, ["estimate", str(home / "model"), "--columns", columns])
        assert (done.exit_code == 0) is (columns == "age,,")
        assert done.exit_code == 0 or "quotes do not close" in str(done.exception)


LABELS: list[list[Any]] = [[0, 1, 2], [("a", 1), ("a", 2), ("b", 1)], [("a", 1), "x", 3], [1.5, 2.5, 3.5]]


@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_columns_come_back(labels: list[Any], fitted: Synthesizer, tmp_path: Path) -> None:
    columns = pd.Index(labels)
    table = pd.DataFrame(
        {0: np.resize(np.arange(10), 60), 1: np.resize(["a", "b"], 60), 2: np.resize(np.arange(9), 60)}
    )
    table = table.set_axis(columns, axis="columns")
    draft = likeness.draft(table)
    draft.source, draft.nullable, draft.label = "s", [labels[0]], labels[1]
    draft[labels[0]].bounds = draft[labels[2]].bounds = (0, 9)
    draft[labels[1]].categories = ["a", "b"]
    given = {"schema": draft, "settings": FAST, "device": "cpu"}
    model = Synthesizer(population=f"people of {labels}", **given).fit(table.assign(more=1))
    drawn = model.sample(3, where={labels[1]: "a"})
    assert drawn.columns.equals(columns) and (drawn[labels[1]] == "a").all()
    assert model.sample(where=table.head(2)).equals(table.head(2))
    assert model.feature_names_in_.tolist() == list(map(str, columns))
    assert model.estimate(str(labels[1]), by=str(labels[2])).index.names == [str(labels[1]), str(labels[2])]
    model.save(tmp_path / "saved")
    assert "more" not in (tmp_path / "saved" / "synthesizer.json").read_text(encoding="utf-8")
    assert Synthesizer.load(tmp_path / "saved").sample(3, where={labels[1]: "a"}).equals(drawn)
