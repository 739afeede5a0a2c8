r"""Measures of the papers' tables: the error of random range queries, and the maximum mean discrepancy.

**Range queries** over three random columns: the error of a table's answers against those of the real table.

A query counts the rows for which all of its three conditions hold, as a share of the rows. Its columns are drawn
without repetition. Its conditions come from public knowledge alone:

- a number lies between two points drawn uniformly from the column's public range (after its public transform);
- an ordered category lies between two categories drawn uniformly, both included;
- any other category is one of a random set: each category with probability 1/2, drawn again if the set is empty.

A missing value meets no condition, as in SQL. The error is the mean over the queries of :math:`|p - \tilde p|`.

Source: Liew et al. (PEARL, ICLR 2022), appendix I.1. It draws 1,000 queries "containing three attributes" and does not
describe the intervals. So the numbers compare tables of one run, and not with the paper's 0.06.

**Maximum mean discrepancy** with a Gaussian kernel: the distance of two tables as distributions.

.. math:: \mathrm{MMD}^2 = \mathbb E k(x, x') + \mathbb E k(y, y') - 2\, \mathbb E k(x, y),
    \qquad k(x, y) = \exp(-\lVert x - y \rVert^2 / 2 l^2)

Both estimates are of the squared MMD. The *biased* one takes all pairs and is never negative. The *unbiased* one leaves
out a row's pair with itself. Its mean is 0 for two samples of one distribution, so a value may be below 0.

Sources: Gretton et al. (2012), lemma 6 and equation 5; on tables Liew et al. (PEARL, ICLR 2022), appendix I.1.

A row is a point, and all columns have equal weight. A number is its place on the unit scale. Two categories that differ
are 1 apart (one-hot divided by √2). The class is a column like any other. The length scale is public, from the schema
alone: the root mean squared distance of two rows drawn uniformly from all rows that the schema allows. It replaces the
usual median over data, so numbers of two runs on one schema compare.

Memory is O(n): pairs are taken by blocks. Time is O(n²).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core import rng
from likeness.core.errors import DataError
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.evaluation.details import points
from likeness.evaluation.utility import sample_rows


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
    number = min(columns, len(schema.columns))
    return [
        tuple(
            _condition(schema.columns[index], stream)
            for index in stream.choice(len(schema.columns), number, replace=False)
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


_BLOCK = 1024
"""Rows of one block of pairs: 8 MB."""


@dataclass(frozen=True)
class Discrepancy:
    """Two estimates of the squared MMD.

    Attributes:
        unbiased: without the pairs of a row with itself; mean 0 under equality.
        biased: with them; at least 0.
    """

    unbiased: float
    biased: float


def length_scale(schema: Schema) -> float:
    """The public length scale: root mean squared distance of two uniform rows.

    Two uniform numbers have E(x - y)² = 1/6. Two uniform categories of k differ with probability 1 - 1/k. A table of
    constants alone has scale 1.
    """
    squares = [1 - 1 / column.width if column.is_categorical else 1 / 6 for column in schema.columns]
    return math.sqrt(math.fsum(squares)) or 1.0


def kernel_sum(a: NDArray[Any], b: NDArray[Any], scale: float) -> float:
    """Sum of k over all pairs of a row of ``a`` (n, d) with one of ``b`` (m, d)."""
    squares_b = (b * b).sum(axis=1)
    total = 0.0
    for start in range(0, len(a), _BLOCK):
        part = a[start : start + _BLOCK]
        for other in range(0, len(b), _BLOCK):
            squared = part @ b[other : other + _BLOCK].T
            squared *= -2.0
            squared += (part * part).sum(axis=1)[:, None]
            squared += squares_b[None, other : other + _BLOCK]
            np.maximum(squared, 0.0, out=squared)  # rounding may give a little below zero
            squared /= -2.0 * scale * scale
            total += float(np.exp(squared, out=squared).sum())
    return total


def mmd_squared(a: NDArray[Any], b: NDArray[Any], scale: float) -> Discrepancy:
    """Squared MMD between two samples, (n, d) and (m, d).

    Args:
        a: one sample.
        b: the other.
        scale: length scale of the kernel, in units of the points.

    Raises:
        DataError: a sample has fewer than two rows, so no pair.
    """
    n, m = len(a), len(b)
    if min(n, m) < 2:
        raise DataError("mmd: a table has fewer than two rows. Give tables of at least two rows.")
    within_a, within_b, across = kernel_sum(a, a, scale), kernel_sum(b, b, scale), kernel_sum(a, b, scale)
    # k(x, x) = 1: the diagonal of n pairs sums to n.
    unbiased = (within_a - n) / (n * (n - 1)) + (within_b - m) / (m * (m - 1)) - 2 * across / (n * m)
    return Discrepancy(unbiased, within_a / n**2 + within_b / m**2 - 2 * across / (n * m))


def papers_measures(
    real: pd.DataFrame, other: pd.DataFrame, schema: Schema, most_rows: int = 5000, queries: int = 1000, seed: int = 0
) -> dict[str, float]:
    """Both measures of a table against held-out rows: ``range_queries``, ``mmd_unbiased`` and ``mmd_biased``.

    Args:
        real: typed held-out rows.
        other: typed rows of the judged table.
        schema: public schema of both.
        most_rows: of a table in the discrepancy, whose time grows with their square.
        queries: number of range queries.
        seed: public.

    Raises:
        DataError: a table has fewer than two rows.
    """
    drawn = draw_queries(schema, queries, seed=seed)
    error = float(abs(answers(other, schema, drawn) - answers(real, schema, drawn)).mean())
    first, second = (points(sample_rows(table, most_rows, seed, "mmd"), schema) for table in (real, other))
    squared = mmd_squared(first, second, length_scale(schema))
    return {"range_queries": error, "mmd_unbiased": squared.unbiased, "mmd_biased": squared.biased}
