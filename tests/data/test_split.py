"""The text of a row, which a database can make too; the split by content and copy, and the one by position."""

import hashlib
import hmac
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from table_strategies import schemas_and_tables
from toys import schema_with

from likeness.core.errors import DataError
from likeness.data.schema.column import Column
from likeness.data.schema.kinds import KINDS
from likeness.data.schema.schema import Schema
from likeness.data.source import row_digests
from likeness.data.source.files import read_frame
from likeness.data.source.row_digests import Hashes, SourceDigest, row_hashes, typed_digest
from likeness.data.source.row_texts import row_texts
from likeness.data.source.split import (
    COPIES_STEP,
    WORDS,
    SplitByContent,
    SplitByPosition,
    factor_and_start,
    split_by_column,
)

NUMBERS = Schema("n", "made up", "none", None, (Column("v", "integer", 0.0, 10.0**9, nullable=True),))
GRID = pd.DataFrame({"v": pd.array([0, 1, None], dtype="Int64")})  # all rows that there may be


def split(hashes: Hashes, fraction: float = 0.5, seed: int = 0, chunk: int = 1000) -> list[str]:
    rule = SplitByContent(fraction, seed)
    return [part for start in range(0, len(hashes), chunk) for part in rule.assign_parts(hashes[start : start + chunk])]


@pytest.mark.long
def test_a_row_more_or_less_moves_no_other_row() -> None:
    """All tables of up to five rows, in each order: either part loses the row that goes, and no other."""
    hashes, moved = row_hashes(GRID, NUMBERS), Counter[str]()
    for seed, count in itertools.product(range(4), range(1, 6)):
        for table in itertools.product(range(len(GRID)), repeat=count):
            parts = Counter(zip(table, split(hashes[list(table)], seed=seed), strict=True))
            for gone in range(count):
                rest = table[:gone] + table[gone + 1 :]
                fewer = Counter(zip(rest, split(hashes[list(rest)], seed=seed), strict=True))
                ((row, part),) = (parts - fewer).elements()
                assert row == table[gone] and not fewer - parts
                moved[part] += 1
    assert min(moved["train"], moved["test"]) > 1000


@pytest.mark.long
@given(schemas_and_tables(min_rows=1), st.integers(0, 9), st.integers(1, 9), st.randoms(use_true_random=False))
def test_neither_order_nor_chunks_move_a_row(drawn: tuple[Schema, pd.DataFrame], seed: int, chunk: int, random) -> None:
    schema, table = drawn
    rows = [*range(len(table))] * 3
    random.shuffle(rows)
    hashes = row_hashes(table, schema)
    whole = Counter(zip(map(bytes, hashes[rows]), split(hashes[rows], seed=seed), strict=True))
    sorted_rows = hashes[sorted(rows)]
    assert Counter(zip(map(bytes, sorted_rows), split(sorted_rows, seed=seed, chunk=chunk), strict=True)) == whole


