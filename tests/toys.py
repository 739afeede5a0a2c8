"""Schemas of small tables that are made up."""

from collections.abc import Mapping
from typing import Any

from likeness.data.schema.schema import Schema


def schema_with(columns: Any, label: str | None = None, name: str = "toy", **more: Any) -> Schema:
    """A schema of these columns; with a label it is about classification.

    Args:
        columns: as a schema file lists them.
        label: column of the classes; None: there is none.
        name: name of the schema and of its file.
        more: other keys of a schema.
    """
    task = "none" if label is None else "classification"
    content: Mapping[str, Any] = {"name": name, "source": "made up", "task": task, "label": label, "columns": columns}
    return Schema.from_dict({**content, **more}, f"{name}.yaml")
