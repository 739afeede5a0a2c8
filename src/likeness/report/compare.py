"""The comparison of tables for the internal page, beside the scores. NOT private."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from likeness.config.params import Evaluate
from likeness.data.schema.schema import Schema
from likeness.evaluation.marginals import marginal_table

Tables = Mapping[str, pd.DataFrame]
"""``synthetic``, ``real`` (training rows, the ceiling) and ``shuffled`` (the shuffled baseline, the floor)."""

ORDERS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Comparison:
    """A comparison with the held-out rows.

    Attributes:
        marginals: columns ``table``, ``order``, ``columns`` and ``total_variation``.
        distances: by table and name.
        figures: PNG bytes by file name without its suffix.
    """

    marginals: pd.DataFrame
    distances: dict[str, dict[str, float]]
    figures: dict[str, bytes]


def compare_tables(real_test: pd.DataFrame, tables: Tables, schema: Schema, settings: Evaluate) -> Comparison:
    """Compare tables: marginals of one to four columns, and L1 of all pairs."""
    marginals = {
        name: marginal_table(real_test, table, schema, ORDERS, settings.bins, settings.max_tuples, settings.seed)
        for name, table in tables.items()
    }
    distances = {}
    for name, rows in marginals.items():
        pairs = rows.query("order == 2")["total_variation"]
        # Total variation is half of the L1 distance.
        distances[name] = {"pairs_l1": 2 * float(pairs.mean())} if len(pairs) else {}
    return Comparison(joined(marginals), distances, {})


def joined(marginals: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The marginals of several tables as one frame with the name of each table."""
    rows = pd.concat(table.assign(table=name) for name, table in marginals.items())
    return rows[["table", "order", "columns", "total_variation"]]
