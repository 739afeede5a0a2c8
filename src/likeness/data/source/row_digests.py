"""Hashes of rows, and digests of tables made of them. They are equal on all machines.

A hash is SHA-256 without a key, so that a database can make it too. It never leaves memory: a digest is keyed.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likeness.core.hashing import sha256_json
from likeness.data.schema.column import Column
from likeness.data.schema.kinds import Numeric
from likeness.data.schema.schema import Schema
from likeness.data.source.row_texts import chunks_of_cells, encode_cells, framed_column, row_texts
from likeness.data.table_columns import TEXT, leading_pixels, matrix

try:
    from likeness.data.source.sha256_rows import add_texts, hash_rows
except ImportError:  # no compiler was there
    add_texts = hash_rows = None  # type: ignore[assignment]

Hashes = NDArray[np.uint8]
"""SHA-256 of each row, shape (n, 32)."""
_MODULUS = 2**256
_SHORT = 1 << 10  # bytes of a text, which are taken from all texts at once
MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
"""Bits by which a number is moved, and factors: the end of SplitMix64."""


def row_hashes(table: pd.DataFrame, schema: Schema) -> Hashes:
    """SHA-256 of the text of each typed row (:mod:`likeness.data.source.row_texts`), compiled or by Python."""
    steps = [np.empty((0, 32), np.uint8)]
    if hash_rows is None or schema.pixels:  # the text of an image is so long that Python adds little
        return np.concatenate(steps + [hashes_of(texts.to_pylist()) for texts in row_texts(table, schema)])
    for chunk in chunks_of_cells(table, schema):
        parts = [_part_of_rows(chunk, column, True) for column in schema.columns]
        while isinstance(made := hash_rows(parts, len(chunk)), int):
            parts[made] = _part_of_rows(chunk, schema.columns[made], False)
        steps.append(np.frombuffer(made, np.uint8).reshape(-1, 32))
    return steps[-1] if len(steps) < 3 else np.concatenate(steps)


def _part_of_rows(table: pd.DataFrame, column: Column, as_numbers: bool) -> Any:
    """A column for the compiled hashes: its numbers, where these write them, or its cells of texts."""
    if as_numbers and type(column.type).exact_texts is Numeric.exact_texts:
        return np.ascontiguousarray(table[column.name].to_numpy("float64"))
    values = table[column.name]
    if isinstance(values.dtype, pd.CategoricalDtype):
        return np.ascontiguousarray(values.array.codes), *_texts_of_categories(column, tuple(values.cat.categories))
    places = column.places(pa.array(values, from_pandas=True))
    if places is not None:
        return np.ascontiguousarray(places.fill_null(-1)), *_texts_of_values(column)
    cells = framed_column(table, column)
    return cells.indices.to_numpy(), *cells.dictionary.buffers()[1:]


@lru_cache(256)
def _texts_of_categories(column: Column, categories: tuple[str, ...]) -> list[pa.Buffer]:
    """The cells of categories, and then of missing, as :func:`_texts_of_values`."""
    values = pd.Series(pd.Categorical([], list(categories)))
    return framed_column(pd.DataFrame({column.name: values}), column).dictionary.buffers()[1:]  # type: ignore[no-any-return]


@lru_cache(256)
def _texts_of_values(column: Column) -> list[pa.Buffer]:
    """The cells of all values of a column of few whole numbers, days or seconds, in order, and then of missing."""
    table = pd.DataFrame({column.name: column.to_typed(np.arange(column.bounds[0], column.bounds[1] + 1))})
    texts = framed_column(table, column).dictionary_decode()
    return pa.concat_arrays([texts, pa.array([b"-"], texts.type)]).buffers()[1:]  # type: ignore[no-any-return]


def hashes_of(texts: Iterable[bytes]) -> Hashes:
    """SHA-256 of each text."""
    digests = b"".join([hashlib.sha256(text).digest() for text in texts])
    return np.frombuffer(digests, np.uint8).reshape(-1, 32)


def leading(hashes: Hashes) -> NDArray[np.uint64]:
    """The first 64 bits of each hash as a number, shape (n,), in the order of the hashes."""
    return np.ascontiguousarray(hashes[:, :8]).view(">u8").astype(np.uint64).ravel()


def last_bits(hashes: Hashes) -> NDArray[np.uint64]:
    """The last 32 bits of each hash as a number, shape (n,)."""
    return np.ascontiguousarray(hashes[:, 28:]).view(">u4").astype(np.uint64).ravel()


def mix_bits(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers whose every bit depends on each bit of the given ones (:data:`MIXING`). Only 0 gives 0."""
    for shift, factor in MIXING:
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers


