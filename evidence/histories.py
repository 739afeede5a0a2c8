"""People with histories: CDNOW, households, a chain, and a table of a million events.

Run: ``python -m evidence.histories [--draws 3] [--only PART]``. PART is cdnow, prediction, habits, households, chain,
hidden or scale. It writes the rows of these parts into ``evidence/results/histories.csv``. ``--people`` runs the
chain with one number of people.

CDNOW has 23,570 customers with 69,659 purchases: date, number and amount (``../shared/data/cdnow.parquet``). At most
k = 20 purchases of a customer count, ε = 1, δ = 1e-6. Beside histories stands ``marginals`` on single rows with
``unit_column``, on a table that has the amount before and the gap as columns. The benchmark makes that table, the
bounds of its columns are public.

Households and the chain are simulated with public laws, so their truth is another draw of the law. ``ceiling`` compares
two such draws, and ``floor`` shuffles one (:mod:`likeness_histories.measures`).
"""

import argparse
import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evidence.common import SHARED, temporary_ledger
from evidence.memory import peak_mb
from evidence.pages import origin
from likeness import Synthesizer
from likeness.core import rng
from likeness.data.schema.row_sets import GAP, LENGTH
from likeness.data.source.files import read_frame_people
from likeness.evaluation.marginals import cells
from likeness_histories.measures import discrimination, history_distances, shuffle_row_sets, with_steps
from likeness_histories.row_sets import HistoryRows, history_rows
from likeness_histories.schema import HistorySchema

RESULTS = Path("evidence/results/histories.csv")
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


