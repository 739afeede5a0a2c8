"""The public split into training and test rows. Only training rows ever reach the door."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.core.rng import public
from likeness.data.schema.schema import Schema
from likeness.data.source.row_digests import row_hashes

Parts = NDArray[np.str_]


def split_by_column(column: "pd.Series[str]", train: str, test: str) -> Parts:
    """By a public column of the source.

    Raises:
        DataError: the column holds another value.
    """
    if not column.isin([train, test]).all():
        raise DataError(f"split column '{column.name}' has a value that is neither '{train}' nor '{test}'.")
    return np.where(column.to_numpy() == train, "train", "test")


def split_by_content(df: pd.DataFrame, schema: Schema, test_fraction: float, seed: int) -> Parts:
    """By each row's own content, for ``add_remove_one``: adding or removing a row moves no other row.

    A split by position would move all rows behind the removed one, so that neighboring tables had training sets that
    differ in many rows. Equal rows fall on the same side.
    """
    uniform = row_hashes(df, schema, seed) / 2.0**64
    return split_names(uniform < test_fraction)


def split_by_position(count: int, test_fraction: float, seed: int) -> Parts:
    """By a public permutation of positions, for ``replace_one``: both sizes are public, a replaced row stays put."""
    return split_names(position_mask(count, test_fraction, seed))


def position_mask(count: int, test_fraction: float, seed: int) -> NDArray[np.bool_]:
    """Which positions are test rows, shape (count,): a byte a row, where names would take twenty."""
    mask = np.zeros(count, dtype=bool)
    mask[public(seed, "split").permutation(count)[: round(count * test_fraction)]] = True
    return mask


def split_names(is_test: NDArray[np.bool_]) -> Parts:
    """``train`` or ``test`` for each row."""
    return np.where(is_test, "test", "train")
