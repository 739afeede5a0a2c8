r"""The published synthesizers MST and AIM on a table of codes: the peers that benchmarks compare with.

Run in a virtual environment of its own (``evidence/peers.txt`` says how); nothing of ``likeness`` is imported::

    python evidence/peers.py --codes codes.parquet --domain domain.json --method aim --epsilon 1 --delta 1e-5 \
        --rows 32561 --out synthetic.parquet

``codes.parquet`` has integer columns with values 0..size-1, ``domain.json`` maps each column to its public size.
Standard output is one JSON line; progress goes to standard error.

Mechanisms: MST (McKenna, Miklau and Sheldon 2021, arXiv:2108.04978) and AIM (McKenna, Mullins, Sheldon and Miklau
2022, arXiv:2201.12677) of the package dpmm (Mahiou, Ganev and others 2025, arXiv:2506.00322), which adapts the
authors' programs and their inference (Private-PGM). The authors' own package, mbi, has the inference only.
Their estimates are made by :mod:`peers_inference`, dpmm's own arithmetic ten times as fast.
smartnoise-synth has both mechanisms, but it tells MST the number of rows, measures MST's merged categories on another
scale than it fits them, and limits the sum of AIM's measured cells where the size of the junction tree is meant.
:class:`PublishedMST` and :func:`fit` undo the three places where dpmm leaves the published programs.

Privacy: (ε, δ) under add/remove of one row. The number of rows is not told to a mechanism, it is estimated from noisy
counts; ``--rows`` is only how many rows to write. Sizes are public. ρ is the largest whose zCDP implies (ε, δ) by
Canonne, Kamath and Steinke 2020, Proposition 12: dpmm's own conversion. Likeness has about 8 % less noise by exact
Gaussian accounting, which is not theirs to use: they choose by the exponential mechanism. Noise is opendp's, choices
are numpy's: good for a benchmark on public data.
"""

import argparse
import json
import math
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
from dpmm.models.aim import AIM
from dpmm.models.base.mbi import FactoredInference
from dpmm.models.mst import MST
from memory import peak_mb  # beside this script: the peers' environment has no Likeness
from peers_inference import mirror_descent
from peers_shared import parser_of, read, say

LIBRARIES = ["dpmm", "numpy", "opendp", "pandas", "scipy"]
MAX_CELLS = 10_000  # a workload marginal with more cells is left out, as in the authors' program


class PublishedMST(MST):
    """MST with the scales of the published program.

    dpmm adds noise of scale ``sigma·sqrt(k)`` to each of k marginals but records ``sigma``, which puts the threshold
    under which categories are merged (3 scales) below the noise; and it weighs the d-1 pairs as if they were d, which
    leaves some of the budget unused.
    """

    def measure(self, data, cliques=None, weights=None, public=False, flatten=None):
        """Noisy marginals that together cost a third of ρ, each with the scale that it was given."""
        measured = super().measure(data, cliques, np.ones(len(cliques)), public, flatten)
        scale = self.sigma * math.sqrt(len(cliques))
        return [(query, answer, scale, columns) for query, answer, _, columns in measured]


class LoggedAIM(AIM):
    """AIM that says what it measures."""

    def worst_approximated(self, candidates, answers, model, eps, sigma, public=False):
        """The next marginal, chosen by the exponential mechanism."""
        chosen = super().worst_approximated(candidates, answers, model, eps, sigma, public)
        say(f"{'×'.join(chosen)}: scale {sigma:.1f}, model so far {model.size * 8 / 2**20:.2f} MB")
        return chosen


def main() -> None:
    """Read, synthesize, write, report."""
    arguments = parser_of(__doc__, ["mst", "aim"]).parse_args()
    warnings.simplefilter("ignore")
    FactoredInference.mirror_descent = mirror_descent
    domain = {column: int(size) for column, size in json.loads(arguments.domain.read_text()).items()}
    codes = read(arguments.codes, domain)
    started = time.monotonic()
    mechanism = build(arguments, domain)
    fit(mechanism, codes)
    say("sampling")
    synthetic = mechanism.generate(arguments.rows)[list(domain)].astype(np.int64).reset_index(drop=True)
    seconds = time.monotonic() - started
    synthetic.to_parquet(arguments.out)
    aim = {"max_model_size_mb": arguments.max_model_size, "max_cells": MAX_CELLS}
    report = {
        "method": arguments.method,
        "epsilon": arguments.epsilon,
        "delta": arguments.delta,
        "rho": mechanism.rho,
        "adjacency": "add/remove",
        "rows_public": False,
        "rows": len(synthetic),
        **(aim if arguments.method == "aim" else {}),
        "measured": ["×".join(columns) for _, _, _, columns in mechanism.measures],
        "model_mb": round(mechanism.model.size * 8 / 2**20, 3),
        "seconds": round(seconds, 1),
        "peak_mb": round(peak_mb(), 1),
        "versions": {"python": sys.version.split()[0], **{name: version(name) for name in LIBRARIES}},
    }
    print(json.dumps(report, ensure_ascii=False))


def build(arguments: argparse.Namespace, domain: dict[str, int]) -> MST | AIM:
    """The mechanism with its published settings, in one process."""
    budget = {"epsilon": arguments.epsilon, "delta": arguments.delta}
    if arguments.method == "mst":
        return PublishedMST(**budget, domain=domain, n_jobs=1)
    size = arguments.max_model_size
    return LoggedAIM(**budget, domain=domain, n_jobs=1, max_model_size=size, degree=2, max_cells=MAX_CELLS)


def fit(mechanism: MST | AIM, codes: pd.DataFrame) -> None:
    """Measure and estimate. AIM's last estimate starts from the one before, as published; dpmm's starts anew."""
    say("measuring")
    mechanism.fit(codes, marginals_only=isinstance(mechanism, AIM))
    if isinstance(mechanism, AIM):
        mechanism.model = mechanism.engine.estimate(mechanism.measures)
        mechanism.fit_state = "trained"


if __name__ == "__main__":
    main()
