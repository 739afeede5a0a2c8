"""The fitted model as an object that gives tables. It follows from released files, so that tables cost nothing."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likeness.core.errors import ParamsError
from likeness.core.typed import check_allowed, require
from likeness.data.schema.schema import Schema
from likeness.inference.axes import Axis
from likeness.methods import DEFAULT
from likeness.methods.saved_generator import SavedGenerator

if TYPE_CHECKING:
    from pandas import Series

MOST_CELLS = 50_000
"""Of one table: a mixture of a thousand components needs 400 MB for them."""


@dataclass(frozen=True)
class FittedModel:
    """The generator's probabilities of cells, in words of the schema.

    Attributes:
        schema: public, with released categories.
        saved: the generator.
    """

    schema: Schema
    saved: SavedGenerator

    def marginal(self, columns: str | Iterable[str]) -> "Series":
        """The model's share of each cell of some columns. It costs nothing.

        The shares are those of the distribution from which rows are drawn, before rules change any row. They have no
        margins of error; :meth:`likeness.Synthesizer.estimate` gives these for what was released.

        Args:
            columns: one name or several, of any columns that the model has.

        Returns:
            a pandas series with the cells as index, as texts: a category, a number or a range; NaN is missing.

        Raises:
            ParamsError: the method's model has no tables, a name is no modeled column, or there are too many cells.
        """
        names, network = (columns,) if isinstance(columns, str) else tuple(columns), self.saved.network
        if not network.table_cells:
            method = self.saved.provenance["method"]
            raise ParamsError(f"{method} has no tables: its model only draws rows. Use method {DEFAULT}.")
        schema = self.schema.model_schema  # the model has no computed columns
        features = schema.feature_columns
        cells = {column.name: column_cells for column, column_cells in zip(features, network.table_cells, strict=True)}
        label = schema.label if schema.label not in cells else None
        order = (*(() if label is None else (label,)), *cells)
        for name in names:
            check_allowed("columns", name, order)
        different = len(names) > 0 and len(set(names)) == len(names)
        require(different, "columns", ", ".join(map(str, names)), "different names, at least one")
        axes = {name: Axis.from_column(schema.column(name), cells.get(name)) for name in names}
        size = math.prod(axis.size for axis in axes.values())
        if size > MOST_CELLS:
            fault = f"{', '.join(names)} have {size:,} cells, more than {MOST_CELLS:,}"
            raise ParamsError(f"columns: {fault}. Name fewer columns.")
        listed = [name for name in names if name != label]
        weights = np.array(self.saved.class_weights)
        table = network.table(tuple(cells[name] for name in listed))
        table = table * (weights / weights.sum()).reshape(-1, *(1,) * len(listed))
        held = (label, *listed) if label in names else tuple(listed)
        table = table if label in names else table.sum(axis=0)
        return _series(table.transpose([held.index(name) for name in names]), axes)


def _series(table: Any, axes: dict[str, Axis]) -> "Series":
    index: Any = pd.MultiIndex.from_product([list(axis.labels) for axis in axes.values()], names=list(axes))
    if len(axes) == 1:
        ((name, axis),) = axes.items()
        index = pd.Index(list(axis.labels), name=name)
    return pd.Series(table.reshape(-1), index=index, name="share")
