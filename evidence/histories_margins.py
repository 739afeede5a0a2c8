"""How often 95 % intervals cover the truth about people with histories: of real people, of one table, of replicates.

Run: ``python -m evidence.histories_margins [--draws 25]``, half an hour on one core. Each draw takes 5,000 patients
from a public law, releases them at ε = 1 and δ = 1e-6, and draws 20 replicates. The truth is that of the law. It adds
the rows of each draw to ``evidence/results/histories_margins.csv``, skips what stands there, and fills the section of
docs/howto/histories.md. ``--draws 0`` fills it alone.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evidence.common import on_page, temporary_ledger
from likeness import Synthesizer, combine
from likeness_histories.schema import HistorySchema

RESULTS, PAGE = Path("evidence/results/histories_margins.csv"), Path("docs/howto/histories.md")
PEOPLE, REPLICATES = 5_000, 20
VISITS: dict[str, Any] = {
    "name": "visits", "source": "the law in this file", "person": "id", "order": "day", "most": 6,
    "people": {
        "smoker": {"kind": "categorical", "categories": ["no", "yes"]},
        "age": {"kind": "integer", "lower": 20, "upper": 89},
    },
    "events": {
        "day": {"kind": "integer", "lower": 0, "upper": 2000},
        "state": {"kind": "categorical", "categories": ["a", "b", "c"]},
        "cost": {"kind": "numeric", "lower": 0, "upper": 500, "decimals": 1},
    },
}  # fmt: skip
NEXT = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]])


def visits(count: int, seed: int) -> dict[str, pd.DataFrame]:
    """Patients by a law: smokers come more often and cost more; a state depends on the one before alone."""
    random = np.random.default_rng(seed)
    smoker, age = random.random(count) < 0.3, random.integers(20, 90, count)
    lengths = np.minimum(6, random.poisson(2.5 + smoker))
    days, states = [random.integers(0, 300, count)], [random.choice(3, count, p=[0.6, 0.3, 0.1])]
    for _ in range(5):
        days.append(days[-1] + random.gamma(2, 50, count).astype(int))
        states.append((random.random(count)[:, None] > NEXT[states[-1]].cumsum(axis=1)[:, :2]).sum(axis=1))
    costs = np.clip(random.gamma(3, 30 + 20 * smoker[:, None], (count, 6)) + age[:, None] / 2, 0, 500).round(1)
    there = np.arange(6) < lengths[:, None]
    events: dict[str, Any] = {"id": np.repeat(np.arange(count), lengths), "day": np.stack(days, axis=1)[there]}
    events |= {"state": np.array(["a", "b", "c"])[np.stack(states, axis=1)[there]], "cost": costs[there]}
    people = {"id": np.arange(count), "smoker": np.where(smoker, "yes", "no"), "age": age}
    return {"people": pd.DataFrame(people), "events": pd.DataFrame(events)}


def analysis(tables: dict[str, pd.DataFrame]) -> "tuple[pd.Series[float], pd.Series[float]]":
    """Numbers about people and events, and their squared standard errors. The events of a person stand together."""
    keys, events = tables["people"]["id"].to_numpy(), tables["events"].sort_values(["id", "day"], kind="stable")
    smoker = (tables["people"]["smoker"].astype(str) == "yes").to_numpy()
    place, state = np.searchsorted(keys, events["id"]), events["state"].astype(str)
    following = state.groupby(events["id"]).shift(-1)
    gaps = events.groupby("id")["day"].shift(-1) - events["day"].astype(float)

    def mean(values: Any, of: Any) -> tuple[float, float]:
        top, below = (np.bincount(place, np.where(of, one, 0.0), len(keys)) for one in (values, 1.0))
        ratio = top.sum() / below.sum()
        return ratio, ((top - ratio * below) ** 2).sum() / below.sum() ** 2

    def difference(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
        return one[0] - other[0], one[1] + other[1]

    lengths, theirs = np.bincount(place, minlength=len(keys)), smoker[place]
    found = {
        f"{after} after {before}": mean(following == after, following.notna() & (state == before))
        for after, before in ("aa", "bb", "ba")
    }
    found["gap"] = mean(gaps.fillna(0), gaps.notna())
    of_all = [(lengths[group].mean(), lengths[group].var() / group.sum()) for group in (smoker, ~smoker)]
    found["events, smokers less others"] = difference(*of_all)
    found["cost, smokers less others"] = difference(*(mean(events["cost"], group) for group in (theirs, ~theirs)))
    names = list(found)
    return pd.Series([found[name][0] for name in names], names), pd.Series([found[name][1] for name in names], names)


def interval(estimates: "pd.Series[float]", variances: "pd.Series[float]") -> pd.DataFrame:
    """The usual 95 % intervals."""
    half = 1.96 * np.sqrt(variances)
    return pd.DataFrame({"estimate": estimates, "low": estimates - half, "high": estimates + half})


def rows_of(draw: int, truth: "pd.Series[float]") -> list[dict[str, Any]]:
    """A draw of the law and of the noise: one row for each method and number."""
    private = visits(PEOPLE, draw)
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "cap": (10.0, 1e-5), "population": f"visits {draw}"}
    model = Synthesizer(schema=HistorySchema.from_dict(VISITS), **given).fit(private)
    table = analysis(model.sample(seed=draw))  # type: ignore[arg-type]  # both tables
    base, *fits = map(analysis, model.sample(seed=draw, replicates=REPLICATES))  # type: ignore[arg-type]
    of_fits = [fit[0] for fit in fits], [fit[1] for fit in fits]
    methods = {
        "private people": interval(*analysis(private)),
        "one table": interval(*table),
        "replicates without base": combine(*of_fits),
        "replicates with base and table": combine(*of_fits, base[0], table[0]),
    }
    rows = []
    for method, found in methods.items():
        numbers = found[["estimate", "low", "high"]].assign(truth=truth)
        covered = (numbers["low"] <= truth) & (truth <= numbers["high"])
        numbers = numbers.round(5).assign(covered=covered.astype(int))
        rows += numbers.reset_index(names="number").assign(draw=draw, method=method).to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]


def means(results: pd.DataFrame) -> pd.DataFrame:
    """Coverage in percent, mean width and mean error of each method and number."""
    results = results.assign(width=results["high"] - results["low"], error=results["estimate"] - results["truth"])
    groups = results.groupby(["method", "number"], sort=False)
    numbers = groups[["covered", "width", "error", "truth"]].mean().round(3)
    return numbers.assign(covered=100 * numbers["covered"], draws=groups.size())


def section(results: pd.DataFrame) -> str:
    """Coverage in percent by method, and that of replicates by number."""
    of_methods = results.groupby("method", sort=False)["covered"].mean()
    last = results[results["method"] == results["method"].iloc[-1]].groupby("number", sort=False)["covered"].mean()
    lines = [f"{name:<34}{100 * share:4.0f} %" for name, share in of_methods.items()]
    lines += [f"  {name:<32}{100 * share:4.0f} %" for name, share in last.items()]
    return "\n".join(["```text", *lines, "```"])


def main() -> None:
    """Run what is missing, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=25)
    draws = parser.parse_args().draws
    results = pd.read_csv(RESULTS) if RESULTS.exists() else pd.DataFrame({"draw": []})
    truth = analysis(visits(400_000, 10**6))[0]
    with temporary_ledger():
        for draw in sorted({*range(draws)} - {*results["draw"]}):
            results = pd.concat([results, pd.DataFrame(rows_of(draw, truth))]).astype({"draw": int})
            results.to_csv(RESULTS, index=False)
    print(means(results).to_string())
    on_page(PAGE, {"coverage": section(results)})


if __name__ == "__main__":
    main()
