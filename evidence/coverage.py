"""How often intervals from a release cover the truth: 200 draws of noise, and 200 samples from a known population.

Run: ``python -m evidence.coverage [--tables adult acs] [--epsilon 0.2 1 10] [--draws 200]``. It writes a row for each
table, ε, adjacency and kind of number to ``evidence/results/coverage.csv``, skips what stands there, and fills the
section of docs/trust.md.

The exact sums are computed once. Each draw adds noise by the library's own sampler, as the receipts of a real release
say, and asks for all one-way tables, means and medians, and for 6 pairs of columns that a public stream draws. With
``sampling`` each draw first takes 10,000 rows of the table at random, with replacement: the table is the population.

The truth of counts and shares comes from the exact sums, and that of means and medians from the rows. Medians, and
means whose cells hold several values, may be covered more often than the level says: see
:mod:`likeness.inference.estimates`.

The table ``acs`` is NIST's excerpt of the American Community Survey of Massachusetts, 2019, without weights.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evidence.common import SHARED, Results, adjacent, load, markdown, on_page, releases
from likeness.config.params import Params
from likeness.core.rng import public
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_frame
from likeness.inference.estimates import Answers, Question
from likeness.inference.measurements import measurements
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.noise import add_discrete_gaussian
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released
from likeness.release.sums.lattice_sum import lattice_sum

PAGE = Path("docs/trust.md")
KEYS = ["table", "epsilon", "adjacency", "sampling", "draws"]
RESULTS = Results(Path("evidence/results/coverage.csv"), [*KEYS, "statistic"])
PAIRS, SAMPLE, AT_ONCE = 6, 10_000, 20
_CODES = {
    "PUMA": ["25-00503", "25-00703", "25-01000", "25-01300", "25-02800"],
    "SEX": range(1, 3),
    "MSP": range(1, 7),
    "HISP": range(5),
    "RAC1P": range(1, 10),
    "OWN_RENT": range(3),
    "INDP_CAT": range(19),
    "EDU": range(1, 13),
    "DREM": range(1, 3),
}
_NULLABLE = ("MSP", "INDP_CAT", "EDU", "DREM")
_NUMBERS = {
    "AGEP": {"kind": "integer", "lower": 0, "upper": 99},
    "PINCP": {"kind": "numeric", "lower": -9000, "upper": 1341000, "nullable": True, "spikes": [0]},
    "POVPIP": {"kind": "integer", "lower": 0, "upper": 501, "nullable": True, "spikes": [501]},
}


def acs_schema() -> Schema:
    """Codes and bounds of NIST's data dictionary."""
    missing = {"nullable": True, "missing_values": ["N"]}
    columns: dict[str, Any] = {
        name: {"kind": "categorical", "categories": [str(code) for code in codes]}
        | (missing if name in _NULLABLE else {})
        for name, codes in _CODES.items()
    }
    numbers = {
        name: {**spec, **({"missing_values": ["N"]} if "nullable" in spec else {})} for name, spec in _NUMBERS.items()
    }
    content = {"name": "acs", "source": "NIST's data dictionary of the excerpts", "task": "none", "label": None}
    return Schema.from_dict({**content, "columns": columns | numbers}, "acs")


