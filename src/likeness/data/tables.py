"""Private tables on disk: Parquet files whose hash and size tell nothing of their rows."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from likeness.errors import ArtifactError
from likeness.rng import secret_bytes

_ROW_GROUP = 65_536
_SMALLEST_FILE = 1 << 16
_SALT_BYTES = 32
_CATEGORIES = b"likeness.categories"  # keys in the metadata of a private file
_CARD = b"likeness.card"


def make_private_folder(path: Path) -> None:
    """Create a folder that only its owner may enter."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)


def write_private(table: pd.DataFrame, path: Path, card: Mapping[str, Any] | None = None) -> None:
    """Write a private table: random salt inside, size a power of two, folder for its owner only, atomically.

    DVC records hash and size of files in dvc.lock: the salt makes the hash say nothing about the rows, and the padding
    makes the size say nothing about their number but its order of magnitude.

    Args:
        card: JSON that says whose rows these are; see :func:`read_card`. It travels with them in one file, so that no
            other rows can stand under it.
    """
    make_private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        content = pa.Table.from_pandas(table, preserve_index=False)
        # Parquet keeps the categories that occur, not the type: an empty table would come back without any.
        categorical = table.select_dtypes("category")
        kept = json.dumps({name: list(column.cat.categories) for name, column in categorical.items()})
        own = {_CATEGORIES: kept.encode(), _CARD: json.dumps(dict(card or {})).encode()}
        content = content.replace_schema_metadata({**content.schema.metadata, **own})
        pq.write_table(content, temporary, compression="zstd", row_group_size=_ROW_GROUP)
        _pad(temporary)
        temporary.chmod(0o600)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _pad(path: Path) -> None:
    """Put random bytes between the last row group and the footer, whose offsets all point before them."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(size - 8)
        footer_size = int.from_bytes(file.read(4), "little") + 8
        file.seek(size - footer_size)
        footer = file.read()
        target = max(_SMALLEST_FILE, 1 << (size + _SALT_BYTES - 1).bit_length())
        file.seek(size - footer_size)
        file.write(secret_bytes(target - size))
        file.write(footer)


def read_private(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a private table whole.

    Raises:
        ArtifactError: it is missing or damaged.
    """
    return _typed_as_written(_opened(path).read(columns=None if columns is None else list(columns)))


def read_with_card(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A private table and its card, from one opened file: another file may take its place in between.

    Raises:
        ArtifactError: it is missing or damaged.
    """
    file = _opened(path)
    return _typed_as_written(file.read()), _card(file)


def read_card(path: Path) -> dict[str, Any]:
    """The card of a private table, without opening a row.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    return _card(_opened(path))


def iter_private(
    path: Path, columns: Sequence[str] | None, chunk_rows: int, card: Mapping[str, Any] | None = None
) -> Iterator[pd.DataFrame]:
    """Read a private table in chunks of ``chunk_rows`` rows, the last one smaller; memory does not grow with the table.

    pyarrow cuts its batches at row groups too; they are joined again, so that chunks do not depend on the file.

    Raises:
        ArtifactError: the file is missing or damaged, or a card is given and the file has another one.
    """
    held: list[pa.RecordBatch] = []
    file = _opened(path)
    if card is not None and _card(file) != dict(card):
        raise ArtifactError(f"{path} was replaced while it was in use. Run: dvc repro")
    for batch in file.iter_batches(chunk_rows, columns=None if columns is None else list(columns)):
        held.append(batch)
        rows = pa.Table.from_batches(held)
        if len(rows) >= chunk_rows:
            yield _typed_as_written(rows.slice(0, chunk_rows))
            held = rows.slice(chunk_rows).to_batches()
    if held:
        yield _typed_as_written(pa.Table.from_batches(held))


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
        return pq.ParquetFile(path)
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing. Run: dvc repro") from None
    except (pa.ArrowException, OSError):
        raise ArtifactError(f"{path} is damaged. Run: dvc repro") from None
