"""Bad schemas, settings and tables: a plain error by file, key and rule, or a right result; never a private value.

Mutations of what is valid reach deeper than noise does. Private cells hold markers, and no message may hold one.
"""

import copy
import gzip
import io
import logging
import operator
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likeness.config.explain import defaults
from likeness.config.load import load_params
from likeness.core.errors import LikenessError, ParamsError, SchemaError
from likeness.data.encoding.bins import grid_of
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import Layout, encoding_digest
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_source
from likeness.data.source.split import split_by_column
from likeness.methods import METHODS
from likeness.pipeline.project import Project

ROOT = Path(__file__).parents[2]
EXAMPLES = 60 * int(os.environ.get("LIKENESS_FUZZ", "1"))
FUZZ = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
)
TEXT, NUMBER = "Xq7Secret", 918273645
MARKERS = (TEXT, str(NUMBER), "9.18273645", "918,273,645")

SCHEMA: dict[str, Any] = {
    "name": "fuzz",
    "source": "made up",
    "task": "classification",
    "label": "y",
    "columns": {
        "n": {"kind": "numeric", "lower": 0, "upper": 1_000_000_000, "transform": "log1p", "spikes": [0]},
        "i": {"kind": "integer", "lower": 0, "upper": 99, "nullable": True, "missing_values": ["?"]},
        "c": {"kind": "categorical", "categories": ["a", "b", "Other"], "other": "Other"},
        "s": {"kind": "categorical", "categories": [TEXT, "b"]},
        "o": {"kind": "categorical", "categories": ["low", "high"], "ordered": True, "nullable": True},
        "y": {"kind": "categorical", "categories": ["no", "yes"]},
    },
}
COLUMNS = ["n", "i", "c", "s", "o", "y", "split"]
ROWS = [
    [str(NUMBER), "42", TEXT, TEXT, "low", "no", "train"],
    ["0", "", "b", "b", "", "yes", "test"],
    [f"{NUMBER}.5", "?", "Other", TEXT, "high", "yes", "train"],
]

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**6, -(10**18), 2**63, 10**400, 0.0, -0.0, 1e-300, 1e300, float("nan"), float("inf"), -1e999]),
    st.floats(),
    st.sampled_from(["", " ", "no", "a,b", "1e5", "~", "\u202e", "é", "ﬁ", "\x00", "a\nb", "train", "n", "y", "0x1"]),
    st.text(max_size=6),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=3), st.floats()), max_size=3),
    st.dictionaries(st.text(max_size=3) | st.integers() | st.none(), st.integers() | st.text(max_size=3), max_size=2),
    st.dates(),
    st.binary(max_size=4),
)


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into a nest of mappings and lists."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [here] * bool(here) + [path for key, item in inner for path in places(item, (*here, key))]


def at(value: Any, path: Sequence[Any]) -> Any:
    """What lies at the end of a path."""
    return reduce(operator.getitem, path, value)


@st.composite
def mutated(draw: st.DrawFn, valid: dict[str, Any]) -> dict[str, Any]:
    """A valid mapping with one to three places replaced, removed, renamed or doubled."""
    result = copy.deepcopy(valid)
    for _ in range(draw(st.integers(1, 3))):
        found = places(result)
        if not found:
            break
        *outer, last = draw(st.sampled_from(found))
        place = at(result, outer)
        action = draw(st.sampled_from(["replace", "replace", "replace", "remove", "rename", "add"]))
        if action == "replace":
            place[last] = draw(ODD)
        elif action == "remove":
            del place[last]
        elif isinstance(place, dict):
            new = draw(st.text(max_size=4) | st.integers() | st.booleans() | st.none())
            place[new] = place.pop(last) if action == "rename" else draw(ODD)
        else:
            place.append(draw(ODD))
    return result


