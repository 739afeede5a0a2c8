r"""Total variation between the low-order marginals of two tables, and the association of columns.

.. math:: \mathrm{TV}(P, Q) = \tfrac12 \sum_{\text{cells}} |P(\text{cell}) - Q(\text{cell})| \in [0, 1]

Cells come from public knowledge only. A category is a cell, and missing is a separate cell. A numeric column has
``bins`` cells of equal width between its public bounds, after its public transform. The label is a column like any
other. All 1- and 2-way marginals count. Of higher orders a public seed draws ``max_tuples``, the same for each table.
Bins and reference differ between papers, so these numbers compare tables of one run, and not runs with a paper.

The work is one mixed-radix code and one ``bincount`` per marginal.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core import rng
from likeness.core.errors import DataError
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema

MOST_DENSE_CELLS = 1 << 22
"""Most cells of a dense count. A larger marginal counts the cells that occur, so memory stays below 100 MB."""

Codes = NDArray[np.int64]
"""Numbers of cells, shape (rows, columns)."""

SEPARATOR = " × "
"""Text between the column names of a marginal, for people. No program parses it."""


def cells(df: pd.DataFrame, schema: Schema, bins: int = 16) -> tuple[Codes, list[int]]:
    """Cell numbers (n, columns) of every schema column, and the number of cells of each column.

    A numeric column has ``bins + 1`` cells, the last for missing values. The last bin includes its upper bound. A
    categorical column has the cells of its codes (:class:`~likeness.data.encoding.encoder.Encoder`); missing is last.
    """
    codes = Encoder(schema).encode(df)
    columns, sizes = [], []
    for column in schema.columns:
        values = codes[column.name].to_numpy()
        if column.is_categorical:
            columns.append(values.astype(np.int64))
            sizes.append(len(column.categories) + int(column.nullable))
        else:
            missing = np.isnan(values)
            unit = np.where(missing, 0.0, values)
            columns.append(np.where(missing, bins, np.minimum((unit * bins).astype(np.int64), bins - 1)))
            sizes.append(bins + 1)
    return np.stack(columns, axis=1), sizes


def total_variation(a: Codes, b: Codes, sizes: Sequence[int], columns: Sequence[int] | None = None) -> float:
    """Total variation between two tables of cell numbers, (n, k) and (m, k), over the joint cells of some columns.

    Args:
        a: cell numbers of one table.
        b: cell numbers of the other.
        sizes: number of cells of each column.
        columns: numbers of the columns; None: all of them jointly.
    """
    chosen = range(len(sizes)) if columns is None else columns
    joint_a, joint_b, width = np.zeros(len(a), np.int64), np.zeros(len(b), np.int64), 1
    for column in chosen:
        joint_a = joint_a * sizes[column] + a[:, column]
        joint_b = joint_b * sizes[column] + b[:, column]
        width *= sizes[column]
        if width > MOST_DENSE_CELLS:
            _, dense = np.unique(np.concatenate([joint_a, joint_b]), return_inverse=True)
            joint_a, joint_b, width = dense[: len(a)], dense[len(a) :], int(dense.max()) + 1
    share_a = np.bincount(joint_a, minlength=width) / len(a)
    share_b = np.bincount(joint_b, minlength=width) / len(b)
    return float(0.5 * np.abs(share_a - share_b).sum())


def tuples(num_columns: int, order: int, max_tuples: int, seed: int) -> list[tuple[int, ...]]:
    """Column numbers of the marginals of one order: all for orders 1 and 2, else at most ``max_tuples`` by the seed."""
    total = math.comb(num_columns, order)
    if order <= 2 or total <= max_tuples:
        return list(itertools.combinations(range(num_columns), order))
    stream = rng.public(seed, f"evaluation.marginals.{order}")
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < max_tuples:
        drawn.add(tuple(sorted(stream.choice(num_columns, order, replace=False).tolist())))
    return sorted(drawn)


def marginal_table(
    real: pd.DataFrame,
    other: pd.DataFrame,
    schema: Schema,
    orders: Sequence[int] = (1, 2, 3),
    bins: int = 16,
    max_tuples: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """One row per marginal: ``order``, ``columns`` (names joined by ``×``) and ``total_variation``.

    Args:
        real: typed reference table, the held-out test rows.
        other: typed table to compare with it.
        schema: public schema of both.
        orders: numbers of columns in a marginal.
        bins: cells of a numeric column, missing not counted.
        max_tuples: most marginals of one order above 2.
        seed: public seed of that choice.

    Raises:
        DataError: a table has no rows.
    """
    if not len(real) or not len(other):
        raise DataError("marginals: a table has no rows. Give tables of at least one row.")
    a, sizes = cells(real, schema, bins)
    b, _ = cells(other, schema, bins)
    rows = [
        (order, SEPARATOR.join(schema.names[index] for index in chosen), total_variation(a, b, sizes, chosen))
        for order in orders
        for chosen in tuples(len(sizes), order, max_tuples, seed)
    ]
    return pd.DataFrame(rows, columns=["order", "columns", "total_variation"])


def cramers_v(codes: Codes, sizes: Sequence[int]) -> NDArray[np.float64]:
    r"""Matrix (k, k) of Bergsma's bias-corrected Cramer's V between columns of cell numbers (n, k).

    .. math:: \tilde V = \sqrt{\frac{\max(0, \chi^2/n - (r-1)(c-1)/(n-1))}{\min(\tilde r, \tilde c) - 1}},
        \qquad \tilde r = r - \frac{(r-1)^2}{n-1}

    with r, c the cells that occur. It is one measure for all kinds of columns; numeric ones count by their bins. 0 is
    independence, 1 is a function of one another. A constant column has 0 with each other. It has no sign.

    Source: Bergsma (2013).

    Args:
        codes: cell numbers (n, k); see :func:`cells`.
        sizes: number of cells of each column.
    """
    n, k = codes.shape
    matrix = np.eye(k)
    for i in range(k):
        for j in range(i):
            joint = np.bincount(codes[:, i] * sizes[j] + codes[:, j], minlength=sizes[i] * sizes[j])
            joint = joint.reshape(sizes[i], sizes[j]) / n
            joint = joint[joint.sum(1) > 0][:, joint.sum(0) > 0]
            r, c = joint.shape
            if min(r, c) < 2 or n < 2:
                continue
            expected = np.outer(joint.sum(1), joint.sum(0))
            phi = max(0.0, float(((joint - expected) ** 2 / expected).sum()) - (r - 1) * (c - 1) / (n - 1))
            least = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
            matrix[i, j] = matrix[j, i] = min(1.0, math.sqrt(phi / least)) if least > 0 else 0.0
    return matrix
