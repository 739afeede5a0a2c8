"""Private tables on disk: files of Arrow, which DVC does not follow: dvc.lock would publish hash and size.

A file has batches of rows, and a last one without rows, whose metadata are the manifest and the number of rows. Later
stages read encoded rows many times, which takes less time than from Parquet.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from likeness.core.artifacts import MemoryPath
from likeness.core.errors import ArtifactError
from likeness.core.files import make_private_folder
from likeness.core.rng import public
from likeness.data.table_columns import PIXEL, equal_chunks, leading_pixels, matrix, with_pixels

_ROW_GROUP = 1 << 18
_PIXELS = b"likeness.pixels"  # a key in the metadata of a private file
_IMAGE = "__image__"  # the column that holds all pixels of a row
_GROUP_BYTES = 1 << 24  # of images in a batch
_MANIFEST, _COUNT = b"likeness.card", b"likeness.rows"  # keys in the metadata of its last batch


def write_private(table: pd.DataFrame, path: Path, manifest: Mapping[str, Any] | None = None) -> None:
    """Write a private table atomically, in a folder for its owner only. Nothing is compressed: that takes more time.

    Args:
        table: the rows.
        path: place of the file.
        manifest: dataset manifest, JSON that names the rows; see :func:`read_manifest`. It is part of the file, so that
            it never stands with other rows.
    """
    write_private_chunks([table], path, lambda: manifest or {})


def write_private_chunks(
    chunks: Iterable[pd.DataFrame | pa.Table], path: Path, manifest: Callable[[], Mapping[str, Any]]
) -> None:
    """Write a private table as :func:`write_private`, in chunks of the same types; memory holds a batch.

    Args:
        chunks: the rows.
        path: place of the file.
        manifest: makes the manifest after all rows are written.
    """
    make_private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        chunks = iter(chunks)
        first = next(chunks)
        schema = _file_schema(first)
        rows = max(1, min(_ROW_GROUP, _GROUP_BYTES // (len(_pixels(schema)) or 1)))
        count = 0
        options = pa.ipc.IpcWriteOptions(use_threads=False)
        with temporary.open("wb") as file, pa.ipc.new_file(file, schema, options=options) as writer:
            temporary.chmod(0o600)
            for group in equal_chunks((_as_stored(chunk, schema) for chunk in chain([first], chunks)), rows):
                writer.write_batch(_batch(group))
                count += len(group)
            about = {_MANIFEST: json.dumps(dict(manifest())), _COUNT: json.dumps(count)}
            writer.write_batch(_batch(_as_stored(first[:0], schema)), about)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _batch(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)


def _file_schema(table: pd.DataFrame | pa.Table) -> pa.Schema:
    """The schema of a file."""
    if isinstance(table, pa.Table):
        return table.schema
    pixels = leading_pixels(table)
    schema = pa.Schema.from_pandas(table.iloc[:, len(pixels) :], preserve_index=False)
    fields = [field.with_type(pa.string()) if field.type == pa.null() else field for field in schema]  # without a row
    schema = pa.schema(fields, schema.metadata)
    if pixels:
        schema = schema.append(pa.field(_IMAGE, pa.binary(len(pixels))))
        schema = schema.with_metadata({**schema.metadata, _PIXELS: json.dumps(pixels)})
    return schema


def _as_stored(table: pd.DataFrame | pa.Table, schema: pa.Schema) -> pa.Table:
    """A chunk as the file holds it: pixels of dtype ``uint8`` are one cell of bytes a row."""
    if isinstance(table, pa.Table):
        return table
    pixels = _pixels(schema)
    if not pixels:
        return pa.Table.from_pandas(table, schema=schema, preserve_index=False)
    rest = schema.remove(schema.get_field_index(_IMAGE))
    columns = pa.Table.from_pandas(table, schema=rest, preserve_index=False)
    values = np.ascontiguousarray(matrix(table, pixels), PIXEL)
    cells = pa.FixedSizeBinaryArray.from_buffers(pa.binary(len(pixels)), len(table), [None, pa.py_buffer(values)])
    return columns.append_column(_IMAGE, cells).replace_schema_metadata(schema.metadata)


def _pixels(schema: pa.Schema) -> list[str]:
    return list(json.loads((schema.metadata or {}).get(_PIXELS, b"[]")))


def read_private(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a private table, or some of its columns. With one pixel come all pixels.

    Raises:
        ArtifactError: it is missing or damaged.
    """
    table = _open_private(path, columns).read_all()
    return as_written(table.select(_stored_names(table.schema, columns)))


def sample_private(path: Path, most: int | None, seed: int) -> pd.DataFrame:
    """Draw at most ``most`` rows of a private table by a public seed, in order; memory does not grow with the table.

    Positions are drawn with repetition and taken once, so the result has a few rows less. None: all rows.

    Raises:
        ArtifactError: it is missing or damaged.
    """
    count = _from_last_batch(_open_private(path), _COUNT)
    if most is None or count <= most:
        return read_private(path)
    wanted = np.unique(public(seed, "private.sample").integers(0, count, most))
    chosen, start = [], 0
    for chunk in iter_private(path, None, _ROW_GROUP):
        inside = wanted[(wanted >= start) & (wanted < start + len(chunk))] - start
        chosen.append(chunk.iloc[inside])
        start += len(chunk)
    return pd.concat(chosen, ignore_index=True)


