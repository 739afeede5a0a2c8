"""The private rows of a run: whose they are, how they are encoded, and how the door opens them.

Every private table carries a *dataset manifest*: population, adjacency, unit of privacy, the number of rows where it is
public, and the digest of the encoding. It has keyed digests of the training rows and of the source's rows, and the
ledger whose key made them. Manifest and rows are one file. So no stage, run by hand or out of order, can charge one
population's rows to another.

If a person may have several rows, each row carries the number of its person, so that the door can count. The names of
the people stay in the source.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likeness.config.params import Params
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import ArtifactError
from likeness.core.hashing import json_value
from likeness.data.encoding.encoder import Codes, Encoder
from likeness.data.private_tables import iter_private, iter_stored, num_groups, read_manifest
from likeness.data.schema.column import PERSON_COLUMN, SPLIT_COLUMN
from likeness.data.schema.schema import Schema
from likeness.data.table_columns import with_columns
from likeness.features.cells import CodedRows, Columns
from likeness.ledger.reservation import Dataset
from likeness.pipeline.sources import check_number
from likeness.release.partition_selection import Partitions
from likeness.release.private_bounds import grid_rows, grid_schema
from likeness.release.records import Records

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray
    from pandas import DataFrame

SPLIT, PERSON = SPLIT_COLUMN, PERSON_COLUMN
_SETTINGS = {
    "identity": "privacy.population",
    "adjacency": "privacy.adjacency",
    "series": "privacy.series",
    "unit": "ingest.unit",
}
_MOST_ROWS, _MOST_CELLS = 65_536, 1 << 22  # of a chunk


def dataset_of(params: Params, path: Path, ledger_id: str, more: Mapping[str, Any]) -> tuple[Dataset, dict[str, Any]]:
    """Tell whose rows a private table holds, and read its manifest.

    Args:
        params: the settings.
        path: of the table.
        ledger_id: of the ledger that is open.
        more: further facts that the manifest must have.

    Raises:
        ArtifactError: the manifest contradicts the settings or the ledger.
        DataError: ``privacy.num_records`` is not the number of training rows.
    """
    manifest = read_manifest(path)
    expected = {
        "identity": params.privacy.population,
        "adjacency": params.privacy.adjacency,
        "series": params.privacy.series,
        **more,
        "unit": json_value(params.ingest.unit),
    }
    for name, value in expected.items():
        if manifest.get(name) != value:
            key = _SETTINGS.get(name, name)
            raise ArtifactError(f"{path} was written under another {key} than params.yaml has. Run: likeness run")
    if manifest["ledger"] != ledger_id:
        raise ArtifactError(f"{path} was written with the key of another ledger. Run: dvc repro --force ingest")
    check_number(params, manifest["num_records"])
    unit = None if manifest.get("unit") is None else PrivacyUnit.from_dict(manifest["unit"])
    rows = manifest["identity"], manifest["digest"], params.ledger.attempt, manifest.get("encoding", ""), unit
    night = {key: manifest.get(key, "") for key in ("group", "first_nights", "day")}
    return Dataset(*rows, tuple(manifest["rows_digests"]), **night), manifest


@dataclass(frozen=True)
class EncodedRows:
    """The training rows of an encoded table: opened when called, here or in another process; holds no row.

    Attributes:
        path: of the table.
        manifest: of the table that is meant.
        schema: of the modeled columns.
        groups: its batches; None: all.
        kept: counts of these rows that stay in memory, see :class:`likeness.release.sums.kept_counts.KeptRows`.
    """

    path: Path
    manifest: Mapping[str, Any]
    schema: Schema
    groups: tuple[int, ...] | None = None
    kept: dict[Any, Any] | None = field(default=None, compare=False, repr=False)

    def __call__(self, most_rows: int | None = None) -> Iterator[Records]:
        """The rows, in order.

        Args:
            most_rows: of a step, for who needs no dense rows; None: as many as dense rows fit.

        Raises:
            ArtifactError: the table has another manifest.
        """
        encoder = Encoder(self.schema)
        rows = most_rows or _chunk_rows(encoder)
        if self.schema.pixels:
            for chunk in iter_private(self.path, None, rows, self.manifest, self.groups):
                yield _records(encoder, chunk, chunk)
            return
        for stored in iter_stored(self.path, rows, self.manifest, self.groups):
            yield _records(encoder, stored, stored.schema.names)

    @property
    def num_classes(self) -> int:
        """Number of classes; 1 unless the task is classification."""
        return len(self.schema.classes)

    def split(self, most: int) -> "list[EncodedRows]":
        """Split the rows into at most ``most`` parts with about equal numbers of batches."""
        count = num_groups(self.path)
        most = min(most, count)
        cuts = [count * index // most for index in range(most + 1)] if most else []
        return [replace(self, groups=tuple(range(start, stop))) for start, stop in pairwise(cuts)] or [self]


@dataclass(frozen=True)
class ColumnPartitions:
    """The texts of a column in the training rows of an ingested table: opened when called; holds no row.

    Attributes:
        path: of the table.
        manifest: of the table that is meant.
    """

    path: Path
    manifest: Mapping[str, Any]
    column: str

    def __call__(self) -> Iterator[Partitions]:
        """The texts, in order.

        Raises:
            ArtifactError: the table has another manifest.
        """
        for rows in _training_rows(self.path, self.manifest, [self.column]):
            yield _texts(rows, self.column)


@dataclass(frozen=True)
class GridRows:
    """The cells of the unbounded columns in the training rows of an ingested table: opened when called; holds no row.

    Attributes:
        path: of the table.
        manifest: of the table that is meant.
        schema: as it is written.
    """

    path: Path
    manifest: Mapping[str, Any]
    schema: Schema

    def __call__(self) -> Iterator[Records]:
        """The rows, in order.

        Raises:
            ArtifactError: the table has another manifest.
        """
        names = [column.name for column in self.schema.unbounded_columns]
        grids = grid_schema(self.schema)
        for rows in _training_rows(self.path, self.manifest, names):
            persons = rows[PERSON].to_numpy() if PERSON in rows else None
            yield from encoded_chunks(grid_rows(rows, self.schema), grids, persons)


def _training_rows(path: Path, manifest: Mapping[str, Any], names: Sequence[str]) -> "Iterator[DataFrame]":
    """Columns of the training rows of an ingested table, in chunks, with their persons."""
    persons = [] if manifest.get("unit") is None else [PERSON]
    for chunk in iter_private(path, [*names, SPLIT, *persons], _MOST_ROWS, manifest):
        yield chunk[(chunk[SPLIT] == "train").to_numpy()]


def _chunk_rows(encoder: Encoder) -> int:
    return max(1, min(_MOST_ROWS, _MOST_CELLS // encoder.layout.width))


def _texts(rows: "DataFrame", column: str) -> Partitions:
    texts = rows[column].astype("object")
    persons = rows[PERSON].to_numpy() if PERSON in rows else None
    return Partitions(texts.where(texts.notna(), None).tolist(), persons)


def encoded_chunks(table: "DataFrame", schema: Schema, persons: "NDArray[int64] | None" = None) -> Iterator[Records]:
    """Rows in memory as feature maps see them.

    Args:
        table: typed rows, private or synthetic.
        schema: of the table.
        persons: the number of each row's person, if a person may have several rows.
    """
    encoder = Encoder(schema)
    rows = _chunk_rows(encoder)
    for start in range(0, len(table), rows):
        codes = encoder.encode(table.iloc[start : start + rows])
        if persons is not None:
            codes = with_columns(codes, {PERSON: persons[start : start + rows]})
        yield _records(encoder, codes, codes)


def _records(encoder: Encoder, codes: Codes, names: Container[str]) -> Records:
    persons = np.asarray(codes[PERSON]) if PERSON in names else None
    expand = partial(encoder.expand, codes)
    rows = expand() if encoder.schema.pixels else CodedRows(Columns(encoder.columns(codes)), len(codes), expand)
    return Records(rows, encoder.labels(codes), persons)
