"""What the programs of both peers' environments have in common: how they are told what to do, and read a table."""

import argparse
import sys
from pathlib import Path

import pandas as pd


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