def next_event_accuracy(
    schema: HistorySchema, train: HistoryRows, test: HistoryRows, column: str, bins: int = 4, seed: int = 0
) -> float:
    """Share of next events whose cell a classifier predicts, which learns from ``train``.

    It sees the person, the step and the last event. It does not see what lies in the future: the gap, the length, and
    what is usual.

    Args:
        schema: public.
        train: synthetic rows, or real ones for the ceiling.
        test: real rows that neither trained the generator nor the ceiling.
        column: a column of events that moves and is not the order.
        bins: cells of a numeric column.
        seed: public seed of the classifier.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    table, _ = with_steps(schema, train)
    names, later = table.names, {GAP, LENGTH, *(one.name for one in schema.usual)}
    later |= {f"next {one.name}" for one in schema.states}
    seen = [place for place, name in enumerate(names) if name not in later]
    target = names.index(f"next {column}")
    (learn, _), (judged, _) = (cells(with_steps(schema, rows)[1], table, bins) for rows in (train, test))
    number = rng.public_seed(seed, "evaluation.histories.next") % 2**32  # scikit-learn takes 32 bits
    if len(np.unique(learn[:, target])) == 1:
        return float((judged[:, target] == learn[0, target]).mean())
    model = HistGradientBoostingClassifier(max_iter=50, random_state=number).fit(learn[:, seen], learn[:, target])
    return float((model.predict(judged[:, seen]) == judged[:, target]).mean())


def distinct_people(schema: HistorySchema, rows: HistoryRows, bins: int = 16) -> float:
    """Number of distinct histories over the number of people. Histories are equal if all their cells are."""
    of_person, _ = cells(rows.people, schema.first_rows, bins)
    codes, _ = cells(rows.transitions, schema.next_rows, bins)
    ends = np.searchsorted(rows.numbers, np.arange(len(of_person)), side="right")
    starts = np.searchsorted(rows.numbers, np.arange(len(of_person)), side="left")
    parts = zip(of_person, starts, ends, strict=True)
    return len({(one.tobytes(), codes[start:end].tobytes()) for one, start, end in parts}) / max(len(of_person), 1)


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
    return Synthesizer(schema=schema, population=population, delta=1e-6, cap=(1e4, 1e-3), **{"epsilon": 1.0, **more})


def purchases() -> tuple[pd.DataFrame, pd.DataFrame]:
    """All purchases of CDNOW in order, and those that count."""
    events = pd.read_parquet(SHARED / "cdnow.parquet").sort_values(["customer_id", "date"], kind="stable")
    return events, events[events.groupby("customer_id").cumcount() < MOST]


def cdnow(draws: int) -> list[dict[str, Any]]:
    """Both ways, each released ``draws`` times, and two halves of the customers beside each other."""
    events, real = purchases()
    true_lengths, rows = lengths(real), lagged(real)
    true_transitions = transitions(rows)
    even, odd = rows[rows["customer_id"] % 2 == 0], rows[rows["customer_id"] % 2 == 1]

    def row(method: str, draw: int, drawn: pd.DataFrame, start: float, **more: float) -> dict[str, Any]:
        error = total_variation(true_transitions, transitions(drawn))
        cost = {"tv_transitions": error, "seconds": round(time.perf_counter() - start)}
        return {"data": "cdnow", "method": method, "draw": draw, **more, **cost}

    halves = {"tv_lengths": total_variation(lengths(even), lengths(odd))}
    halves["tv_transitions"] = total_variation(transitions(even), transitions(odd))
    results = [{"data": "cdnow", "method": "one half of the customers beside the other", "draw": 0, **halves}]
    for draw in range(draws):
        start = time.perf_counter()
        model = synthesizer(HistorySchema.from_dict(CDNOW), "cdnow", attempt=f"draw {draw}").fit(events)
        drawn = model.sample(seed=draw)["events"]
        length = total_variation(true_lengths, lengths(drawn))
        results.append(row("histories", draw, lagged(drawn), start, tv_lengths=length))
        start = time.perf_counter()
        table = rows.drop(columns="date").assign(gap=rows["gap"].astype("Int64"))
        single = synthesizer(LAGGED, "cdnow rows", attempt=f"draw {draw}", unit_column="customer_id", max_rows=MOST)
        drawn = single.fit(table).sample(seed=draw)
        results.append(row("marginals on single rows, with a lag", draw, drawn, start))
    return results


def scale() -> list[dict[str, Any]]:
    """Up to 100,000 people with about a million events: seconds and memory."""
    return [large(count) for count in (25_000, 50_000, 100_000)]


def large(count: int) -> dict[str, Any]:
    """People with about ten events each."""
    random = np.random.default_rng(0)
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
    model = synthesizer(HistorySchema.from_dict(spec), f"large {count}").fit({"people": people, "events": events})
    made = model.sample(count)["events"]
    assert made["id"].between(1, count).all()
    seconds = round(time.perf_counter() - start)
    return {"data": f"{size:,} events", "method": "histories", "draw": 0, "seconds": seconds, "mb": round(peak_mb())}


def buys_again(events: pd.DataFrame) -> tuple[pd.DataFrame, "pd.Series[bool]"]:
    """What is known at each purchase, and whether another one follows within 90 days, all of which the table covers."""
    rows = lagged(events)
    customers = rows.groupby("customer_id")
    number, wait = customers.cumcount() + 1, (customers["date"].shift(-1) - rows["date"]).dt.days
    seen = rows[["quantity", "amount", "amount before", "gap"]].astype(float).assign(number=number)
    covered = (rows["date"] <= pd.Timestamp("1998-04-01")) & (number < MOST)
    return seen[covered], (wait <= 90)[covered]


def prediction(draws: int) -> list[dict[str, Any]]:
    """ROC AUC of "buys again within 90 days" among odd customers. Classifier and generator learn from even ones."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    _, events = purchases()
    even = events[events["customer_id"] % 2 == 0]
    seen, label = buys_again(events[events["customer_id"] % 2 == 1])

    def auc(train: pd.DataFrame) -> float:
        judge = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(*buys_again(train))
        return float(roc_auc_score(label, judge.predict_proba(seen)[:, 1]))

    head = {"data": "cdnow, buys again"}
    results = [{**head, "method": "real", "draw": 0, "auc": auc(even)}]
    for draw in range(draws):
        model = synthesizer(HistorySchema.from_dict(CDNOW), "cdnow even", attempt=f"draw {draw}").fit(even)
        results.append({**head, "method": "histories", "draw": draw, "auc": auc(model.sample(seed=draw)["events"])})
    return results


def habits(events: pd.DataFrame) -> dict[str, float]:
    """Correlations within customers, of logarithms of amounts one and four purchases apart, and of gaps one and three.

    A habit that lasts keeps them up at any distance. A chain forgets it.
    """
    rows = lagged(events)
    found = {}
    for name, apart in (("amount", 1), ("amount", 4), ("gap", 1), ("gap", 3)):
        values = np.log1p(rows[name].astype(float))
        found[f"correlation_{name}s_{apart}"] = float(values.corr(values.groupby(rows["customer_id"]).shift(apart)))
    return found


def lasting_habits(draws: int) -> list[dict[str, Any]]:
    """How long habits of customers of CDNOW last, by what histories remember."""
    events, real = purchases()
    true_lengths, true_transitions = lengths(real), transitions(lagged(real))
    head = {"data": "cdnow, habits"}
    results = [{**head, "method": "real", "draw": 0, **habits(real)}]
    for memory, draw in product(([], ["before"], ["usual"]), range(draws)):
        method = ", ".join(["histories", *memory])
        schema = HistorySchema.from_dict({**CDNOW, "memory": memory})
        model = synthesizer(schema, "cdnow", attempt=f"{method} {draw}").fit(events)
        drawn = model.sample(seed=draw)["events"]
        scores = {
            "tv_lengths": total_variation(true_lengths, lengths(drawn)),
            "tv_transitions": total_variation(true_transitions, transitions(lagged(drawn))),
        }
        results.append({**head, "method": method, "draw": draw, **scores, **habits(drawn)})
    return results