def read_manifest(path: Path) -> dict[str, Any]:
    """The dataset manifest of a private table, without reading a row.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    return dict(_from_last_batch(_open_private(path), _MANIFEST))


def iter_private(path: Path, *words: Any, **settings: Any) -> Iterator[pd.DataFrame]:
    """Read a private table in chunks, as :func:`private_chunks`, as the frames that were written."""
    yield from map(as_written, private_chunks(path, *words, **settings))


def private_chunks(
    path: Path,
    columns: Sequence[str] | None,
    chunk_rows: int,
    manifest: Mapping[str, Any] | None = None,
    groups: Sequence[int] | None = None,
) -> Iterator[pa.Table]:
    """Read a private table in chunks; memory does not grow with the table.

    A table without rows is one chunk without rows. Batches are joined, so that chunks do not depend on the file.

    Args:
        path: the file.
        columns: names of columns; None: all. With one pixel come all pixels.
        chunk_rows: rows of a chunk; the last one may be smaller.
        manifest: expected manifest; None: any.
        groups: batches to read, in order; None: all.

    Raises:
        ArtifactError: the file is missing or damaged, or has another manifest.
    """
    file = _open_private(path, columns, manifest)
    last, wanted = file.num_record_batches - 1, _stored_names(file.schema, columns)
    batches = map(file.get_batch, chain([last], range(last) if groups is None else groups))  # the last has no row
    tables = (pa.Table.from_batches([batch]).select(wanted) for batch in batches)
    yield from equal_chunks(tables, chunk_rows)


def iter_stored(
    path: Path, most_rows: int, manifest: Mapping[str, Any], groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a private table without images as the file has them, of one batch in a step.

    Args:
        path: the file.
        most_rows: of a step.
        manifest: expected manifest.
        groups: batches to read, in order; None: all.

    Raises:
        ArtifactError: the file is missing or damaged, or has another manifest.
    """
    file = _open_private(path, None, manifest)
    for batch in map(file.get_batch, range(file.num_record_batches - 1) if groups is None else groups):
        yield from (batch.slice(start, most_rows) for start in range(0, len(batch), most_rows))


def text_columns(path: Path) -> list[str]:
    """Names of the columns that hold plain text, without reading a row.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    fields = _open_private(path).schema
    return [field.name for field in fields if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]


def num_groups(path: Path) -> int:
    """Number of batches of a private table, without reading a row.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    return int(_open_private(path).num_record_batches) - 1


def as_written(content: pa.Table) -> pd.DataFrame:
    """Rows of a private table as the frame that was written."""
    pixels = _pixels(content.schema) if _IMAGE in content.column_names else []
    table: pd.DataFrame = (content.drop_columns(_IMAGE) if pixels else content).to_pandas()
    if not pixels:
        return table
    cells = content.column(_IMAGE).combine_chunks()
    start, stop = (len(pixels) * row for row in (cells.offset, cells.offset + len(cells)))
    data = memoryview(cells.buffers()[1] or b"")[start:stop]
    return with_pixels(np.frombuffer(data, PIXEL).reshape(-1, len(pixels)), pixels, table)


def _stored_names(schema: pa.Schema, columns: Sequence[str] | None) -> list[str]:
    """Names of wanted columns in a file. All pixels of an image come with one of them."""
    pixels = set(_pixels(schema))
    names = schema.names if columns is None else [_IMAGE if name in pixels else name for name in columns]
    return list(dict.fromkeys(names))


def _from_last_batch(file: pa.RecordBatchFileReader, key: bytes) -> Any:
    """Read what the last batch says under a key."""
    return json.loads(file.get_batch_with_custom_metadata(file.num_record_batches - 1)[1][key])


def _source(path: Path) -> pa.NativeFile:
    """The bytes of a file, on a disk or in memory."""
    return pa.BufferReader(path.read_bytes()) if isinstance(path, MemoryPath) else pa.OSFile(str(path))


def _open_private(
    path: Path, columns: Sequence[str] | None = None, manifest: Mapping[str, Any] | None = None
) -> pa.RecordBatchFileReader:
    """An open file, of which some columns are read.

    Raises:
        ArtifactError: it is missing or damaged, or has another manifest than the expected one.
    """
    try:
        file = pa.ipc.open_file(_source(path))
        if columns is not None:
            indices = list(map(file.schema.get_field_index, _stored_names(file.schema, columns)))
            options = pa.ipc.IpcReadOptions(included_fields=indices, use_threads=False)
            file = pa.ipc.open_file(_source(path), options=options)
        manifest_in_file = {} if manifest is None else _from_last_batch(file, _MANIFEST)
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing. Run: likeness run") from None
    except (pa.ArrowException, OSError):
        raise ArtifactError(f"{path} is damaged. Run: likeness run") from None
    if manifest is not None and manifest_in_file != dict(manifest):
        raise ArtifactError(f"{path} was replaced while it was in use. Run: likeness run")
    return file