@contextmanager
def no_private_value_is_told(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever is raised, warned or logged inside holds no marker; only errors raised on purpose may leave."""
    caplog.clear()
    told: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.DEBUG):
            warnings.simplefilter("always")
            try:
                yield
            except LikenessError as error:
                message = str(error)
                assert all(len(line) > 20 for line in message.strip().splitlines()), repr(message)  # a fault a line
                told.append(message)
        told += [str(one.message) for one in warned] + [record.getMessage() for record in caplog.records]
    finally:
        assert not [text for text in told for marker in MARKERS if marker in text], told


@pytest.mark.long
@FUZZ
@given(content=mutated(SCHEMA))
def test_a_bad_schema_is_named_or_usable(tmp_path: Path, content: dict[str, Any]) -> None:
    path = tmp_path / "fuzz.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    try:
        schema = Schema.load(path)
        # What loads can be used.
        assert len(encoding_digest(schema)) == 64 and Layout.from_schema(schema).width >= 1
        assert Schema.from_dict(schema.to_dict(), "again") == schema
        for column in schema.columns:
            if not column.is_categorical:
                grid_of(column, 16)
    except SchemaError as error:
        assert "fuzz.yaml" in str(error) or "column" in str(error), str(error)


SHIPPED: dict[str, Any] = {
    **yaml.safe_load((ROOT / "params.yaml").read_text()),
    **{name: defaults(method) for name, method in METHODS.items()},
}


@pytest.mark.long
@FUZZ
@given(method=st.sampled_from(sorted(METHODS)), content=mutated(SHIPPED))
def test_bad_settings_are_named_or_give_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, content: dict[str, Any]
) -> None:
    monkeypatch.chdir(ROOT)
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump({**content, "method": content.get("method") and method}, sort_keys=False))
    try:
        params = load_params(path)
        plan = Project(Path(), params).plan
        assert not plan.private or 0 < plan.rho < float("inf")
        assert all(0 < query.noise_multiplier < float("inf") for query in plan.queries) is plan.private
    except LikenessError as error:
        assert len(str(error)) > 10


def numbers(value: Any) -> list[tuple[Any, ...]]:
    """Paths to all whole numbers in a nest of mappings and lists."""
    return [path for path in places(value) if type(at(value, path)) is int]


@pytest.mark.long
@pytest.mark.parametrize("size", [10**13, 10**40], ids=["10^13", "10^40"])
@pytest.mark.parametrize("path", numbers(SHIPPED), ids=lambda path: ".".join(map(str, path)))
def test_no_number_is_too_large_for_a_plain_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: tuple[Any, ...], size: int
) -> None:
    monkeypatch.chdir(ROOT)
    content = copy.deepcopy(SHIPPED)
    at(content, path[:-1])[path[-1]] = size
    method = path[0] if path[0] in METHODS else "marginals"
    settings_file = tmp_path / "params.yaml"
    settings_file.write_text(yaml.safe_dump({**content, "method": method}, sort_keys=False))
    with suppress(LikenessError):
        assert Project(Path(), load_params(settings_file)).plan


@pytest.mark.long
@pytest.mark.parametrize(("load", "error"), [(Schema.load, SchemaError), (load_params, ParamsError)])
@FUZZ
@given(content=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_a_plain_error(tmp_path: Path, load: Any, error: type[LikenessError], content: bytes) -> None:
    path = tmp_path / "fuzz.yaml"
    path.write_bytes(content)
    with pytest.raises(error, match=r"fuzz\.yaml"):
        load(path)


ODD_CELLS = [
    *("", " ", "0", "-1", "1e5", "1e999", "nan", "inf", "NaN", "None", "1_000", "0x10", "٣", "½", "5 ", "1,5", "?"),
    *("a", "b", "train", "test", TEXT, str(NUMBER), f" {TEXT} ", f"{NUMBER}e-8", '"', "'", "\x00", "\r", "é", "="),
]
CELLS = st.sampled_from(ODD_CELLS) | st.text(max_size=5)


@st.composite
def csv_files(draw: st.DrawFn) -> bytes:
    """The valid table with cells, rows, header and bytes spoiled."""
    rows = [COLUMNS, *copy.deepcopy(ROWS)]
    for _ in range(draw(st.integers(0, 4))):
        row = draw(st.integers(0, len(rows) - 1))
        action = draw(st.sampled_from(["cell", "cell", "cell", "cell", "short", "long", "drop", "double", "swap"]))
        rows[row] = list(rows[row])
        if action == "cell" and rows[row]:
            rows[row][draw(st.integers(0, len(rows[row]) - 1))] = draw(CELLS)
        elif action == "short":
            rows[row] = rows[row][:-1]
        elif action == "long":
            rows[row].append(TEXT)
        elif action == "drop" and len(rows) > 1:
            del rows[row]
        elif action == "double":
            rows.append(rows[row])
        elif action == "swap":
            rows[0], rows[row] = rows[row], rows[0]
    quote = draw(st.booleans())
    text = "\n".join(",".join(f'"{cell}"' if quote else cell for cell in row) for row in rows)
    data = bytearray((text + "\n").encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16"]))))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.sampled_from([len(data)] * 4 + [len(data) // 2]))])


def read(path: Path, split: str | None = "split") -> None:
    """The way of a table up to the door; what comes out must fit the schema."""
    schema = Schema.from_dict(SCHEMA, "fuzz.yaml")
    table, column, _ = read_source(path, schema, split)
    if column is not None:
        split_by_column(column, "train", "test")
    encoder = Encoder(schema)
    x = encoder.expand(encoder.encode(table))
    assert x.shape == (len(table), encoder.layout.width) and np.isfinite(x).all()
    assert x.size == 0 or (x.min() >= 0 and x.max() <= 1)
    assert list(table.columns) == list(schema.names) and table["n"].dropna().between(0, 1e9).all()


@pytest.mark.long
@settings(FUZZ, max_examples=2 * EXAMPLES)
@given(data=csv_files(), packed=st.sampled_from([".csv", ".csv", ".csv.gz"]))
def test_a_bad_csv_file_is_named_without_a_value_or_read_right(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes, packed: str
) -> None:
    path = tmp_path / f"fuzz{packed}"
    if packed.endswith("gz") and len(data) % 3:
        data = gzip.compress(data)
        data = data[: len(data) - len(data) % 5]
    path.write_bytes(data)
    with no_private_value_is_told(caplog):
        read(path)


ARRAYS = st.sampled_from(
    [
        *(pa.array([NUMBER, None, 3]), pa.array([NUMBER, 2**62, -1], pa.int64())),
        *(pa.array([float(NUMBER), float("nan"), float("inf")]), pa.array([TEXT, None, "b"])),
        *(pa.array([TEXT.encode(), b"\xff", None]), pa.array([[NUMBER], [], None])),
        *(pa.array([{"a": TEXT}, None, {"a": "b"}]), pa.array([True, None, False])),
        *(pa.array([NUMBER, 1, 2], pa.timestamp("us")), pa.array([NUMBER % 30_000, 1, 2], pa.date32())),
        *(pa.array([NUMBER, 1, 2], pa.duration("s")), pa.array([1.5, None, 2.0], pa.float32())),
        *(pa.array([None, None, None], pa.null()), pa.array([TEXT, "a", "b"]).dictionary_encode()),
        *(pa.array(["a", "b", "Other"]), pa.array(["no", "yes", "no"])),
        *(pa.array([NUMBER, None, 1], pa.decimal128(20, 2)), pa.array([2**64 - 1, 0, NUMBER], pa.uint64())),
        pa.array(["train", "test", "train"]),
    ]
)


@pytest.mark.long
@FUZZ
@given(chosen=st.lists(ARRAYS, min_size=7, max_size=7), data=st.data())
def test_a_bad_parquet_file_is_named_without_a_value_or_read_right(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, chosen: list[pa.Array], data: st.DataObject
) -> None:
    valid = [pa.array([row[place] or None for row in ROWS]) for place in range(7)]
    spoiled = data.draw(st.sets(st.integers(0, 6), max_size=3))
    columns = [chosen[place] if place in spoiled else valid[place] for place in range(7)]
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns, names=COLUMNS), buffer)
    content = bytearray(buffer.getvalue())
    if data.draw(st.integers(0, 4)) == 0:
        content[data.draw(st.integers(0, len(content) - 1))] ^= 0xFF
    path = tmp_path / "fuzz.parquet"
    path.write_bytes(bytes(content))
    with no_private_value_is_told(caplog):
        read(path, data.draw(st.sampled_from(["split", None])))


def test_the_valid_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "fuzz.csv"
    pd.DataFrame(ROWS, columns=COLUMNS).to_csv(path, index=False)
    read(path)


@pytest.mark.parametrize("kind", [pa.binary(), pa.string()])
def test_parquet_text_that_is_not_utf_8_is_refused_plainly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: pa.DataType
) -> None:
    path = tmp_path / "fuzz.parquet"
    spoiled = pa.array([f"{TEXT}\xff".encode("latin-1"), b"b", b"b"], pa.binary()).view(kind)
    columns = [spoiled if name == "s" else pa.array(["0", "1", "2"]) for name in COLUMNS]
    pq.write_table(pa.table(columns, names=COLUMNS), path)
    with no_private_value_is_told(caplog):
        read(path)
    with pytest.raises(LikenessError, match=r"fuzz\.parquet: column .* not UTF-8"):
        read(path)
