"""How often intervals of logistic coefficients cover the truth: real rows, naive synthetic rows, replicates.

Run: ``python -m evidence.replicates [--tables adult look-alike] [--draws 50] [--peers PYTHON]``. It adds each draw to
``evidence/results/replicates.csv``, skips what stands there, and fills the section of docs/trust.md.

The population is the table: seven columns of Adult's training rows, or of working adults of UCI Census-Income with as
many high incomes as Adult. Each draw takes 10,000 rows at random with replacement, and adds noise at ε = 1 by the
library's own sampler. The label is regressed on eight effects. The mixture has 300 components, and there are 20
replicates. Rules and numbers were chosen on other draws of the second table.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from evidence.common import Results, Table, draw_rows, load, markdown, on_page
from evidence.coverage import Study, noisy
from evidence.tables import run_peer
from likeness.core.rng import public
from likeness.generators.base import Compute
from likeness.inference.combine import combine
from likeness.methods.fit import fit
from likeness.methods.replicates import replicates
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency

RESULTS = Results(Path("evidence/results/replicates.csv"), ["table", "draw", "way"])
PAGE = Path("docs/trust.md")
_RICH = "50000+."
_LOOK_ALIKE = {True: 7_815, False: 24_746}
ROWS, COUNT = 10_000, 20
_TRAIN = {"num_components": 300}
_AIM, _AIM_DRAWS = "one table of AIM, naive", 10


@dataclass(frozen=True)
class Regression:
    """A table, and what is regressed on what.

    Attributes:
        study: few columns of the table, and a small model.
        category: of the label, whose odds are modeled.
        numbers: regressors: by column the middle and the unit.
        categories: regressors: column and category.
    """

    study: Study
    category: str
    numbers: dict[str, tuple[int, int]]
    categories: tuple[tuple[str, str], ...]

    def fit(self, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of the label on all effects, and their usual variances, by Newton's method."""
        numbers = [(self._number(table, name) - middle) / unit for name, (middle, unit) in self.numbers.items()]
        indicators = [(table[name] == value).astype(float) for name, value in self.categories]
        x = np.stack([np.ones(len(table)), *numbers, *indicators], axis=1)
        y = (table[self.study.schema.label] == self.category).to_numpy(float)
        coefficients = np.zeros(x.shape[1])
        for _ in range(12):
            shares = 1 / (1 + np.exp(-x @ coefficients))
            information = (x * (shares * (1 - shares))[:, None]).T @ x
            coefficients += np.linalg.solve(information, x.T @ (y - shares))
        return coefficients, np.diag(np.linalg.inv(information))

    def _number(self, table: pd.DataFrame, name: str) -> "pd.Series[float]":
        """A column of numbers; of ordered categories their places."""
        column = self.study.schema.column(name)
        values = table[name].astype(str).map(column.categories.index) if column.is_categorical else table[name]
        return values.astype(float)


def adult() -> Regression:
    """Adult with few columns."""
    study = Study.of("adult")
    numbers = {"age": (38, 10), "education-num": (10, 3), "hours-per-week": (40, 10)}
    married = (("marital-status", "Married-civ-spouse"), ("marital-status", "Divorced"))
    categories = (("sex", "Male"), ("race", "Black"), *married, ("workclass", "Private"))
    return Regression(_few(study, study.rows, {*numbers, *dict(categories)}), ">50K", numbers, categories)


def look_alike() -> Regression:
    """Working adults of UCI Census-Income, of whom 24 % have the higher income, as in Adult."""
    table = load("census")
    adults = table.train[(table.train.weeks_worked_in_year > 0) & (table.train.age >= 17)]
    rich, random = adults.income_gt_50k == _RICH, public(0, "benchmarks.replicates.look_alike")
    parts = [random.choice(np.flatnonzero(rich == one), count, replace=False) for one, count in _LOOK_ALIKE.items()]
    rows = adults.iloc[np.sort(np.concatenate(parts))].reset_index(drop=True)
    numbers = {"age": (38, 10), "education": (10, 3), "weeks_worked_in_year": (46, 10)}
    married = (("marital_stat", "Married-civilian spouse present"), ("marital_stat", "Divorced"))
    categories = (("sex", "Male"), ("race", "Black"), *married, ("class_of_worker", "Private"))
    study = Study("look-alike", table.params, table.schema, rows)
    return Regression(_few(study, rows, {*numbers, *dict(categories)}), _RICH, numbers, categories)


