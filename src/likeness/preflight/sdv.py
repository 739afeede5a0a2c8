"""SDV's metadata of a table, read and written: columns and their types.

``range_min``, ``range_max`` and ``range_values`` of SDV 2 are not read: SDV fills them in from the rows.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likeness.core.errors import SchemaError
from likeness.data.encoding.frames import pandas_frame
from likeness.data.schema.column_keys import DROP
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.kinds import KINDS
from likeness.data.schema.schema import Schema
from likeness.data.source.header import kinds_of_frame


def from_sdv(metadata: Any, table: str | None = None) -> SchemaDraft:
    """Draft the schema of a table from SDV's metadata.

    Args:
        metadata: of one table or of several: a mapping, the path of a JSON file, or an object of SDV.
        table: the name of one of several.

    Returns:
        a draft. SDV knows no bounds, and no categories without an order.

    Raises:
        SchemaError: it is no metadata of SDV, or has several tables and no name is given.
    """
    tables = _tables(metadata)
    if table is None and len(tables) > 1:
        raise SchemaError(f"the metadata has several tables. Give table, one of: {', '.join(tables)}.")
    name = next(iter(tables)) if table is None else table
    if name not in tables:
        raise SchemaError(f"the metadata has no table '{name}'. Tables: {', '.join(tables)}.")
    columns, key = tables[name]["columns"], tables[name].get("primary_key")
    specs = {str(column): _spec(spec, column == key) for column, spec in columns.items()}
    draft = SchemaDraft({column: spec.pop("kind") for column, spec in specs.items()}, name)
    for column, spec in specs.items():
        for setting, value in spec.items():
            setattr(draft[column], setting, value)
    return draft


def to_sdv(schema: Schema) -> dict[str, Any]:
    """SDV's metadata of the synthetic table, for ``Metadata.load_from_dict``. Dropped columns are not in it."""
    columns = {column.name: column.type.sdv(column) for column in schema.columns}
    return {"METADATA_SPEC_VERSION": "V1", "tables": {schema.name: {"columns": columns}}, "relationships": []}


def _tables(metadata: Any) -> dict[str, Any]:
    """Each table by its name, from either of SDV's formats."""
    content = metadata.to_dict() if hasattr(metadata, "to_dict") else metadata
    if isinstance(metadata, str | Path):
        try:
            content = json.loads(Path(metadata).read_text(encoding="utf-8"))
        except OSError as error:
            raise SchemaError(f"{metadata}: cannot be read ({error.strerror}). Give the path of a JSON file.") from None
        except ValueError:
            raise SchemaError(f"{metadata}: is not JSON in UTF-8. Give metadata that SDV wrote.") from None
    tables = content.get("tables", {"table": content}) if isinstance(content, Mapping) else {}
    rules = [table.get("columns") for table in tables.values() if isinstance(table, Mapping)]
    specs = [spec for columns in rules if isinstance(columns, Mapping) for spec in columns.values()]
    if not tables or len(rules) < len(tables) or not specs or not all(isinstance(spec, Mapping) for spec in specs):
        raise SchemaError("this is no metadata of SDV. It must have columns, each with its sdtype.")
    return dict(tables)


def _spec(spec: Mapping[str, Any], is_key: bool) -> dict[str, Any]:
    """A column of SDV as a draft has it."""
    named = ((kind.name, keys) for kind in KINDS.values() if not is_key and (keys := kind.from_sdv(spec)) is not None)
    kind, keys = next(named, (DROP, {"reason": "the key of the table" if is_key else f"{spec.get('sdtype')} in SDV"}))
    return {"kind": kind, **keys}


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
