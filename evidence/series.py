"""Five years of nightly releases about a growing table, through the door and a real ledger, within ε = 10.

Run: ``python -m evidence.series [--years 5] [--people 10]``. Each night some people come. The night asks for the counts
of all columns and pairs of its cohort. A running total is the sum of the cohorts that make up all people until then. It
is compared with the exact counts. Results: evidence/results/series.csv, a line a night.
"""

import argparse
import datetime
import math
import os
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from likeness.bundle.extract import chain_extract
from likeness.core.bounds import PrivacyUnit
from likeness.core.hashing import sha256_json
from likeness.features.cells import Cells
from likeness.ledger import records as records_of
from likeness.ledger.first_nights import people_of_tonight
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.records import Record
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.preflight.cost import RUNS_A_YEAR
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import epsilon_of_rho, rho_for
from likeness.privacy.cohorts import Cohort
from likeness.privacy.plan import QueryShare, make_plan
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import from_bytes
from likeness.release.request import Dataset
from likeness.verify.ledger import costs

RESULTS = Path("evidence/results/series.csv")
EPSILON, DELTA, ADD = 10.0, 1e-5, Adjacency.ADD_REMOVE_ONE
SIZES = (5, 4, 3, 2)  # categories of each column
UNIT = PrivacyUnit("pid", 1)
FIRST = datetime.date(2021, 1, 1)


def plan_of(epsilon: float) -> Any:
    """A plan with one query."""
    shares = [QueryShare("embedding", "privatize", 1.0)]
    of = {"method": "marginals", "identity": "people", "delta": DELTA, "adjacency": ADD, "num_records": None}
    return make_plan(shares=shares, epsilon=epsilon, unit=UNIT, **of)


def nights(years: float, people: int) -> pd.DataFrame:
    """Every night: its cohort, what was spent, and the error of its running totals."""
    count, generator = round(RUNS_A_YEAR["night"] * years), np.random.default_rng(0)
    epsilon = math.floor(1e3 * epsilon_of_rho(rho_for(EPSILON, DELTA) / count.bit_length(), DELTA)) / 1e3
    starts = np.cumsum([0, *SIZES])
    columns = PairMarginals(tuple(Cells(int(start), size) for start, size in zip(starts, SIZES, strict=False)))
    records_of._now = FIRST.isoformat
    query, plan, ledger = Query("embedding", "privatize", columns), plan_of(epsilon), Ledger.create(locate())
    ledger.declare_population("people", ADD, EPSILON, DELTA, "pid")
    places = np.zeros((0, len(SIZES)), dtype=np.int64)
    noisy, rows = {0: np.zeros(query.dimension)}, []
    for night in range(1, count + 1):
        started, day = time.monotonic(), (FIRST + datetime.timedelta(night)).isoformat()
        records_of._now = lambda day=day: day
        new = int(generator.poisson(people))
        places = np.vstack([places, generator.binomial(np.array(SIZES) - 1, 0.4, (new, len(SIZES)))])
        names = [f"person {number}" for number in range(len(places))]
        tonight = people_of_tonight(ledger, "people", "1", names)
        chosen = np.array([name in tonight.members for name in names], dtype=bool)
        x = np.zeros((len(places), int(starts[-1])))
        for start, column in zip(starts, places.T, strict=False):
            x[np.arange(len(places)), start + column] = 1
        numbers = np.arange(int(chosen.sum()), dtype=np.int64)
        given = Records(x[chosen], np.zeros(len(numbers), dtype=np.int64), numbers)
        night_of = {"group": tonight.group, "first_nights": tonight.first_nights}
        about = Dataset("people", sha256_json(f"rows of night {night}"), encoding="0" * 64, unit=UNIT, **night_of)
        released = from_bytes(Door(plan, ledger, about, lambda given=given: [given]).release(query), "night")
        cohort = Cohort.of(tonight.group)
        assert cohort is not None and cohort.last == night
        noisy[night] = noisy[cohort.first - 1] + released.lattice.ravel() * 2.0**-query.lattice_bits
        budget = ledger.budget("people")
        assert budget is not None
        error = float(np.sqrt(np.mean((noisy[night] - _counts(columns, x)) ** 2)))
        spent = {"cohort": tonight.group, "people": len(places), "epsilon": budget.spent_epsilon, "error": error}
        rows.append({"night": night, **spent, "seconds": time.monotonic() - started})
    extract, params = (
        chain_extract(ledger.records(), "people"),
        SimpleNamespace(privacy=SimpleNamespace(population="people")),
    )
    shown = SimpleNamespace(records=[Record(**record) for record in extract if "body" in record], params=params)
    print(f"each night at epsilon {epsilon:g}; the verifier: {costs(shown)}")  # type: ignore[arg-type]
    return pd.DataFrame(rows)


def _counts(columns: PairMarginals, x: np.ndarray) -> np.ndarray:
    """Exact counts of all cells."""
    places = columns.places(x)
    widths = [part.width for part in columns.parts]
    return np.concatenate([np.bincount(places[:, one], minlength=width) for one, width in enumerate(widths)])


def main() -> int:
    """Run all nights; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--years", type=float, default=5.0)
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({"LIKENESS_HOME": f"{folder}/home", "LIKENESS_ANCHOR": f"{folder}/anchor"})
        table = nights(arguments.years, arguments.people)
    table.to_csv(arguments.results, index=False, float_format="%.6g")
    plan = plan_of(1.0)
    one = math.sqrt(sum(1 for _ in SIZES) + math.comb(len(SIZES), 2)) * plan.queries[0].noise_multiplier
    ratio = table["error"] / one
    last, spent = table.iloc[-1], table["epsilon"].max()
    print(
        f"{len(table):,} nights, {last['people']:,} people at last: epsilon {spent:.4g} of {EPSILON:g}. Error of "
        f"running totals beside one release at epsilon 1 ({one:.3g}): median {ratio.median():.3g}, most "
        f"{ratio.max():.3g}. A night took {table['seconds'].head(100).median():.3g} s at first, "
        f"{table['seconds'].tail(100).median():.3g} s at last."
    )
    return int(spent > EPSILON or ratio.max() > 4)


if __name__ == "__main__":
    raise SystemExit(main())