class TypedDigest:
    """Keyed digest of typed rows: in their order, or in any.

    In any order it is made of the sum of the hashes modulo 2^256. It tells tables apart that differ by accident. The
    hashes have no key, so whoever chooses the rows of two tables can give them one sum (Wagner 2002). Then the second
    gets the release of the first, and no noise is drawn. So no proof of privacy rests on it.

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
        # Of the hashes as numbers, the first one first; one after the other, which takes less time.
        digits = [digit.sum(dtype=np.uint64) for digit in hashes.view(">u4").T]
        self.put(sum(int(digit) << (32 * index) for index, digit in enumerate(reversed(digits))), len(hashes))

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


def digest_of_sets(people: TypedDigest, pairs: Mapping[int, TypedDigest], key: bytes) -> str:
    """Keyed digest of both row sets; people in any order. Of a transition it is part how many its person has.

    Args:
        people: of their rows.
        pairs: of the transitions, by how many their person has.
        key: of the ledger.
    """
    return sha256_json([people.digest(key), *([share, pairs[share].digest(key)] for share in sorted(pairs))])


class SourceDigest:
    """Keyed digest of the raw rows of a table, which recognizes it under any schema.

    It does not depend on the order of rows and columns, the schema, the split, or the parts of the source. A text has a
    number of 64 bits. That of a cell is made of the number of its column's name and that of its text in the source; an
    empty text is missing and counts 0. The numbers of a row add up modulo 2^64 and are mixed, and those of rows add up.
    This is no hash for secrets: it is made to be fast, and tells tables apart that differ by chance. Whoever means to
    get around it needs no collision, because one other cell does it. Columns of lists or records are left out.

    Attributes:
        total: the sum over rows.
    """

    def __init__(self) -> None:
        """Start without rows."""
        self.total = 0

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
        pairs = zip(names, columns, strict=True)
        read = [pair for pair in pairs if not pa.types.is_nested(getattr(pair[1], "type", pa.null()))]
        rows = np.ones(len(read[0][1]) if read else 0, np.uint64)
        for name, cells in read:
            rows += _cell_numbers(name, cells)
        self.put(int(mix_bits(rows).sum(dtype=np.uint64)))

    def put(self, total: int) -> None:
        """Add the sum of another digest."""
        self.total = (self.total + total) % 2**64

    def digest(self, key: bytes) -> str:
        """HMAC-SHA256 of all rows; empty without rows.

        Args:
            key: 32 secret bytes of the ledger.
        """
        content = f"likeness rows of a source {self.total}"
        return hmac.digest(key, content.encode(), "sha256").hex() if self.total else ""


class ColumnsOfSource(SourceDigest):
    """Keeps columns, so that another thread makes their digest."""

    def add(self, names: Sequence[str], columns: "Sequence[pa.Array | NDArray[np.uint8]]") -> None:
        """Keep the columns of rows."""
        self._kept = [*vars(self).get("_kept", []), (names, columns)]

    def take_columns(self) -> "list[tuple[Sequence[str], Sequence[Any]]]":
        """The columns that were kept since the last call."""
        return vars(self).pop("_kept", [])  # type: ignore[no-any-return]


def _cell_numbers(name: str, cells: "pa.Array | NDArray[np.uint8]") -> NDArray[np.uint64]:
    """The numbers of a column's cells, shape (n,)."""
    if isinstance(cells, np.ndarray):
        distinct, codes = pa.array(range(256)), cells
    else:
        # A dictionary knows no numbers of 16 bits.
        distinct, indices = encode_cells(cells.cast(pa.float32()) if pa.types.is_float16(cells.type) else cells)
        codes = indices.to_numpy()
    nothing, of_name = pa.array([b""], pa.large_binary()), _text_numbers(pa.array([name.encode()], pa.large_binary()))
    if add_texts is not None and pa.types.is_float64(distinct.type):
        sums = add_texts(distinct.to_numpy(), mix_bits(np.arange(1, 25, dtype=np.uint64)))
        if sums is not None:
            return np.append(mix_bits(np.frombuffer(sums, np.uint64) + of_name), np.uint64(0))[codes]
    texts = pa.concat_arrays([_texts(distinct).fill_null(b""), nothing])
    numbers = mix_bits(_text_numbers(texts) + of_name)
    numbers[pc.binary_length(texts).to_numpy() == 0] = 0
    return numbers[codes]


def _texts(cells: Any) -> Any:
    """The text of each cell in the source."""
    kind = cells.type
    if pa.types.is_duration(kind):
        cells = cells.cast(pa.int64())
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)):
        cells = cells.cast(pa.large_string())
    return cells.cast(pa.large_binary())


def _text_numbers(texts: pa.LargeBinaryArray) -> NDArray[np.uint64]:
    """A number of each text, shape (n,), of at least one: its bytes, each times the public number of its place."""
    _, ends, content = texts.buffers()
    stops = np.frombuffer(ends, np.int64)[: len(texts) + 1]
    data, lengths = np.frombuffer(content or b"", np.uint8), np.diff(stops)
    weights = mix_bits(np.arange(1, 1 + lengths.max(), dtype=np.uint64))
    sums, rows, step = np.zeros(len(lengths), np.uint64), np.arange(len(lengths)), np.uint64(1)
    for position, weight in enumerate(weights[:_SHORT]):
        rows = rows[lengths[rows] > position]
        sums[rows] += (data[stops[rows] + position].astype(np.uint64) + step) * weight
    for row in rows[lengths[rows] > _SHORT]:
        rest = data[stops[row] + _SHORT : stops[row + 1]].astype(np.uint64) + step
        sums[row : row + 1] += (rest * weights[_SHORT : lengths[row]]).sum()
    return sums
