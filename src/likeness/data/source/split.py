"""The public split into training and test rows. Only training rows reach the door."""

import hashlib

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.core.rng import public
from likeness.data.schema.schema import Schema
from likeness.data.source.row_digests import hash_words, row_hashes

Parts = NDArray[np.str_]


def split_by_column(column: "pd.Series[str]", train: str, test: str) -> Parts:
    """By a public column of the source.

    Raises:
        DataError: the column holds another value.
    """
    if not column.isin([train, test]).all():
        raise DataError(
            f"split column '{column.name}' has a value other than '{train}' and '{test}'. Correct ingest.split."
        )
    return np.where(column.to_numpy() == train, "train", "test")


def split_by_content(df: pd.DataFrame, schema: Schema, test_fraction: float, seed: int) -> Parts:
    """By the content of each row, for ``add_remove_one``: adding or removing a row moves no other row.

    A split by position would move all rows behind a removed one. Training sets of neighboring tables would then differ
    in many rows. Equal rows are on one side.
    """
    uniform = row_hashes(df, schema, seed) / 2.0**64
    return split_names(uniform < test_fraction)


def split_by_person(people: "pd.Series[str]", test_fraction: float, seed: int) -> Parts:
    """By a public hash of the person's name, so that all rows of a person are on one side."""
    codes, names = pd.factorize(people)
    start = hashlib.sha256(f"likeness person {seed}".encode())
    uniform = hash_words(start, (name.encode() for name in names)) / 2.0**64
    return split_names(uniform < test_fraction)[codes]


def split_by_position(count: int, test_fraction: float, seed: int) -> Parts:
    """By a public permutation of positions, for ``replace_one``: both sizes are public, and a replaced row stays."""
    return split_names(position_mask(count, test_fraction, seed))


def position_mask(count: int, test_fraction: float, seed: int) -> NDArray[np.bool_]:
    """Mask of test rows, shape (count,). It takes a byte a row, and names would take twenty."""
    mask = np.zeros(count, dtype=bool)
    mask[public(seed, "split").permutation(count)[: round(count * test_fraction)]] = True
    return mask


def split_names(is_test: NDArray[np.bool_]) -> Parts:
    """``train`` or ``test`` for each row."""
    return np.where(is_test, "test", "train")
