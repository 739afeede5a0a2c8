"""One text of a typed row, which a database can make too. Split, bounding, order and digests of rows hash it.

A cell is the number of bytes of its text in UTF-8, a colon and the text; a missing cell is ``-``. A row is its cells in
the order of the schema, without anything between. So different rows have different texts. In SQL a cell is
``coalesce(octet_length(x) || ':' || x, '-')``. The text ``x`` of a cell, by the kind of its column:

- category, also an open one: the category, in its normal form
- integer: its digits, ``-12``
- numeric: :meth:`likeness.data.schema.kinds.Numeric.exact_texts`
- date: ``0999-06-10``
- datetime: ``2003-11-29 17:45:00``, in UTC; time: ``17:45:00``
- pixel: its digits, as an integer
"""

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likeness.data.table_columns import has_few_values, leading_pixels, matrix

if TYPE_CHECKING:
    from likeness.data.schema.column import Column
    from likeness.data.schema.schema import Schema

_CELLS, _JOINED_CELLS = 1 << 22, 1 << 18  # whose texts are made, and which are joined, in one step
_NOTHING, _MISSING = pa.scalar(b"", pa.large_binary()), pa.scalar(b"-", pa.large_binary())
_PIXELS = np.array([list(f"{len(str(value))}:{value}".encode().ljust(5, b"\0")) for value in range(256)], np.uint8)


def row_texts(table: pd.DataFrame, schema: "Schema") -> Iterator[pa.LargeBinaryArray]:
    """The texts of typed rows, in steps, which change no text. The schema may have open columns."""
    step = max(1, _JOINED_CELLS // len(schema.columns))
    names = leading_pixels(table) if schema.pixels else []
    for chunk in chunks_of_cells(table, schema):
        pixels, columns = matrix(chunk, names), [framed_column(chunk, c) for c in schema.columns[len(names) :]]
        for at in range(0, len(pixels), step):
            texts = (cells[at : at + step].dictionary_decode() for cells in columns)
            yield join_texts([*pixels[at : at + step].T, *texts])


def chunks_of_cells(table: pd.DataFrame, schema: "Schema") -> Iterator[pd.DataFrame]:
    """The rows of a typed table in steps whose cells' texts are made at once."""
    step = max(1, _CELLS // len(schema.columns))
    return (table.iloc[start : start + step] for start in range(0, len(table), step))


def framed_column(table: pd.DataFrame, column: "Column") -> pa.DictionaryArray:
    """A column of typed rows as cells of texts."""
    return frame_cells(pa.array(table[column.name], from_pandas=True), column.type.exact_texts)


def join_texts(columns: "list[pa.Array | NDArray[Any]]") -> pa.LargeBinaryArray:
    """The texts of rows, from texts of :func:`frame_cells`, or from numbers of one byte, shape (n,): pixels."""
    parts: list[pa.Array] = []
    for are_bytes, run in groupby(columns, lambda cells: isinstance(cells, np.ndarray)):
        cells = list(run)
        parts += [_joined_bytes(np.stack(cells, axis=1))] if are_bytes else cells
    return pc.binary_join_element_wise(*parts, _NOTHING)


def frame_cells(cells: pa.Array, texts_of: Callable[[pa.Array], pa.Array]) -> pa.DictionaryArray:
    """Values as cells of a row. Each different one gets its text once, and is missing where ``texts_of`` gives none."""
    values, indices = encode_cells(cells)
    content = texts_of(values).cast(pa.large_binary())
    lengths = pc.binary_length(content).dictionary_encode()  # few
    marks = lengths.dictionary.cast(pa.large_string()).cast(pa.large_binary()).take(lengths.indices)
    distinct = pc.binary_join_element_wise(marks, content, pa.scalar(b":", pa.large_binary()))
    distinct = pa.concat_arrays([pc.fill_null(distinct, _MISSING), pa.array([b"-"], pa.large_binary())])
    return pa.DictionaryArray.from_arrays(indices, distinct)


def encode_cells(cells: pa.Array) -> tuple[pa.Array, pa.Int32Array]:
    """Values of cells, and the place of each cell among them; one place more where it is missing.

    Different values stand once. Only where they are mostly different, each cell has its own: that takes less time than
    to find equal ones.
    """
    cells = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    if not pa.types.is_dictionary(cells.type):
        if not has_few_values(cells):
            valid = cells.is_valid().to_numpy(zero_copy_only=False)
            return cells.drop_null(), pa.array(np.where(valid, valid.cumsum() - 1, valid.sum()), pa.int32())
        cells = cells.dictionary_encode()
    indices = cells.indices.cast(pa.int32())
    return cells.dictionary, pc.fill_null(indices, len(cells.dictionary)) if indices.null_count else indices


def _joined_bytes(values: "NDArray[np.uint8]") -> pa.LargeBinaryArray:
    """The joined cells of each row of bytes."""
    letters = _PIXELS[values].reshape(len(values), -1)  # a zero is no letter
    ends = np.concatenate([[0], np.count_nonzero(letters, axis=1).cumsum()])
    buffers = [None, pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(letters[letters != 0].tobytes())]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(values), buffers)
