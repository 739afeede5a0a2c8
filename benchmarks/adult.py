"""Adult at ε = 1: every method with several noise draws, beside ceiling and floor. Fills the README's table.

Run: ``python -m benchmarks.adult [--draws 3] [--only NAME]``. Same settings as params.yaml; each draw is a release of
its own, in a ledger of the benchmark's own (Adult is public). Resumable: a row that is in the CSV is not run again.
"""

import argparse
import dataclasses
import time
from pathlib import Path

from benchmarks.common import keep, load, markdown, read_results, score, synthesize
from likeness.config.params import Params
from likeness.evaluation.utility import shuffle_columns

RESULTS = Path("benchmarks/results/adult.csv")
KEYS = ["table", "draw"]
COLUMNS = [
    "roc_auc_hard", "roc_auc_score", "average_precision_score", "f1", "tv_1_test", "tv_2_test", "tv_3_test", "seconds"
]  # fmt: skip
# Method, and what differs from params.yaml: section and settings.
MODES = {
    "plan": {"shares": {"class_counts": 0.05, "mixture": 0.15, "mean_pairwise_distance": 0.05, "embedding": 0.75}},
    "auxiliary": {"mixture": {"components": 5, "iterations": 8, "columns": None}},
}
VARIANTS: dict[str, tuple[str, dict[str, dict[str, object]]]] = {
    "marginals": ("marginals", {}),
    "pearl": ("pearl", {}),
    "pearl, no critic": ("pearl", {"train": {"critic": False}}),
    "pearl, modes": ("pearl", MODES),
    "pearl, modes, no critic": ("pearl", {**MODES, "train": {"critic": False}}),
    "merf": ("merf", {}),
    "hp": ("hp", {}),
    "hp, sum kernel": ("hp", {"privatize": {"kernel": "sum"}}),
    "hp, product kernel": ("hp", {"privatize": {"kernel": "product"}}),
}


def main() -> None:
    """Run what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--only", choices=list(VARIANTS))
    arguments = parser.parse_args()
    adult = load("adult")
    done = {(row.table, row.draw) for row in read_results(RESULTS, KEYS).itertuples()}
    for name, other in (("real", adult.train), ("shuffled", shuffle_columns(adult.train, adult.params.evaluate.seed))):
        if (name, 0) not in done:
            keep(RESULTS, {"table": name, "draw": 0, "seconds": 0.0, **score(other, adult)}, KEYS)
    for name in [arguments.only] if arguments.only else VARIANTS:
        for draw in range(1, arguments.draws + 1):
            if (name, draw) not in done:
                started = time.monotonic()
                synthetic = synthesize(variant(adult.params, name), adult.train, draw)
                seconds = time.monotonic() - started
                keep(RESULTS, {"table": name, "draw": draw, "seconds": seconds, **score(synthetic, adult)}, KEYS)
    print(markdown(read_results(RESULTS, KEYS), ["table"], COLUMNS))


def variant(params: Params, name: str) -> Params:
    """Settings of one row: as shipped, but for the method and what its line above says."""
    method, changes = VARIANTS[name]
    sections = {**params.sections, method: {**params.sections.get(method, {}), **changes}}
    return dataclasses.replace(params, method=method, sections=sections)


if __name__ == "__main__":
    main()
