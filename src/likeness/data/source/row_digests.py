"""Hashes of rows, and digests of tables made of them. They are equal on all machines.

A hash is SHA-256 without a key, so that a database can make it too. It never leaves memory: a digest is keyed.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likeness.data.beside import TEXT
from likeness.data.pixels import leading_pixels, matrix
from likeness.data.schema.schema import Schema
from likeness.data.source.row_texts import framed, joined, row_texts

Hashes = NDArray[np.uint8]
"""SHA-256 of each row, shape (n, 32)."""
_MODULUS = 2**256
_CELLS = 1 << 20  # of a source in one step


def row_hashes(table: pd.DataFrame, schema: Schema) -> Hashes:
    """SHA-256 of the text of each typed row (:mod:`likeness.data.source.row_texts`)."""
    steps = [hashes_of(texts.to_pylist()) for texts in row_texts(table, schema)]
    return np.concatenate([np.empty((0, 32), np.uint8), *steps])


def hashes_of(texts: Iterable[bytes]) -> Hashes:
    """SHA-256 of each text."""
    sha256 = hashlib.sha256
    found = b"".join([sha256(text).digest() for text in texts])
    return np.frombuffer(found, np.uint8).reshape(-1, 32)


def leading(hashes: Hashes) -> NDArray[np.uint64]:
    """The first 64 bits of each hash as a number, shape (n,), in the order of the hashes."""
    return np.ascontiguousarray(hashes[:, :8]).view(">u8").astype(np.uint64).ravel()


def uniform(hashes: Hashes) -> NDArray[np.float64]:
    """The first 13 hexadecimal digits of each hash as a number in [0, 1), shape (n,). It is exact."""
    return (leading(hashes) >> np.uint64(12)) / 2.0**52


def drawn(start: str, hashes: Hashes, *more: "NDArray[Any] | Sequence[str]") -> Hashes:
    """SHA-256 of a common start, the 64 hexadecimal digits of each hash, and more of each row, with blanks between."""
    ends = pa.py_buffer(np.arange(0, 64 * len(hashes) + 1, 64))
    digits = pa.LargeStringArray.from_buffers(len(hashes), ends, pa.py_buffer(hashes.tobytes().hex().encode()))
    rest = [pa.array(one).cast(pa.large_string()) for one in more]
    first, blank = (pa.scalar(one, pa.large_string()) for one in (start, " "))
    texts = pc.binary_join_element_wise(first, digits, *rest, blank)
    return hashes_of(texts.cast(pa.large_binary()).to_pylist())


class TypedDigest:
    """Keyed digest of typed rows: in their order, or in any.

    In any order it is made of the sum of the hashes modulo 2^256 (Clarke et al. 2003).

    Attributes:
        count: number of rows.
    """

    def __init__(self, schema: Schema, *, ordered: bool) -> None:
        """Start without rows."""
        self._columns = [[column.name, column.kind] for column in schema.columns]
        self._ordered, self._state, self._total, self.count = ordered, hashlib.sha256(), 0, 0

    def add(self, hashes: Hashes) -> None:
        """Add rows by their hashes, from :func:`row_hashes`."""
        if self._ordered:
            self._state.update(hashes.tobytes())
        self.put(_sum(hashes), len(hashes))

    def put(self, total: int, count: int) -> None:
        """Add rows in any order by the sum of their hashes, and their number."""
        self.count += count
        self._total = (self._total + total) % _MODULUS

    def digest(self, key: bytes) -> str:
        """HMAC-SHA256 of columns and rows.

        Args:
            key: 32 secret bytes of the ledger.
        """
        order, rows = ("in order", self._state.hexdigest()) if self._ordered else ("in any order", str(self._total))
        content = json.dumps([f"likeness rows {order}", self._columns, self.count, rows])
        return hmac.digest(key, content.encode(), "sha256").hex()


def typed_digest(table: pd.DataFrame, schema: Schema, key: bytes, *, ordered: bool) -> str:
    """Digest of a typed table, as :class:`TypedDigest`."""
    rows = TypedDigest(schema, ordered=ordered)
    rows.add(row_hashes(table, schema))
    return rows.digest(key)


class SourceDigest:
    """Keyed digest of the raw rows of a table.

    It does not depend on the order of rows and columns, the schema, the split, or the parts of the source: hashes of
    rows are added up modulo 2^256 (Clarke et al. 2003). A row is the names of its columns as a JSON list, and its cells
    in the order of names, as in :mod:`likeness.data.source.row_texts`. A cell is its text in the source, and an empty
    text is missing. Columns of lists or records are left out.
    """

    def __init__(self) -> None:
        """Start without rows."""
        self._total = 0

    def add_frame(self, raw: pd.DataFrame) -> None:
        """Add rows of raw cells."""
        pixels = leading_pixels(raw)
        columns = [raw.iloc[:, index] for index in range(len(pixels), raw.shape[1])]
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
        read = [(name, cells) for name, cells in by_name if not pa.types.is_nested(getattr(cells, "type", pa.null()))]
        if not read:
            return
        start = pa.scalar(json.dumps([name for name, _ in read]).encode(), pa.large_binary())
        step = max(1, _CELLS // len(read))
        for index in range(0, len(read[0][1]), step):
            some = [cells[index : index + step] for _, cells in read]
            rows = joined([one if isinstance(one, np.ndarray) else framed(_plain(one), _texts) for one in some])
            self.put(_sum(hashes_of(pc.binary_join_element_wise(start, rows, _NOTHING).to_pylist())))

    def put(self, total: int) -> None:
        """Add the sum of another digest."""
        self._total = (self._total + total) % _MODULUS

    def take(self) -> int:
        """Return the sum since the last call, and start again."""
        total, self._total = self._total, 0
        return total

    def digest(self, key: bytes) -> str:
        """HMAC-SHA256 of all rows; empty without rows.

        Args:
            key: 32 secret bytes of the ledger.
        """
        content = f"likeness rows of a source {self._total}"
        return hmac.digest(key, content.encode(), "sha256").hex() if self._total else ""


_NOTHING = pa.scalar(b"", pa.large_binary())


def _plain(cells: Any) -> Any:
    """Cells of a type that has a dictionary."""
    return cells.cast(pa.float32()) if pa.types.is_float16(cells.type) else cells


def _texts(cells: Any) -> Any:
    """The text of each cell in the source; missing where it is empty."""
    kind = cells.type
    if pa.types.is_duration(kind):
        cells = cells.cast(pa.int64())
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)):
        cells = cells.cast(pa.large_string())
    cells = cells.cast(pa.large_binary())
    return pc.if_else(pc.equal(pc.binary_length(cells), 0), pa.scalar(None, pa.large_binary()), cells)


def _sum(hashes: Hashes) -> int:
    """The hashes as numbers, the first digit first, added up."""
    words = hashes.view(">u4").sum(axis=0, dtype=np.uint64)
    return sum(int(word) << (32 * index) for index, word in enumerate(reversed(words)))
