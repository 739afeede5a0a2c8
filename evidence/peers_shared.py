"""What the programs of all peers' environments have in common: command line, table, budget."""

import argparse
import math
import os
import sys
from pathlib import Path

import pandas as pd
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm


def parser_of(description: str | None, methods: list[str]) -> argparse.ArgumentParser:
    """A command line for one table of codes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codes", type=Path, required=True)
    parser.add_argument("--domain", type=Path, required=True)
    parser.add_argument("--method", choices=methods, required=True)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--rows", type=int, required=True, help="how many rows to write")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--max-model-size", type=float, default=8.0, help="AIM: junction tree, in MB")
    clones = Path(os.environ.get("PEERS_CLONES", "clones"))
    parser.add_argument("--clones", type=Path, default=clones, help="folder of the clones (PEERS_CLONES)")
    return parser


def read(path: Path, domain: dict[str, int]) -> pd.DataFrame:
    """The table of codes, in the order of the domain; stops if a code lies outside it."""
    codes = pd.read_parquet(path)
    if set(codes.columns) != set(domain):
        sys.exit(f"{path}: its columns are not those of the domain. Give one size for each column.")
    for column, size in domain.items():
        if not pd.api.types.is_integer_dtype(codes[column]) or not codes[column].between(0, size - 1).all():
            sys.exit(f"{path}: column {column} must be integers from 0 to {size - 1}.")
    return codes[list(domain)]


def say(line: str) -> None:
    """A progress line, away from the report."""
    print(line, file=sys.stderr, flush=True)


def rho_of(epsilon: float, delta: float) -> float:
    """The largest ρ whose zCDP implies (ε, δ): Canonne, Kamath and Steinke 2020, Proposition 12."""

    def log_delta(rho: float) -> float:
        def at(log_order: float) -> float:  # order 1 + exp(log_order)
            less = math.exp(log_order)
            order = 1 + less
            return less * (order * rho - epsilon) + order * math.log1p(-1 / order) - math.log(less)

        return float(minimize_scalar(at, bounds=(-5, 12), method="bounded").fun)

    return float(brentq(lambda rho: log_delta(rho) - math.log(delta), 1e-9 * epsilon, epsilon, xtol=1e-12))


def exact_rho(epsilon: float, delta: float) -> float:
    """The ρ of the Gaussian noise that is exactly (ε, δ): Balle and Wang 2018, Theorem 8."""

    def delta_of(mu: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))

    return float(brentq(lambda mu: delta_of(mu) - delta, 1e-3 * epsilon, 2 * epsilon + 10, xtol=1e-12)) ** 2 / 2
