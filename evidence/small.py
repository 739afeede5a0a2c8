"""Small tables: ours, MST and AIM on a few hundred to ten thousand rows. Fills evidence/TABLES.md.

Run: ``python -m evidence.small [--table adult] [--rows 5000] [--epsilon 1] [--only ours] [--draws 3]``. Resumable.
The protocol is that of :mod:`evidence.tables`, on a public draw of the training rows and as many synthetic ones. ACS
is NIST's excerpt of Texas, ``acs_ma`` that of Massachusetts, without a label. NLTCS has 16 binary columns and none.
``--only rules`` adds the public rules of the table, and ``--only`` names the peers of
:mod:`evidence.peers_clones` too.

Dependence kept: the strength of a pair in the synthetic table over that in the training rows, mean of the 15 pairs that
are strongest there. 1 is best, more is noise. Contradicting: percent of rows that break a public rule of the table. ACS
has those of NIST's dictionary, but for the density of an area, a number that no cell holds exactly; on Adult
``education`` says ``education-num``. AUC: mean of three classifiers on real test rows.
"""

import argparse
import dataclasses
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evidence.common import SHARED, Results, Table, cell, load, markdown, on_page, synthesize
from evidence.nist import excerpt, schema_of
from evidence.tables import CLONES, NAMES, run_peer, unlabeled, with_epsilon, with_schema
from likeness.core.rng import public
from likeness.data.schema.constrained_tables import values_of
from likeness.data.schema.schema import Schema
from likeness.evaluation.marginals import SEPARATOR, cells, marginal_table, total_variation
from likeness.evaluation.utility import shuffle_columns, train_on_synthetic_test_on_real

RESULTS = Results(Path("evidence/results/small.csv"), ["table", "rows", "epsilon", "method", "draw"])
PAGE = Path("evidence/TABLES.md")
ROWS = (500, 1_000, 2_000, 5_000, 10_000)
EPSILONS = (0.2, 1.0, 3.0, 10.0)
TABLES = {"adult": ROWS, "census": ROWS, "acs": ROWS, "acs_ma": (5_000,), "nltcs": (2_000, 21_574)}
METHODS = {**NAMES, "look": "look", "contrasts": "`basis: auto`", "rules": "rules"}  # two of earlier recipes
RUN = ("ours", "mst", "aim")
CLASSIFIERS = ("logistic_regression", "random_forest", "gradient_boosting")
COLUMNS = {
    "roc_auc_score": ("AUC score", 3),
    "roc_auc_hard": ("AUC hard", 3),
    "tv_2": ("2-way TV", 4),
    "tv_3": ("3-way TV", 4),
    "top_tv": ("TV, 15 strongest", 3),
    "kept": ("dependence kept", 2),
    "contradicting": ("contradicting, %", 1),
    "seconds": ("seconds", 0),
}
_MOST_TEST_ROWS = 10_000


def strongest_pairs(
    real: pd.DataFrame, other: pd.DataFrame, schema: Schema, bins: int = 16, count: int = 15
) -> pd.DataFrame:
    """The ``count`` pairs of columns that depend most on each other in the real table, strongest first.

    Strength is the total variation between a pair's joint shares and the product of its single columns' shares.

    Args:
        real: typed reference table.
        other: typed table to compare with it.
        schema: public schema of both.
        bins: cells of a numeric column, missing not counted.
        count: most pairs.

    Returns:
        one row per pair: ``columns``, ``strength`` in the real table, ``kept``, the other table's strength over it, and
        ``total_variation`` of the pair between both. Pairs of strength 0 are left out.
    """
    (a, sizes), (b, _) = cells(real, schema, bins), cells(other, schema, bins)
    strengths = {pair: _strength(a, sizes, *pair) for pair in combinations(range(len(sizes)), 2)}
    chosen = sorted((pair for pair in strengths if strengths[pair] > 0), key=lambda pair: -strengths[pair])[:count]
    rows = [
        (
            SEPARATOR.join(schema.names[index] for index in pair),
            strengths[pair],
            _strength(b, sizes, *pair) / strengths[pair],
            total_variation(a, b, sizes, pair),
        )
        for pair in chosen
    ]
    return pd.DataFrame(rows, columns=["columns", "strength", "kept", "total_variation"])


def _strength(codes: NDArray[np.int64], sizes: Sequence[int], i: int, j: int) -> float:
    """Total variation between a pair's joint shares and the product of its single ones."""
    joint = np.bincount(codes[:, i] * sizes[j] + codes[:, j], minlength=sizes[i] * sizes[j]) / len(codes)
    joint = joint.reshape(sizes[i], sizes[j])
    return float(0.5 * np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum())


