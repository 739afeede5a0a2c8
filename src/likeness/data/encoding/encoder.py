"""Encoding, row by row: the unit cube for numbers, one place a category. Nothing is fitted.

A table has two encoded forms. *Codes* are compact, one column a column: numbers in [0, 1] (NaN if missing) and
category numbers. The *dense* form is the vector that feature maps see, laid out by :class:`Layout`.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.data.encoding.layout import Layout
from likeness.data.schema.column import MOST_PLACES, Column
from likeness.data.schema.kinds.kind import Kind
from likeness.data.schema.schema import BRIGHTEST, Schema
from likeness.data.table_columns import PIXEL, matrix, with_pixels

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Listed = tuple[NDArray[Any], Floats]
"""Codes, and the list that they count: the unit of each value of a column, NaN for missing."""

_MISSING_UNIT = 0.5  # where a missing number stands in the dense form; its indicator says that it is missing


class Codes(Protocol):
    """Codes by the name of their column: a frame, or a batch of a private file."""

    def __getitem__(self, name: str, /) -> Any: ...
    def __len__(self) -> int: ...


class Encoder:
    """Encode and decode typed tables of one schema.

    Attributes:
        schema: public. layout: where each column stands in the dense form.
    """

    def __init__(self, schema: Schema) -> None:
        """Read everything from the schema; no row is needed."""
        self.schema = schema
        self.layout = Layout.from_schema(schema)

    def encode(self, df: pd.DataFrame, compact: bool = False) -> pd.DataFrame:
        """Typed table to codes: float64 in [0, 1] for numbers (NaN if missing), int32 for categories.

        A missing category has the last code, ``len(categories)``. If ``compact``, pixels stay bytes, codes are the
        smallest integers that hold those of their column, and so are numbers that are in a :func:`list_of_units`.

        Raises:
            DataError: a column is not typed as the schema says.
        """
        pixels = self.schema.pixels
        values = matrix(df, pixels)
        if values.dtype.kind not in "iu":  # missing cells, which are refused by column
            pixels = ()
        columns = self.schema.columns[len(pixels) :]
        if compact:
            rest = df[[column.name for column in columns]]
            table: pd.DataFrame = self.encode_stored(pa.Table.from_pandas(rest, preserve_index=False)).to_pandas()
            table = table.reindex(range(len(df)))  # an image alone has no other column
        else:
            if wrong := [column for column in columns if not column.nullable and df[column.name].isna().any()]:
                raise _missing(wrong[0])
            codes = {column.name: column.type.encode(df[column.name], column) for column in columns}
            table = pd.DataFrame(codes, range(len(df)))
        if not pixels:
            return table
        stay = compact and values.dtype == PIXEL
        return with_pixels(values if stay else np.clip(values, 0, BRIGHTEST) / BRIGHTEST, pixels, table)

    def encode_stored(self, rows: pa.Table) -> pa.Table:
        """Typed rows without images, as a private file has them, to compact codes, as :meth:`encode`.

        Raises:
            DataError: a column is not typed as the schema says.
        """
        codes: dict[str, Any] = {}
        for column in self.schema.columns:
            if column.name in rows.column_names:  # pixels lie elsewhere
                cells = rows.column(column.name).combine_chunks()
                if cells.null_count and not column.nullable:
                    raise _missing(column)
                codes[column.name] = _plain_codes(cells, column)
                if codes[column.name] is None:
                    codes[column.name] = column.type.encode(rows.select([column.name]).to_pandas()[column.name], column)
        return pa.table(codes)

    def decode_codes(self, codes: pd.DataFrame) -> pd.DataFrame:
        """Codes to a typed table: the inverse of :meth:`encode` up to clipping, and rounding to declared decimals."""
        pixels = self.schema.pixels
        columns = self.schema.columns[len(pixels) :]
        table = {column.name: column.type.decode(codes[column.name].to_numpy(), column) for column in columns}
        decoded = pd.DataFrame(table, range(len(codes)))
        if not pixels:
            return decoded
        values = np.round(np.clip(_units(codes, pixels), 0, 1) * BRIGHTEST).astype(np.int64)
        return with_pixels(values, pixels, decoded)

    def expand(self, codes: Codes) -> Floats:
        """Codes to dense rows of the feature columns, shape (n, d).

        Raises:
            DataError: a code is none of its column's places; it would spill into the block of another column.
        """
        dense = np.zeros((len(codes), self.layout.width))
        rows, pixels = np.arange(len(codes)), self.schema.pixels
        if pixels:
            dense[:, : len(pixels)] = _units(codes, pixels)
        for block in self.layout.blocks[len(pixels) :]:
            if block.kind == "onehot":
                dense[rows, block.start + _checked_codes(codes, block.column, block.stop - block.start)] = 1
                continue
            values = self._number(codes, block.column)
            values = values[1][values[0]] if isinstance(values, tuple) else values
            dense[:, block.start] = np.isnan(values)
            if block.kind == "unit":
                dense[:, block.start] = np.where(np.isnan(values), _MISSING_UNIT, values)
        return dense

    def _number(self, codes: Codes, name: str) -> NDArray[Any] | Listed:
        """The codes of a number, or where they are whole, these and the list of units that they count.

        Raises:
            DataError: a code is none of the places.
        """
        values = _values(codes, name)
        if values.dtype.kind == "f":
            return values
        units = list_of_units(self.schema.column(name))
        units = np.empty(0) if units is None else units
        return _small_codes(codes, name, len(units)), units

    def columns(self, codes: Codes) -> dict[tuple[int, int, bool], Callable[[], NDArray[Any] | Listed]]:
        """Give makers of codes, shape (n,), by where they stand in the dense form: indices, and numbers as they are.

        A key is the first coordinate, the width of a one-hot block, or 0, and whether a number may be missing.
        A maker raises a DataError where a code is none of its column's indices.
        """
        columns: dict[tuple[int, int, bool], Callable[[], NDArray[Any] | Listed]] = {}
        for block in self.layout.blocks:
            if block.kind == "onehot":
                columns[block.start, block.width, False] = partial(_small_codes, codes, block.column, block.width)
            elif block.kind == "unit":
                nullable = self.schema.column(block.column).nullable
                columns[block.start, 0, nullable] = partial(self._number, codes, block.column)
        return columns

    def labels(self, codes: Codes) -> Integers:
        """Class of each row, shape (n,); zeros unless the task is classification."""
        if self.schema.task != "classification":
            return np.zeros(len(codes), dtype=np.int64)
        return _checked_codes(codes, str(self.schema.label), self.layout.num_classes)

    def collapse(self, x: Floats, labels: Integers) -> pd.DataFrame:
        """Dense rows, exact or generated, to codes: argmax of one-hot blocks (the first of equals), clipped units.

        Raises:
            DataError: shapes do not fit, a coordinate is not finite, or a label is no class.
        """
        if x.ndim != 2 or x.shape[1] != self.layout.width or labels.shape != (len(x),):
            raise DataError(f"decode needs rows of shape (n, {self.layout.width}) and labels of shape (n,).")
        if not np.isfinite(x).all():
            raise DataError("decode was given a coordinate that is not finite. Look at the loss of the generator.")
        values: dict[str, NDArray[np.float64] | NDArray[np.int32]] = {}
        pixels = self.schema.pixels
        for block in self.layout.blocks[len(pixels) :]:
            if block.kind == "onehot":
                values[block.column] = x[:, block.start : block.stop].argmax(axis=1).astype(np.int32)
            elif block.kind == "unit":
                # In float64: networks give float32, in which a bound such as 0.001 is a little larger than itself.
                values[block.column] = np.clip(x[:, block.start].astype(np.float64), 0, 1)
            else:
                values[block.column] = np.where(x[:, block.start] > 0.5, np.nan, values[block.column])
        if self.schema.task == "classification" and self.schema.label is not None:
            classes = _checked_codes({self.schema.label: labels}, self.schema.label, self.layout.num_classes)
            values[self.schema.label] = classes.astype(np.int32)
        codes = pd.DataFrame({name: values[name] for name in self.schema.names[len(pixels) :]}, range(len(x)))
        if not pixels:
            return codes
        return with_pixels(np.clip(x[:, : len(pixels)].astype(np.float64), 0, 1), pixels, codes)

    def decode(self, x: Floats, labels: Integers) -> pd.DataFrame:
        """Dense rows to a typed table with the original columns, kinds, categories, bounds and integers."""
        return self.decode_codes(self.collapse(x, labels))


def _units(codes: Any, pixels: tuple[str, ...]) -> Floats:
    """The codes of pixels in [0, 1], also of those that stay bytes; shape (n, pixels)."""
    values: NDArray[Any] = matrix(codes, pixels)
    return values / BRIGHTEST if values.dtype == PIXEL else values


def _values(codes: Codes, name: str) -> NDArray[Any]:
    return np.asarray(codes[name])


def _checked_codes(codes: Codes, name: str, width: int) -> Integers:
    """Codes of a column that are checked to lie in 0 ... width - 1."""
    return _small_codes(codes, name, width).astype(np.int64)


def _small_codes(codes: Codes, name: str, width: int) -> NDArray[Any]:
    values = _values(codes, name)
    if values.dtype.kind not in "iu" or (len(values) and not (values.min() >= 0 and values.max() < width)):
        raise DataError(f"column '{name}' holds a code that is none of its {width} places. Encode the table again.")
    return values


@lru_cache(256)
def list_of_units(column: Column) -> Floats | None:
    """The unit of each value of a number of few whole values, in order, then NaN for missing; None of other columns."""
    if not column.is_integral or type(column.type).encode is not Kind.encode:
        return None
    (lower, upper), most = column.bounds, MOST_PLACES
    return np.append(column.type.units(np.arange(lower, upper + 1), column), np.nan) if upper - lower < most else None


def _missing(column: Column) -> DataError:
    return DataError(f"column '{column.name}' has a missing value, but is not nullable in the schema.")


def _plain_codes(cells: pa.Array, column: Column) -> pa.Array | None:
    """Compact codes of categories and of few whole values, from their places; None of other cells."""
    if pa.types.is_dictionary(cells.type) and cells.dictionary.to_pylist() == list(column.categories):
        places, count, most = cells.indices, len(column.categories), 1 + column.width
    else:
        places, units = column.places(cells), list_of_units(column)
        if places is None or units is None:
            return None
        count, most = len(units) - 1, len(units)
    return places.cast(pa.from_numpy_dtype(np.min_scalar_type(-most)), safe=False).fill_null(count)
