"""Wide tables: all pairs of columns, or some with less noise each. Fills a table in docs/evidence/CHOICES.md.

Run: ``python -m benchmarks.chosen_pairs [--table census|covtype] [--epsilon 1] [--draws 1]``. Resumable.

32,000 training rows of Census-Income (40 columns) and of Covertype (54), those of :mod:`benchmarks.mixture_fit`. Total
variation against them, of all pairs and 200 sets of three columns, on 16 bins; AUC of four classifiers.
"""

import argparse
import time
from pathlib import Path

from benchmarks.common import commit, keep, load, on_choices, read_results, synthesize
from benchmarks.look_alike import fidelity, with_marginals
from benchmarks.mixture_fit import some

RESULTS = Path("benchmarks/results/chosen_pairs.csv")
KEYS = ["table", "epsilon", "partners", "draw"]
COLUMNS = ["tv_2", "tv_3", "auc_hard", "auc_score", "seconds"]
PARTNERS = ("all", 20, 10, 5)


def main() -> None:
    """Run what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", choices=["census", "covtype"], default="census")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=1)
    arguments = parser.parse_args()
    table = load(arguments.table)
    train, test = some(table.train, "train"), some(table.test, "test")
    for partners in PARTNERS:
        for draw in range(1, arguments.draws + 1):
            names = dict(zip(KEYS, (arguments.table, arguments.epsilon, str(partners), draw), strict=True))
            rows = read_results(RESULTS, KEYS).astype({"partners": str})
            if (rows[KEYS] == list(names.values())).all(axis=1).any():
                continue
            chosen = {"pairs": "all"} if partners == "all" else {"pairs": "drawn", "partners": partners}
            schema = Path(table.params.ingest.schema)
            params = with_marginals(table.params, schema, arguments.epsilon, {"privatize": chosen})
            started = time.monotonic()
            synthetic = synthesize(params, train, draw)
            seconds = time.monotonic() - started
            scores = fidelity(params, table.schema, train, test, synthetic)
            keep(RESULTS, {**names, "commit": commit(), "seconds": seconds, **scores}, KEYS)
    on_choices("some of the pairs", read_results(RESULTS, KEYS), KEYS[:-1], COLUMNS)


if __name__ == "__main__":
    main()
