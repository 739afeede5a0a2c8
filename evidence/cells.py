"""Cells: whether SQL makes other texts and sums of some rows than Python. Fills a row of evidence/SPEED.md.

Run: ``python -m evidence.cells [--rows 100000] [--engines duckdb sqlite postgres]``. Hostile cells come from a public
seed: texts, numbers as texts, float64 and float32 of random bits, float64 whose shortest decimal may lie midway between
two, whole numbers, dates and moments. After them come the tables of the panel, at most 3,000 rows each. A database
surveys each table: a sum of SHA-256 shows if one row differs. Of the panel it also counts all columns, and pairs and
triples of 14. ``people`` is a survey of 6,000 visits, at most five a person. Appends to evidence/results/cells.csv.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evidence.common import Results, commit
from evidence.panel import PANEL, _objects, scores, synthesizer_of
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.data.source.contribution_bounding import bound_contributions, people_of
from likeness.data.source.databases import Database
from likeness.data.source.files import read_frame
from likeness.data.source.row_digests import _sum, row_hashes
from likeness.data.source.split import SplitByContent, split_by_person
from likeness.data.warehouse.rows import RowsThere, Sums
from likeness.data.warehouse.statements import People, Split
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.release.query import Query
from likeness.release.records import AllRecords
from likeness.release.sums.backends import counted_sum
from likeness.release.sums.lattice_sum import lattice_sum

sys.path += [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parents[1] / "tests/data")]
import test_warehouse as warehouse
from postgres import server
from toys import schema_with

RESULTS = Results(Path("evidence/results/cells.csv"), ["commit", "engine", "table", "rows"])
PANEL_ROWS, PANEL_COLUMNS, VISITS, PEOPLE, MOST_VISITS = 3_000, 14, 6_000, 2_000, 5
SPLIT = Split(0.1, 0)
ALPHABET = [*"ueAZ01-. '\"\\%_${}\t\x7f\x85ÉÅ😀ßİ", *"\u00a0\u0301\u200b\u2028\ufeff"]
HUGE = {"kind": "numeric", "lower": -1e300, "upper": 1e300}
DAYS = {"lower": "0900-01-01", "upper": "2030-01-01"}


def main() -> None:
    """Compare what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--engines", nargs="+", default=["duckdb", "sqlite", "postgres"])
    arguments = parser.parse_args()
    for engine in arguments.engines:
        with ExitStack() as stack:
            url = f"{engine}:///{stack.enter_context(tempfile.TemporaryDirectory())}/cells.db"
            if engine == "postgres":
                url = f"postgresql+psycopg://owner@/postgres?host={stack.enter_context(server())}"
            for name, column, cells in hostile(arguments.rows):
                if engine != "sqlite" or not name.startswith("float32"):  # which it does not have
                    compare(engine, url, name, pd.DataFrame({"c": cells}), schema_with({"c": column}))
            compare(engine, url, "people", *visits())
            score = scores()
            for path in sorted((PANEL / "tables").glob("*.json")):
                codebook, train, _ = score.load(path.parent, path.stem)
                schema = Schema.from_dict(
                    dict(synthesizer_of(codebook, path.stem, 1.0).get_params()["schema"]), path.stem
                )
                frame = _objects(codebook, train)[[*schema.names]].head(PANEL_ROWS)
                texts = {name: "string" for name in frame if frame[name].dtype == object}
                compare(engine, url, f"panel {path.stem}", frame.astype(texts), schema)


def hostile(rows: int) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Name, column of the schema and cells of each table."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(0, 7, rows)
    letters, ends = "".join(draw.choice(ALPHABET, lengths.sum())), np.cumsum(lengths)
    texts = [letters[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    yield "texts", warehouse.KINDS["open"], texts
    yield "categories", warehouse.KINDS["other"] | {"nullable": True}, texts
    yield "numbers", HUGE, [number_text(*some) for some in draw.integers(-(10**6), 10**6, (rows, 3)).tolist()]
    bits = draw.integers(0, 2**64, rows, np.uint64).view(np.float64)
    yield "float64", HUGE, np.where(np.isfinite(bits), bits, 0.5)
    yield "float64 midway", HUGE, midway(draw, rows)
    yield "float32", HUGE, draw.integers(0, np.float32(np.inf).view(np.uint32), rows, np.uint32).view(np.float32)
    ends = np.array([2e-4, 1e19], np.float32).view(np.uint32)
    yield "float32 from 2e-4 to 1e19", HUGE, draw.integers(*ends, rows, np.uint32).view(np.float32)
    powers = draw.integers(0, 13, rows)
    some = draw.integers(0, np.minimum(10**9 // 5**powers, 2**24), rows) | 1
    yield "float32 of nine digits", HUGE, (some / 2.0**powers).astype(np.float32)
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


def visits() -> tuple[pd.DataFrame, Schema]:
    """Visits of people, whose column the schema does not have."""
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "who": draw.integers(0, PEOPLE, VISITS).astype(str),
            "age": draw.integers(0, 90, VISITS),
            "ward": draw.choice(["u", "w"], VISITS),
            "cost": draw.gamma(2, 100, VISITS).round(2),
        }
    )
    columns = {"age": {"kind": "integer", "lower": 0, "upper": 100}, "ward": warehouse.KINDS["other"], "cost": HUGE}
    return frame, schema_with(columns)


def compare(engine: str, url: str, name: str, frame: pd.DataFrame, schema: Schema) -> None:
    """Write a table, survey it there, and compare with Python."""
    key = [commit(), engine, name, len(frame)]
    table = f"t_{name.lower()}".replace(" ", "_").replace("-", "_")
    if not RESULTS.of(*key).empty:
        return
    warehouse.write(url, table, frame)
    unit = People("who", MOST_VISITS) if "who" in frame and "who" not in schema.names else None
    there, started = RowsThere(Database(url, table), schema, SPLIT, unit), time.monotonic()
    found, seconds = there.survey(), time.monotonic() - started
    typed = read_frame(frame, schema)
    hashes = row_hashes(typed, schema)
    parts = SplitByContent(SPLIT.fraction, SPLIT.seed).parts(hashes)
    if unit is not None:
        persons = people_of(frame["who"], name)
        parts = split_by_person(persons, SPLIT.fraction, SPLIT.seed)
        parts = np.where(bound_contributions(hashes, persons, parts, MOST_VISITS), parts, "")
    same = found == tuple(Sums(int(some.sum()), _sum(hashes[some])) for some in (parts == "train", parts == "test"))
    if name.startswith("panel"):
        rows = warehouse.Rows(there, typed[parts == "train"].reset_index(drop=True), hashes[parts == "train"])
        cells = axes_of(schema)
        groups = len(schema.classes) if schema.label else 1
        for query in (
            Query("columns", "auxiliary", ColumnMarginals(cells), contributions=AllRecords()),
            Query("pairs", "privatize", PairMarginals(cells[:PANEL_COLUMNS]), groups),
        ):
            sums, records = counted_sum(query, rows)
            same &= bool((sums == lattice_sum(query, rows())).all()) and records == len(rows.train)
    RESULTS.add(key, {"same": same, "survey_seconds": seconds})


def axes_of(schema: Schema) -> tuple[Cells, ...]:
    """Cells of each column; a number has six."""
    starts = Encoder(schema.modeled).layout.starts
    return tuple(
        Cells(starts[one.name], len(one.categories) + one.nullable)
        if one.is_categorical
        else Cells(starts[one.name], 6 + one.nullable, (0.01, 0.1, 0.3, 0.5, 0.8), one.nullable)
        for one in schema.modeled.feature_columns
    )


if __name__ == "__main__":
    main()
