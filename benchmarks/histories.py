"""People with histories: CDNOW, and a table of a million events.

Run: ``python -m benchmarks.histories [--draws 3] [--only cdnow|scale]``. It writes
``benchmarks/results/histories.csv``.

CDNOW has 23,570 customers with 69,659 purchases: date, number and amount (``../shared/data/cdnow.parquet``). At most
k = 20 purchases of a customer count, ε = 1, δ = 1e-6. Beside histories stands ``marginals`` on single rows with
``unit_column``, on a table that has the amount before and the gap as columns. The benchmark makes that table, the
bounds of its columns are public.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.common import SHARED
from benchmarks.memory import peak_mb
from likeness import Ledger, Synthesizer
from likeness.data.histories.schema import HistorySchema

RESULTS = Path("benchmarks/results/histories.csv")
MOST = 20
_AMOUNT = {"kind": "numeric", "lower": 0, "upper": 1300, "transform": "log1p", "decimals": 2}
_QUANTITY = {"kind": "integer", "lower": 1, "upper": 99, "transform": "log1p"}
_DATE = {"kind": "date", "lower": "1997-01-01", "upper": "1998-06-30"}
CDNOW: dict[str, Any] = {
    "name": "cdnow", "source": "CDNOW", "person": "customer_id", "order": "date", "most": MOST,
    "events": {"date": _DATE, "quantity": _QUANTITY, "amount": _AMOUNT},
}  # fmt: skip
LAGGED: dict[str, Any] = {
    "name": "cdnow", "source": "CDNOW", "task": "none",
    "columns": {
        "quantity": _QUANTITY, "amount": _AMOUNT, "amount before": {**_AMOUNT, "nullable": True},
        "gap": {"kind": "integer", "lower": 0, "upper": 545, "transform": "log1p", "nullable": True},
    },
}  # fmt: skip
AMOUNTS = [-1, 10, 15, 20, 30, 50, np.inf]
GAPS = [-1, 0, 7, 14, 30, 60, 90, 180, np.inf]


def total_variation(first: "pd.Series[float]", second: "pd.Series[float]") -> float:
    """Half of the sum of the differences of two distributions."""
    return float(first.sub(second, fill_value=0).abs().sum() / 2)


def lengths(events: pd.DataFrame) -> "pd.Series[float]":
    """The share of people of each number of events."""
    return events.groupby("customer_id").size().clip(upper=MOST).value_counts(normalize=True)


def lagged(events: pd.DataFrame) -> pd.DataFrame:
    """Events in order, with the amount and the days since the event before."""
    made = events.assign(date=pd.to_datetime(events["date"])).sort_values(["customer_id", "date"], kind="stable")
    people = made.groupby("customer_id")
    return made.assign(**{"amount before": people["amount"].shift(), "gap": people["date"].diff().dt.days})


def transitions(rows: pd.DataFrame) -> "pd.Series[float]":
    """The share of each class of amount before, amount and gap, of rows that have an event before."""
    rows = rows.dropna(subset=["amount before", "gap"])
    classes = {name: pd.cut(rows[name].astype(float), AMOUNTS).cat.codes for name in ("amount before", "amount")}
    classes["gap"] = pd.cut(rows["gap"].astype(float), GAPS).cat.codes
    return pd.DataFrame(classes).value_counts(normalize=True)


def synthesizer(schema: Any, population: str, **more: Any) -> Synthesizer:
    """With the settings of a new project."""
    return Synthesizer(schema=schema, population=population, epsilon=1.0, delta=1e-6, cap=(1e4, 1e-3), **more)


def cdnow(draws: int) -> list[dict[str, Any]]:
    """Both ways, each released ``draws`` times, and two halves of the customers beside each other."""
    events = pd.read_parquet(SHARED / "cdnow.parquet")
    events = events.sort_values(["customer_id", "date"], kind="stable")
    real = events[events.groupby("customer_id").cumcount() < MOST]
    true_lengths, rows = lengths(real), lagged(real)
    true_transitions = transitions(rows)
    even, odd = rows[rows["customer_id"] % 2 == 0], rows[rows["customer_id"] % 2 == 1]
    results = [
        {
            "data": "cdnow", "method": "one half of the customers beside the other", "draw": 0,
            "tv_lengths": total_variation(lengths(even), lengths(odd)),
            "tv_transitions": total_variation(transitions(even), transitions(odd)),
        }
    ]  # fmt: skip
    for draw in range(draws):
        start = time.perf_counter()
        model = synthesizer(HistorySchema.from_dict(CDNOW), "cdnow", attempt=f"draw {draw}").fit(events)
        drawn = model.sample(seed=draw)["events"]
        results.append(
            {
                "data": "cdnow", "method": "histories", "draw": draw,
                "tv_lengths": total_variation(true_lengths, lengths(drawn)),
                "tv_transitions": total_variation(true_transitions, transitions(lagged(drawn))),
                "seconds": round(time.perf_counter() - start),
            }
        )  # fmt: skip
        start = time.perf_counter()
        table = rows.drop(columns="date").assign(gap=rows["gap"].astype("Int64"))
        single = synthesizer(LAGGED, "cdnow rows", attempt=f"draw {draw}", unit_column="customer_id", max_rows=MOST)
        drawn = single.fit(table).sample(seed=draw)
        results.append(
            {
                "data": "cdnow", "method": "marginals on single rows, with a lag", "draw": draw,
                "tv_transitions": total_variation(true_transitions, transitions(drawn)),
                "seconds": round(time.perf_counter() - start),
            }
        )  # fmt: skip
    return results


def scale() -> list[dict[str, Any]]:
    """100,000 people with about a million events: seconds and memory."""
    random = np.random.default_rng(0)
    count = 100_000
    person = np.repeat(np.arange(count), random.integers(1, 20, count))
    size = len(person)
    events = pd.DataFrame(
        {"id": person, "day": random.integers(0, 3000, size), "kind": random.choice(list("abcdef"), size),
         "value": random.random(size)}
    )  # fmt: skip
    people = pd.DataFrame(
        {"id": range(count), "sex": random.choice(["f", "m"], count), "age": random.integers(0, 90, count)}
    )
    spec = {
        "name": "large", "source": "made up", "person": "id", "order": "day", "most": MOST,
        "people": {"sex": {"kind": "categorical", "categories": ["f", "m"]},
                   "age": {"kind": "integer", "lower": 0, "upper": 99}},
        "events": {"day": {"kind": "integer", "lower": 0, "upper": 3000},
                   "kind": {"kind": "categorical", "categories": list("abcdef")},
                   "value": {"kind": "numeric", "lower": 0, "upper": 1}},
    }  # fmt: skip
    start = time.perf_counter()
    model = synthesizer(HistorySchema.from_dict(spec), "large").fit({"people": people, "events": events})
    made = model.sample(count)["events"]
    assert made["id"].between(1, count).all()
    seconds = round(time.perf_counter() - start)
    return [{"data": f"{size:,} events", "method": "histories", "draw": 0, "seconds": seconds, "mb": round(peak_mb())}]


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--only", choices=("cdnow", "scale"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["LIKENESS_HOME"] = home
        Ledger.start()
        results = [] if arguments.only == "cdnow" else scale()
        results += [] if arguments.only == "scale" else cdnow(arguments.draws)
    table = pd.DataFrame(results).round(4)
    print(table.to_string())
    if arguments.only is None:
        table.to_csv(RESULTS, index=False)


if __name__ == "__main__":
    main()
