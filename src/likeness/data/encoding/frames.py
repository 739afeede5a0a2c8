"""Frames of pandas, polars and pyarrow: in as pandas, and out as they came. narwhals knows the libraries."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pandas as pd
import pyarrow as pa

from likeness.core.errors import DataError
from likeness.core.text import normal_text
from likeness.data.schema.dtypes import arrow_name, dtype_name

_PANDAS = "pandas"


@dataclass(frozen=True)
class FrameType:
    """What a frame is, without its rows; all of it is public.

    Attributes:
        library: that made the frame.
        dtypes: the word of each column's dtype, by name; empty: the dtypes of a typed table.
    """

    library: str = _PANDAS
    dtypes: Mapping[str, str] = field(default_factory=dict)

    def native(self, table: pd.DataFrame) -> Any:
        """A table in these dtypes as a frame of the library."""
        if self.library == _PANDAS:
            return table
        import narwhals as nw

        content = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
        library: Any = self.library
        frame = nw.from_arrow(content, backend=library)
        if self.library == "polars":  # its Enum is an ordered dictionary for Arrow, and a Categorical on the way back
            ordered = {one.name: content.column(one.name) for one in content.schema if getattr(one.type, "ordered", 0)}
            values = {
                name: cells.unify_dictionaries().chunk(0).dictionary.to_pylist() for name, cells in ordered.items()
            }
            frame = frame.with_columns(frame[name].cast(nw.Enum(texts)) for name, texts in values.items())
        return frame.to_native()

    def of(self, names: Collection[str]) -> "FrameType":
        """What it says of some columns. A name that no schema lists may be private, as a pivoted frame has people's."""
        return replace(self, dtypes={name: one for name, one in self.dtypes.items() if name in names})

    def to_dict(self) -> dict[str, Any]:
        """JSON form: the keyword arguments of this class."""
        return asdict(self)


def opened(frame: Any, rule: str = "the DataFrame: must be") -> tuple[pd.DataFrame, FrameType]:
    """A frame as one of pandas, and its type. A sparse column becomes a dense one.

    Args:
        frame: any.
        rule: begins the message where it is none.

    Raises:
        DataError: it is no frame in memory.
    """
    if isinstance(frame, pd.DataFrame):
        sparse = {name: one.subtype for name, one in frame.dtypes.items() if isinstance(one, pd.SparseDtype)}
        frame = frame.astype(sparse) if sparse else frame
        return frame, FrameType(
            dtypes={normal_text(str(name)): dtype_name(dtype) for name, dtype in frame.dtypes.items()}
        )
    import narwhals as nw

    eager = nw.from_native(frame, eager_only=True, pass_through=True)
    if eager is frame:
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
        words = f"{rule} a frame of pandas, polars or pyarrow, with its rows in memory"
        raise DataError(f"{words}, got {kind}. Convert it, or collect it.")
    foreign = (nw.Object, nw.Int128, nw.UInt128)  # of objects Arrow gives the addresses
    if wrong := [repr(name) for name, dtype in eager.schema.items() if dtype in foreign]:
        raise DataError(f"{rule} without columns of objects or 128 bits: {', '.join(wrong)}. Cast or drop them.")
    table = eager.to_arrow()
    dtypes = {normal_text(one.name): arrow_name(one.type) for one in table.schema}
    # pandas does not know all types of places in a dictionary.
    plain = [one.cast(one.type.value_type) if pa.types.is_dictionary(one.type) else one for one in table.columns]
    table = pa.Table.from_arrays(plain, names=table.column_names)
    return table.to_pandas(types_mapper=pd.ArrowDtype), FrameType(eager.implementation.value, dtypes)
