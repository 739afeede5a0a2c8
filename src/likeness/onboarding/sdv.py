"""SDV's metadata of a table, read and written: columns and their types.

``range_min``, ``range_max`` and ``range_values`` of SDV 2 are not read: SDV fills them in from the rows.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likeness.core.errors import SchemaError
from likeness.data.schema.column import Column
from likeness.data.schema.column_keys import DROP
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.schema import Schema

_KINDS = {"numerical": "numeric"} | {kind: kind for kind in ("categorical", "ordinal", "boolean", "datetime")}
_TIMES = ("%H", "%I", "%M", "%S", "%X", "%c", "%T")
_ISO = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%d %H:%M:%S"}


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
        for given, value in spec.items():
            setattr(draft[column], given, value)
    return draft


def to_sdv(schema: Schema) -> dict[str, Any]:
    """SDV's metadata of the synthetic table, for ``Metadata.load_from_dict``. Dropped columns are not in it."""
    columns = {column.name: _sdtype(column) for column in schema.columns}
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
    sdtype, layout = str(spec.get("sdtype")), spec.get("datetime_format")
    kind = _KINDS.get(sdtype)
    if is_key or kind is None:
        return {"kind": DROP, "reason": "the key of the table" if is_key else f"{sdtype} in SDV"}
    if sdtype == "numerical" and str(spec.get("computer_representation", "")).startswith(("Int", "UInt")):
        return {"kind": "integer"}
    if sdtype == "categorical" and spec.get("order"):
        return {"kind": "ordinal", "categories": spec["order"]}
    if layout is None:
        return {"kind": kind}
    kind = "datetime" if any(part in layout for part in _TIMES) else "date"
    return {"kind": kind, **({} if layout == _ISO[kind] else {"format": layout})}


def _sdtype(column: Column) -> dict[str, Any]:
    """A column as SDV has it."""
    if column.kind in _ISO:
        return {"sdtype": "datetime", "datetime_format": column.format or _ISO[column.kind]}
    if column.is_categorical:
        order = {"order": list(column.categories)} if column.type.is_ordered else {}
        return {"sdtype": "boolean" if column.kind == "boolean" else "categorical", **order}
    return {"sdtype": "numerical", "computer_representation": "Int64" if column.is_whole else "Float"}
