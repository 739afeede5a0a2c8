r"""Random range queries over three columns: the error of a table's answers against those of the real table.

A query counts the rows for which all of its three conditions hold, as a share of the rows. Its columns are drawn
without repetition. Its conditions come from public knowledge alone:

- a number lies between two points drawn uniformly from the column's public range (after its public transform);
- an ordered category lies between two categories drawn uniformly, both included;
- any other category is one of a random set: each category with probability 1/2, drawn again if the set is empty.

A missing value meets no condition, as in SQL. The error is the mean over the queries of :math:`|p - \tilde p|`.

Source: Liew et al. (PEARL, ICLR 2022), appendix I.1. It draws 1,000 queries "containing three attributes" and does not
describe the intervals. So the numbers compare tables of one run, and not with the paper's 0.06.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core import rng
from likeness.core.errors import DataError
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema


@dataclass(frozen=True)
class Condition:
    """Condition of a query on one column.

    Attributes:
        column: name of the column.
        low: smallest number, on the unit scale of the codes; unused for a category.
        high: largest number, included; unused for a category.
        members: codes of the categories; None for a number.
    """

    column: str
    low: float = 0.0
    high: float = 1.0
    members: tuple[int, ...] | None = None

    def holds(self, codes: pd.DataFrame) -> NDArray[np.bool_]:
        """Rows of codes that meet the condition, shape (n,)."""
        values = codes[self.column].to_numpy()
        if self.members is not None:
            return np.isin(values, self.members)
        return (values >= self.low) & (values <= self.high)  # NaN, a missing number, is neither


Query = tuple[Condition, ...]


def draw_queries(schema: Schema, count: int = 1000, columns: int = 3, seed: int = 0) -> list[Query]:
    """Draw queries from the schema alone.

    Args:
        schema: public schema.
        count: number of queries.
        columns: conditions of one query; fewer where a table has fewer columns.
        seed: public seed.
    """
    stream = rng.public(seed, "evaluation.ranges")
    some = min(columns, len(schema.columns))
    return [
        tuple(
            _condition(schema.columns[place], stream)
            for place in stream.choice(len(schema.columns), some, replace=False)
        )
        for _ in range(count)
    ]


def answers(df: pd.DataFrame, schema: Schema, queries: Sequence[Query]) -> NDArray[np.float64]:
    """Share of the rows of a typed table that each query counts, shape (queries,).

    Raises:
        DataError: the table has no rows.
    """
    if not len(df):
        raise DataError("range queries: a table has no rows. Give a table of at least one row.")
    codes = Encoder(schema).encode(df)
    return np.array([np.logical_and.reduce([part.holds(codes) for part in query]).mean() for query in queries])


def _condition(column: Column, stream: np.random.Generator) -> Condition:
    if not column.is_categorical:
        low, high = np.sort(stream.uniform(size=2))
        return Condition(column.name, float(low), float(high))
    width = len(column.categories)  # the code after the last one means missing, and no query has it
    if column.ordered:
        low, high = np.sort(stream.integers(0, width, 2))
        return Condition(column.name, members=tuple(range(int(low), int(high) + 1)))
    chosen = np.flatnonzero(stream.integers(0, 2, width))
    while not len(chosen):
        chosen = np.flatnonzero(stream.integers(0, 2, width))
    return Condition(column.name, members=tuple(chosen.tolist()))
