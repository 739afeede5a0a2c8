"""Every file from real rows has a power of two as its size, fresh random text inside, and the content that went in."""

import csv
import io
import json
import random
import zlib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from likeness.report.files import read_rows
from likeness.report.padding import SMALLEST, filler, pad_png, padded_csv, padded_html, padded_json

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40)
VALUES = TEXTS | st.none() | st.floats(allow_nan=False)
# Contents on both sides of the smallest size.
REPEATS = st.sampled_from([0, 1, 100, 3_000, 30_000])


def check_size(data: bytes, again: bytes | None = None) -> None:
    """A power of two, and another text of that length the next time."""
    assert len(data) >= SMALLEST == 65_536 and len(data) & (len(data) - 1) == 0
    assert again is None or (len(again) == len(data) and again != data)


def picture(noise: bytes) -> bytes:
    """PNG whose size grows with its noise."""
    buffer = io.BytesIO()
    Image.frombytes("L", (len(noise), 1), noise).save(buffer, "png")
    return buffer.getvalue()


@pytest.mark.long
@given(st.integers(0, 1 << 22))
@example(65_472)  # the largest that fits the smallest size with its salt
@example(65_473)
@example(131_072 - 64)
@example(131_072 - 63)
@example(131_072)
def test_any_size_becomes_a_power_of_two(size: int) -> None:
    text = filler(size)
    check_size(bytes(size) + text.encode())
    assert len(text) >= 64 and set(text) <= set("0123456789abcdef")
    assert size + len(text) == SMALLEST or size + len(text) < 2 * (size + 64)  # the next one, not a later one


def test_the_text_is_random_throughout() -> None:
    texts = [filler(0) for _ in range(2)]
    # 4 bits a digit: compression can save nothing; 32 random bytes differ but for a chance of 2^-256.
    assert len(zlib.compress(bytes.fromhex(texts[0]))) >= 32_768
    assert texts[0][:64] != texts[1][:64] and texts[0][-64:] != texts[1][-64:]


@settings(max_examples=30)
@given(st.integers(0, 99), st.integers(1, 300_000))
def test_pictures(seed: int, count: int) -> None:
    bare = picture(random.Random(seed).randbytes(count))
    first, second = pad_png(bare), pad_png(bare)
    check_size(first, second)
    before, after = Image.open(io.BytesIO(bare)), Image.open(io.BytesIO(first))
    assert after.tobytes() == before.tobytes() and after.size == before.size
    assert isinstance(after, PngImagePlugin.PngImageFile) and len(after.text["Salt"]) >= 64
    after = Image.open(io.BytesIO(first))
    after.verify()  # type: ignore[no-untyped-call]  # the checksum of every chunk
    start = bare.index(b"IDAT") - 4
    assert first.endswith(bare[start:])  # the pixels behind the text are untouched


@settings(max_examples=50)
@given(st.dictionaries(TEXTS.filter(lambda key: key != "salt"), VALUES), REPEATS)
def test_metrics(value: dict[str, Any], repeats: int) -> None:
    value["long"] = "ä€" * repeats
    first, second = padded_json(value), padded_json(value)
    check_size(first, second)
    read = json.loads(first)
    assert list(read) == [*value, "salt"]
    assert len("".join(read.pop("salt"))) >= 64
    assert read == value


@pytest.mark.long
@settings(max_examples=50)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=6), st.sampled_from([0, 1, 30]), st.integers(0, 200))
@example([], 0, 0)
@example([("a,b", 'quo"te'), ("", "")], 1, 0)
@example([("x", "y")], 9_000, 1)
def test_tables(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, str]], copies: int, longer: int
) -> None:
    rows = [("first", "line\nbreak"), *cells] * copies if copies else []
    rows = [(a, b + "€" * longer) for a, b in rows]
    table = pd.DataFrame(rows, columns=["table", "columns"], dtype=str)
    first, second = padded_csv(table), padded_csv(table)
    check_size(first, second)
    path: Path = tmp_path_factory.mktemp("tables") / "table.csv"
    path.write_bytes(first)
    read = read_rows(path, "table.csv", "evaluate")
    assert [(row["table"], row["columns"]) for row in read] == rows
    assert list(csv.DictReader(io.StringIO(first.decode(), newline=""))) == read
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert list(frame[["table", "columns"]].itertuples(index=False, name=None)) == rows
    salt = "".join(row["salt"] for row in read) if rows else frame.columns[-1].removeprefix("salt ")
    assert len(salt) >= 64 and set(salt) <= set("0123456789abcdef")


@pytest.mark.parametrize("count", [3, 10_000])
def test_no_cell_grows_beyond_what_readers_take(count: int) -> None:
    table = pd.DataFrame({"columns": ["x" * (300_000 // count)] * count, "total_variation": 0.5})
    for row in csv.reader(io.StringIO(padded_csv(table).decode())):
        assert max(map(len, row)) <= 131_072 == csv.field_size_limit()


def test_a_spreadsheet_holds_every_cell_and_only_the_last_rows_have_salt() -> None:
    table = pd.DataFrame({"columns": ["age"] * 100, "total_variation": 0.5})
    salt = [row["salt"] for row in csv.DictReader(io.StringIO(padded_csv(table).decode()))]
    assert max(map(len, salt)) <= 32_767 and not any(salt[:97]) and salt[-1]


@settings(max_examples=50)
@given(TEXTS, REPEATS)
def test_pages(text: str, repeats: int) -> None:
    page = f"<!doctype html>\n<html><p>{text.replace('<', '').replace('&', '')}{'ä' * repeats}</p></html>\n"
    first, second = padded_html(page), padded_html(page)
    check_size(first, second)
    assert first.startswith(page.encode())
    shown, _, behind = first.decode().partition("<!--")
    comment, end, rest = behind.partition("-->")
    assert shown.strip() == page.strip() and end and not rest.strip()
    assert len(comment.removeprefix(" salt ").strip()) >= 64 and "<" not in comment
