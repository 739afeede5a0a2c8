"""What turning a mixture of ``marginals`` into rows costs, by rounds of exchanges.

Run: ``python -m benchmarks.drawing [--epsilon 1] [--draws 3]``. Resumable. Fills a table in docs/evidence/CHOICES.md.

Never Adult: the table like Adult of :mod:`benchmarks.look_alike`, made from Census-Income. One release is fitted once,
and all variants draw from that fit. Total variation against the training rows, of all pairs and 200 sets of three
columns, on 16 bins; seconds of drawing and decoding alone.
"""

import argparse
import time
from pathlib import Path

from benchmarks.common import commit, fitted, keep, on_choices, read_results, releases
from benchmarks.look_alike import look_alike, total_variation, with_marginals
from likeness.data.schema.schema import Schema
from likeness.methods.marginals.mixture import ProductMixture
from likeness.pipeline.synthetic_table import draw as draw_rows

RESULTS = Path("benchmarks/results/drawing.csv")
KEYS = ["epsilon", "rounds", "rows", "draw"]
COLUMNS = ["tv_2", "tv_3", "seconds"]
VARIANTS = [  # rounds of exchanges, rows
    *((rounds, 32_000) for rounds in (0, 1, 3, 6)),
    *((rounds, rows) for rows in (2_000, 128_000) for rounds in (0, 3)),
    (0, 512_000),
]


def main() -> None:
    """Run what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=3)
    arguments = parser.parse_args()
    with look_alike() as (census, path, train, _):
        schema, params = Schema.load(path), with_marginals(census, path, arguments.epsilon, {})
        for draw in range(1, arguments.draws + 1):
            keys = [[arguments.epsilon, *variant, draw] for variant in VARIANTS]
            known = read_results(RESULTS, KEYS)[KEYS]
            missing = [own for own in keys if not (known == own).all(axis=1).any()]
            if not missing:
                continue
            saved = fitted(params, *releases(params, train, draw))
            assert isinstance(saved.network, ProductMixture)
            for own in missing:
                names = dict(zip(KEYS, own, strict=True))
                saved.network.exchange_rounds = int(names["rounds"])
                started = time.monotonic()
                synthetic = draw_rows(saved, schema, int(names["rows"]), params.sample.seed, {})
                seconds = time.monotonic() - started
                found = total_variation(params, schema, train, synthetic)
                keep(RESULTS, {**names, "commit": commit(), "seconds": seconds, **found}, KEYS)
    on_choices("drawing rows", read_results(RESULTS, KEYS), KEYS[:-1], COLUMNS)


if __name__ == "__main__":
    main()
