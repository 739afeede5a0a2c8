"""What named tables of ``marginals`` are worth. Fills a table in docs/evidence/CHOICES.md.

Run: ``python -m benchmarks.named_tables [--epsilon 1] [--draws 2] [--only "three tables, 10 %"]``. Resumable.

On the table like Adult made from Census-Income of :mod:`benchmarks.look_alike`. Total variation against the training
rows: of the three tables below, by class, on the cells of the method; of all pairs and 200 sets of three columns, on 16
bins. The tables were named before anything was measured.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common import commit, keep, on_choices, read_results, synthesize
from benchmarks.look_alike import fidelity, look_alike, with_marginals
from likeness.config.params import Params
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.methods import method_from
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.pipeline.project import Project

RESULTS = Path("benchmarks/results/named_tables.csv")
KEYS = ["epsilon", "variant", "draw"]
COLUMNS = ["named", "tv_2", "tv_3", "auc_hard", "auc_score", "seconds"]
NAMED = [
    ["age", "education", "sex"],
    ["marital_stat", "sex", "major_occupation_code"],
    ["class_of_worker", "education", "weeks_worked_in_year"],
]
VARIANTS: dict[str, tuple[object, float]] = {  # tables and their share
    "none": ("none", 0.1),
    "three tables, 5 %": (NAMED, 0.05),
    "three tables, 10 %": (NAMED, 0.1),
    "three tables, 20 %": (NAMED, 0.2),
    "triples, 25 %": ("triples", 0.25),
    "triples, 50 %": ("triples", 0.5),
}


def main() -> None:
    """Run what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--only", choices=VARIANTS)
    arguments = parser.parse_args()
    with look_alike() as (census, path, train, test):
        for variant in [arguments.only] if arguments.only else VARIANTS:
            for draw in range(1, arguments.draws + 1):
                names = {"epsilon": arguments.epsilon, "variant": variant, "draw": draw}
                rows = read_results(RESULTS, KEYS)
                if not (rows[KEYS] == list(names.values())).all(axis=1).any():
                    params = settings(census, path, arguments.epsilon, variant)
                    found = score(params, Schema.load(path), train, test, draw)
                    keep(RESULTS, {**names, "commit": commit(), **found}, KEYS)
    on_choices("named tables", read_results(RESULTS, KEYS), KEYS[:-1], COLUMNS)


def settings(params: Params, schema: Path, epsilon: float, variant: str) -> Params:
    """As shipped, but for ε and the tables."""
    tables, share = VARIANTS[variant]
    return with_marginals(params, schema, epsilon, {"privatize": {"tables": tables, "tables_share": share}})


def score(params: Params, schema: Schema, train: pd.DataFrame, test: pd.DataFrame, draw: int) -> dict[str, float]:
    """Scores of one noise draw."""
    started = time.monotonic()
    synthetic = synthesize(params, train, draw)
    found = {"seconds": time.monotonic() - started, "named": named(params, schema, train, synthetic)}
    return {**found, **fidelity(params, schema, train, test, synthetic)}


def named(params: Params, schema: Schema, train: pd.DataFrame, synthetic: pd.DataFrame) -> float:
    """Mean total variation of the named tables by class, on the cells that the method releases."""
    params = settings(params, Path(params.ingest.schema), params.privacy.epsilon, "three tables, 10 %")
    feature = method_from(params).embedding_query(Project(Path(), params).context, {}).feature
    assert isinstance(feature, PairMarginals)
    encoder, pairs = Encoder(schema), len(feature.sizes)
    both = []
    for table in (train, synthetic):
        encoded = encoder.encode(table)
        places, labels = feature.places(encoder.expand(encoded))[:, pairs:], encoder.labels(encoded)
        widths = [part.width for part in feature.parts[pairs:]]
        classes = len(schema.classes)
        both.append(
            [
                np.bincount(labels * width + own, minlength=classes * width) / len(own)
                for own, width in zip(places.T, widths, strict=True)
            ]
        )
    return float(np.mean([np.abs(real - own).sum() / 2 for real, own in zip(*both, strict=True)]))


if __name__ == "__main__":
    main()
