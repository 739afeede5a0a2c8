"""The draft of a schema from a frame: its names, and what its dtypes say."""

from typing import Any

from likeness.data.encoding.frames import pandas_frame
from likeness.data.schema.draft import SchemaDraft
from likeness.data.source.header import kinds_of_frame


def draft(frame: Any, name: str = "table") -> SchemaDraft:
    """Draft the schema of a frame of pandas, polars or pyarrow: names, dtypes, kinds by dtype. No cell is read.

    Args:
        frame: any rows, or none.
        name: short name of the table.

    Returns:
        a draft. ``print`` shows it, with a question mark for what only a person can say.

    Raises:
        DataError: the names of the frame do not look like a header.
    """
    frame, kind = pandas_frame(frame)
    return SchemaDraft(kinds_of_frame(frame), name, kind.dtypes)
