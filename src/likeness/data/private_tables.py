"""Private tables on disk: Parquet files whose hash and size tell nothing of their rows."""

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from likeness.core.errors import ArtifactError
from likeness.core.files import make_private_folder
from likeness.core.rng import public, secret_bytes

_ROW_GROUP = 65_536
_SMALLEST_FILE = 1 << 16
_SALT_BYTES = 32
_SALT_AT_ONCE = 1 << 20
_CATEGORIES = b"likeness.categories"  # keys in the metadata of a private file
_CARD = b"likeness.card"


def write_private(table: pd.DataFrame, path: Path, card: Mapping[str, Any] | None = None) -> None:
    """Write a private table: random salt inside, size a power of two, folder for its owner only, atomically.

    DVC records hash and size of files in dvc.lock: the salt makes the hash say nothing about the rows, and the padding
    makes the size say nothing about their number but its order of magnitude.

    Args:
        card: JSON that says whose rows these are; see :func:`read_card`. It travels with them in one file, so that no
            other rows can stand under it.
    """
    write_private_chunks([table], path, lambda _: card or {})


def write_private_chunks(chunks: Iterable[pd.DataFrame], path: Path, card: Callable[[Path], Mapping[str, Any]]) -> None:
    """The same of a table that comes in chunks, at least one, all of the same types; memory holds a row group.

    Args:
        card: makes the card, once all rows are written; it may read them from the file that it is given.
    """
    make_private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        chunks = iter(chunks)
        first = next(chunks)
        schema = _file_schema(first)
        with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            temporary.chmod(0o600)
            for group in _row_groups(chain([first], chunks), schema):
                writer.write_table(group, row_group_size=_ROW_GROUP)
        _pad(temporary, _with_card(temporary, card(temporary)))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _file_schema(table: pd.DataFrame) -> pa.Schema:
    """Parquet keeps the categories that occur, not the type: an empty table would come back without any."""
    categorical = table.select_dtypes("category")
    kept = json.dumps({name: list(column.cat.categories) for name, column in categorical.items()})
    schema = pa.Schema.from_pandas(table, preserve_index=False)
    return schema.with_metadata({**schema.metadata, _CATEGORIES: kept.encode()})


def _row_groups(chunks: Iterable[pd.DataFrame], schema: pa.Schema) -> Iterator[pa.Table]:
    """Cut chunks of any size into row groups of one size, so that the file does not depend on how the rows came."""
    held = schema.empty_table()
    for chunk in chunks:
        held = pa.concat_tables([held, pa.Table.from_pandas(chunk, schema=schema, preserve_index=False)])
        whole = len(held) - len(held) % _ROW_GROUP
        if whole:
            yield held.slice(0, whole).unify_dictionaries()
            held = held.slice(whole)
    if len(held):
        yield held.unify_dictionaries()


def _with_card(path: Path, card: Mapping[str, Any]) -> bytes:
    """The footer of a file with a card in it: that of an empty file with the card, with the row groups of this one."""
    own, empty, footer = pq.read_schema(path), io.BytesIO(), io.BytesIO()
    pq.ParquetWriter(empty, own.with_metadata({**own.metadata, _CARD: json.dumps(dict(card)).encode()})).close()
    about = pq.read_metadata(empty)
    about.append_row_groups(pq.read_metadata(path))
    about.write_metadata_file(footer)
    return footer.getvalue()[4:]  # without the mark that starts a file


def _pad(path: Path, footer: bytes | None = None) -> None:
    """Put random bytes between the last row group and the footer, whose offsets all point before them.

    Args:
        footer: instead of the file's own.
    """
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(size - 8)
        end = size - 8 - int.from_bytes(file.read(4), "little")
        file.seek(end)
        footer = file.read() if footer is None else footer
        missing = max(_SMALLEST_FILE, 1 << (end + len(footer) + _SALT_BYTES - 1).bit_length()) - end - len(footer)
        file.seek(end)
        while missing:
            missing -= file.write(secret_bytes(min(missing, _SALT_AT_ONCE)))
        file.write(footer)


