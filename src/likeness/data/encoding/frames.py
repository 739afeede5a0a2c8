"""Frames of pandas, polars and pyarrow: in as pandas, and out as they came. narwhals knows the libraries."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow as pa

from likeness.core.errors import DataError
from likeness.core.text import normal_text
from likeness.data.schema.dtypes import arrow_name, dtype_name

_PANDAS = "pandas"


@dataclass(frozen=True)
class FrameType:
    """The type of a frame, without its rows; all of it is public.

    Attributes:
        library: that made the frame.
        dtypes: the word of each column's dtype, by name; empty: the dtypes of a typed table.
        labels: what pandas calls each column whose label is no text, as a number or a tuple, by name.
    """

    library: str = _PANDAS
    dtypes: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)

    def native(self, table: pd.DataFrame) -> Any:
        """A table in these dtypes as a frame of the library, with its labels."""
        if self.library == _PANDAS:
            labels = [self.labels.get(name, name) for name in table.columns]
            return table.set_axis(pd.Index(labels), axis="columns") if self.labels else table
        content = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
        library: Any = self.library
        frame = nw.from_arrow(content, backend=library)
        if self.library == "polars":  # its Enum is an ordered dictionary for Arrow, and a Categorical on the way back
            names = [field.name for field in content.schema if getattr(field.type, "ordered", 0)]
            values = {name: content.column(name).unify_dictionaries().chunk(0).dictionary.to_pylist() for name in names}
            frame = frame.with_columns(frame[name].cast(nw.Enum(texts)) for name, texts in values.items())
        return frame.to_native()

    def select(self, names: Collection[str]) -> "FrameType":
        """Select some columns. A name that no schema lists may be private, as a pivoted frame has people's."""
        dtypes, labels = (
            {name: value for name, value in mapping.items() if name in names} for mapping in (self.dtypes, self.labels)
        )
        return replace(self, dtypes=dtypes, labels=labels)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, with the labels that JSON can hold; :meth:`from_dict` reads it back."""
        labels = {name: label for name, label in self.labels.items() if _is_plain(label)}
        return {"library": self.library, "dtypes": dict(self.dtypes), "labels": labels}

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> "FrameType":
        """Inverse of :meth:`to_dict`."""
        labels = {name: tuple(label) if isinstance(label, list) else label for name, label in spec["labels"].items()}
        return cls(spec["library"], dict(spec["dtypes"]), labels)


def _is_plain(label: Any) -> bool:
    items = label if isinstance(label, tuple) else [label]
    return all(isinstance(item, str | int) or (isinstance(item, float) and math.isfinite(item)) for item in items)


def pandas_frame(frame: Any, rule: str = "the DataFrame: must be") -> tuple[pd.DataFrame, FrameType]:
    """A frame as one of pandas, and its type. A sparse column becomes a dense one.

    Raises:
        DataError: it is no frame in memory; ``rule`` begins the message.
    """
    if isinstance(frame, pd.DataFrame):
        sparse = {name: dtype.subtype for name, dtype in frame.dtypes.items() if isinstance(dtype, pd.SparseDtype)}
        frame = frame.astype(sparse) if sparse else frame
        labels = {normal_text(str(label)): label for label in frame.columns if not isinstance(label, str)}
        names = [normal_text(str(label)) for label in frame.columns]
        return frame, FrameType(_PANDAS, dict(zip(names, map(dtype_name, frame.dtypes), strict=True)), labels)
    eager = nw.from_native(frame, eager_only=True, pass_through=True)
    if eager is frame:
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
        expected = f"{rule} a frame of pandas, polars or pyarrow, with its rows in memory"
        raise DataError(f"{expected}, got {kind}. Convert it, or collect it.")
    foreign = (nw.Object, nw.Int128, nw.UInt128)  # of objects Arrow gives the addresses
    if wrong := [repr(name) for name, dtype in eager.schema.items() if dtype in foreign]:
        raise DataError(f"{rule} without columns of objects or 128 bits: {', '.join(wrong)}. Cast or drop them.")
    table = eager.to_arrow()
    dtypes = {normal_text(field.name): arrow_name(field.type) for field in table.schema}
    # pandas does not know all types of places in a dictionary.
    plain = [
        pa.chunked_array([part.dictionary_decode() for part in column.chunks], column.type.value_type)
        if pa.types.is_dictionary(column.type)
        else column
        for column in table.columns
    ]
    table = pa.Table.from_arrays(plain, names=table.column_names)
    return table.to_pandas(types_mapper=pd.ArrowDtype), FrameType(eager.implementation.value, dtypes)
