"""From the source to the private tables, in chunks: memory does not grow with the number of rows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from likeness.config.params import Params
from likeness.data.beside import with_columns
from likeness.data.encoding.encoder import Encoder
from likeness.data.private_tables import iter_private
from likeness.data.schema.constrained_tables import forward_transform
from likeness.data.schema.schema import Schema
from likeness.data.source.cells import closed
from likeness.data.source.files import iter_part, parquet_rows, source_parts
from likeness.data.source.row_digests import SourceDigest, row_hashes
from likeness.engine import LOCAL, Engine
from likeness.pipeline.private_rows import (
    BESIDE,
    SPLIT,
    manifest_of,
    read_place,
    split_of,
    training_digest,
    used_rows,
)
from likeness.pipeline.sources import Sources
from likeness.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from pandas import DataFrame, Series

    from likeness.data.source.parquet_files import SourcePart
    from likeness.data.source.row_digests import Hashes

_PART_ROWS = 1 << 18  # typed by one worker at once; a larger row group of the source is one part
_ENCODED_ROWS, _ENCODED_CELLS = 1 << 18, 1 << 22  # encoded at once


def typed_rows(sources: Sources, schema: Schema, rows: "IngestedRows", engine: Engine = LOCAL) -> "Iterator[DataFrame]":
    """The used rows of the source, typed, with their split and person: at least one chunk, in order.

    A split by content needs 24 bytes a row for a moment. One by position needs 9, and the number of rows in advance. A
    CSV or .npz file does not have it, so memory then holds the rows.

    Args:
        sources: the sources, with their settings.
        schema: as it is written.
        rows: takes up digests and numbers.
        engine: where the parts of a Parquet source are typed.

    Raises:
        DataError: the source is missing or damaged, or a value breaks the schema's rule for its column.
    """
    for table, hashes in _used_rows(sources, schema, rows.source, engine):
        is_train = (table[SPLIT] == "train").to_numpy()
        rows.training.add(hashes[is_train])
        rows.held_out += int((~is_train).sum())
        yield table


class IngestedRows:
    """What the rows of a source add up to, while they pass.

    Attributes:
        source: takes up all rows of the source, also those that are not used.
        training: takes up the typed training rows.
        held_out: number of test rows.
    """

    def __init__(self, params: Params, schema: Schema) -> None:
        """Start without rows."""
        self.source, self.training, self.held_out = SourceDigest(), training_digest(params, schema), 0

    def manifest(self, params: Params, ledger_id: str, key: bytes) -> dict[str, Any]:
        """The manifest of these rows, as :func:`likeness.pipeline.private_rows.manifest_of`.

        Args:
            params: the settings.
            ledger_id: of the ledger.
            key: its secret.
        """
        digest, source = self.training.digest(key), self.source.digest(key)
        return manifest_of(params, ledger_id, digest, self.training.count, [source], self.held_out)


def source_rows(
    sources: Sources, schema: Schema, source: "SourceDigest | None" = None
) -> "tuple[DataFrame, Series[str] | None, Series[str] | None]":
    """The typed rows of the source; also its split column and its people, if params.yaml names such columns.

    Args:
        sources: the sources, with their settings.
        schema: as it is written.
        source: takes up the rows with all columns of the source.

    Raises:
        DataError: the source is missing or does not fit the schema.
    """
    ingest, place = sources.ingest, sources.rows
    columns = ingest.split.column, None if ingest.unit is None else ingest.unit.column
    return read_place(place, schema, *columns, source, ingest.format)


def _used_rows(
    sources: Sources, schema: Schema, source: "SourceDigest", engine: Engine
) -> "Iterator[tuple[DataFrame, Hashes]]":
    """The used rows with their hashes, in chunks."""
    params, split = sources.params, sources.ingest.split
    if params.ingest.unit is not None or params.ingest.from_database:
        # All at once: a person's rows may lie anywhere, and a database gives them in no order.
        yield used_rows(params, schema, *source_rows(sources, schema, source))
        return
    count = parquet_rows(sources.file)
    # Only Parquet can be opened in its middle.
    engine = LOCAL if count is None else engine
    parts = source_parts(sources.file, None if engine.workers == 1 else _PART_ROWS)
    pieces: Iterable[_Typed] = engine.stream(_typed_part, [_Job(part, schema, params) for part in parts])
    if count is None and split.column is None and params.privacy.adjacency == Adjacency.REPLACE_ONE:
        pieces = list(pieces)
        count = sum(len(piece.table) for piece in pieces)
    parts_of = split_of(params, count or 0)
    for piece in pieces:
        source.put(piece.source)
        yield with_columns(piece.table, {SPLIT: parts_of(piece.hashes, piece.column)}), piece.hashes


@dataclass(frozen=True)
class _Job:
    part: "SourcePart"
    schema: Schema
    params: Params


class _Typed(NamedTuple):
    """Typed rows of a part, with their split column and hashes, and with their sum in the digest of the source."""

    table: "DataFrame"
    column: "Series[str] | None"
    hashes: "Hashes"
    source: int


def _typed_part(job: _Job) -> "Iterator[_Typed]":
    """The rows of one part, in chunks."""
    ingest, source = job.params.ingest, SourceDigest()
    for table, column, _ in iter_part(job.part, job.schema, ingest.split.column, None, source, ingest.format):
        yield _Typed(table, column, row_hashes(table, job.schema), source.take())


def encoded_rows(table: Path, written: Schema, schema: Schema, ingested: dict[str, Any]) -> "Iterator[DataFrame]":
    """The codes of the ingested rows, with their split and person.

    Args:
        table: the ingested table.
        written: its schema.
        schema: completed with released categories.
        ingested: the manifest of the table that is meant.

    Raises:
        ArtifactError: the table has another manifest.
    """
    encoder = Encoder(schema.modeled)
    for chunk in iter_private(table, None, _chunk_rows(schema), manifest=ingested):
        beside = {name: chunk[name].to_numpy() for name in BESIDE if name in chunk}
        typed = forward_transform(closed(chunk, written, schema), schema)
        yield with_columns(encoder.encode(typed, compact=True), beside)


def _chunk_rows(schema: Schema) -> int:
    return max(1, min(_ENCODED_ROWS, _ENCODED_CELLS // len(schema.names)))