def read_private(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a private table whole.

    Raises:
        ArtifactError: it is missing or damaged.
    """
    return _typed_as_written(_opened(path).read(columns=None if columns is None else list(columns)))


def sample_private(path: Path, most: int | None, seed: int) -> pd.DataFrame:
    """At most so many rows of a private table, drawn by a public seed, in order; memory does not grow with the table.

    Positions are drawn with repetition and taken once, so that a few less than ``most`` come. None: all rows.

    Raises:
        ArtifactError: it is missing or damaged.
    """
    count = _opened(path).metadata.num_rows
    if most is None or count <= most:
        return read_private(path)
    wanted = np.unique(public(seed, "private.sample").integers(0, count, most))
    chosen, start = [], 0
    for chunk in iter_private(path, None, _ROW_GROUP):
        inside = wanted[(wanted >= start) & (wanted < start + len(chunk))] - start
        chosen.append(chunk.iloc[inside])
        start += len(chunk)
    return pd.concat(chosen, ignore_index=True)


def read_card(path: Path) -> dict[str, Any]:
    """The card of a private table, without opening a row.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    return _card(_opened(path))


def iter_private(
    path: Path,
    columns: Sequence[str] | None,
    chunk_rows: int,
    card: Mapping[str, Any] | None = None,
    groups: Sequence[int] | None = None,
) -> Iterator[pd.DataFrame]:
    """Read a private table in chunks of ``chunk_rows`` rows, the last one smaller; memory does not grow with the table.
    A table without rows is one chunk without rows.

    pyarrow cuts its batches at row groups too; they are joined again, so that chunks do not depend on the file.

    Args:
        groups: only these row groups, in order; None: all.

    Raises:
        ArtifactError: the file is missing or damaged, or a card is given and the file has another one.
    """
    held: list[pa.RecordBatch] = []
    passed = False
    file = _opened(path)
    if card is not None and _card(file) != dict(card):
        raise ArtifactError(f"{path} was replaced while it was in use. Run: dvc repro")
    wanted = None if columns is None else list(columns)
    for batch in file.iter_batches(chunk_rows, row_groups=None if groups is None else list(groups), columns=wanted):
        held.append(batch)
        rows = pa.Table.from_batches(held)
        if len(rows) >= chunk_rows:
            yield _typed_as_written(rows.slice(0, chunk_rows))
            held, passed = rows.slice(chunk_rows).to_batches(), True
    if held or not passed:
        rows = pa.Table.from_batches(held) if held else file.schema_arrow.empty_table()
        yield _typed_as_written(rows if wanted is None else rows.select(wanted))


def text_columns(path: Path) -> list[str]:
    """Names of the columns that hold plain text, without opening a row.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    fields = _opened(path).schema_arrow
    return [own.name for own in fields if pa.types.is_string(own.type) or pa.types.is_large_string(own.type)]


def num_groups(path: Path) -> int:
    """Row groups of a private table, without opening a row.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    return int(_opened(path).num_row_groups)


def _typed_as_written(content: pa.Table) -> pd.DataFrame:
    table: pd.DataFrame = content.to_pandas()
    for name, categories in json.loads((content.schema.metadata or {}).get(_CATEGORIES, b"{}")).items():
        if name in table.columns:
            ordered = table[name].cat.ordered
            table[name] = table[name].astype(pd.CategoricalDtype(categories, ordered=ordered))
    return table


def _card(file: pq.ParquetFile) -> dict[str, Any]:
    card: dict[str, Any] = json.loads((file.schema_arrow.metadata or {}).get(_CARD, b"{}"))
    return card


def _opened(path: Path) -> pq.ParquetFile:
    try:
        # With pre-buffering pyarrow keeps the bytes of every row group until the file is closed (apache/arrow#39808).
        return pq.ParquetFile(path, pre_buffer=False)
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing. Run: dvc repro") from None
    except (pa.ArrowException, OSError):
        raise ArtifactError(f"{path} is damaged. Run: dvc repro") from None
