"""Digests of rows: keyed for populations, by row for the split. They are equal on all machines."""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likeness.data.pixels import leading_pixels, matrix
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.data.source.python_cells import TEXT


def typed_digest(df: pd.DataFrame, schema: Schema, key: bytes) -> str:
    """HMAC-SHA256 of the typed rows in order; equal on all machines, and without a salt.

    Args:
        df: typed table.
        schema: its columns.
        key: 32 secret bytes of the ledger.
    """
    return columns_digest(lambda name: [df[name]], len(df), schema, key)


def columns_digest(read: "Callable[[str], Iterable[pd.Series[Any]]]", count: int, schema: Schema, key: bytes) -> str:
    """HMAC-SHA256 of typed rows in order, as :func:`typed_digest`, of a table that is read by column.

    Each column is read twice: once for the missing cells, once for their numbers.

    Args:
        read: from a name to the typed column, in any number of pieces.
        count: number of rows.
        schema: the columns.
        key: 32 secret bytes of the ledger.
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
    """HMAC-SHA256 of typed rows in any order.

    Args:
        chunks: parts of a typed table.
        schema: its columns, in order.
        key: 32 secret bytes of the ledger.
    """
    total = sum(_sum_of_rows(_row_bytes(chunk, schema), key) for chunk in chunks) % _MODULUS
    columns = [[column.name, column.kind] for column in schema.columns]
    return hmac.new(key, json.dumps(["rows in any order", columns, total]).encode(), "sha256").hexdigest()


class SourceDigest:
    """Keyed digest of the raw rows of a source.

    It does not depend on the order of rows and columns, the schema, the split, or the parts of the source: hashes of
    rows are added up modulo 2^256 (Clarke et al. 2003). A cell is its text, and a missing cell is an empty text. It
    leaves out columns of lists or records.
    """

    def __init__(self, key: bytes) -> None:
        """Start without rows.

        Args:
            key: see :meth:`key_of`. It may go to other processes; the ledger's key may not.
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
        """Add rows of raw cells."""
        pixels = leading_pixels(raw)
        columns = [raw.iloc[:, place] for place in range(len(pixels), raw.shape[1])]
        # A column of objects would get one type.
        plain = [values.astype(TEXT) if values.dtype == "object" else values for values in columns]
        cells = [pa.Array.from_pandas(values) for values in plain]
        self.add(list(map(str, raw.columns)), [*matrix(raw, pixels).T, *cells])

    def add(self, names: Sequence[str], columns: "Sequence[pa.Array | NDArray[np.uint8]]") -> None:
        """Add rows.

        Args:
            names: names of the columns.
            columns: cells of each column, of one length; an array of bytes is a shortcut for such a column of Arrow.
        """
        by_name = sorted(zip(names, columns, strict=True), key=lambda pair: pair[0])
        texts = [(name, _texts(cells)) for name, cells in by_name]
        read = [(name, cells) for name, cells in texts if cells is not None]
        if not read:
            return
        key = hmac.digest(self.key, json.dumps([name for name, _ in read]).encode(), "sha256")
        runs = [
            (are_bytes, [cells for _, cells in run])
            for are_bytes, run in groupby(read, lambda pair: isinstance(pair[1], np.ndarray))
        ]
        step = max(1, _CELLS // len(read))
        for start in range(0, len(read[0][1]), step):
            cells = []
            for are_bytes, run in runs:
                parts = [cells[start : start + step] for cells in run]
                cells += [_joined(np.stack(parts, axis=1))] if are_bytes else parts
            rows = pc.binary_join_element_wise(*cells, _BETWEEN, null_handling="replace", null_replacement=b"")
            self.put(_sum_of_rows(rows.to_pylist(), key))

    def put(self, total: int) -> None:
        """Add the sum of another digest with the same key."""
        self._total = (self._total + total) % _MODULUS

    def take(self) -> int:
        """Return the sum since the last call, and start again."""
        total, self._total = self._total, 0
        return total

    def digest(self) -> str:
        """Digest of all rows; empty without rows."""
        return hmac.digest(self.key, str(self._total).encode(), "sha256").hex() if self._total else ""


def _texts(cells: Any) -> Any:
    """Cells as bytes; None where a column has no texts. Numbers of one byte stay as they are."""
    if isinstance(cells, np.ndarray):
        return cells
    if pa.types.is_nested(cells.type):
        return None
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


def _joined(values: NDArray[np.uint8]) -> pa.Array:
    """The texts of each row's bytes, joined as ``_BETWEEN`` joins cells."""
    padded = _NUMBERS[values]  # shape (n, pixels, 4); a zero is no letter
    padded[:, 0, 0] = 0
    letters = padded.reshape(len(values), -1)
    ends = np.concatenate([[0], np.count_nonzero(letters, axis=1).cumsum()])
    data = letters[letters != 0].tobytes()
    buffers = [None, pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(data)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(values), buffers)


_NUMBERS = np.array([list(f"\x1f{value}".encode().ljust(4, b"\0")) for value in range(256)], np.uint8)
_CELLS = 1 << 20  # cells of a source in one step
_BETWEEN = pa.scalar(b"\x1f", pa.large_binary())  # between cells of a row
_MODULUS = 2**256


def _sum_of_rows(rows: Iterable[Any], key: bytes) -> int:
    """The keyed hashes of rows, added up modulo 2^256."""
    start = hashlib.blake2b(key=key, digest_size=32)

    total, rows = 0, iter(rows)
    while hashes := b"".join(_digest_of(start, row) for row in islice(rows, _ROWS)):
        words = np.frombuffer(hashes, dtype="<u4").reshape(-1, 8).sum(axis=0, dtype=np.uint64)
        total += sum(int(word) << (32 * place) for place, word in enumerate(words))
    return total % _MODULUS


_ROWS = 16_384  # rows in one step


def row_hashes(df: pd.DataFrame, schema: Schema, seed: int) -> NDArray[np.uint64]:
    """64 bits a row from SHA-256 of the public seed and the row's content, shape (n,)."""
    return hash_words(hashlib.sha256(f"likeness row {seed}".encode()), _row_bytes(df, schema))


def hash_words(start: Any, texts: Iterable[Any]) -> NDArray[np.uint64]:
    """The first 64 bits of the hash of each text after a common start, shape (n,).

    Args:
        start: hash of the common start, from hashlib.
        texts: bytes of each text.
    """
    return np.frombuffer(b"".join(_digest_of(start, text)[:8] for text in texts), dtype="<u8")


def _digest_of(start: Any, text: Any) -> bytes:
    state = start.copy()
    state.update(text)
    digest: bytes = state.digest()
    return digest


def _row_bytes(df: pd.DataFrame, schema: Schema) -> Iterator[memoryview]:
    """The content of each row of a typed table."""
    pixels = leading_pixels(df) if schema.pixels else []
    columns = schema.columns[len(pixels) :]
    size, step = 16 * len(schema.columns), max(1, min(_ROWS, _CELLS // len(schema.columns)))
    for place in range(0, len(df), step):
        some = df.iloc[place : place + step]
        words = np.zeros((len(some), len(schema.columns), 2), "<f8")  # a number, and whether it is missing
        words[:, : len(pixels), 0] = some.iloc[:, : len(pixels)].to_numpy()
        for at, column in enumerate(columns, start=len(pixels)):
            words[:, at, 0], words[:, at, 1] = _words(column, some[column.name])
        rows = memoryview(words.tobytes())
        for first in range(0, len(rows), size):
            yield rows[first : first + size]


def _text_words(values: "pd.Series[Any]") -> NDArray[np.float64]:
    """Texts as numbers: 52 bits of their SHA-256, exact in float64; 0 where missing."""
    codes, texts = pd.factorize(values)
    hashes = [hashlib.sha256(str(text).encode()).digest()[:8] for text in texts]
    words = (np.frombuffer(b"".join(hashes), dtype="<u8") >> np.uint64(12)).astype(np.float64)
    return np.append(words, 0.0)[codes]  # a missing cell has code -1, the last place


def _words(column: Column, values: "pd.Series[Any]") -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A column as numbers (0 where missing) and its missing mask."""
    missing = values.isna().to_numpy(dtype=bool)
    if column.open:
        words = _text_words(values)
    elif column.is_categorical:
        words = values.cat.codes.to_numpy().astype(np.float64)
    else:
        words = column.number.numbers(values, column)
    return np.where(missing, 0.0, words) + 0.0, missing  # + 0.0 makes -0.0 equal to 0.0
