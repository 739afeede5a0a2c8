"""From the source to the private tables, in chunks: memory does not grow with the number of rows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.config.params import Params
from likeness.data.beside import with_columns
from likeness.data.encoding.encoder import Encoder
from likeness.data.pixels import matrix
from likeness.data.private_tables import iter_private
from likeness.data.rules.tables import to_model
from likeness.data.schema.private_categories import closed
from likeness.data.schema.schema import Schema
from likeness.engine import LOCAL, Engine
from likeness.pipeline.private_rows import BESIDE, SPLIT, digest_of_release, source_rows, split_parts, used_rows
from likeness.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from numpy import uint8
    from numpy.typing import NDArray
    from pandas import DataFrame, Series

    from likeness.data.source.parquet_files import SourcePart
    from likeness.data.source.row_digests import SourceDigest
    from likeness.pipeline.project import Project

_PART_ROWS = 1 << 18  # typed by one worker at once; a larger row group of the source is one part
_COLUMN_ROWS = 1 << 18  # of a column, read at once for the digest
_ENCODED_CELLS = 1 << 22  # encoded, or hashed, at once
_PIXELS_AT_ONCE = 1 << 27  # bytes of pixel columns in memory for the digest


def typed_rows(
    project: "Project", engine: Engine = LOCAL, source: "SourceDigest | None" = None
) -> "Iterator[DataFrame]":
    """The used rows of the source, typed, with their split and person: at least one chunk, in order.

    A split by position needs 9 bytes a row for a moment, and the number of rows in advance. A CSV or .npz file does not
    have it, so memory then holds the rows.

    Args:
        project: whose source is read.
        engine: where the parts of a Parquet source are typed.
        source: takes up all rows of the source, also those that are not used.

    Raises:
        DataError: the source is missing or damaged, or a value breaks the schema's rule for its column.
    """
    from likeness.data.source.files import parquet_rows, source_parts
    from likeness.data.source.split import position_mask, split_names

    params, schema = project.params, project.written_schema
    if params.ingest.unit is not None or params.ingest.from_database:
        # All at once: a person's rows may lie anywhere, and a database gives them in no order.
        yield used_rows(params, schema, *source_rows(project, source))
        return
    path, split = project.source, params.ingest.split
    count = parquet_rows(path)
    # Only Parquet can be opened in its middle.
    engine = LOCAL if count is None else engine
    parts = source_parts(path, None if engine.workers == 1 else _PART_ROWS)
    key = None if source is None else source.key
    pieces = engine.stream(_typed_part, [_Job(part, schema, params, key) for part in parts])
    tables: Iterable[DataFrame] = _taken_up(pieces, source)
    if split.column is not None or params.privacy.adjacency != Adjacency.REPLACE_ONE:
        yield from tables
        return
    if count is None:
        tables = list(tables)
        count = sum(len(table) for table in tables)
    mask, start = position_mask(count, split.test_fraction, split.seed), 0
    for table in tables:
        yield with_columns(table, {SPLIT: split_names(mask[start : start + len(table)])})
        start += len(table)


@dataclass(frozen=True)
class _Job:
    part: "SourcePart"
    schema: Schema
    params: Params
    key: bytes | None  # of the digest of the source, if there is one


def _typed_part(job: _Job) -> "Iterator[tuple[DataFrame, int]]":
    """Typed rows of one part with their part of the digest, and with their split if it depends on each row alone."""
    from likeness.data.source.files import iter_part
    from likeness.data.source.row_digests import SourceDigest

    ingest = job.params.ingest
    source = None if job.key is None else SourceDigest(job.key)
    for table, column in iter_part(job.part, job.schema, ingest.split.column, source, ingest.format):
        if column is not None or job.params.privacy.adjacency != Adjacency.REPLACE_ONE:
            table = with_columns(table, {SPLIT: split_parts(job.params, job.schema, table, column)})
        yield table, 0 if source is None else source.take()


def _taken_up(pieces: "Iterable[tuple[DataFrame, int]]", source: "SourceDigest | None") -> "Iterator[DataFrame]":
    for table, total in pieces:
        if source is not None:
            source.put(total)
        yield table


def training_digest(project: "Project", written: Path) -> tuple[str, int]:
    """Digest (:func:`~likeness.pipeline.private_rows.digest_of_release`) and number of a table's training rows.

    The digest of rows in order is defined column by column, so the table is read again, a column at a time.
    """
    from numpy import concatenate
    from pandas import Series

    from likeness.data.source.row_digests import columns_digest, unordered_digest

    schema, ledger = project.written_schema, project.ledger

    def read(name: str) -> "Iterator[Series[Any]]":
        if name in pixels:
            part, place = divmod(pixels[name], at_once)
            yield Series(training_pixels(part * at_once)[place])
            return
        for chunk in iter_private(written, [name, SPLIT], _COLUMN_ROWS):
            yield chunk.loc[chunk[SPLIT] == "train", name]

    @lru_cache(maxsize=1)
    def training_pixels(start: int) -> "NDArray[uint8]":
        """Some pixel columns, one after the other: an image is one cell of the file, and is read as a whole."""
        some = list(pixels)[start : start + at_once]
        chunks = iter_private(written, [*pixels, SPLIT], _chunk_rows(schema))
        return concatenate([matrix(chunk.loc[chunk[SPLIT] == "train", some], some).T for chunk in chunks], axis=1)

    count = sum(int((chunk[SPLIT] == "train").sum()) for chunk in iter_private(written, [SPLIT], _COLUMN_ROWS))
    pixels = {name: place for place, name in enumerate(schema.pixels)}
    at_once = max(1, _PIXELS_AT_ONCE // max(1, count))

    def ordered() -> str:
        return columns_digest(read, count, schema, ledger.key)

    def unordered() -> str:
        chunks = iter_private(written, [*schema.names, SPLIT], _chunk_rows(schema))
        return unordered_digest((chunk[chunk[SPLIT] == "train"] for chunk in chunks), schema, ledger.key)

    return digest_of_release(project.params.privacy.adjacency, ordered, unordered), count


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
        typed = to_model(closed(chunk, written, schema), schema)
        yield with_columns(encoder.encode(typed, compact=True), beside)


def _chunk_rows(schema: Schema) -> int:
    return max(1, min(_COLUMN_ROWS, _ENCODED_CELLS // len(schema.names)))