def _few(study: Study, rows: pd.DataFrame, names: set[str]) -> Study:
    columns = tuple(one for one in study.schema.columns if one.name in {*names, study.schema.label})
    schema = replace(study.schema, columns=columns)
    params = replace(study.params, sections={"marginals": {"train": _TRAIN}})
    return Study(study.name, params, schema, rows[list(schema.names)])


TABLES = {"adult": adult, "look-alike": look_alike}


def intervals(regression: Regression, draws: Iterable[int]) -> Iterator[tuple[int, dict[str, pd.DataFrame]]]:
    """Of each draw the interval of every coefficient, by the way that made it."""
    study, logistic = regression.study, regression.fit
    project, receipts = Project(Path(), study.params, study.schema), study.receipts(1.0, Adjacency.ADD_REMOVE_ONE, ROWS)
    for draw in draws:
        rows = rows_of(study, draw)
        released = {one.receipt.query: one for one in next(noisy(receipts, [study.sums(receipts, rows)]))}
        auxiliary = {name: one for name, one in released.items() if name != "embedding"}
        saved, _ = fit(project.method, project.context, auxiliary, released["embedding"], Compute())
        models = replicates(project.method, project.row_sets, released.values(), [saved], Compute(), COUNT, draw)
        table = logistic(draw_rows(saved, study.schema, ROWS, 0))
        fits = [logistic(draw_rows(model, study.schema, ROWS, seed)) for (model,), seed in models]
        (base, _), estimates, variances = fits[0], [one for one, _ in fits[1:]], [one for _, one in fits[1:]]
        yield (
            draw,
            {
                "real rows": _usual(*logistic(study.rows.iloc[rows])),
                "one synthetic table, naive": _usual(*table),
                "replicates without base": combine(estimates, variances),
                "replicates with base and table": combine(estimates, variances, base, table[0]),
            },
        )


def rows_of(study: Study, draw: int) -> np.ndarray:
    """The rows of a sample, with replacement."""
    return public(draw, "benchmarks.replicates").integers(0, len(study.rows), ROWS)


def of_aim(regression: Regression, draw: int, python: str) -> pd.DataFrame:
    """The intervals of a naive analysis of one table of AIM, from the same rows."""
    study = regression.study
    table = Table(study.params, study.schema, study.rows.iloc[rows_of(study, draw)], study.rows.iloc[:0])
    params = replace(study.params, sample=replace(study.params.sample, rows=ROWS))
    rows, _ = run_peer(python, "aim", params, table)
    return _usual(*regression.fit(rows))


def _usual(estimate: np.ndarray, variance: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"low": estimate - 1.96 * variance**0.5, "high": estimate + 1.96 * variance**0.5})


def section(results: pd.DataFrame) -> str:
    """Coverage and mean width by table and way."""
    lines = []
    for (table, way), rows in results.groupby(["table", "way"], sort=False):
        covered = 100 * np.array([[int(digit) for digit in text] for text in rows.covered.str.removeprefix("c")])
        numbers = f"{covered.mean():.1f}", f"{covered.mean(axis=0).min():.0f}", f"{rows.width.mean():.2f}"
        lines.append([table, way, len(rows), *numbers])
    heads = ["table", "95 % intervals from", "draws:", "covered, %:", "worst coefficient, %:", "width:"]
    return f"10,000 rows, ε = 1:\n\n{markdown(heads, lines)}"


def main() -> None:
    """Measure the draws that are not in the results yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--peers", help="Python of evidence/peers.txt: AIM beside it, on the first 10 draws")
    options = parser.parse_args()
    for name in options.tables:
        regression = TABLES[name]()
        true, _ = regression.fit(regression.study.rows)
        results = RESULTS.rows.query("table == @name")
        done, peers = set(results.draw), set(results.draw[results.way == _AIM])
        missing = [draw for draw in range(options.draws) if draw not in done]
        answers: Iterator[tuple[int, dict[str, pd.DataFrame]]] = intervals(regression, missing)
        if options.peers:
            aims = (draw for draw in range(_AIM_DRAWS) if draw not in peers)
            answers = chain(answers, ((draw, {_AIM: of_aim(regression, draw, options.peers)}) for draw in aims))
        for draw, answer in answers:
            for way, frame in answer.items():
                inside = ((frame.low <= true) & (true <= frame.high)).astype(int)
                covered = "c" + "".join(map(str, inside))  # a digit a coefficient; the letter keeps the cell a text
                width = float((frame.high - frame.low).mean())
                RESULTS.add([name, draw, way], {"covered": covered, "width": width})
    on_page(PAGE, {"replicates": section(RESULTS.rows)})


if __name__ == "__main__":
    main()
