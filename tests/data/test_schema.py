"""The public schema: what it reads, what it refuses and in which words; SDV's metadata as a draft, and back."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from table_strategies import schemas

import likeness
from likeness.core.errors import SchemaError
from likeness.core.hashing import canonical_json
from likeness.data.schema.schema import Schema

AGE = {"kind": "integer", "lower": 0, "upper": 90}
SICK = {"kind": "categorical", "categories": ["no", "yes"]}


def schema_of(**changes: Any) -> dict[str, Any]:
    """A valid mapping with some keys changed."""
    base = {"name": "t", "source": "made up", "task": "classification", "label": "sick"}
    return {**base, "columns": {"age": AGE, "sick": SICK}, **changes}


def with_column(**spec: Any) -> dict[str, Any]:
    """A valid mapping with one more column."""
    return schema_of(columns={"age": AGE, "sick": SICK, "x": spec})


def test_a_bound_of_zero_is_a_bound() -> None:
    schema = Schema.from_dict(
        schema_of(columns={"sick": SICK, "debt": {"kind": "numeric", "lower": -9, "upper": 0}}), "t"
    )
    assert schema.column("debt").bounds == (-9.0, 0.0)
    assert Schema.from_dict(schema_of(), "t").column("age").bounds == (0.0, 90.0)


def test_features_label_and_classes_by_task() -> None:
    classification = Schema.from_dict(schema_of(), "t")
    assert [column.name for column in classification.feature_columns] == ["age"]
    assert classification.classes == ("no", "yes")
    regression = Schema.from_dict(schema_of(task="regression", label="age"), "t")
    assert [column.name for column in regression.feature_columns] == ["age", "sick"]
    assert regression.label_column is not None and regression.label_column.name == "age"
    assert regression.classes == ("",)
    neither = Schema.from_dict(schema_of(task="none", label=None), "t")
    assert len(neither.feature_columns) == 2 and neither.label_column is None and neither.classes == ("",)


@given(schemas())
def test_json_form_reads_back_even_with_sorted_keys(schema: Schema) -> None:
    assert Schema.from_dict(json.loads(canonical_json(schema.to_dict())), "t") == schema


def test_yaml_scalars_keep_their_text(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(
        "name: t\nsource: made up\ntask: none\ncolumns:\n"
        "  c: {kind: categorical, categories: [No, 007, 7, 1994-03-01, on, '1.5'], nullable: true}\n"
        "  n: {kind: numeric, lower: -1e3, upper: .5}\n"
    )
    schema = Schema.load(path)
    assert schema.column("c").categories == ("No", "007", "7", "1994-03-01", "on", "1.5")
    assert schema.column("n").bounds == (-1000.0, 0.5)


def test_missing_bounds_are_refused_in_the_agreed_words(tmp_path: Path) -> None:
    path = tmp_path / "adult.yaml"
    path.write_text(yaml.safe_dump(schema_of(columns={"age": {"kind": "integer", "upper": 90}, "sick": SICK})))
    with pytest.raises(SchemaError) as caught:
        Schema.load(path)
    assert str(caught.value) == (
        "adult.yaml: column 'age' has no bounds. Bounds must be public: give lower and upper from the codebook, "
        "never from the rows."
    )


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ([], "must hold a mapping"),
        (schema_of(colour=1), "colour is not a key of a schema. Keys: name, source"),
        (schema_of(source=" "), "source is missing"),
        (schema_of(task="guess"), "task 'guess' is not a task. Tasks: classification, regression, none"),
        (schema_of(label=None), "task classification has no label"),
        (schema_of(label="height"), "label 'height' is not a column. Columns: age, sick"),
        (schema_of(label="age"), "label 'age' is integer, but task classification needs a categorical"),
        (schema_of(task="regression"), "label 'sick' is categorical, but task regression needs a numeric or integer"),
        (schema_of(task="none"), "task none has no label"),
        (schema_of(columns={"age": AGE, "sick": {**SICK, "nullable": True}}), "label 'sick' is nullable"),
        (schema_of(columns={"age": AGE, "sick": {**SICK, "categories": ["no"]}}), "label 'sick' has one category"),
        (schema_of(columns={"sick": SICK}), "has no feature"),
        (schema_of(columns=None), "columns is missing"),
        (schema_of(columns=[{"name": "sick", **SICK}, {"name": "sick", **SICK}]), "column 'sick' is listed twice"),
        (schema_of(columns={"sick": SICK, "__split__": AGE}), "column '__split__' cannot have that name"),
        (schema_of(columns={"sick": SICK, "x": None}), "column 'x' has no kind. Kinds: "),
        (with_column(kind="text"), "column 'x' has kind 'text'. Kinds: "),
        (with_column(kind="numeric", lower=0, upper=1, scale=2), "column 'x': scale is not a key of a numeric column"),
        (
            with_column(kind="categorical", categories=["a"], lower=0),
            "column 'x': lower is not a key of a categorical column",
        ),
        (with_column(kind="numeric", lower="0", upper=1), "column 'x': lower must be a number"),
        (with_column(kind="numeric", lower=1, upper=1), "column 'x' has bounds 1 to 1"),
        (with_column(kind="numeric", lower=0, upper=float("inf")), "They must be finite, lower below upper"),
        (with_column(kind="numeric", lower=-1e308, upper=1e308), "They must be finite, lower below upper"),
        (with_column(kind="integer", lower=0.5, upper=2), "column 'x' is integer, so its bounds must be whole"),
        (with_column(kind="integer", lower=0, upper=10**13), "column 'x' is integer, so its bounds must be whole"),
        (with_column(kind="numeric", lower=0, upper=1, transform="sqrt"), "has transform 'sqrt'. Transforms: none"),
        (with_column(kind="numeric", lower=0, upper=1, nullable="yes"), "column 'x': nullable must be true or false"),
        (with_column(kind="categorical"), "column 'x' has no categories"),
        (with_column(kind="categorical", categories=["a", "a"]), "column 'x' lists a category twice"),
        (with_column(kind="categorical", categories=["a", ""]), "column 'x' has a category that is empty"),
        (with_column(kind="categorical", categories=["a", True]), "Put other values in quotes"),
        (with_column(kind="categorical", categories="ab"), "column 'x': categories must be a list"),
        (with_column(kind="categorical", categories=["a"], other="z"), "column 'x' has other 'z', which is not among"),
        (with_column(kind="categorical", categories=["a"], missing_values=["a"]), "same text in categories and in"),
    ],
)
def test_what_is_refused_names_file_column_and_rule(mapping: Any, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_dict(mapping, "tiny.yaml")
    assert str(caught.value).startswith("tiny.yaml: ") and words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((b"name: [", "is not valid YAML"), (b"name: t\nname: u\n", "'name' is given twice")),
        (b"columns: {age: {kind: integer}, age: {kind: integer}}", "'age' is given twice"),
        *((b"name: \xff", "is not UTF-8 text"), (b"name: !!python/object/apply:os.getcwd []", "is not valid YAML")),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, text: bytes, words: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_bytes(text)
    with pytest.raises(SchemaError, match=words):
        Schema.load(path)
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.load(tmp_path / "absent.yaml")


def test_a_file_of_a_stranger_has_no_aliases(tmp_path: Path) -> None:
    """A few hundred bytes of them can stand for more than memory holds. Whoever asks for them has them."""
    path = tmp_path / "schema.yaml"
    text = "name: &n toy\nsource: *n\ntask: none\ncolumns:\n  x: {kind: numeric, lower: 0, upper: 1}\n"
    path.write_text(text)
    with pytest.raises(SchemaError, match="repeats another value"):
        Schema.load(path, aliases=False)
    assert Schema.load(path).source == "toy"


COLUMNS: dict[str, Any] = {
    "id": {"sdtype": "id", "regex_format": "[0-9]{4}"},
    "key": {"sdtype": "categorical"},
    "mail": {"sdtype": "email", "pii": True},
    "age": {"sdtype": "numerical", "computer_representation": "Int64"},
    "cost": {"sdtype": "numerical"},
    "ward": {"sdtype": "categorical"},
    "level": {"sdtype": "categorical", "order": ["low", "high"]},
    "well": {"sdtype": "boolean"},
    "born": {"sdtype": "datetime", "datetime_format": "%d.%m.%Y"},
    "seen": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M:%S"},
}
SINGLE = {"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "primary_key": "key", "columns": COLUMNS}
KINDS = ["drop", "drop", "drop", "integer", "numeric", "categorical", "categorical", "boolean", "date", "datetime"]


def completed() -> Schema:
    draft = likeness.from_sdv(SINGLE)
    draft.source, draft.nullable, draft.label = "codebook", "none", "well"
    draft["age"].bounds, draft["cost"].bounds, draft["ward"].categories = (0, 110), (0, 5), ["a", "b"]
    for name in ("born", "seen"):
        draft[name].bounds = ("1900-01-01", "2024-12-31")
    return draft.complete()


def test_metadata_gives_a_draft_without_bounds(tmp_path: Path) -> None:
    draft = likeness.from_sdv(SINGLE)
    assert [draft[name].kind for name in draft] == KINDS and list(draft) == list(COLUMNS)
    assert (
        draft["level"].categories == ["low", "high"] and draft["level"].ordered and draft["born"].format == "%d.%m.%Y"
    )
    assert draft["seen"].format is None and not [name for name in ("id", "key", "mail") if draft[name].missing()]
    assert 'schema["age"].bounds' in draft.missing() and 'schema["ward"].categories' in draft.missing()
    (tmp_path / "metadata.json").write_text(json.dumps({"tables": {"one": SINGLE, "two": SINGLE}}))
    assert repr(likeness.from_sdv(tmp_path / "metadata.json", "two")) == repr(draft).replace('"table"', '"two"')
    with pytest.raises(SchemaError, match=r"several tables\. Give table, one of: one, two"):
        likeness.from_sdv(str(tmp_path / "metadata.json"))


def test_a_schema_is_the_metadata_of_its_synthetic_table() -> None:
    metadata = likeness.to_sdv(completed())
    columns = metadata["tables"]["table"]["columns"]
    cost = {"sdtype": "numerical", "computer_representation": "Float"}
    assert columns == {**{name: COLUMNS[name] for name in list(COLUMNS)[3:]}, "cost": cost}
    assert json.loads(json.dumps(metadata)) == metadata
    again = likeness.from_sdv(metadata)
    assert [again[name].kind for name in again] == [column.kind for column in completed().columns]


def test_bounds_that_sdv_takes_from_rows_are_not_read() -> None:
    """Of SDV 2, which writes what it sees in the rows."""
    columns = {
        "age": {"sdtype": "numerical", "range_min": 17, "range_max": 90, "decimal_places": 0},
        "level": {"sdtype": "ordinal", "range_values": ["low", "Xq7Secret"]},
    }
    draft = likeness.from_sdv({"METADATA_SPEC_VERSION": "V2", "tables": {"t": {"columns": columns}}})
    assert [draft[name].kind for name in draft] == ["numeric", "categorical"] and draft["level"].ordered
    assert [draft["age"].bounds, draft["level"].categories] == [None, None]


# https://docs.sdv.dev/sdv/concepts/metadata/metadata-json: the keys of a column in version V1.
KEYS = {
    "numerical": {"computer_representation"},
    "datetime": {"datetime_format"},
    "categorical": {"order", "order_by"},
    "boolean": set[str](),
}


def test_metadata_keeps_the_published_rules() -> None:
    metadata = likeness.to_sdv(completed())
    assert metadata["METADATA_SPEC_VERSION"] == "V1" and metadata["relationships"] == []
    columns = [spec for table in metadata["tables"].values() for spec in table["columns"].values()]
    assert {spec["sdtype"] for spec in columns} == set(KEYS)
    for spec in columns:
        assert set(spec) - {"sdtype"} <= KEYS[spec["sdtype"]]
        assert spec.get("computer_representation", "Float") in ("Float", "Int64")
        assert spec.get("order") != [] and "%" not in datetime.now().strftime(spec.get("datetime_format", ""))


@pytest.mark.parametrize(
    "wrong", [{}, [], {"columns": {"a": "text"}}, {"tables": {"a": 1}}, "absent.json", "here.json"]
)
def test_what_is_no_metadata_is_refused(wrong: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here.json").write_text("no: json")
    with pytest.raises(SchemaError, match=r"no metadata of SDV|cannot be read|is not JSON"):
        likeness.from_sdv(wrong)
    with pytest.raises(SchemaError, match=r"has no table 'other'\. Tables: table"):
        likeness.from_sdv(SINGLE, "other")
