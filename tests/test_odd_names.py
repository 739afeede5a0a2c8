"""Odd names of columns, in every role: each works all the way, or the schema refuses it before anything is spent."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from toys import schema_with
from typer.testing import CliRunner

from likeness import Ledger, Synthesizer
from likeness.cli.app import app
from likeness.core.errors import SchemaError
from likeness.data.schema.answers import parse_columns
from likeness.data.schema.column import Column
from likeness.data.schema.constrained_tables import forward_transform, inverse_transform
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.schema import entries
from likeness.data.schema.yaml import _CoreLoader, schema_text
from likeness.data.source.files import read_frame
from likeness.ledger.home import locate
from likeness.pipeline.datasets import model_of, read_schema

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
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("classes")
        patch.setenv("LIKENESS_HOME", str(folder / "ledger"))
        patch.setenv("LIKENESS_ANCHOR", str(folder / "anchor"))
        Ledger.create(locate())
        columns = [{"name": "self", **AB}, {"name": "cls", **AB}, {"name": "index", **DIGIT}]
        given = {"schema": schema_with(columns, "self"), "settings": FASTEST, "device": "cpu", "population": "people"}
        table = table_of(columns, 200).assign(person=np.arange(200))
        return Synthesizer(unit_column="person", max_rows=2, **given).fit(table)._fitted


@pytest.mark.parametrize("name", NAMES)
def test_every_name_works_as_a_label_and_in_rules(name: str, classes: Any, tmp_path: Path) -> None:
    columns = [{"name": name, **AB}, {"name": "other", **AB}, {"name": "third", **DIGIT}]
    schema = schema_with(columns, name)
    labeled = replace(classes, written=model_of(schema))
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
