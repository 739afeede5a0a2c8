"""How often intervals of logistic coefficients cover the truth: real rows, naive synthetic rows, replicates.

Run: ``python -m benchmarks.replicates [--draws 50]``. It writes ``benchmarks/results/replicates.csv``.

The population is Adult's training rows with five columns. Each draw takes 10,000 rows at random with replacement, and
adds noise at ε = 1 by the library's own sampler. The label is regressed on six effects. The mixture has 100 components
and 300 steps, and there are 10 replicates, so that 50 draws take some minutes.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.coverage import Study, noisy
from likeness.core.rng import public
from likeness.generators.base import Compute
from likeness.inference.combine import combine
from likeness.methods.fit import fit
from likeness.methods.replicates import replicates
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import draw as draw_rows
from likeness.privacy.adjacency import Adjacency

RESULTS = Path("benchmarks/results/replicates.csv")
COLUMNS = ("age", "education-num", "marital-status", "race", "sex", "income")
ROWS, COUNT = 10_000, 10
_TRAIN = {"num_components": 100, "iterations": 300, "swap_rounds": 1}


def logistic(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the label on six effects, and their usual variances, by Newton's method."""
    effects = [
        np.ones(len(table)),
        (table["age"].astype(float) - 38) / 10,
        (table["education-num"].astype(float) - 10) / 3,
        table["sex"] == "Male",
        table["race"] == "Black",
        table["marital-status"] == "Married-civ-spouse",
        table["marital-status"] == "Divorced",
    ]
    x, y = np.stack(effects, axis=1).astype(float), (table["income"] == ">50K").to_numpy(float)
    coefficients = np.zeros(x.shape[1])
    for _ in range(12):
        shares = 1 / (1 + np.exp(-x @ coefficients))
        information = (x * (shares * (1 - shares))[:, None]).T @ x
        coefficients += np.linalg.solve(information, x.T @ (y - shares))
    return coefficients, np.diag(np.linalg.inv(information))


def five_columns() -> Study:
    """Adult with few columns and a small model."""
    adult = Study.of("adult")
    schema = replace(adult.schema, columns=tuple(one for one in adult.schema.columns if one.name in COLUMNS))
    params = replace(adult.params, sections={"marginals": {"train": _TRAIN}})
    return Study("adult, 5 columns", params, schema, adult.rows[list(schema.names)])


def intervals(study: Study, draws: int) -> Iterator[dict[str, pd.DataFrame]]:
    """Of each draw the interval of every coefficient, by the way that made it."""
    project, receipts = Project(Path(), study.params, study.schema), study.receipts(1.0, Adjacency.ADD_REMOVE_ONE, ROWS)
    for draw in range(draws):
        rows = public(draw, "benchmarks.replicates").integers(0, len(study.rows), ROWS)
        released = {one.receipt.query: one for one in next(noisy(receipts, [study.sums(receipts, rows)]))}
        auxiliary = {name: one for name, one in released.items() if name != "embedding"}
        saved, _ = fit(project.method, project.context, auxiliary, released["embedding"], Compute())
        base, variance = logistic(draw_rows(saved, study.schema, ROWS, 0, {}))
        models = replicates(project.method, project.context, released, saved, Compute(), COUNT, draw)
        fits = [logistic(draw_rows(model, study.schema, ROWS, seed, {})) for model, seed in models]
        estimates, variances = [one for one, _ in fits], [one for _, one in fits]
        yield {
            "real rows": _usual(*logistic(study.rows.iloc[rows])),
            "one synthetic table, naive": _usual(base, variance),
            "replicates": combine(estimates, variances),
            "replicates and base": combine(estimates, variances, base),
        }


def _usual(estimate: np.ndarray, variance: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"low": estimate - 1.96 * variance**0.5, "high": estimate + 1.96 * variance**0.5})


def main() -> None:
    """Count how often each way covers the coefficients of the population."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    study, frames = five_columns(), defaultdict(list)
    true, _ = logistic(study.rows)
    for draw, answer in enumerate(intervals(study, options.draws)):
        rows = []
        for way, frame in answer.items():
            frames[way].append(frame)
            covered = np.array([(one.low <= true) & (true <= one.high) for one in frames[way]])
            widths = np.array([one.high - one.low for one in frames[way]])
            worst = covered.mean(axis=0).min()
            numbers = {"covered": covered.mean(), "worst coefficient": worst, "width": widths.mean()}
            rows.append({"way": way, "draws": draw + 1, "coefficients": len(true), **numbers})
        pd.DataFrame(rows).to_csv(options.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
