"""The integers that the door adds noise to are those on record, for every method, option and kind of data set.

Each case is a fit up to its training. Its noise is zero and its dice of pairs are public, so later queries follow from
exact answers. ``golden_integers.json`` holds the SHA-256 of each query's integers, in order. They depend on no number
of threads. Their last six bits are rounded away, so a product that another processor rounds by a step counts alike.
Other integers for equal rows are another mechanism: raise ``RECIPE``, remove the file, and run this test
twice. A case without digests writes them and fails.
"""

import json
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from method_examples import ONLY_IMAGES, SMALL
from toys import visits_of

import likeness
from likeness import Synthesizer
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods import METHODS
from likeness.pipeline.datasets import MODELS

pytestmark = pytest.mark.long

FILE = Path(__file__).with_name("golden_integers.json")
ROWS = 60
COLUMNS: dict[str, Any] = {
    "a": {"kind": "numeric", "lower": 0, "upper": 1},
    "b": {"kind": "integer", "lower": 0, "upper": 9, "nullable": True},
    "c": {"kind": "categorical", "categories": ["u", "v", "w"]},
    "o": {"kind": "categorical", "categories": [1, 2, 3], "ordered": True},
    "d": {"kind": "date", "lower": "2020-01-01", "upper": "2020-12-31"},
    "y": {"kind": "categorical", "categories": ["no", "yes"]},
}
TABLE: dict[str, Any] = {"name": "toy", "source": "made up", "task": "classification", "label": "y", "columns": COLUMNS}
OPEN = {**TABLE, "columns": {**COLUMNS, "c": {"kind": "categorical", "categories": "private"}}}
IMAGES = {**TABLE, "image": {"shape": [4, 4]}, "columns": {"y": COLUMNS["y"]}}
VISITS = visits_of("visits", 4)
MORE: dict[str, Any] = {
    "marginals of people": SMALL["marginals"],
    "marginals with private categories": SMALL["marginals"],
    "marginals of a larger table": {"privatize": {"bins": 4, "workload": [{"columns": ["a", "c", "o"], "weight": 3}]}},
    "merf of two lengths": {"privatize": {"num_frequencies": 20, "lengthscale": [0.5, 2.0]}},
    "pearl of a public number": SMALL.get("pearl with modes", {}),
}
OF_HISTORIES = {"marginals of histories": SMALL["marginals"]} if "histories" in MODELS else {}
CASES = {name: case for name, case in {**SMALL, **MORE, **OF_HISTORIES}.items() if name.split()[0] in METHODS}


def table() -> pd.DataFrame:
    """Rows by integer arithmetic: the same on every machine."""
    row = np.arange(ROWS)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(row * row * 7 % 366, unit="D")
    return pd.DataFrame(
        {
            "id": row // 2,
            "a": row * 37 % 101 / 100,
            "b": pd.Series(row * 7 % 11, dtype="Int64").where(row % 5 > 0),
            "c": np.array(["u", "v", "w"])[row * row % 3],
            "o": 1 + row % 3,
            "d": days.strftime("%Y-%m-%d"),
            "y": np.where(row % 3 == 0, "yes", "no"),
        }
    )


def images() -> pd.DataFrame:
    pixels = np.arange(ROWS)[:, None] * 31 * (np.arange(16) + 1) % 256
    names = [f"pixel_{place + 1}" for place in range(16)]
    return pd.DataFrame(pixels, columns=names).assign(y=table()["y"])


def histories() -> dict[str, pd.DataFrame]:
    row = np.arange(ROWS)
    people = pd.DataFrame({"id": row, "sex": np.where(row % 3 == 0, "f", "m")})
    event = np.arange(3 * ROWS)
    ids = event * event % ROWS
    return {
        "people": people,
        "events": pd.DataFrame({"id": ids, "day": event * 7 % 100, "state": np.where(event % 4 == 0, "a", "b")}),
    }


class Trained(Exception):
    """All releases are made."""


def release(name: str) -> None:
    """Fit a case up to its training."""
    method = name.split()[0]
    given: dict[str, Any] = {"schema": TABLE, "method": method, "settings": CASES[name]}
    frame: Any = table()
    if method in ONLY_IMAGES:
        given["schema"], frame = IMAGES, images()
    elif name.endswith("people"):
        given.update(unit_column="id", max_rows=2)
    elif name.endswith("private categories"):
        given["schema"] = OPEN
    elif name.endswith("number"):
        given.update(adjacency="replace_one", num_records=ROWS)
    elif name.endswith("histories"):
        given["schema"], frame = likeness.HistorySchema.from_dict(VISITS), histories()
    with suppress(Trained):
        Synthesizer(**given, epsilon=30.0, cap=(30.0, 1e-5), population="people").fit(frame)


@pytest.mark.parametrize("name", CASES)
def test_integers_before_noise_are_those_on_record(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    thrown = count(1)

    def exact(sums: np.ndarray, scale: float) -> np.ndarray:
        assert sums.dtype == np.int64 and scale > 0
        found.append(sha256((sums + 32 >> 6).astype("<i8").tobytes()).hexdigest())
        return sums

    def dice(size: int) -> bytes:
        words = [next(thrown) for _ in range(size // 8)]
        return (np.array(words, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)).tobytes()

    def train(*_: Any) -> None:
        raise Trained

    monkeypatch.setattr("likeness.release.door.add_discrete_gaussian", exact)
    monkeypatch.setattr("likeness.release.records.secret_bytes", dice)
    monkeypatch.setattr("likeness.methods.fit.fit", train)
    Ledger.create(locate())
    release(name)
    golden = json.loads(FILE.read_text()) if FILE.exists() else {}
    if name not in golden:
        FILE.write_text(json.dumps({**golden, name: found}, indent=1, sort_keys=True) + "\n")
    assert found and golden.get(name) == found