@pytest.mark.long
def test_rows_are_equal_if_128_bits_are() -> None:
    """Hashes whose first 64 bits are equal, in chunks of all sizes: the copies of each are counted apart."""
    chosen = np.random.default_rng(0).integers(0, 4, (3000, 2))
    hashes = np.zeros((3000, 32), np.uint8)
    hashes[:, 3], hashes[:, 12] = chosen.T
    hashes[:, 28:] = [1, 2, 3, 4]
    (factor, start), word = map(int, factor_and_start(1)), int.from_bytes([1, 2, 3, 4])
    seen: Counter[tuple[int, ...]] = Counter()
    expected = []
    for row in map(tuple, chosen.tolist()):
        expected.append((word * factor + COPIES_STEP * seen[row] + start) % WORDS < WORDS // 2)
        seen[row] += 1
    for chunk in (1, 7, 100, 3000):
        assert [part == "test" for part in split(hashes, 0.5, 1, chunk)] == expected


def test_equal_rows_are_held_out_like_others() -> None:
    """In one cell, and in each of 50 cells: binomial, five standard deviations; a pass stays a pass."""
    some = row_hashes(pd.DataFrame({"v": np.arange(50)}), NUMBERS)
    for count, each in ((1, 20_000), (50, 400)):
        parts = np.array(split(np.tile(some[:count], (each, 1)), 0.2)).reshape(each, count)
        assert (abs((parts == "test").sum(axis=0) - each / 5) < 5 * math.sqrt(each * 0.2 * 0.8)).all()


def test_share_held_out_by_content() -> None:
    # Binomial with n = 20,000 and p = 0.2: five standard deviations are 283 rows, false alarm below 1e-6 once; the
    # split is a fixed function of fixed rows, so a pass stays a pass.
    hashes = row_hashes(pd.DataFrame({"v": np.arange(20_000)}), NUMBERS)
    parts, other = (np.array(split(hashes, 0.2, seed)) for seed in (0, 1))
    assert abs((parts == "test").sum() - 4000) < 283
    # Another seed is another draw: both test with probability 0.04; the same split would give about 4,000.
    assert abs(((parts == "test") & (other == "test")).sum() - 800) < 5 * math.sqrt(20_000 * 0.04 * 0.96)


def test_missing_is_not_the_same_row_as_zero() -> None:
    hashes = row_hashes(GRID, NUMBERS)
    assert any(split(hashes[:1], seed=seed) != split(hashes[2:], seed=seed) for seed in range(64))


@given(st.integers(0, 500), st.floats(0.01, 0.99), st.integers(0, 2**32))
def test_split_by_position_has_an_exact_size_and_knows_no_content(count: int, fraction: float, seed: int) -> None:
    parts = by_position(count, fraction, seed)
    assert len(parts) == count and parts.count("test") == round(count * fraction)
    rule, rows = SplitByPosition(count, fraction, seed), np.empty((count, 32), np.uint8)
    assert parts == [part for start in range(0, count, 7) for part in rule.assign_parts(rows[start : start + 7])]


def by_position(count: int, fraction: float, seed: int) -> list[str]:
    parts: list[str] = SplitByPosition(count, fraction, seed).assign_parts(np.empty((count, 32), np.uint8)).tolist()
    return parts


def test_split_by_position_depends_on_its_seed() -> None:
    assert by_position(100, 0.5, 0) != by_position(100, 0.5, 1)
    assert by_position(100, 0.5, 0) != ["test"] * 50 + ["train"] * 50


def test_split_by_column_and_its_refusal() -> None:
    column = pd.Series(["old", "new", "old"], name="era")
    assert split_by_column(column, "old", "new").tolist() == ["train", "test", "train"]
    for marker in ("MARKER-PRIVATE", None, ""):
        with pytest.raises(DataError, match="'era'") as caught:
            split_by_column(pd.Series(["old", marker, "new"], name="era"), "old", "new")
        assert "MARKER" not in str(caught.value)


def test_a_database_can_make_the_split() -> None:
    """By the words of the docstring, for copies in several chunks."""
    rows = [0, 1, 2, 0, 0, 1, 2, 2, 0, 1] * 3
    texts, expected, seed = ["1:0", "1:1", "-"], [], hashlib.sha256(b"likeness split 7").hexdigest()
    for place, row in enumerate(rows):
        word = int(hashlib.sha256(texts[row].encode()).hexdigest()[-8:], 16)
        number = word * (int(seed[:8], 16) // 2 | 1) + rows[:place].count(row) * 2_654_435_769 + int(seed[8:16], 16)
        expected.append("test" if number % 2**32 < 2**32 * 0.4 else "train")
    assert split(row_hashes(GRID, NUMBERS)[rows], 0.4, seed=7, chunk=4) == expected


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


@pytest.fixture(scope="module")
def compiled(built_module: Callable[[str], Any]) -> Any:
    return built_module("likeness.data.source.sha256_rows")


@pytest.mark.process
@given(st.lists(st.lists(st.binary(max_size=70), min_size=1, max_size=5), max_size=4), st.data())
def test_compiled_hashes_are_those_of_python(compiled: Any, columns: list[list[bytes]], data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 9))
    places = [data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=rows, max_size=rows)) for texts in columns]
    arrays = [pa.array(texts, pa.large_binary()).buffers()[1:] for texts in columns]
    kind = data.draw(st.sampled_from([np.int8, np.int16, np.int32]))
    parts = [(np.array(at, kind), ends, text or b"") for at, (ends, text) in zip(places, arrays, strict=True)]
    joined = [b"".join(texts[at[row]] for texts, at in zip(columns, places, strict=True)) for row in range(rows)]
    for portable in (False, True):
        assert compiled.hash_rows(parts, rows, portable) == b"".join(hashlib.sha256(text).digest() for text in joined)
    if rows and parts:
        last = (np.array([-1] * rows, kind), *parts[0][1:])
        ends = (np.array([len(columns[0]) - 1] * rows, kind), *parts[0][1:])
        assert compiled.hash_rows([last, *parts[1:]], rows) == compiled.hash_rows([ends, *parts[1:]], rows)
        for wrong in ((np.array([len(columns[0])] * rows, np.int32), *parts[0][1:]), (parts[0][0][1:], *parts[0][1:])):
            with pytest.raises(ValueError, match="does not have"):
                compiled.hash_rows([wrong, *parts[1:]], rows)


