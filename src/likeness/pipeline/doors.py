"""The doors to the private rows of a project."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from likeness.core.errors import ArtifactError
from likeness.core.paths import row_set_file
from likeness.data.encoding.layout import encoding_digest
from likeness.data.private_tables import text_columns
from likeness.pipeline.counts import COUNTED, memory_of
from likeness.pipeline.private_rows import ColumnPartitions, EncodedRows, GridRows, dataset_of
from likeness.pipeline.project import Project

if TYPE_CHECKING:
    from likeness.ledger.reservation import Dataset
    from likeness.release.door import Door
    from likeness.release.sums.backends import CountReader


def rows_of(project: Project, index: int = 0) -> "tuple[Dataset, EncodedRows | CountReader]":
    """Tell whose rows an encoded table holds, and give what opens or counts them once the cost is on record.

    Args:
        project: whose rows they are.
        index: of the row set.

    Raises:
        ArtifactError: the table has another population, adjacency, unit of privacy or encoding than the settings, or
            the key of another ledger.
        DataError: ``privacy.num_records`` is not the number of training rows.
    """
    encoded = project.model.encodings
    prefix, (schema, encoding) = list(encoded.items())[index]
    table = row_set_file(project.paths.encoded, prefix)
    dataset, manifest = dataset_of(project.complete_params, table, project.ledger.id, {"encoding": encoding})
    dataset = replace(dataset, sibling_encodings=tuple(digest for _, digest in encoded.values()))
    if COUNTED in manifest:
        return dataset, project.backend.reader(dataset.digest, project.ledger.key, project.schema, index)
    rows = EncodedRows(table.absolute(), manifest, schema.model_schema)
    return dataset, replace(rows, kept=memory_of(rows))


def door(project: Project, index: int = 0) -> "Door":
    """The door to encoded rows.

    Args:
        project: whose rows they are.
        index: of the row set.
    """
    from likeness.release.door import Door

    plan, ledger = project.written_plan, project.ledger_to_spend
    return Door(plan, ledger, *rows_of(project, index), project.provenance)


def partition_door(project: Project, column: str) -> "Door":
    """The door to the texts of an open column.

    Raises:
        ArtifactError: as :func:`rows_of`; or another schema typed the table.
        DataError: ``privacy.num_records`` is not the number of training rows.
    """
    from likeness.release.door import Door

    dataset, manifest = _typed_rows_of(project)
    read: ColumnPartitions | CountReader = ColumnPartitions(project.paths.table.absolute(), manifest, column)
    if COUNTED in manifest:
        read = project.backend.reader(dataset.digest, project.ledger.key)
    return Door(project.written_plan, project.ledger_to_spend, dataset, read, project.provenance)


def bounds_door(project: Project) -> "Door":
    """The door to the cells of the unbounded columns; raises as :func:`partition_door`."""
    from likeness.release.door import Door

    dataset, manifest = _typed_rows_of(project)
    read = GridRows(project.paths.table.absolute(), manifest, project.written_schema)
    return Door(project.written_plan, project.ledger_to_spend, dataset, read, project.provenance)


def _typed_rows_of(project: Project) -> "tuple[Dataset, dict[str, Any]]":
    """Tell whose rows the typed table holds, and give its manifest."""
    table, schema = project.paths.table, project.written_schema
    dataset, manifest = dataset_of(project.complete_params, table, project.ledger.id, {})
    if not {column.name for column in schema.open_columns} <= set(text_columns(table)):
        raise ArtifactError(f"{table} was written under another ingest.schema than params.yaml has. Run: likeness run")
    return replace(dataset, encoding=encoding_digest(schema)), manifest
