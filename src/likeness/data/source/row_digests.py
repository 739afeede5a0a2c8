"""Digests of rows: keyed for identities, by row for the split. The same on every machine."""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema


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


def unordered_digest(chunks: Iterable[pd.DataFrame], schema: Schema, key: bytes) -> str:
    """HMAC-SHA256 of typed rows in whatever order they come.

    Args:
        chunks: of a typed table.
        schema: its columns, in order.
        key: 32 secret bytes of the ledger.
    """
    total = sum(_sum_of_rows(_row_bytes(chunk, schema), key) for chunk in chunks) % _MODULUS
    columns = [[column.name, column.kind] for column in schema.columns]
    return hmac.new(key, json.dumps(["rows in any order", columns, total]).encode(), "sha256").hexdigest()


class SourceDigest:
    """Keyed digest of the rows of a source, as they were read: whose rows these are, whatever a schema takes of them.

    It depends neither on the order of rows and columns, nor on the schema, the split, or how the rows come in parts:
    the hashes of rows are added up modulo 2^256 (Clarke et al. 2003). A cell is its text, and a missing cell is an
    empty one. Columns that hold lists or records are left out.
    """

    def __init__(self, key: bytes) -> None:
        """Start without rows.

        Args:
            key: of :meth:`key_of`; it may travel to other processes, where the ledger's key may not.
        """
        self.key, self._total = key, 0

    @staticmethod
    def key_of(ledger_key: bytes) -> bytes:
        """A key for this purpose alone.

        Args:
            ledger_key: 32 secret bytes of the ledger.
        """
        return hmac.digest(ledger_key, b"likeness rows of a source", "sha256")

    def add_frame(self, raw: pd.DataFrame) -> None:
        """Take up rows as raw cells."""
        columns = [raw.iloc[:, place] for place in range(raw.shape[1])]
        # Objects would get one type for all.
        plain = [values.astype("str") if values.dtype == "object" else values for values in columns]
        self.add(list(map(str, raw.columns)), [pa.Array.from_pandas(values) for values in plain])

    def add(self, names: Sequence[str], columns: Sequence[pa.Array]) -> None:
        """Take up rows.

        Args:
            names: of the columns.
            columns: of one length.
        """
        by_name = sorted(zip(names, columns, strict=True), key=lambda pair: pair[0])
        texts = [(name, _texts(cells)) for name, cells in by_name if not pa.types.is_nested(cells.type)]
        read = [(name, cells) for name, cells in texts if cells is not None]
        if not read:
            return
        key = hmac.digest(self.key, json.dumps([name for name, _ in read]).encode(), "sha256")
        step = max(1, _CELLS // len(read))
        for start in range(0, len(read[0][1]), step):
            cells = [cells.slice(start, step) for _, cells in read]
            rows = pc.binary_join_element_wise(*cells, _BETWEEN, null_handling="replace", null_replacement=b"")
            self.put(_sum_of_rows(rows.to_pylist(), key))

    def put(self, total: int) -> None:
        """Add what another digest with the same key took up."""
        self._total = (self._total + total) % _MODULUS

    def take(self) -> int:
        """What was taken up since the last call."""
        total, self._total = self._total, 0
        return total

    def digest(self) -> str:
        """Of all rows until now; empty where there was none."""
        return hmac.digest(self.key, str(self._total).encode(), "sha256").hex() if self._total else ""


def _texts(cells: "pa.Array | pa.ChunkedArray") -> "pa.Array | pa.ChunkedArray | None":
    """Cells as bytes; None where a column has no texts."""
    try:
        if pa.types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        if pa.types.is_duration(cells.type):
            cells = cells.cast(pa.int64())
        if not pa.types.is_binary(cells.type):
            cells = cells.cast(pa.large_string())
        return cells.cast(pa.large_binary())
    except pa.ArrowException:
        return None


_CELLS = 1 << 20  # of a source, hashed at once
_BETWEEN = pa.scalar(b"\x1f", pa.large_binary())  # cells of a row
_MODULUS = 2**256


def _sum_of_rows(rows: Iterable[Any], key: bytes) -> int:
    """The keyed hashes of rows, added up modulo 2^256."""
    start = hashlib.blake2b(key=key, digest_size=32)

    def hashed(row: Any) -> bytes:
        own = start.copy()
        own.update(row)
        return own.digest()

    total, rows = 0, iter(rows)
    while hashes := b"".join(map(hashed, islice(rows, _ROWS))):
        words = np.frombuffer(hashes, dtype="<u4").reshape(-1, 8).sum(axis=0, dtype=np.uint64)
        total += sum(int(word) << (32 * place) for place, word in enumerate(words))
    return total % _MODULUS


_ROWS = 16_384  # hashed at once


def row_hashes(df: pd.DataFrame, schema: Schema, seed: int) -> NDArray[np.uint64]:
    """64 bits a row from SHA-256 of the public seed and the row's own content, shape (n,)."""
    start = hashlib.sha256(f"likeness row {seed}".encode())
    hashes = []
    for row in _row_bytes(df, schema):
        own = start.copy()
        own.update(row)
        hashes.append(own.digest()[:8])
    return np.frombuffer(b"".join(hashes), dtype="<u8")


def _row_bytes(df: pd.DataFrame, schema: Schema) -> Iterator[memoryview]:
    """The content of each row of a typed table."""
    for place in range(0, len(df), _ROWS):
        parts = []
        for column in schema.columns:
            words, missing = _words(column, df[column.name].iloc[place : place + _ROWS])
            parts += [words.astype("<f8"), missing.astype("<f8")]
        rows = memoryview(np.stack(parts, axis=1).tobytes())
        for first in range(0, len(rows), 8 * len(parts)):
            yield rows[first : first + 8 * len(parts)]


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
    else:
        words = column.number.numbers(values, column)
    return np.where(missing, 0.0, words) + 0.0, missing  # + 0.0 makes -0.0 and 0.0 one value