HOUSEHOLDS: dict[str, Any] = {
    "name": "households", "source": "simulated", "person": "id", "order": "born", "most": 8,
    "people": {"region": {"kind": "categorical", "categories": ["town", "village"]}},
    "events": {"born": {"kind": "integer", "lower": 1920, "upper": 2020},
               "role": {"kind": "categorical", "categories": ["head", "partner", "child"]}},
    "rules": [
        {"if": {"region": ["town", "village"]}, "then": {"number of events": ">= 1", "first role": "head"}},
        {"never": {"last role": ["head", "partner", "child"], "next role": "head"}},
        {"if": {"next role": "partner"}, "then": {"last role": "head"}},
        {"if": {"next role": "child"}, "then": {"since first": ">= 18"}},
    ],
}  # fmt: skip
STATES = [f"s{state:02d}" for state in range(12)]
CHAIN: dict[str, Any] = {
    "name": "chain", "source": "simulated", "person": "id", "order": "step", "most": 6,
    "people": {"class": {"kind": "categorical", "categories": ["up", "down"]}},
    "events": {"step": {"kind": "integer", "lower": 1, "upper": 6},
               "state": {"kind": "categorical", "categories": STATES}},
}  # fmt: skip
CHAINS = {count: (1.0,) for count in (3_000, 30_000)} | {
    count: (0.2, 0.5, 1.0, 2.0, 5.0, 10.0) for count in (1_000, 10_000, 100_000)
}
"""Values of ε by numbers of people."""
TABLE = {"privatize": {"workload": [{"columns": ["class", "last state", "next state"], "weight": 15}]}}
HIDDEN: dict[str, Any] = {name: value for name, value in CHAIN.items() if name != "people"}
MEMORY = {"privatize": {"workload": [{"columns": ["before state", "last state", "next state"], "weight": 15}]}}
PICTURE = Path("docs/img/chain.svg")


def households(count: int, seed: int) -> dict[str, pd.DataFrame]:
    """Households of 1 to 8: a head, in most a partner at most 10 years younger, and children 18 years younger or more.

    Villages have more partners and more children.
    """
    random = np.random.default_rng(seed)
    village = random.random(count) < 0.4
    head = random.integers(1930, 1996, count)
    paired = random.random(count) < np.where(village, 0.7, 0.5)
    children = np.minimum(random.poisson(np.where(village, 1.6, 0.8)), 6)
    parts = [
        pd.DataFrame({"id": np.arange(count), "born": head, "role": "head"}),
        pd.DataFrame({"id": np.arange(count), "born": head + random.integers(0, 11, count), "role": "partner"})[paired],
    ]
    parents = np.repeat(np.arange(count), children)
    births = np.minimum(head[parents] + 18 + random.integers(0, 20, len(parents)), 2020)
    parts.append(pd.DataFrame({"id": parents, "born": births, "role": "child"}))
    people = pd.DataFrame({"id": np.arange(count), "region": np.where(village, "village", "town")})
    return {"people": people, "events": pd.concat(parts, ignore_index=True)}


def chain(count: int, seed: int) -> dict[str, pd.DataFrame]:
    """Six events in twelve states: with probability .8 one state up or down by the class, else any state."""
    random = np.random.default_rng(seed)
    up = random.random(count) < 0.5
    states = [random.integers(0, 12, count)]
    for _ in range(5):
        jump = np.where(random.random(count) < 0.8, np.where(up, 1, -1), random.integers(0, 12, count))
        states.append((states[-1] + jump) % 12)
    events = {"id": np.repeat(np.arange(count), 6), "step": np.tile(np.arange(1, 7), count)}
    events["state"] = np.array(STATES)[np.stack(states, axis=1).ravel()]
    people = pd.DataFrame({"id": np.arange(count), "class": np.where(up, "up", "down")})
    return {"people": people, "events": pd.DataFrame(events)}


def row_sets(schema: HistorySchema, tables: dict[str, pd.DataFrame]) -> HistoryRows:
    """Both row sets of two tables."""
    assert schema.people is not None
    events = read_frame_people(tables["events"], schema.events, schema.person)
    return history_rows(schema, *events, *read_frame_people(tables["people"], schema.people, schema.person))


