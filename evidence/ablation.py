"""What each part of the default of marginals adds on strangers' tables: the panel without one part at a time.

Run: ``python -m evidence.ablation [--tables NAME ...] [--parts NAME ...]``. A part is taken away by a change of the
code in memory. Each row is a release of its own at ε = 1, in a ledger of the benchmark's own. Resumable. It fills the
section of evidence/CHOICES.md. Tables with more than 30 columns are left out by default: they take most of the time.
"""

import argparse
import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from evidence.common import Results, commit, on_page, temporary_ledger
from evidence.panel import MEASURES, PANEL, measured, scores
from likeness.methods.marginals import frequent_values, knowledge, method, mixture, objective, workload

RESULTS = Results(Path("evidence/results/ablation.csv"), ["commit", "table", "part"])
PAGE = Path("evidence/CHOICES.md")
_MOST_COLUMNS = 30


def _noisy(blocks: Any, pairs: Any, sizes: Any, *_: Any) -> tuple[Any, Any]:
    """Products as they came."""
    ends = np.cumsum(sizes)
    whole = np.zeros((ends[-1], ends[-1]))
    for (i, j), block in zip(pairs, blocks, strict=True):
        rows, columns = slice(ends[i] - sizes[i], ends[i]), slice(ends[j] - sizes[j], ends[j])
        whole[rows, columns], whole[columns, rows] = block, block.T
    return whole, np.ones_like(whole)


def _as_drawn(chosen: Any, *_: Any) -> Any:
    """Rows without exchanges."""
    return chosen


PARTS: Mapping[str, tuple[str, Callable[[], Any]]] = {
    "all": ("the default", ExitStack),
    "steps": ("without steps of numbers", lambda: patch.object(knowledge.Knowledge, "steps", lambda _: None)),
    "products": ("cells of all pairs, without products", lambda: patch.object(method.Marginals, "by_person", True)),
    "hidden": ("cells also where noise hides them", lambda: patch.object(knowledge, "TOO_NOISY", math.inf)),
    "clear": ("equal budgets of pairs", lambda: patch.object(workload, "_CLEAR", 0)),
    "denoised": ("products with their noise", lambda: patch.object(method, "denoised", _noisy)),
    "prices": ("one price for all columns", lambda: patch.object(objective, "_ADAPTIVE", 0.0)),
    "frequent": (
        "without cells of frequent values",
        lambda: patch.object(frequent_values.Seen, "split", property(lambda _: {})),
    ),
    "exchanged": ("rows without exchanges", lambda: patch.object(mixture, "exchanged", _as_drawn)),
}


def main() -> None:
    """Run what is missing, write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=[])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--page", action="store_true", help="write the section and run nothing")
    arguments = parser.parse_args()
    score, folder = scores(), PANEL / "tables"
    names = [] if arguments.page else arguments.tables or sorted(path.stem for path in folder.glob("*.json"))
    with temporary_ledger():
        for name in names:
            if not arguments.tables and len(score.load(folder, name)[0]["columns"]) > _MOST_COLUMNS:
                continue
            for part in arguments.parts:
                if RESULTS.of(commit(), name, part).empty:
                    with PARTS[part][1]():
                        RESULTS.add([commit(), name, part], measured(score, folder, name, 1.0))
    on_page(PAGE, {"ablation": section(RESULTS.rows)})


def section(rows: pd.DataFrame) -> str:
    """Mean of each measure over the tables that have all parts of a commit, the latest of each set of parts."""
    tables = {}
    for _, own in rows.groupby("commit", sort=False):
        whole = own.groupby("table")["part"].nunique()
        own = own[own["table"].isin(whole[whole == own["part"].nunique()].index)]
        given = own.groupby("part")[[*MEASURES]].mean()
        lines = [
            f"| {own['table'].nunique()} tables, ε = 1 | {' | '.join(MEASURES.values())} |",
            "| --- |" + " ---: |" * len(MEASURES),
        ]
        for part, (title, _) in PARTS.items():
            if part in given.index:
                lines.append(f"| {title} | {' | '.join(f'{value:.4f}' for value in given.loc[part])} |")
        tables[frozenset(given.index)] = "\n".join(lines)
    return "\n\n".join(tables.values())


if __name__ == "__main__":
    main()
