"""Two tables of anybody beside each other in Python: as HTML, as frames and as figures. NOT private."""

import csv
import io
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from likeness.core.errors import DataError
from likeness.core.rng import public
from likeness.data.encoding.frames import pandas_frame
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_frame
from likeness.evaluation.details import details
from likeness.evaluation.marginals import marginal_table
from likeness.evaluation.utility import shuffle_columns
from likeness.report.files import Internal
from likeness.report.pages import Page, render_internal
from likeness.report.style import REAL, SYNTHETIC

MOST_CATEGORIES = 1000
"""Texts of a column that a comparison without a schema takes for categories."""


class ComparedTables:
    """A synthetic table beside real rows. NOT private: every number comes from real rows, without noise.

    A notebook shows it as a page. One half of the real rows, drawn by a public seed, is the reference. The other half
    says what chance leaves.

    Attributes:
        metrics: all numbers, see :mod:`likeness.evaluation.details`.
        marginals: total variation of columns and pairs from the reference, of ``synthetic``, ``real`` and ``shuffled``.
    """

    def __init__(self, real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, bins: int, seed: int) -> None:
        order = public(seed, "compare.halves").permutation(len(real))
        reference, rest = (real.iloc[sorted(part)] for part in (order[::2], order[1::2]))
        tables = {"synthetic": synthetic, "real": rest, "shuffled": shuffle_columns(rest, seed)}
        orders = (1, 2) if len(schema.names) > 1 else (1,)
        marginals = {name: marginal_table(reference, table, schema, orders, bins) for name, table in tables.items()}
        means = {name: table.groupby("order")["total_variation"].mean() for name, table in marginals.items()}
        self.marginals = pd.concat(marginals, names=["table"]).reset_index("table")
        self.metrics: dict[str, Any] = {
            "scores": {},
            "halved": True,
            "of_anybody": True,
            "marginals": {
                name: {str(order): float(value) for order, value in mean.items()} for name, mean in means.items()
            },
            "details": {**details(tables, reference, schema, bins), "neighbors": None},
        }

    @cached_property
    def columns(self) -> pd.DataFrame:
        """A row a column: its total variation, and the center and spread of synthetic and real rows."""
        rows = [
            {"column": column["column"], "total_variation": column["total_variation"]}
            | {f"{key}_{word}": column[name][key] for key in ("missing", "center", "spread") for name, word in _SIDES}
            for column in self.metrics["details"]["columns"]
        ]
        return pd.DataFrame(rows).set_index("column")

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """A row a pair of columns, the worst first: its total variation, and Cramér's V of real and synthetic rows."""
        names, pairs = self.metrics["details"]["mapped"], self.metrics["details"]["pairs"]
        rows = [(names[first], names[second], *numbers) for first, second, *numbers in pairs]
        frame = pd.DataFrame(rows, columns=["first", "second", "total_variation", "v_real", "v_synthetic"])
        return frame.set_index(["first", "second"]).sort_values("total_variation", ascending=False)

    @property
    def figures(self) -> dict[str, Figure]:
        """A matplotlib figure for each column: real rows as bars, synthetic ones as strokes."""
        return {column["column"]: _figure(column) for column in self.metrics["details"]["columns"]}

    @property
    def page(self) -> Page:
        """The comparison as one self-contained page."""
        marginals = list(csv.DictReader(io.StringIO(self.marginals.to_csv(index=False))))
        return Page(render_internal(Internal(self.metrics, [], marginals, {}), "Two tables"))

    def save(self, path: Path | str) -> Path:
        """Write the page. It is NOT private."""
        return self.page.save(path)

    def _repr_html_(self) -> str:
        return self.page._repr_html_()


_SIDES = (("synthetic", "synthetic"), ("held_out", "real"))


def compare(real: Any, synthetic: Any, schema: Schema | None = None, bins: int = 16, seed: int = 0) -> ComparedTables:
    """Compare a synthetic table with real rows, of any tool. The result is NOT private.

    Args:
        real: real rows, best ones that the synthetic table was not made from: a frame of pandas, polars or pyarrow.
        synthetic: synthetic rows. Without a schema, columns that they lack are not compared.
        schema: of both. None: categories and bounds are those of the rows.
        bins: cells of a number.
        seed: public; draws the half of the real rows that is the reference.

    Returns:
        numbers, figures and a page, which a notebook shows.

    Raises:
        DataError: a column of the synthetic table is missing in the real one, or the rows do not fit the schema.
    """
    frames = [pandas_frame(table, f"{name}: must be")[0] for name, table in (("real", real), ("synthetic", synthetic))]
    for missing in sorted(set(frames[1].columns) - set(frames[0].columns), key=str) if schema is None else ():
        remedy = "Add it, or drop it from the synthetic ones."
        raise DataError(f"compare: the real rows have no column '{missing}'. {remedy}")
    if schema is None:  # a synthetic table lacks names and ids, which nobody compares
        frames[0] = frames[0][[name for name in frames[0].columns if name in frames[1].columns]]
    if min(map(len, frames)) < 2:
        raise DataError("compare: a table has fewer than two rows. Give more rows.")
    if schema is None:
        schema = _schema_of(*frames)
        texts = [column.name for column in schema.columns if column.is_categorical]
        frames = [frame.astype({name: "string" for name in texts}) for frame in frames]
    rows, drawn = (read_frame(frame, schema, name) for frame, name in zip(frames, ("real", "synthetic"), strict=True))
    return ComparedTables(rows, drawn, schema, bins, seed)


def _schema_of(real: pd.DataFrame, synthetic: pd.DataFrame) -> Schema:
    """Categories and bounds as both tables have them."""
    columns: dict[str, Mapping[str, Any]] = {}
    for name in real.columns:
        both = pd.concat([real[name], synthetic[name]])
        values = both.dropna()
        nullable = {"nullable": True} if len(values) < len(both) else {}
        if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values) and len(values):
            lower, upper = float(values.min()), float(values.max())
            whole = bool((values % 1 == 0).all())
            bounds = {"lower": lower, "upper": upper if upper > lower else lower + 1}
            ends = {key: int(end) if whole else end for key, end in bounds.items()}
            columns[name] = {"kind": "integer" if whole else "numeric", **ends, **nullable}
            continue
        texts = sorted(values.astype("string").unique())
        if len(texts) > MOST_CATEGORIES:
            fault = f"has more than {MOST_CATEGORIES:,} different texts"
            raise DataError(f"compare: column '{name}' {fault}. Drop it, or give a schema.")
        columns[name] = {"kind": "categorical", "categories": texts or ["none"], **nullable}
    content = {"name": "compared", "source": "both tables", "task": "none", "columns": columns}
    return Schema.from_dict(content, "compare")


def _figure(column: Mapping[str, Any]) -> Figure:
    figure = Figure(figsize=(4, 2.4), layout="constrained")
    panel, positions = figure.subplots(), range(len(column["cells"]))
    panel.bar(positions, column["shares"]["real"], color=REAL, alpha=0.5, label="real")
    panel.scatter(positions, column["shares"]["synthetic"], color=SYNTHETIC, marker="_", s=160, label="synthetic")
    panel.set_title(column["column"])
    panel.set_xticks(positions, column["cells"], rotation=60, ha="right", fontsize=7)
    panel.legend()
    return figure
