"""Random hostile cells: PostgreSQL's sum of the hashes of their rows is Python's. Numbers are drawn by their bits."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from test_statements import KINDS, write
from toys import schema_with

from likeness.data.source.databases import Database
from likeness.data.source.files import read_frame
from likeness.data.source.row_digests import _sum, row_hashes
from likeness.data.source.split import SplitByContent
from likeness_postgres.rows import RemoteRows, Sums
from likeness_postgres.statements import Split

ROWS, SPLIT = 2_000, Split(0.1, 0)
ALPHABET = [*"ueAZ01-. '\"\\%_${}\t\x7f\x85ÉÅ😀ßİ", *"\u00a0\u0301\u200b\u2028\ufeff"]
HUGE = {"kind": "numeric", "lower": -1e300, "upper": 1e300}
DAYS = {"lower": "0900-01-01", "upper": "2030-01-01"}


def hostile(rows: int) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Name, column of the schema and cells of each table."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(0, 7, rows)
    letters, ends = "".join(draw.choice(ALPHABET, lengths.sum())), np.cumsum(lengths)
    texts = [letters[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    yield "texts", KINDS["open"], texts
    yield "categories", KINDS["other"] | {"nullable": True}, texts
    yield "numbers", HUGE, [number_text(*some) for some in draw.integers(-(10**6), 10**6, (rows, 3)).tolist()]
    bits = draw.integers(0, 2**64, rows, np.uint64).view(np.float64)
    yield "float64", HUGE, np.where(np.isfinite(bits), bits, 0.5)
    yield "midway", HUGE, midway(draw, rows)
    yield "float32", HUGE, draw.integers(0, np.float32(np.inf).view(np.uint32), rows, np.uint32).view(np.float32)
    whole = draw.integers(-(2**62), 2**62, rows) >> draw.integers(0, 62, rows)
    yield "integers", {"kind": "integer", "lower": -(10**12), "upper": 10**12}, whole
    days = np.datetime64("0950-01-01") + draw.integers(0, 390_000, rows).astype("timedelta64[D]")
    yield "dates", {"kind": "date", **DAYS}, days.astype(str)
    seconds = np.datetime64("1700-01-01T00:00:00") + draw.integers(0, 10**10, rows).astype("timedelta64[s]")
    yield "moments", {"kind": "datetime", **DAYS}, seconds.astype("datetime64[us]")


def number_text(whole: int, power: int, form: int) -> str:
    """A number in one of six notations."""
    power = power % 25 - 12
    texts = f"{whole}", f"{whole}e{power}", f" {whole / 1000} ", f"+{abs(whole)}.0", repr(whole * 10.0**power)
    return [*texts, f"{whole}.500"][form % 6]


def midway(draw: np.random.Generator, rows: int) -> NDArray[np.float64]:
    """Numbers next to c · 5^k · 2^e, which lies midway between two and may have few digits."""
    found: list[float] = []
    while len(found) < rows:
        factor = 5 ** int(draw.integers(1, 23))
        middle = (int(draw.integers(2**53 // factor, 2**54 // factor)) | 1) * factor
        if 2**53 < middle < 2**54:
            found.append(float(middle // 2 + middle // 2 % 2) * 2.0 ** int(draw.integers(2, 41)))
    return np.array(found)


@pytest.mark.long
def test_the_sums_of_random_rows_are_those_of_python(url: str) -> None:
    for name, column, cells in hostile(ROWS):
        frame, schema = pd.DataFrame({"c": cells}), schema_with({"c": column})
        write(url, name, frame)
        hashes = row_hashes(read_frame(frame, schema), schema)
        parts = SplitByContent(SPLIT.fraction, SPLIT.seed).assign_parts(hashes)
        expected = [hashes[parts == part] for part in ("train", "test")]
        found = RemoteRows(Database(url, name), schema, SPLIT).count_rows()
        assert found == tuple(Sums(len(some), _sum(some)) for some in expected), name