@pytest.mark.process
@given(drawn=schemas_and_tables())
def test_rows_have_one_hash_compiled_or_not(compiled: Any, drawn: tuple[Schema, pd.DataFrame]) -> None:
    hashes = []
    with pytest.MonkeyPatch.context() as patch:
        for made_by in (compiled.hash_rows, None):
            patch.setattr(row_digests, "hash_rows", made_by)
            hashes.append(row_hashes(drawn[1], drawn[0]).tobytes())
    assert hashes[0] == hashes[1] and len(hashes[0]) == 32 * len(drawn[1])


SHORT_NUMBERS = st.builds(lambda whole, power: whole / 10**power, st.integers(-(10**15), 10**15), st.integers(0, 6))


@pytest.mark.process
@given(st.lists(st.floats() | SHORT_NUMBERS | st.sampled_from([0.0, -0.0, 1e10, 1e10 - 1e-4, 5e-5]), max_size=4))
def test_compiled_texts_of_numbers_are_those_of_arrow(compiled: Any, numbers: list[float]) -> None:
    """The number of each text in the digest of a source, and the cell of each in a row, or a refusal to write it."""
    values, weights = np.array(numbers), row_digests.mix_bits(np.arange(1, 25, dtype=np.uint64))
    sums = compiled.add_texts(values, weights)
    texts = pa.array(values).cast(pa.large_string()).to_pylist()
    if all(abs(number) < 1e10 and round(number, 4) == number and str(number) != "-0.0" for number in numbers):
        assert sums is not None
    assert sums is None or np.frombuffer(sums, np.uint64).tolist() == [number_of(text) % 2**64 for text in texts]
    values = np.append(numbers, np.arange(130.0))  # with texts of each length: blocks and tiles end everywhere
    ends, content = pa.array([b"x" * row for row in range(len(values))], pa.large_binary()).buffers()[1:]
    places = np.arange(len(values), dtype=np.int16)
    texts = Column("x", "numeric", lower=-1e300, upper=1e300).type.exact_texts(pa.array(values)).to_pylist()
    cells = [b"-" if np.isnan(n) else framed(text or "") for n, text in zip(values, texts, strict=True)]
    expected = b"".join(hashlib.sha256(cell + b"x" * row).digest() for row, cell in enumerate(cells))
    for portable in (False, True):
        made = compiled.hash_rows([values, (places, ends, content)], len(values), portable)
        assert isinstance(made, int) or made == expected
    with pytest.raises(ValueError, match="no weight"):
        compiled.add_texts(values, weights[1:])
    with pytest.raises(ValueError, match="does not have"):
        compiled.hash_rows([values], len(values) + 1)


def framed(text: str) -> bytes:
    return f"{len(text)}:{text}".encode()


def mixed(number: int) -> int:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        number = (number ^ number >> shift) * factor % 2**64
    return number


def number_of(text: str) -> int:
    return sum((byte + 1) * mixed(place) for place, byte in enumerate(text.encode(), 1))


def check_digest(table: pd.DataFrame, rows: list[dict[str, str]]) -> None:
    """The digest of a source is a sum without a key over its rows: texts of the cells that are not empty."""
    source = SourceDigest()
    source.add_frame(table)
    cells = [[mixed((number_of(name) + number_of(cell)) % 2**64) for name, cell in row.items()] for row in rows]
    total = sum(mixed((1 + sum(row)) % 2**64) for row in cells) % 2**64
    assert source.digest(KEY) == hmac.digest(KEY, f"likeness rows of a source {total}".encode(), "sha256").hex()


def test_the_digest_of_a_source_is_a_sum_without_a_key() -> None:
    rows = [{"b": "1", "a": "xé"}, {"b": "2"}, {"b": "11", "a": "x"}]
    check_digest(pd.DataFrame({"b": [1, 2, 11], "a": ["xé", "", "x"]}), rows)


def test_no_sign_in_a_cell_makes_another_row_of_it() -> None:
    cells = ["a", "a\x1f", "\x1fb", "1:a", "-", "", None, "2:-"]
    digests = set()
    for one in cells:
        for other in cells:
            source = SourceDigest()
            source.add_frame(pd.DataFrame({"x": [one], "y": [other]}, dtype="str"))
            digests.add(source.digest(KEY))
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


@given(st.lists(st.text(max_size=5) | st.text("ab", min_size=1020, max_size=1030), min_size=1))
def test_the_digest_of_a_source_knows_long_texts(cells: list[str]) -> None:
    check_digest(pd.DataFrame({"x": cells}, dtype="str"), [{"x": cell} if cell else {} for cell in cells])
