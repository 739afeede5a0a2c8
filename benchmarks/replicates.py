"""How often intervals of logistic coefficients cover the truth: real rows, naive synthetic rows, replicates.

Run: ``python -m benchmarks.replicates [--draws 50]``. It adds each draw to ``benchmarks/results/replicates.csv``, skips
what stands there, and fills the section of docs/trust.md.

The population is Adult's training rows with seven columns. Each draw takes 10,000 rows at random with replacement, and
adds noise at ε = 1 by the library's own sampler. The label is regressed on eight effects. The mixture has 100
components and 300 steps, and there are 20 replicates. The test rows of Adult decide between rules.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common import keep, on_page, read_results
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
PAGE = Path("docs/trust.md")
COLUMNS = ("age", "workclass", "education-num", "marital-status", "race", "sex", "hours-per-week", "income")
ROWS, COUNT = 10_000, 20
KEYS = ["draw", "way"]
_TRAIN = {"num_components": 100, "iterations": 300, "swap_rounds": 1}


def logistic(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the label on eight effects, and their usual variances, by Newton's method."""
    effects = [
        np.ones(len(table)),
        (table["age"].astype(float) - 38) / 10,
        (table["education-num"].astype(float) - 10) / 3,
        table["sex"] == "Male",
        table["race"] == "Black",
        table["marital-status"] == "Married-civ-spouse",
        table["marital-status"] == "Divorced",
        table["workclass"] == "Private",
        (table["hours-per-week"].astype(float) - 40) / 10,
    ]
    x, y = np.stack(effects, axis=1).astype(float), (table["income"] == ">50K").to_numpy(float)
    coefficients = np.zeros(x.shape[1])
    for _ in range(12):
        shares = 1 / (1 + np.exp(-x @ coefficients))
        information = (x * (shares * (1 - shares))[:, None]).T @ x
        coefficients += np.linalg.solve(information, x.T @ (y - shares))
    return coefficients, np.diag(np.linalg.inv(information))


def few_columns() -> Study:
    """Adult with few columns and a small model."""
    adult = Study.of("adult")
    schema = replace(adult.schema, columns=tuple(one for one in adult.schema.columns if one.name in COLUMNS))
    params = replace(adult.params, sections={"marginals": {"train": _TRAIN}})
    return Study("adult, few columns", params, schema, adult.rows[list(schema.names)])


def intervals(study: Study, draws: Iterable[int]) -> Iterator[tuple[int, dict[str, pd.DataFrame]]]:
    """Of each draw the interval of every coefficient, by the way that made it."""
    project, receipts = Project(Path(), study.params, study.schema), study.receipts(1.0, Adjacency.ADD_REMOVE_ONE, ROWS)
    for draw in draws:
        rows = public(draw, "benchmarks.replicates").integers(0, len(study.rows), ROWS)
        released = {one.receipt.query: one for one in next(noisy(receipts, [study.sums(receipts, rows)]))}
        auxiliary = {name: one for name, one in released.items() if name != "embedding"}
        saved, _ = fit(project.method, project.context, auxiliary, released["embedding"], Compute())
        models = replicates(project.method, project.context, released, saved, Compute(), COUNT, draw)
        fits = [logistic(draw_rows(model, study.schema, ROWS, seed, {})) for model, seed in models]
        (base, _), estimates, variances = fits[0], [one for one, _ in fits[1:]], [one for _, one in fits[1:]]
        yield (
            draw,
            {
                "real rows": _usual(*logistic(study.rows.iloc[rows])),
                "one synthetic table, naive": _usual(*logistic(draw_rows(saved, study.schema, ROWS, 0, {}))),
                "replicates without base": combine(estimates, variances),
                "replicates with base": combine(estimates, variances, base),
            },
        )


def _usual(estimate: np.ndarray, variance: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"low": estimate - 1.96 * variance**0.5, "high": estimate + 1.96 * variance**0.5})


def section(results: pd.DataFrame) -> str:
    """Coverage and mean width by way."""
    draws = results.draw.nunique()
    lines = [f"{draws} draws of 10,000 rows of `adult`, ε = 1, eight effects and the intercept:", ""]
    lines += ["| 95 % intervals from | covered, % | worst coefficient, % | width |", "| --- | ---: | ---: | ---: |"]
    for way, rows in results.groupby("way", sort=False):
        covered = 100 * np.array([[int(digit) for digit in text] for text in rows.covered.str.removeprefix("c")])
        least, width = covered.mean(axis=0).min(), rows.width.mean()
        lines.append(f"| {way} | {covered.mean():.1f} | {least:.0f} | {width:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure the draws that are not in the results yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    study = few_columns()
    true, _ = logistic(study.rows)
    done = set(read_results(options.out, KEYS).draw)
    for draw, answer in intervals(study, [draw for draw in range(options.draws) if draw not in done]):
        for way, frame in answer.items():
            inside = ((frame.low <= true) & (true <= frame.high)).astype(int)
            covered = "c" + "".join(map(str, inside))  # a digit a coefficient; the letter keeps the cell a text
            width = float((frame.high - frame.low).mean())
            keep(options.out, {"draw": draw, "way": way, "covered": covered, "width": width}, KEYS)
    on_page(PAGE, {"replicates": section(read_results(options.out, KEYS))})


if __name__ == "__main__":
    main()
