"""Released files of a run, and the schema completed by them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from likeness.config.params import Params
from likeness.data.schema.schema import Schema
from likeness.release.keys import completed
from likeness.release.released import check_known, load_released

if TYPE_CHECKING:
    pass
from likeness.core.paths import AUXILIARY, CATEGORIES, EMBEDDING
from likeness.pipeline.schema import open_schema


def load_schema(params: Params) -> Schema:
    """The same with the categories of open columns as they were released.

    Raises:
        ArtifactError: they were not yet, or for another schema.
    """
    return completed_by(open_schema(params), category_files())


def completed_by(schema: Schema, files: Sequence[Path]) -> Schema:
    """A schema whose open columns have the categories of these released files."""
    if not schema.open_columns:
        return schema
    return completed(schema, [load_released(path) for path in files])


def category_files() -> list[Path]:
    """Released files of open columns."""
    return sorted(CATEGORIES.glob("*.safetensors"))


def check_categories(params: Params) -> None:
    """Refuse released categories that the ledger does not know."""
    check_known(category_files(), params.ledger.home, params.ledger.url)


def released_files() -> list[Path]:
    """Every released file of a run, in the order of its stages."""
    return [*category_files(), *sorted(AUXILIARY.glob("*.safetensors")), EMBEDDING]
