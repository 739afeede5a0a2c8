"""The whole round of every kind of column, and of a kind of a third party: from a schema to the report page.

A kind that is registered has a row in EXAMPLES. The rest follows from what the kind says of itself.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml

import likeness
from likeness import Schema, Synthesizer
from likeness.data.encoding.dtypes import to_dtypes, typed_again
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.frames import pandas_frame
from likeness.data.schema.kinds import KINDS, Kind, register
from likeness.data.schema.kinds.kind import ColumnFacts
from likeness.data.source.files import read_frame, read_source
from likeness.data.source.row_texts import frame_cells
from likeness.evaluation.details import details
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods.marginals.columns import first_grid, step_of
from likeness.pipeline.private_rows import encoded_chunks
from likeness.pipeline.where import allowed_values
from likeness.report.pages import render
from likeness.report.released_numbers import table_section
from likeness.verify.checks import checks_of

CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


class Clock(Kind):
    """Minutes since midnight, as ``17:45``: all that a third party writes."""

    name = "clock"
    example = "17:45"
    is_integral = True

    def number(self, text: str, column: ColumnFacts | None = None, last: bool = False) -> float | None:
        match = CLOCK.fullmatch(text)
        return None if match is None else 60.0 * int(match[1]) + int(match[2])

    def text(self, value: float, layout: str | None = None) -> str:
        return f"{int(value) // 60:02}:{int(value) % 60:02}"


# Each with its keys in a schema, a person's answer, cells as a source has them, and these as they come back.
EXAMPLES: dict[str, tuple[dict[str, Any], str, list[str], list[str]]] = {
    "numeric": ({"lower": 0, "upper": 9, "decimals": 1}, "0..9 decimals 1", ["0.5", "9", "3.1"], ["0.5", "9", "3.1"]),
    "integer": ({"lower": 0, "upper": 9, "spikes": [3]}, "0..9 spikes 3", ["0", "9", "+3"], ["0", "9", "3"]),
    "boolean": ({"categories": ["no", "yes"]}, "no/yes", ["no", "YES", "f"], ["no", "yes", "no"]),
    "categorical": ({"categories": ["a", "b"], "other": "b"}, "a, b ...", ["a", "b", "x"], ["a", "b", "b"]),
    "date": (
        {"lower": "1994-03-01", "upper": "2024-12-31", "format": "%d.%m.%Y"},
        "1994-03-01..2024-12-31 format %d.%m.%Y",
        ["01.03.1994", "2024-12-31", "05.06.2001"],
        ["01.03.1994", "31.12.2024", "05.06.2001"],
    ),
    "datetime": (
        {"lower": "2024-01-01 08:00", "upper": "2024-12-31"},
        "2024-01-01 08:00..2024-12-31",
        ["2024-01-01 08:00", "2024-06-05T17:45:01.5", "2024-12-31 23:59:59"],
        ["2024-01-01 08:00:00", "2024-06-05 17:45:01", "2024-12-31 23:59:59"],
    ),
    "time": (
        {"lower": "08:00", "upper": "17:30"},
        "08:00..17:30",
        ["08:00", "17:30:00", "09:15:30"],
        ["08:00:00", "17:30:00", "09:15:30"],
    ),
    "clock": ({"lower": "08:00", "upper": "17:30"}, "08:00..17:30", *([["08:00", "17:30", "09:15"]] * 2)),
}  # fmt: skip
NAMES = list(EXAMPLES)
DTYPES = dict.fromkeys(NAMES, "str")


@pytest.fixture(scope="module", autouse=True)
def clock() -> Iterator[None]:
    register(Clock)
    yield
    del KINDS["clock"]


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    """All kinds in one table, from YAML."""
    columns = {name: {"kind": name, **EXAMPLES[name][0], "nullable": True} for name in NAMES}
    text = yaml.safe_dump({"name": "t", "source": "made up", "task": "none", "columns": columns}, sort_keys=False)
    (tmp_path / "t.yaml").write_text(text)
    return Schema.load(tmp_path / "t.yaml")


def cells(place: int) -> pd.DataFrame:
    """Cells as texts, and one that is missing: as a source has them (2), or as they come back (3)."""
    return pd.DataFrame({name: pd.Series([*EXAMPLES[name][place], None], dtype="str") for name in NAMES})


DTYPES_OF_A_FRAME = {"numeric": "float32", "integer": "int16", "categorical": "category", "datetime": "datetime64[us]"}
ROWS = cells(3).iloc[np.random.default_rng(0).integers(0, 3, 200)].astype(DTYPES_OF_A_FRAME)


def test_each_kind_has_an_example_and_a_schema_reads_back(schema: Schema) -> None:
    assert set(EXAMPLES) == set(KINDS) and Schema.from_dict(schema.to_dict(), "again") == schema
    for column in schema.columns:
        words = column.type.sdv(column)
        first = next(kind.name for kind in KINDS.values() if kind.from_sdv(words) is not None)
        assert first == {"clock": "categorical"}.get(column.kind, column.kind)


def test_answers_about_a_frame_are_the_schema(schema: Schema) -> None:
    draft = likeness.draft(cells(2))
    draft.source, draft.nullable = "made up", "all"
    for name in NAMES:
        draft.answer(name, f"{name}: {EXAMPLES[name][1]}")
    assert tuple(replace(column, dtype=None) for column in draft.complete().columns) == schema.columns
    assert all(kind.is_answer(EXAMPLES[name][1]) is not kind.is_categorical for name, kind in KINDS.items())


@pytest.mark.long
def test_every_source_gives_the_same_table_and_its_texts(schema: Schema, tmp_path: Path) -> None:
    given, typed = cells(2).assign(row=range(4)), read_frame(cells(2), schema)  # no row is empty
    for name, write in (("csv", given.to_csv), ("parquet", given.to_parquet), ("xlsx", given.to_excel)):
        write(tmp_path / f"t.{name}", index=False)  # type: ignore[operator]
        pd.testing.assert_frame_equal(read_source(tmp_path / f"t.{name}", schema)[0], typed)
    typed.to_parquet(tmp_path / "typed.parquet")
    pd.testing.assert_frame_equal(read_source(tmp_path / "typed.parquet", schema)[0], typed)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "typed.parquet"), typed)
    pd.testing.assert_frame_equal(to_dtypes(typed, schema, DTYPES), cells(3))
    said = replace(schema, columns=tuple(replace(column, dtype="str") for column in schema.columns))
    pd.testing.assert_frame_equal(typed_again(cells(3), said), typed)


def test_codes_bins_and_exact_texts(schema: Schema) -> None:
    typed, encoder = read_frame(cells(2), schema), Encoder(schema)
    codes = encoder.encode(typed)
    pd.testing.assert_frame_equal(encoder.decode_codes(codes), typed)
    pd.testing.assert_frame_equal(encoder.decode(encoder.expand(codes), np.zeros(4, np.int64)), typed)
    for column in schema.columns:
        exact = frame_cells(pa.array(typed[column.name], from_pandas=True), column.type.exact_texts)
        assert len(set(exact.to_pylist())) == typed[column.name].nunique(dropna=False)
        if not column.is_categorical:
            assert 2 <= first_grid(column, 64, step_of(column)).size <= 2000
        if not (column.is_categorical or column.type.numeric_source):
            numbers = np.linspace(*column.bounds, 8)  # with fractions
            drawn = np.round(numbers) if column.is_integral else numbers
            assert [column.type.number(column.type.text(number)) for number in drawn] == drawn.tolist()


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    """One fit of all kinds, and its bundle."""
    Ledger.create(locate())
    columns = {name: {"kind": name, **EXAMPLES[name][0]} for name in NAMES}
    settings = {"privatize": {"bins": 4}, "train": {"iterations": 20, "num_components": 5}}
    content = {"name": "t", "source": "made up", "task": "none", "columns": columns}
    given = {"schema": content, "population": "people of all kinds", "settings": settings, "device": "cpu"}
    made = Synthesizer(**given, epsilon=50.0, cap=(1000.0, 1e-3)).fit(ROWS)
    made.bundle(tmp_path_factory.getbasetemp() / "kinds")
    return made


@pytest.mark.long
def test_a_sample_has_texts_of_the_kind_and_survives_a_folder(fitted: Synthesizer, tmp_path: Path) -> None:
    drawn, schema = fitted.sample(60), fitted.schema_
    assert drawn.dtypes.equals(ROWS.dtypes) and pd.concat([drawn, ROWS]).dtypes.equals(ROWS.dtypes)
    typed = read_frame(drawn, schema, exact=True)
    pd.testing.assert_frame_equal(to_dtypes(typed, schema, pandas_frame(ROWS)[1].dtypes), drawn)
    fitted.save(tmp_path / "saved")
    pd.testing.assert_frame_equal(Synthesizer.load(tmp_path / "saved").sample(60), drawn)


@pytest.mark.long
def test_estimates_are_texts_that_conditions_read(fitted: Synthesizer) -> None:
    for column in fitted.schema_.columns:
        for label in fitted.estimate([column.name]).index:
            assert not allowed_values({column.name: label}, fitted.schema_)[column.name].is_nothing
        if not column.is_categorical:
            median = fitted.estimate([column.name], statistic="quantile")["estimate"].iloc[0]
            assert not isinstance(column.type.parse_bound("lower", median), str)
            assert isinstance(median, str) is not column.type.numeric_source


@pytest.mark.long
def test_a_bundle_is_verified_and_the_pages_show_texts(fitted: Synthesizer, tmp_path: Path) -> None:
    checks = {check.name: check for check in checks_of(tmp_path.parent / "kinds")}
    assert not [check for check in checks.values() if check.passed is False] and checks["table"].passed
    schema, rows = fitted.schema_, read_frame(fitted.sample(60), fitted.schema_)
    section = table_section(schema, fitted.releases_.values(), None, rows, encoded_chunks(rows, schema))
    page = render(fitted.privacy, "", {}, section)
    for column in section["numbers"]["columns"]:
        assert column["bars"][0]["label"].partition("..")[0] in page
        for _, estimate, *_ in column["numbers"]:
            assert schema.column(column["name"]).type.number(str(estimate).strip("()")) is not None
    assert details({"synthetic": rows, "real": rows}, rows, schema, 4)
