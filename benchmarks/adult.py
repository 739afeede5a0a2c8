"""Adult at ε = 1: every method with several noise draws, beside ceiling and floor. Fills the README's table.

Run: ``python -m benchmarks.adult [--draws 3] [--only NAME]``. Same settings as params.yaml; each draw is a release of
its own, in a ledger of the benchmark's own (Adult is public). Resumable: a row that is in the CSV is not run again.
"""

import argparse
import dataclasses
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from likeness.artifacts import context, load_schema, plan_of, source_path
from likeness.data.digests import typed_digest
from likeness.data.encoding import Encoder
from likeness.data.sources import read_source
from likeness.data.split import split_by_column
from likeness.evaluation.controls import shuffle_columns
from likeness.evaluation.marginals import marginal_table
from likeness.evaluation.utility import train_on_synthetic_test_on_real
from likeness.methods import method_from
from likeness.methods.fit import fit
from likeness.params import Params, load_params
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.home import locate
from likeness.privacy.ledger import Ledger
from likeness.release.door import Dataset, release
from likeness.release.released import from_bytes
from likeness.release.terms import Records

RESULTS = Path("benchmarks/results/adult.csv")
METRICS = ["roc_auc_hard", "roc_auc_score", "average_precision_hard", "average_precision_score", "f1", "accuracy"]
VARIANTS = {"marginals": ("marginals", True), "pearl": ("pearl", True), "pearl, no critic": ("pearl", False), "merf": ("merf", True)}


def main() -> None:
    """Run what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--only", choices=list(VARIANTS))
    arguments = parser.parse_args()
    params = load_params()
    schema = load_schema(params)
    table, column = read_source(source_path(params), schema, params.ingest.split.column)
    assert column is not None
    parts = split_by_column(column, "train", "test")
    train, test = table[parts == "train"], table[parts == "test"]
    done = {(row.table, row.draw) for row in read_results().itertuples()}
    for name, other in (("real", train), ("shuffled", shuffle_columns(train, params.evaluate.seed))):
        if (name, 0) not in done:
            keep({"table": name, "draw": 0, "seconds": 0.0, **score(other, test, params)})
    for name in [arguments.only] if arguments.only else VARIANTS:
        for draw in range(1, arguments.draws + 1):
            if (name, draw) not in done:
                synthetic, seconds = synthesize(variant(params, name), train, draw)
                keep({"table": name, "draw": draw, "seconds": seconds, **score(synthetic, test, params)})
    print(markdown())


def variant(params: Params, name: str) -> Params:
    """Settings of one row: as shipped, but for the method and the critic."""
    method, critic = VARIANTS[name]
    sections = {**params.sections}
    sections["pearl"] = {**sections["pearl"], "train": {**sections["pearl"]["train"], "critic": critic}}
    return dataclasses.replace(params, method=method, sections=sections)


def synthesize(params: Params, train: pd.DataFrame, draw: int) -> tuple[pd.DataFrame, float]:
    """One noise draw: release, train, sample. Seconds leave out reading the source."""
    started = time.monotonic()
    schema, own, method, plan = load_schema(params), context(params), method_from(params), plan_of(params)
    encoder = Encoder(schema)
    codes = encoder.encode(train)

    def rows() -> Iterator[Records]:
        for start in range(0, len(codes), 8192):
            chunk = codes.iloc[start : start + 8192]
            yield Records(encoder.expand(chunk), encoder.labels(chunk))

    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({"LIKENESS_HOME": f"{folder}/ledger", "LIKENESS_ANCHOR": f"{folder}/anchor"})
        ledger = Ledger.create(locate())
        ledger.declare_identity(plan.identity, Adjacency(plan.adjacency), plan.epsilon, plan.delta)
        dataset = Dataset(plan.identity, typed_digest(train, schema, ledger.key), str(draw))
        auxiliary = {
            query.name: from_bytes(release(query, plan, dataset, ledger, rows), query.name)
            for query in method.auxiliary_queries(own)
        }
        query = method.embedding_query(own, auxiliary)
        embedding = from_bytes(release(query, plan, dataset, ledger, rows), query.name)
    saved, _ = fit(method, own, auxiliary, embedding, params.train.device, params.train.threads)
    synthetic = encoder.decode(*saved.draw(params.sample.rows, params.sample.seed))
    return synthetic, time.monotonic() - started


def score(table: pd.DataFrame, test: pd.DataFrame, params: Params) -> dict[str, float]:
    """Mean of the 12 classifiers, and mean total variation by order, against the held-out rows."""
    schema, settings = load_schema(params), params.evaluate
    scores = train_on_synthetic_test_on_real(table, test, schema, settings.seed, max_workers=settings.workers)
    marginals = marginal_table(test, table, schema, (1, 2, 3), settings.bins, settings.max_tuples, settings.seed)
    by_order = marginals.groupby("order")["total_variation"].mean()
    return {
        **{metric: float(scores[metric].mean()) for metric in METRICS},
        **{f"tv_{order}": float(value) for order, value in by_order.items()},
    }


def read_results() -> pd.DataFrame:
    """Rows so far."""
    return pd.read_csv(RESULTS) if RESULTS.exists() else pd.DataFrame(columns=["table", "draw"])


def keep(row: dict[str, object]) -> None:
    """Add a row to the CSV."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    pd.concat([read_results(), pd.DataFrame([row])]).to_csv(RESULTS, index=False)
    print(row, flush=True)


def markdown() -> str:
    """Mean ± standard deviation over draws."""
    results = read_results()
    columns = ["roc_auc_hard", "roc_auc_score", "average_precision_score", "f1", "tv_1", "tv_2", "tv_3"]
    lines = ["| table | draws | " + " | ".join(columns) + " |", "| --- | ---: |" + " ---: |" * len(columns)]
    for name, rows in results.groupby("table", sort=False):
        cells = [f"{rows[c].mean():.3f}" + (f" ± {rows[c].std():.3f}" if len(rows) > 1 else "") for c in columns]
        draws = len(rows) if rows["draw"].max() > 0 else "-"
        lines.append(f"| {name} | {draws} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
