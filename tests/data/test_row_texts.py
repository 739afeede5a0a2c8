"""The text of a row is written down, so that a database can make it too."""

import hashlib
import hmac
import json
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from table_strategies import schemas_and_tables
from toys import schema_with

from likeness.data.schema.kinds import KINDS
from likeness.data.source.files import read_frame
from likeness.data.source.row_digests import SourceDigest, row_hashes, typed_digest
from likeness.data.source.row_texts import row_texts

KEY = b"k" * 32
SCHEMA = schema_with(
    {
        "city": {"kind": "categorical", "categories": ["Köln", "else"], "other": "else", "nullable": True},
        "sure": {"kind": "boolean", "nullable": True},
        "age": {"kind": "integer", "lower": -20, "upper": 10**12, "nullable": True},
        "height": {"kind": "numeric", "lower": -2e19, "upper": 1e20, "nullable": True},
        "born": {"kind": "date", "lower": "0900-01-01", "upper": "2020-12-31", "nullable": True},
        "seen": {"kind": "datetime", "lower": "0900-01-01", "upper": "2020-12-31", "nullable": True},
        "at": {"kind": "time", "lower": "00:00", "upper": "23:59:59", "nullable": True},
    },
    name="kinds",
)
ROWS = pd.DataFrame(
    {
        "city": ["Köln", "else", None],
        "sure": ["yes", "0", None],
        "age": [-12, 10**12, None],
        "height": ["-0.0", "-1.50", None],
        "born": ["0999-06-10", "2020-02-29", None],
        "seen": ["0999-06-10T05:06:07.9+01:00", "2020-02-29", None],
        "at": ["05:06:07.9", "23:59", None],
    }
)
TEXTS = [
    "5:Köln4:true3:-123:0e010:0999-06-1019:0999-06-10 04:06:078:05:06:07",
    "4:else5:false13:10000000000006:-15e-110:2020-02-2919:2020-02-29 00:00:008:23:59:00",
    "-------",
]


def texts_of(table: pd.DataFrame, schema=SCHEMA) -> list[bytes]:
    return [text for texts in row_texts(table, schema) for text in texts.to_pylist()]


def test_the_text_of_a_row_and_the_digests_of_a_table() -> None:
    table = read_frame(ROWS, SCHEMA)
    assert [text.decode() for text in texts_of(table)] == TEXTS
    hashes = [hashlib.sha256(text.encode()).hexdigest() for text in TEXTS]
    assert [bytes(one).hex() for one in row_hashes(table, SCHEMA)] == hashes
    columns = [[column.name, column.kind] for column in SCHEMA.columns]
    total = str(sum(int(one, 16) for one in hashes) % 2**256)
    content = json.dumps(["likeness rows in any order", columns, 3, total]).encode()
    assert typed_digest(table[::-1], SCHEMA, KEY, ordered=False) == hmac.digest(KEY, content, "sha256").hex()
    whole = hashlib.sha256(bytes.fromhex("".join(hashes))).hexdigest()
    content = json.dumps(["likeness rows in order", columns, 3, whole]).encode()
    assert typed_digest(table, SCHEMA, KEY, ordered=True) == hmac.digest(KEY, content, "sha256").hex()


@pytest.mark.long
def test_columns_that_are_joined_together_change_no_text() -> None:
    table = read_frame(ROWS, SCHEMA)
    places = np.random.default_rng(0).integers(0, 3, (7, 1000))
    many = pd.DataFrame({name: table[name].array.take(place) for name, place in zip(table, places, strict=True)})
    assert texts_of(many) == [text for place in range(1000) for text in texts_of(many.iloc[place : place + 1])]


def mixed(number: int) -> int:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        number = (number ^ number >> shift) * factor % 2**64
    return number


def number_of(text: str) -> int:
    return sum((byte + 1) * mixed(place) for place, byte in enumerate(text.encode(), 1))


def test_the_digest_of_a_source_is_a_sum_without_a_key() -> None:
    own, rows = SourceDigest(), [{"b": "1", "a": "xé"}, {"b": "2"}, {"b": "11", "a": "x"}]
    own.add_frame(pd.DataFrame({"b": [1, 2, 11], "a": ["xé", "", "x"]}))
    cells = [[mixed((number_of(name) + number_of(cell)) % 2**64) for name, cell in row.items()] for row in rows]
    total = sum(mixed((1 + sum(row)) % 2**64) for row in cells) % 2**64
    assert own.digest(KEY) == hmac.digest(KEY, f"likeness rows of a source {total}".encode(), "sha256").hex()


def test_no_sign_in_a_cell_makes_another_row_of_it() -> None:
    cells = ["a", "a\x1f", "\x1fb", "1:a", "-", "", None, "2:-"]
    digests = set()
    for one in cells:
        for other in cells:
            own = SourceDigest()
            own.add_frame(pd.DataFrame({"x": [one], "y": [other]}, dtype="str"))
            digests.add(own.digest(KEY))
    assert len(digests) == (len(cells) - 1) ** 2  # an empty cell of a CSV is missing


@pytest.mark.long
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1)
    | st.lists(st.builds(lambda whole, places: whole / 10**places, st.integers(-(10**16), 10**16), st.integers(0, 6)))
)
@example([43206012460706.58, 959077642697.4423])  # with 16 digits
@example([0.0, -0.0, 1200.0])
def test_a_number_is_its_shortest_digits_and_a_power_of_ten(numbers: list[float]) -> None:
    for number, text in zip(
        numbers, KINDS["numeric"].exact_texts(pa.array(numbers, pa.float64())).to_pylist(), strict=True
    ):
        assert re.fullmatch(r"0e0|-?[1-9]\d*(?<!0)e(0|-?[1-9]\d*)", text)
        assert float(text) == number and Decimal(text) == Decimal(repr(number))


@pytest.mark.long
@given(schemas_and_tables(min_rows=2))
def test_rows_have_one_text_if_and_only_if_they_are_equal(drawn) -> None:
    schema, table = drawn
    rows = [tuple(None if pd.isna(cell) else cell for cell in row) for row in table.itertuples(index=False)]
    texts = texts_of(table, schema)
    for one, text in zip(rows, texts, strict=True):
        assert [other == one for other in rows] == [other == text for other in texts]
    assert texts == [text for place in range(len(table)) for text in texts_of(table.iloc[[place]], schema)]
    assert row_hashes(table, schema).dtype == np.uint8
