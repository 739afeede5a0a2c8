"""SDV's metadata as a draft, and a schema as SDV's metadata."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import likeness
from likeness import Schema
from likeness.core.errors import SchemaError

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