def measured(schema: HistorySchema, test: HistoryRows, other: HistoryRows, column: str) -> dict[str, Any]:
    """All measures of one table beside a fresh draw of the law."""
    distances = {f"tv_{name}": value for name, value in history_distances(schema, test, other).items()}
    return {
        **distances,
        "discrimination": discrimination(schema, test, other),
        "next_event_accuracy": next_event_accuracy(schema, other, test, column),
        "distinct": distinct_people(schema, other),
    }


def broken(tables: dict[str, pd.DataFrame]) -> float:
    """The share of households that break a rule: one head, at most one partner, children 18 years younger."""
    events = tables["events"].sort_values(["id", "born"])
    roles = pd.crosstab(events["id"], events["role"])
    roles = roles.reindex(index=tables["people"]["id"], columns=["head", "partner"], fill_value=0)
    bad = (roles["head"] != 1) | (roles["partner"] > 1)
    oldest = events[events["role"] == "head"].groupby("id")["born"].min()
    young = events[(events["role"] == "child") & ~(events["born"] >= events["id"].map(oldest) + 18)]
    return float((bad | bad.index.isin(young["id"])).mean())


def simulated_households(draws: int, count: int = 50_000) -> list[dict[str, Any]]:
    """Ceiling, floor, and releases of households."""
    schema = HistorySchema.from_dict(HOUSEHOLDS)
    real, again = households(count, 0), households(count, 1)
    test, train = row_sets(schema, again), row_sets(schema, real)
    head = {"data": "households"}
    results = [
        {**head, "method": "ceiling", "draw": 0, **measured(schema, test, train, "role"), "broken": broken(real)},
        {**head, "method": "floor", "draw": 0, **measured(schema, test, shuffle_row_sets(train, 0), "role")},
    ]
    for draw in range(draws):
        start = time.perf_counter()
        drawn = synthesizer(schema, "households", attempt=f"draw {draw}").fit(real).sample(count, seed=draw)
        seconds = round(time.perf_counter() - start)
        scores = measured(schema, test, row_sets(schema, drawn), "role")
        orphans = int((~drawn["events"]["id"].isin(drawn["people"]["id"])).sum())
        more = {"seconds": seconds, "orphans": orphans, "broken": broken(drawn)}
        results.append({**head, "method": "histories", "draw": draw, **scores, **more})
    return results


def law_error(tables: dict[str, pd.DataFrame]) -> dict[str, float]:
    """Total variation of transitions from the law of :func:`chain`, in all and by class."""
    events = tables["events"]["state"].map({state: number for number, state in enumerate(STATES)}).to_numpy()
    people = tables["events"]["id"].to_numpy()
    up = (tables["people"].set_index("id")["class"] == "up").reindex(people).to_numpy()[:-1].astype(int)
    again = people[1:] == people[:-1]
    counts = np.zeros((2, 12, 12))
    np.add.at(counts, (up[again], events[:-1][again], events[1:][again]), 1)
    law = np.array([0.8 * np.roll(np.eye(12), jump, axis=1) + 0.2 / 12 for jump in (-1, 1)]) / 24
    shares = counts / counts.sum()
    by_class, both = np.abs(shares - law).sum() / 2, np.abs(shares.sum(axis=0) - law.sum(axis=0)).sum() / 2
    return {"law_transitions": float(both), "law_by_class": float(by_class)}


def simulated_chain(draws: int, people: int | None = None) -> list[dict[str, Any]]:
    """Error of the transitions by people and ε, with pairs alone and with a table of three columns."""
    schema = HistorySchema.from_dict(CHAIN)
    test, again = row_sets(schema, chain(20_000, 1)), chain(20_000, 2)
    ceiling = {**measured(schema, test, row_sets(schema, again), "state"), **law_error(again)}
    results = [{"data": "chain", "method": "ceiling", "draw": 0, "people": 20_000, **ceiling}]
    counts = CHAINS if people is None else (people,)
    asked = [(count, epsilon) for count in counts for epsilon in CHAINS[count]]
    ways: tuple[tuple[str, dict[str, Any]], ...] = (("pairs", {}), ("with a table", TABLE))
    for (count, epsilon), (method, settings), draw in product(asked, ways, range(draws)):
        attempt = f"{method} {draw}"
        given = {"attempt": attempt, "epsilon": epsilon, "settings": settings}
        drawn = synthesizer(schema, f"chain of {count}", **given).fit(chain(count, 0)).sample(20_000, seed=draw)
        scores = measured(schema, test, row_sets(schema, drawn), "state") if epsilon == 1 else {}
        head = {"data": "chain", "method": method, "draw": draw, "people": count, "epsilon": epsilon}
        results.append({**head, **scores, **law_error(drawn)})
    return results


