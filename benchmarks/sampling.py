"""How categories are chosen from a softmax: drawn, or the most probable one. Fills a table in docs/evidence/CHOICES.md.

Run: ``python -m benchmarks.sampling [--method hp] [--epsilon 1] [--draws 2]``. Resumable.

Never Adult: the table like Adult of :mod:`benchmarks.look_alike`, made from Census-Income. One release is trained on
once, and both ways choose from that network. Total variation against the training rows, of all pairs and 200 sets of
three columns, on 16 bins; AUC of four classifiers.
"""

import argparse
import dataclasses
from pathlib import Path

from benchmarks.common import commit, fitted, keep, on_choices, read_results, releases
from benchmarks.look_alike import fidelity, look_alike, with_marginals
from likeness.data.schema.schema import Schema
from likeness.generators.tabular import TabularGenerator
from likeness.pipeline.synthetic_table import draw as draw_rows

RESULTS = Path("benchmarks/results/sampling.csv")
KEYS = ["method", "epsilon", "sampling", "draw"]
COLUMNS = ["auc_hard", "auc_score", "tv_2", "tv_3"]
METHODS = ("merf", "hp", "pearl", "ntk")
WAYS = ("argmax", "categorical")


def main() -> None:
    """Run what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=METHODS)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=2)
    arguments = parser.parse_args()
    with look_alike() as (census, path, train, test):
        schema, shared = Schema.load(path), with_marginals(census, path, arguments.epsilon, {})
        for method in METHODS if arguments.method is None else [arguments.method]:
            params = dataclasses.replace(shared, method=method)
            for draw in range(1, arguments.draws + 1):
                keys = [[method, arguments.epsilon, way, draw] for way in WAYS]
                known = read_results(RESULTS, KEYS)[KEYS]
                if all((known == own).all(axis=1).any() for own in keys):
                    continue
                saved = fitted(params, *releases(params, train, draw))
                assert isinstance(saved.network, TabularGenerator)
                for own in keys:
                    saved.network.sampling = str(own[2])
                    synthetic = draw_rows(saved, schema, params.sample.rows, params.sample.seed, {})
                    found = fidelity(params, schema, train, test, synthetic)
                    keep(RESULTS, {**dict(zip(KEYS, own, strict=True)), "commit": commit(), **found}, KEYS)
    on_choices("categories", read_results(RESULTS, KEYS), KEYS[:-1], COLUMNS)


if __name__ == "__main__":
    main()
