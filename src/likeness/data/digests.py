"""Digests of typed rows: keyed for identities, by row for the split. The same on every machine."""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.data.column import Column
from likeness.data.date_values import numbers_of_dates
from likeness.data.schema import Schema


def typed_digest(df: pd.DataFrame, schema: Schema, key: bytes) -> str:
    """HMAC-SHA256 of the typed rows in order; the same on every machine, unrelated to any salt.

    Args:
        df: typed table. key: 32 secret bytes of the ledger.
    """
    return columns_digest(lambda name: [df[name]], len(df), schema, key)


def columns_digest(read: "Callable[[str], Iterable[pd.Series[Any]]]", count: int, schema: Schema, key: bytes) -> str:
    """The same, of a table that is read column by column, each twice: first which cells are missing, then their words.

    Args:
        read: a typed column by name, in any number of pieces. count: number of rows.
    """
    digest = hmac.new(key, digestmod="sha256")
    for column in schema.columns:
        digest.update(json.dumps([column.name, column.kind, count]).encode())
        for values in read(column.name):
            digest.update(_words(column, values)[1].tobytes())
        for values in read(column.name):
            digest.update(_words(column, values)[0].astype("<f8").tobytes())
    return digest.hexdigest()


_ROWS = 16_384  # hashed at once


def row_hashes(df: pd.DataFrame, schema: Schema, seed: int) -> NDArray[np.uint64]:
    """64 bits a row from SHA-256 of the public seed and the row's own content, shape (n,)."""
    start = hashlib.sha256(f"likeness row {seed}".encode())
    hashes = []
    for place in range(0, len(df), _ROWS):
        parts = []
        for column in schema.columns:
            words, missing = _words(column, df[column.name].iloc[place : place + _ROWS])
            parts += [words.astype("<f8"), missing.astype("<f8")]
        rows = memoryview(np.stack(parts, axis=1).tobytes())
        for first in range(0, len(rows), 8 * len(parts)):
            own = start.copy()
            own.update(rows[first : first + 8 * len(parts)])
            hashes.append(own.digest()[:8])
    return np.frombuffer(b"".join(hashes), dtype="<u8")


def _text_words(values: "pd.Series[Any]") -> NDArray[np.float64]:
    """Texts as numbers: 52 bits of their SHA-256, exact in float64; 0 where missing."""
    codes, texts = pd.factorize(values)
    hashes = [hashlib.sha256(str(text).encode()).digest()[:8] for text in texts]
    words = (np.frombuffer(b"".join(hashes), dtype="<u8") >> np.uint64(12)).astype(np.float64)
    return np.append(words, 0.0)[codes]  # a missing cell has code -1: the last place


def _words(column: Column, values: "pd.Series[Any]") -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A column as numbers (0 where missing) and its missing mask."""
    missing = values.isna().to_numpy(dtype=bool)
    if column.open:
        words = _text_words(values)
    elif column.is_categorical:
        words = values.cat.codes.to_numpy().astype(np.float64)
    elif column.is_date:
        words = numbers_of_dates(values, column)
    else:
        words = values.to_numpy(dtype=np.float64, na_value=0.0)
    return np.where(missing, 0.0, words) + 0.0, missing  # + 0.0 makes -0.0 and 0.0 one value