def hidden_class(draws: int, count: int = 10_000) -> list[dict[str, Any]]:
    """The chain without the column that says the class: states that follow each other, and states two steps apart."""
    judge = HistorySchema.from_dict({**HIDDEN, "memory": ["before"]})

    def rows_of_chain(tables: dict[str, pd.DataFrame]) -> HistoryRows:
        return history_rows(judge, *read_frame_people(tables["events"], judge.events, judge.person))

    def two_steps(rows: HistoryRows) -> "pd.Series[float]":
        return rows.transitions[["before state", "next state"]].dropna().value_counts(normalize=True)

    test, real, head = rows_of_chain(chain(20_000, 1)), chain(count, 0), {"data": "chain of a hidden class"}
    ways: dict[str, tuple[list[str], dict[str, Any]]] = {
        "without memory": ([], {}), "memory": (["before"], {}), "memory, with a table": (["before"], MEMORY),
    }  # fmt: skip
    drawn: list[tuple[str, int, Any]] = [("ceiling", 0, chain(20_000, 2))]
    for (way, (memory, settings)), draw in product(ways.items(), range(draws)):
        schema = HistorySchema.from_dict({**HIDDEN, "memory": memory})
        model = synthesizer(schema, "hidden chain", attempt=f"{way} {draw}", settings=settings).fit(real["events"])
        drawn.append((way, draw, model.sample(20_000, seed=draw)))
    results = []
    for way, draw, tables in drawn:
        rows = rows_of_chain(tables)
        scores = {
            "tv_transitions": history_distances(judge, test, rows)["transitions"],
            "tv_two_steps": total_variation(two_steps(test), two_steps(rows)),
        }
        results.append({**head, "method": way, "draw": draw, **scores})
    return results


def draw_chain(results: pd.DataFrame) -> None:
    """Errors by the product of people and ε on logarithmic axes, as a picture."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "chain", "svg.fonttype": "none"}
    from matplotlib import pyplot as plt

    figure, both = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True)
    several = [count for count, every in CHAINS.items() if len(every) > 1]
    ceiling = results[results["method"] == "ceiling"].iloc[0]
    for axes, method in zip(both, ("pairs", "with a table"), strict=True):
        ours = results[(results["method"] == method) & results["people"].isin(several)]
        for color, count in enumerate(several):
            mean = ours[ours["people"] == count].groupby("epsilon")[["law_transitions", "law_by_class"]].mean()
            places, shade = count * mean.index, f"C{color}"
            axes.loglog(places, mean["law_transitions"], "-o", color=shade, ms=3, label=f"{count:,} people")
            axes.loglog(places, mean["law_by_class"], "--o", color=shade, ms=3)
        ends = np.array([min(several) * 0.2, max(several) * 10])
        axes.loglog(ends, 600 / ends, ":", color="black", lw=0.8, label="1 / (n ε)")
        axes.axhline(ceiling["law_transitions"], color="gray", lw=0.8, label="20,000 people of the law")
        axes.set(title=method, xlabel="people n times ε", ylim=(4e-3, 1.5))
    both[0].set_ylabel("total variation")
    both[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parts = {
        "scale": lambda _: scale(), "cdnow": cdnow, "prediction": prediction, "habits": lasting_habits,
        "households": simulated_households, "chain": simulated_chain, "hidden": hidden_class,
    }  # fmt: skip
    parser.add_argument("--only", choices=tuple(parts))
    parser.add_argument("--people", type=int, choices=tuple(CHAINS), help="of the chain")
    arguments = parser.parse_args()
    parts["chain"] = partial(simulated_chain, people=arguments.people)
    names = [arguments.only] if arguments.only else list(parts)
    if not (SHARED / "cdnow.parquet").exists():
        print(f"{SHARED / 'cdnow.parquet'} is missing, so CDNOW is left out. Put the table of purchases there.")
        names = [name for name in names if name not in ("cdnow", "prediction", "habits")]
    with temporary_ledger():
        table = (
            pd.DataFrame([row for name in names for row in parts[name](arguments.draws)]).round(4).assign(**origin())
        )
    print(table.to_string())
    if names:
        before, key = pd.read_csv(RESULTS), ["data", "people"]
        of, made = (pd.MultiIndex.from_frame(one.reindex(columns=key).fillna(0)) for one in (before, table))
        written = pd.concat([before[~of.isin(made)], table])
        written.to_csv(RESULTS, index=False)
        draw_chain(written[written["data"] == "chain"])


if __name__ == "__main__":
    main()
