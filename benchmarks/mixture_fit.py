"""How much to fit the mixture of ``marginals``: components, price, steps. Fills a table in docs/evidence/CHOICES.md.

Run: ``python -m benchmarks.mixture_fit [--table adult_like|census|covtype] [--epsilon 1] [--draws 2]``. Resumable.

Never Adult: the table like Adult of :mod:`benchmarks.look_alike`, made from Census-Income, and 32,000 training rows of
Census-Income and of Covertype. All variants are fitted to the same release, so they differ by the fit alone. Total
variation against the training rows, of all pairs and 200 sets of three columns, on 16 bins; AUC of four classifiers.
"""

import argparse
import tempfile
import time
from pathlib import Path

import pandas as pd
import yaml

from benchmarks.common import commit, keep, load, on_choices, read_results, releases, rows_from
from benchmarks.look_alike import fidelity, like_adult, with_marginals
from likeness.core.rng import public
from likeness.data.schema.schema import Schema

RESULTS = Path("benchmarks/results/mixture_fit.csv")
SETTINGS = {  # as columns of the CSV file, and as keys
    "components": "num_components",
    "steps": "iterations",
    "price": "kl_penalty",
    "learning_rate": "learning_rate",
    "beta2": "beta2",
}
KEYS = ["table", "epsilon", *SETTINGS, "draw"]
COLUMNS = ["tv_2", "tv_3", "auc_hard", "auc_score", "seconds"]
ROWS = 32_000
VARIANTS = [
    (1000, 800, 1.25, 0.2, 0.999),
    (2000, 1600, 1.5, 0.2, 0.999),
    (1000, 800, 1.25, 0.2, 0.95),
    (1000, 800, 1.5, 0.2, 0.95),
    (1000, 500, 1.5, 0.3, 0.95),
]


def main() -> None:
    """Run what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", choices=["adult_like", "census", "covtype"], default="adult_like")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=2)
    arguments = parser.parse_args()
    table = load("covtype" if arguments.table == "covtype" else "census")
    path = Path(table.params.ingest.schema)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.table == "adult_like":
            content, train, test = like_adult(table)
            path = Path(folder) / "schema.yaml"
            path.write_text(yaml.safe_dump(content, sort_keys=False))
        else:
            train, test = (some(own, name) for own, name in ((table.train, "train"), (table.test, "test")))
        for draw in range(1, arguments.draws + 1):
            found = None
            for variant in VARIANTS:
                names = dict(zip(KEYS, (arguments.table, arguments.epsilon, *variant, draw), strict=True))
                if (read_results(RESULTS, KEYS)[KEYS] == list(names.values())).all(axis=1).any():
                    continue
                own = dict(zip(SETTINGS.values(), variant, strict=True))
                params = with_marginals(table.params, path, arguments.epsilon, {"train": own})
                found = found or releases(params, train, draw)
                started = time.monotonic()
                synthetic = rows_from(params, *found)
                seconds = time.monotonic() - started
                scores = fidelity(params, Schema.load(path), train, test, synthetic)
                keep(RESULTS, {**names, "commit": commit(), "seconds": seconds, **scores}, KEYS)
    on_choices("the fit", read_results(RESULTS, KEYS), KEYS[:-1], COLUMNS)


def some(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """:data:`ROWS` of a table by a public draw."""
    chosen = public(0, f"benchmarks.mixture_fit.{name}").choice(len(rows), ROWS, replace=False)
    return rows.iloc[chosen].reset_index(drop=True)


if __name__ == "__main__":
    main()
