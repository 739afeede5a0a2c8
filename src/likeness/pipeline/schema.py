"""The public schema as written."""

from pathlib import Path
from typing import TYPE_CHECKING

from likeness.config.params import Params
from likeness.core.errors import SchemaError
from likeness.data.schema.schema import Schema

if TYPE_CHECKING:
    pass


def open_schema(params: Params) -> Schema:
    """The public schema that params.yaml names, as it is written: columns may be open."""
    return _checked(params, Schema.load(Path(params.ingest.schema)))


def _checked(params: Params, schema: Schema) -> Schema:
    """Refuse to synthesize the column that says who somebody is."""
    unit = params.ingest.unit
    if unit is not None and unit.column in schema.names:
        raise SchemaError(
            f"column '{unit.column}' is ingest.unit.column, whose values name people: it is never released. In the "
            "schema give it kind drop with a reason, or leave it out."
        )
    return schema


def foreseen(params: Params, schema: Schema | None = None) -> Schema:
    """The schema before anything is released: stand-ins for as many categories as an open column may get.

    Args:
        schema: instead of the one that params.yaml names.
    """
    schema = open_schema(params) if schema is None else schema
    return schema.foreseen(params.categories.most)
