r"""AIM on mbi, the package of its authors: a second program beside the one of :mod:`evidence.peers`.

Run in a virtual environment of its own (``evidence/peers_mbi.txt`` says how), with the options of ``peers.py``::

    JAX_ENABLE_X64=1 python evidence/peers_mbi.py --codes codes.parquet --domain domain.json --method aim \
        --epsilon 1 --delta 1e-5 --rows 32561 --out synthetic.parquet

mbi has estimation and sampling but no mechanism, so the loop here is written from McKenna, Mullins, Sheldon and Miklau
2022 (arXiv:2201.12677, Algorithms 2 to 4), with the settings of the published program: all pairs, 16 rounds a column,
nine tenths of ρ for measuring, a junction tree of at most 8 MB that grows as ρ is spent, 1,000 steps of mirror descent
from the estimate before. Privacy, adjacency and conversion of ρ as in ``peers.py``.
"""

import itertools
import json
import math
import sys
import time
from importlib.metadata import version

import jax
import numpy as np
import opendp.prelude as dp
import pandas as pd
from mbi import Dataset, Domain, LinearMeasurement, MarkovRandomField, estimation, junction_tree
from memory import peak_mb  # beside this script: this environment has no Likeness
from peers_shared import parser_of, read, rho_of, say

LIBRARIES = ["jax", "mbi", "numpy", "opendp", "pandas", "scipy"]
MAX_CELLS = 10_000  # a workload marginal with more cells is left out, as in the authors' program
ROUNDS_A_COLUMN = 16
MEASURING = 0.9  # of a round's ρ; the rest chooses
STEPS = 1_000
NOISE_L1 = math.sqrt(2 / math.pi)  # mean of |noise| a cell, in standard deviations


def main() -> None:
    """Read, synthesize, write, report."""
    arguments = parser_of(__doc__, ["aim"]).parse_args()
    sizes = {column: int(size) for column, size in json.loads(arguments.domain.read_text()).items()}
    if not jax.config.jax_enable_x64:
        sys.exit("mirror descent stalls in single precision. Set the environment variable JAX_ENABLE_X64=1.")
    codes = read(arguments.codes, sizes)
    started = time.monotonic()
    domain = Domain(list(sizes), list(sizes.values()))
    data = Dataset({column: codes[column].to_numpy() for column in sizes}, domain)
    rho = rho_of(arguments.epsilon, arguments.delta)
    model, measured = aim(data, rho, arguments.max_model_size)
    say("sampling")
    drawn = model.synthetic_data(arguments.rows)
    synthetic = pd.DataFrame({column: drawn.to_dict()[column].astype(np.int64) for column in sizes})
    seconds = time.monotonic() - started
    synthetic.to_parquet(arguments.out)
    report = {
        "method": "aim",
        "epsilon": arguments.epsilon,
        "delta": arguments.delta,
        "rho": rho,
        "adjacency": "add/remove",
        "rows_public": False,
        "rows": len(synthetic),
        "max_model_size_mb": arguments.max_model_size,
        "max_cells": MAX_CELLS,
        "measured": ["×".join(columns) for columns in measured],
        "model_mb": round(junction_tree.hypothetical_model_size(domain, model.cliques), 3),
        "seconds": round(seconds, 1),
        "peak_mb": round(peak_mb(), 1),
        "versions": {"python": sys.version.split()[0], **{name: version(name) for name in LIBRARIES}},
    }
    print(json.dumps(report, ensure_ascii=False))