def main() -> None:
    """Run what is missing, write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", choices=TABLES)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--epsilon", type=float)
    parser.add_argument("--only", nargs="+", choices=[*RUN, "rules", *CLONES])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--peers", default="evidence/.peers/bin/python", help="python of the peers' environment")
    parser.add_argument("--page", action="store_true", help="write the page and run nothing")
    arguments = parser.parse_args()
    for name in () if arguments.page else TABLES:
        for rows in TABLES[name] if arguments.rows is None else [arguments.rows]:
            if arguments.table in (None, name):
                run(name, rows, arguments)
    on_page(PAGE, {f"small {name}": section(rows) for name, rows in RESULTS.rows.groupby("table", sort=False)})


def run(name: str, rows: int, arguments: argparse.Namespace) -> None:
    """Every draw of one table that is not in the CSV file."""
    table = small(name, rows)
    for control, make in {"real": lambda: table.train, "shuffled": lambda: shuffle_columns(table.train, 0)}.items():
        if RESULTS.of(name, rows, 0.0, control, 0).empty:
            RESULTS.add([name, rows, 0.0, control, 0], {"seconds": 0.0, **score(make(), table)})
    for epsilon in EPSILONS if arguments.epsilon is None else [arguments.epsilon]:
        for method in arguments.only or RUN:
            for draw in range(1, arguments.draws + 1):
                if RESULTS.of(name, rows, epsilon, method, draw).empty:
                    found = once(method, epsilon, table, draw, arguments.peers)
                    RESULTS.add([name, rows, epsilon, method, draw], found)


def small(name: str, rows: int) -> Table:
    """A public draw of the training rows, and settings with as many synthetic rows."""
    makers = {"acs": lambda: excerpt("TX"), "acs_ma": lambda: excerpt("MA"), "nltcs": nltcs}
    table = makers.get(name, lambda: load(name))()
    if rows < len(table.train):
        chosen = public(0, "benchmarks.small").choice(len(table.train), rows, replace=False)
        table = dataclasses.replace(table, train=table.train.iloc[np.sort(chosen)])
    sample = dataclasses.replace(table.params.sample, rows=len(table.train))
    params = dataclasses.replace(table.params, sample=sample)
    return dataclasses.replace(table, params=params, test=table.test.iloc[:_MOST_TEST_ROWS])


def nltcs() -> Table:
    """The National Long Term Care Survey: 16 activities that a person can do or not."""
    source = SHARED / "nltcs.csv"
    yes_no = {"kind": "categorical", "categories": ["0", "1"]}
    names = pd.read_csv(source, nrows=0).columns
    document = {"name": "nltcs", "source": source.name, "task": "none", "columns": dict.fromkeys(names, yes_no)}
    return unlabeled("nltcs", source, Schema.from_dict(document, "nltcs"))


def with_public_rules(schema: Schema) -> Schema:
    """The schema of a table with the rules of its codebook."""
    if schema.name.startswith("acs_"):
        return schema_of(schema.name.removeprefix("acs_").upper(), rules=True, variant="column")
    if schema.name != "adult":
        return schema
    levels = {name: place for place, name in enumerate(schema.column("education").categories, 1)}
    rules = [{"determines": ["education", "education-num"], "table": levels}]
    return Schema.from_dict({**schema.to_dict(), "rules": rules}, "adult")


def once(method: str, epsilon: float, table: Table, draw: int, peers: str) -> dict[str, float]:
    """Seconds and scores of one synthetic table."""
    params = with_epsilon(table.params, epsilon)
    if method in ("ours", "rules"):
        if method == "rules":
            params = with_schema(params, with_public_rules(table.schema).to_dict())
        started = time.monotonic()
        synthetic = synthesize(params, table.train, draw)
        seconds = time.monotonic() - started
    else:
        synthetic, cost = run_peer(peers, method, params, table)
        seconds = cost["seconds"]
    return {"seconds": seconds, **score(synthetic, table)}


def score(synthetic: pd.DataFrame, table: Table) -> dict[str, float]:
    """Total variation and dependence against the training rows, broken rules, AUC where there is a label."""
    means = marginal_table(table.train, synthetic, table.schema).groupby("order")["total_variation"].mean()
    strongest = strongest_pairs(table.train, synthetic, table.schema)
    values = {f"tv_{order}": float(value) for order, value in means.items()}
    values |= {"top_tv": float(strongest["total_variation"].mean()), "kept": float(strongest["kept"].mean())}
    values |= contradicting(synthetic, table.schema)
    if table.schema.task == "none":
        return values
    scores = train_on_synthetic_test_on_real(synthetic, table.test, table.schema, 0, CLASSIFIERS, max_workers=1)
    return values | {name: float(scores[name].mean()) for name in ("roc_auc_hard", "roc_auc_score")}


def contradicting(rows: pd.DataFrame, schema: Schema) -> dict[str, float]:
    """Percent of rows that break a public rule, where there is one."""
    rules = [rule for rule in with_public_rules(schema).rules if "DENSITY" not in rule.columns]
    values = values_of(rows, schema.columns)
    broken = np.array([rule.violations(values) for rule in rules], dtype=bool)
    return {"contradicting": 100 * float(broken.any(axis=0).mean())} if rules else {}


def section(results: pd.DataFrame) -> str:
    """One line for each number of rows, ε and method: mean ± standard deviation over draws."""
    columns = {name: shown for name, shown in COLUMNS.items() if results[name].notna().any()}
    heads = ["rows:", "ε", "method", "draws:", *(f"{title}:" for title, _ in columns.values())]
    order, lines = list(METHODS), []
    for (rows, epsilon, method), draws in sorted(
        results.groupby(["rows", "epsilon", "method"]), key=lambda one: (*one[0][:2], order.index(one[0][2]))
    ):
        cells = [cell(draws[column], digits) for column, (_, digits) in columns.items()]
        shown = ("-", "-") if epsilon == 0 else (f"{epsilon:g}", len(draws))
        lines.append([rows, shown[0], METHODS[method], shown[1], *cells])
    return markdown(heads, lines)


if __name__ == "__main__":
    main()
