"""``likeness.draft``: names and kinds by dtype, no value of the frame, and answers that are checked at once."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import likeness
from likeness import Schema
from likeness.core.errors import DataError, SchemaError
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.yaml import read_mapping
from likeness.preflight.faults import schema_faults

# Values that stand for private ones: none may be in a draft.
FRAME = pd.DataFrame(
    {
        "age": [8675309, 42],
        "cost": [86.75309, None],
        "ward": ["Xq7Secret", "Zork"],
        "code": pd.Categorical(["Blau", "Rot"]),
        "smoker": [True, False],
        "seen": pd.to_datetime(["1867-05-30", "1901-11-29"]),
        "object": pd.Series(["Xq7Secret", 1], dtype="object"),
        "month": pd.period_range("1867-05", periods=2, freq="M"),
    }
)
KINDS = ["integer", "numeric", "categorical", "categorical", "boolean", "datetime", "categorical", "drop"]
ANSWERS: dict[str, tuple[str, Any]] = {
    "age": ("bounds", (0, 110)),
    "cost": ("bounds", np.array([0.0, 99.5])),
    "ward": ("categories", np.array(["surgery", "medicine"], dtype=object)),
    "code": ("categories", range(3)),
    "seen": ("bounds", (pd.Timestamp("2020-01-01"), "2024-12-31")),
    "object": ("categories", "private"),
    "month": ("reason", "not needed"),
}


def answered() -> SchemaDraft:
    draft = likeness.draft(FRAME, "visits")
    draft.source, draft.nullable, draft.label = "codebook", ["cost"], "smoker"
    for name, (key, value) in ANSWERS.items():
        setattr(draft[name], key, value)
    return draft


def test_a_draft_has_names_and_kinds_and_no_value() -> None:
    draft = likeness.draft(FRAME)
    assert [draft[name].kind for name in draft] == KINDS and list(draft) == list(FRAME.columns)
    other = FRAME.map(lambda _: None).astype({"age": "float", "smoker": "object"}).iloc[:0]
    assert repr(likeness.draft(FRAME)) == repr(likeness.draft(FRAME.iloc[:0])) != repr(likeness.draft(other))
    assert not [text for text in ("8675309", "86.7", "Xq7", "Zork", "Blau", "1867") if text in repr(draft)]


def test_a_mistyped_key_is_no_answer() -> None:
    draft = likeness.draft(FRAME)
    with pytest.raises(SchemaError, match=r"'lable' is not a key of a schema\. Did you mean label\?"):
        draft.lable = "smoker"  # type: ignore[attr-defined]


def test_the_lines_of_a_terminal_are_answers_in_python_too() -> None:
    draft = likeness.draft(FRAME, "visits")
    draft.source, draft.nullable, draft.label = "codebook", ["cost"], "smoker"
    lines = {"age": "0..110", "cost": "0..99.5", "ward": "surgery, medicine", "code": "0, 1, 2", "object": "private"}
    for name, line in (lines | {"seen": "2020-01-01..2024-12-31", "month": "not needed"}).items():
        draft.answer(name, line)
    assert draft.complete() == answered().complete()
    with pytest.raises(SchemaError, match="bounds 110 to 0"):
        draft.answer("age", "110..0")
    assert draft["age"].bounds == (0, 110) and draft["cost"].nullable


def test_a_dtype_does_not_answer_whether_values_are_missing() -> None:
    """pandas makes floats of whole numbers of which one is missing, so the dtype without is a fact about the rows."""
    draft = likeness.draft(pd.DataFrame({"age": [1, 2], "well": [True, False]}))
    assert "schema.nullable" in draft.missing()
    assert [spec["nullable"] for spec in draft.to_dict()["columns"].values()] == [None, None]


def test_what_is_missing_is_shown_as_python_and_told_at_once() -> None:
    draft = likeness.draft(FRAME)
    open_lines = [line.partition(" = ")[0] for line in str(draft).split("\n") if " = ?" in line]
    assert open_lines == ["schema.source", "schema.nullable", *(f'schema["{name}"].kind' for name in ANSWERS)]
    with pytest.raises(SchemaError, match="9 open questions") as error:
        draft.complete()
    for name, (key, _) in ANSWERS.items():
        assert f'schema["{name}"].{key} = ?' in str(error.value)


def test_a_completed_draft_is_a_schema_and_its_print_makes_it_again(tmp_path: Path) -> None:
    draft = answered()
    schema = draft.complete()
    assert (schema.task, schema.label, schema.column("cost").nullable) == ("classification", "smoker", True)
    assert schema.column("age").bounds == (0, 110) and schema.column("code").categories == ("0", "1", "2")
    draft.to_yaml(tmp_path / "visits.yaml")
    assert Schema.load(tmp_path / "visits.yaml") == schema
    again = likeness.draft(FRAME)
    assert str(again).startswith("# PUBLIC: answer each ?") and "?" not in str(draft)
    exec(str(draft), {"schema": again})
    assert again.complete() == schema == copy.deepcopy(draft).complete()


def test_open_questions_of_a_file_are_those_of_the_draft(tmp_path: Path) -> None:
    draft = likeness.draft(FRAME[["age", "cost"]])
    draft.to_yaml(tmp_path / "table.yaml")
    faults = schema_faults(read_mapping(tmp_path / "table.yaml"))
    assert len(faults) == 3 and "source is an open question" in faults[0]
    assert "'cost': lower, upper and nullable are open questions" in faults[2]


@pytest.mark.parametrize(
    ("say", "words"),
    [
        (lambda schema: setattr(schema["age"], "bounds", (110, 0)), "bounds 110 to 0"),
        (lambda schema: setattr(schema["age"], "bounds", 7), "must be a pair"),
        (lambda schema: setattr(schema["age"], "bound", (0, 1)), "bound is not a key of an integer column"),
        (lambda schema: setattr(schema["age"], "kind", "whole"), "has kind 'whole'. Kinds: "),
        (lambda schema: setattr(schema["ward"], "categories", {"a", "b"}), "must be a list"),
        (lambda schema: setattr(schema["ward"], "categories", ["a", "a"]), "lists a category twice"),
        (lambda schema: setattr(schema, "label", "nobody"), "'nobody' is not a column. Columns: age"),
        (lambda schema: setattr(schema, "label", "month"), "has kind drop"),
        (lambda schema: setattr(schema, "nullable", ["nobody"]), "'nobody' is not a column"),
        (lambda schema: schema["nobody"], "'nobody' is not a column"),
    ],
)
def test_a_wrong_answer_is_refused_at_once_and_changes_nothing(say: Callable[[SchemaDraft], Any], words: str) -> None:
    draft = likeness.draft(FRAME)
    with pytest.raises(SchemaError, match=words):
        say(draft)
    assert repr(draft) == repr(likeness.draft(FRAME))


def test_another_kind_drops_what_it_has_no_key_for_and_a_person_is_never_released() -> None:
    draft = answered()
    draft["age"].kind = "categorical"
    assert draft.missing().keys() == {'schema["age"].categories'}
    draft["age"].categories = ["young", "old"]
    draft.nullable = "all"
    draft.label, draft["ward"].categories = "code", ["a"]
    assert draft.complete().column("age").nullable and not draft.complete().column("code").nullable
    draft.person = "ward"
    assert "ward" not in draft.complete().names and draft["ward"].kind == "drop"
    with pytest.raises(SchemaError, match="never released"):
        draft.person = "code"


def test_a_row_is_not_taken_for_names() -> None:
    with pytest.raises(DataError, match="does not look like a header") as error:
        likeness.draft(pd.DataFrame([[1, 2]], columns=["39", "Xq7Secret"]))
    assert "39" not in str(error.value) and "Xq7" not in str(error.value)
    assert list(likeness.draft(pd.DataFrame([[1, 2]]))) == ["0", "1"]  # pandas' own names


def test_a_draft_takes_rules() -> None:
    draft = answered()
    assert "rules" not in draft.to_dict() and "schema.rules" not in str(draft)
    draft.rules, draft.derived = [{"never": {"ward": "surgery", "code": 0}}], {"older": "cost - age"}
    schema = draft.complete()
    assert len(schema.rules) == 2 and "older" in schema.model_schema.names
    assert "schema.rules = " in str(draft) and "schema.derived = " in str(draft)
    draft.rules = [{"never": {"ward": "Zork", "code": 0}}]
    with pytest.raises(SchemaError, match="rule 1"):
        draft.complete()