def aim(data: Dataset, rho: float, max_model_size: float) -> tuple[MarkovRandomField, list[tuple[str, ...]]]:
    """Measure single columns, then again and again the pair that the estimate has most wrong.

    Args:
        data: codes, with the public sizes of their columns.
        rho: budget, zCDP.
        max_model_size: of the junction tree, in MB.

    Returns:
        The last estimate, and the columns of every measurement.
    """
    domain = data.domain
    workload = [pair for pair in itertools.combinations(domain, 2) if domain.size(pair) <= MAX_CELLS]
    candidates = weights_of(domain, workload)
    answers = {columns: np.asarray(data.project(columns).datavector()) for columns in candidates}
    rounds = ROUNDS_A_COLUMN * len(domain)
    sigma, epsilon = math.sqrt(rounds / (2 * MEASURING * rho)), math.sqrt(8 * (1 - MEASURING) * rho / rounds)
    measurements = [measure(answers[columns], columns, sigma) for columns in candidates if len(columns) == 1]
    used = len(measurements) * 0.5 / sigma**2
    estimator = estimation.MirrorDescent()
    model = estimator.estimate(domain, measurements, iters=STEPS)
    last = False
    while not last:
        jax.clear_caches()  # programs compiled for the estimate before: else memory maps run out in the eighth round
        if rho - used < 2 * (0.5 / sigma**2 + epsilon**2 / 8):  # no two rounds left: one with all of it
            remaining, last = max(rho - used, 0.0), True
            if remaining == 0:
                break
            sigma, epsilon = math.sqrt(1 / (2 * MEASURING * remaining)), math.sqrt(8 * (1 - MEASURING) * remaining)
        used += 0.5 / sigma**2 + epsilon**2 / 8
        small = within(domain, candidates, model, max_model_size * used / rho)
        chosen = worst(answers, small, model, sigma, epsilon)
        say(f"{'×'.join(chosen)}: scale {sigma:.1f}, ρ used {used / rho:.2f}, {peak_mb():.0f} MB")
        measurements.append(measure(answers[chosen], chosen, sigma))
        before = np.asarray(model.project(chosen).datavector())
        model = estimator.estimate(domain, measurements, iters=STEPS, warm_start=model)
        after = np.asarray(model.project(chosen).datavector())
        if np.abs(after - before).sum() <= sigma * NOISE_L1 * len(before):  # nothing learned: less noise from here
            sigma, epsilon = sigma / 2, 2 * epsilon
    return model, [tuple(map(str, measurement.clique)) for measurement in measurements]


def weights_of(domain: Domain, workload: list[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    """Single columns and pairs of the workload, each with the number of columns it shares with all of these."""
    found = {(column,): 0 for column in domain} | dict.fromkeys(workload, 0)
    return {columns: sum(len(set(columns) & set(own)) for own in workload) for columns in found}


def within(
    domain: Domain, candidates: dict[tuple[str, ...], int], model: MarkovRandomField, limit: float
) -> dict[tuple[str, ...], int]:
    """The candidates that leave the junction tree within a limit in MB, or are in it already."""
    known = [set(clique) for clique in model.cliques]
    return {
        columns: weight
        for columns, weight in candidates.items()
        if any(set(columns) <= own for own in known)
        or junction_tree.hypothetical_model_size(domain, [*model.cliques, columns]) <= limit
    }


def worst(
    answers: dict[tuple[str, ...], np.ndarray],
    candidates: dict[tuple[str, ...], int],
    model: MarkovRandomField,
    sigma: float,
    epsilon: float,
) -> tuple[str, ...]:
    """The marginal to measure next, by the exponential mechanism: largest error less what noise would bring."""
    errors = []
    for columns, weight in candidates.items():
        difference = answers[columns] - np.asarray(model.project(columns).datavector())
        errors.append(weight * (np.abs(difference).sum() - NOISE_L1 * sigma * len(difference)))
    logits = 0.5 * epsilon / max(candidates.values()) * (np.array(errors) - max(errors))
    chances = np.exp(logits)
    return list(candidates)[np.random.default_rng().choice(len(chances), p=chances / chances.sum())]


def measure(answer: np.ndarray, columns: tuple[str, ...], sigma: float) -> LinearMeasurement:
    """A marginal with Gaussian noise."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    noisy = dp.m.make_gaussian(*space, scale=sigma)(answer.astype(float).tolist())
    return LinearMeasurement(np.array(noisy), columns, stddev=sigma)


if __name__ == "__main__":
    dp.enable_features("contrib", "idealized-numerics")
    main()
