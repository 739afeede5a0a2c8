"""The synthetic tables of a project on disk: Parquet and CSV or arrays, tied to the generator that made them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.core.errors import ArtifactError
from likeness.core.extras import pa, pq
from likeness.core.files import whole_file
from likeness.core.hashing import sha256_bytes
from likeness.core.paths import Outputs
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import LINEAGE, parquet_bytes, read_synthetic, sample_request

if TYPE_CHECKING:
    from pandas import DataFrame


def write_synthetic(project: Project, tables: "Mapping[str, DataFrame]") -> None:
    """Write each table in both forms.

    Args:
        project: with the request and the generator.
        tables: in their dtypes, by name.
    """
    for name, table in tables.items():
        path = project.output(f"{name}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(plain_file(project, name)) as part:
            part.write_bytes(project.model.plain_bytes(table, name, project.params.ingest.format))
        with whole_file(path) as part:
            part.write_bytes(parquet_bytes(table, origin_of(project, name), table_request(project)))


def synthetic_tables(project: Project) -> "dict[str, DataFrame]":
    """Typed rows of the synthetic tables, by name.

    Raises:
        DataError: a value is none of its column.
    """
    tables = project.model.tables
    return {name: read_synthetic(project.output(f"{name}.parquet"), rows) for name, rows in tables.items()}


def table_request(project: Project) -> dict[str, Any]:
    """The request for the synthetic table as JSON. Where a Python caller holds the rows, there is none yet."""
    held = project.frames is not None
    return {"rows": None, "seed": None, "where": {}} if held else sample_request(project.sample)


def check_synthetic(project: Project) -> dict[str, str]:
    """SHA-256 of the files of generators and tables, by their names in the project.

    Raises:
        ArtifactError: a table is missing, does not follow from the generator and ``sample``, or its two forms hold
            different rows.
    """
    from likeness.data.encoding.dtypes import to_dtypes

    for name in project.model.tables:
        _check_lineage(project, name)
    layout, model = project.params.ingest.format, project.model
    for name, table in synthetic_tables(project).items():
        content = model.plain_bytes(to_dtypes(table, model.tables[name]), name, layout)
        if content != plain_file(project, name).read_bytes():
            path = project.output(f"{name}.parquet")
            raise ArtifactError(f"{path} and {plain_file(project, name)} hold different rows. Run: likeness run")
    files = map(Outputs.project_path, project.outputs.files)
    return {str(file): _digest(project.paths.root / file) for file in files}


def _check_lineage(project: Project, table: str) -> None:
    path = project.output(f"{table}.parquet")
    try:
        metadata: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing. Run: likeness run") from None
    except (pa.ArrowException, OSError):
        raise ArtifactError(f"{path} is damaged. Run: likeness run") from None
    lineage: dict[str, Any] = json.loads(metadata.get(LINEAGE, b"{}"))
    if lineage.get("sample") != table_request(project):
        raise ArtifactError(f"{path} was not drawn with section sample of params.yaml. Run: likeness run")
    digests = origin_of(project, table)
    for name, digest in digests.items():
        if lineage["files"].get(name) != digest:
            raise ArtifactError(f"{path} does not belong to {name}: one of them is another file. Run: likeness run")


def plain_file(project: Project, table: str) -> Path:
    """The file of a synthetic table beside that of Parquet."""
    return project.output(f"{table}.{project.outputs.plain}")


def origin_of(project: Project, table: str) -> dict[str, str]:
    """SHA-256 of the files that a Parquet file names: of the generators, and of the table without Parquet."""
    return {
        str(Outputs.project_path(name)): _digest(project.output(name))
        for name in (*project.outputs.generator_files, f"{table}.{project.outputs.plain}")
    }


def _digest(path: Path) -> str:
    try:
        return sha256_bytes(path.read_bytes())
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing. Run: likeness run") from None
