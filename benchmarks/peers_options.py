"""What the programs of both peers' environments are told: table, budget, where to write. Needs nothing but Python."""

import argparse
from pathlib import Path


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