@dataclass(frozen=True)
class Study:
    """A table whose exact sums are known."""

    name: str
    params: Params
    schema: Schema
    rows: pd.DataFrame

    @classmethod
    def of(cls, name: str) -> "Study":
        """Adult's training rows, or the excerpt of the ACS."""
        table = load("adult")
        if name == "adult":
            return cls(name, table.params, table.schema, table.train.reset_index(drop=True))
        schema = acs_schema()
        raw = pd.read_csv(SHARED / "acs/massachusetts/ma2019.csv", dtype=str, keep_default_na=False)
        return cls(name, table.params, schema, read_frame(raw[list(schema.names)], schema))

    @cached_property
    def records(self) -> Records:
        """All rows, encoded."""
        encoder = Encoder(self.schema)
        codes = encoder.encode(self.rows)
        return Records(encoder.expand(codes), encoder.labels(codes))

    def sums(self, receipts: list[Released], rows: np.ndarray | slice = slice(None)) -> dict[str, np.ndarray]:
        """Exact sums of some rows, by query. Bins of the embedding are those of the receipts, which may be learned."""
        project, queries = Project(Path(), self.params, self.schema), list[Query]()
        released = {one.receipt.query: one for one in receipts}

        def answer(query: Query) -> Released:
            queries.append(query)
            return released[query.name]

        auxiliary = project.method.ask(project.context, answer)
        queries.append(project.method.embedding_query(project.context, auxiliary))
        some = Records(self.records.x[rows], self.records.labels[rows])
        return {query.name: lattice_sum(query, [some]) for query in queries}

    def receipts(self, epsilon: float, adjacency: Adjacency, count: int) -> list[Released]:
        """A real release of as many rows, for its receipts."""
        privacy = replace(self.params.privacy, epsilon=epsilon)
        params = adjacent(replace(self.params, privacy=privacy), adjacency, count)
        rows = pd.concat([self.rows] * (count // len(self.rows) + 1)).iloc[:count].reset_index(drop=True)
        auxiliary, embedding = releases(params, rows, 1, self.schema)
        return [*auxiliary.values(), embedding]


def noisy(receipts: list[Released], sums: Sequence[dict[str, np.ndarray]]) -> Iterator[list[Released]]:
    """Each of the sums with noise, in blocks: processes start once a block."""
    for start in range(0, len(sums), AT_ONCE):
        block, released = sums[start : start + AT_ONCE], []
        for one in receipts:
            exact = np.stack([each[one.receipt.query] for each in block])
            noise = add_discrete_gaussian(np.zeros(exact.size, dtype=np.int64), one.receipt.noise_scale)
            released.append([replace(one, lattice=lattice) for lattice in exact + noise.reshape(exact.shape)])
        yield from map(list, zip(*released, strict=True))


def questions(schema: Schema, draw: int, sampling: bool) -> Iterator[tuple[str, Question]]:
    """What is asked of one draw, with the kind of number."""
    names, label = schema.names, schema.label
    for name in names:
        yield "one-way share", Question((name,), sampling=sampling)
    pairs = list(combinations([name for name in names if name != label], 2))
    for place in public(draw, "benchmarks.coverage").choice(len(pairs), min(PAIRS, len(pairs)), replace=False):
        yield "pair share", Question(pairs[place], sampling=sampling)
        if not sampling:
            yield "released cell", Question(pairs[place], (label,) if label else (), "count")
    numbers = tuple(column.name for column in schema.feature_columns if not column.is_categorical)
    for name in numbers:
        yield "mean", Question((name,), statistic="mean", sampling=sampling)
        yield "median", Question((name,), statistic="quantile", sampling=sampling)


def several_values(answers: Answers, name: str) -> bool:
    """Whether a cell of a number holds several values. A released ``cell_error`` may be 0 by chance."""
    axis = answers.measured.fine.get(name) or answers.measured.axes[name]
    return bool((axis.highs > axis.lows).any())


class Truth:
    """True numbers of a table."""

    def __init__(self, study: Study, receipts: list[Released]) -> None:
        exact = [replace(one, receipt=replace(one.receipt, noise_scale=0.0)) for one in receipts]
        sums = study.sums(receipts)
        self._answers = Answers(
            measurements(
                study.schema, [replace(one, lattice=sums[one.receipt.query]) for one in exact], len(study.rows)
            )
        )
        self._rows, self._seen = study.rows, dict[Question, np.ndarray]()

    def of(self, question: Question) -> np.ndarray:
        """The true value of each number that answers a question."""
        if question not in self._seen:
            self._seen[question] = self._computed(question)
        return self._seen[question]

    def _computed(self, question: Question) -> np.ndarray:
        values = self._rows[question.columns[0]]
        if question.statistic == "mean":
            return np.array([values.astype(float).mean()])
        if question.statistic == "quantile":
            return np.array([values.dropna().astype(float).quantile(0.5, interpolation="lower")])
        return self._answers.frame(replace(question, sampling=False)).estimate.to_numpy()


def measure(
    study: Study, epsilon: float, adjacency: Adjacency, sampling: bool, draws: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """A row for each kind of number."""
    count = SAMPLE if sampling else len(study.rows)
    receipts = study.receipts(epsilon, adjacency, count)
    truth, total = Truth(study, receipts), count if adjacency is Adjacency.REPLACE_ONE else None
    chosen = [public(draw, "benchmarks.coverage.rows").integers(0, len(study.rows), count) for draw in range(draws)]
    sums = [study.sums(receipts, rows) for rows in chosen] if sampling else [study.sums(receipts)] * draws
    covered: dict[str, dict[Question, list[np.ndarray]]] = defaultdict(lambda: defaultdict(list))
    for draw, released in enumerate(noisy(receipts, sums)):
        answers = Answers(measurements(study.schema, released, total))
        for kind, question in questions(study.schema, draw, sampling):
            frame, true = answers.frame(question), truth.of(question)
            if kind == "mean" and several_values(answers, question.columns[0]):
                kind += " of cells of several values"
            covered[kind][question].append(((frame.low <= true) & (true <= frame.high)).to_numpy())
    for kind, by_question in covered.items():
        each = [np.concatenate(parts) for parts in by_question.values()]
        means = [float(part.mean()) for part in each]
        own = {"rows": count, "intervals": sum(map(len, each)), "covered": float(np.concatenate(each).mean())}
        yield kind, {**own, "lowest": min(means), "highest": max(means)}


def section(results: pd.DataFrame) -> str:
    """Least and largest coverage over tables, ε and adjacencies, by kind of number."""
    tables = ", ".join(f"`{name}`" for name in sorted(results.table.unique()))
    epsilons = ", ".join(f"{epsilon:g}" for epsilon in sorted(results.epsilon.unique()))
    lines = (
        [kind, *(_range(rows.covered[rows.sampling == sampling]) for sampling in (False, True))]
        for kind, rows in results.groupby("statistic", sort=False)
    )
    table = markdown(["95 % intervals of a", "noise:", "noise and sampling:"], lines)
    return f"Tables {tables}, ε = {epsilons}, {results.draws.min()} draws or more, coverage in %:\n\n{table}"


def _range(covered: "pd.Series[float]") -> str:
    low, high = (f"{100 * value:.1f}" for value in (covered.min(), covered.max()))
    return "" if not len(covered) else low if low == high else f"{low} to {high}"


def main() -> None:
    """Measure what is not in the results yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["adult", "acs"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.2, 1.0, 10.0])
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    for name in options.tables:
        study = Study.of(name)
        settings = [(epsilon, adjacency, False) for epsilon in options.epsilon for adjacency in Adjacency]
        settings += [(1.0, adjacency, True) for adjacency in Adjacency]
        for epsilon, adjacency, sampling in settings:
            keys = [name, epsilon, str(adjacency), sampling, options.draws]
            if not (RESULTS.rows[KEYS] == keys).all(axis=1).any():
                for kind, row in measure(study, epsilon, adjacency, sampling, options.draws):
                    RESULTS.add([*keys, kind], row)
    on_page(PAGE, {"coverage": section(RESULTS.rows)})


if __name__ == "__main__":
    main()
