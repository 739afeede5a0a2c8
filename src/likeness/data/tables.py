"""Private tables on disk: typed reading of sources, and Parquet files whose hash and size tell nothing.

Messages name file, column and rule; never a value, a count or a place of a row.
"""

import hashlib
import hmac
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from likeness.data.column import Column
from likeness.data.schema import Schema
from likeness.errors import ArtifactError, DataError
from likeness.rng import secret_bytes

_ROW_GROUP = 65_536
_SMALLEST_FILE = 1 << 16
_SALT_BYTES = 32
_CATEGORIES = b"likeness.categories"  # key in the metadata of a private file


def make_private_folder(path: Path) -> None:
    """Create a folder that only its owner may enter."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)


def read_source(
    path: Path, schema: Schema, split_column: str | None = None
) -> tuple[pd.DataFrame, "pd.Series[str] | None"]:
    """Read and type a source: the columns of the schema in its order, and the split column as text if one is named.

    Numbers beyond the public bounds are clipped; unknown categories go to the declared catch-all.

    Args:
        path: .csv, .csv.gz or .parquet; other columns of the file are left out.

    Raises:
        DataError: a column is missing, or a value breaks the schema's rule for its column.
    """
    wanted = dict.fromkeys([*schema.names, *([split_column] if split_column else [])])
    raw = _read_raw(path, list(wanted))
    typed = pd.DataFrame({column.name: _typed(raw[column.name], column, path.name) for column in schema.columns})
    return typed, None if split_column is None else _texts(raw[split_column])


def _read_raw(path: Path, wanted: Sequence[str]) -> pd.DataFrame:
    """Read the wanted columns; a CSV as text, so that no guess of a type can change a value."""
    if not path.name.endswith((".csv", ".csv.gz", ".parquet")):
        raise DataError(f"{path.name}: not a format that is read. Give a .csv, .csv.gz or .parquet file.")
    if not path.is_file():
        raise DataError(f"{path.name}: no such file. Give the path of the source in params.yaml, ingest.source.")
    raw = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    if raw is None:
        # Raised here and not in an except block: the library's error, which may quote a row, must not hang on to it.
        raise DataError(
            f"{path.name}: cannot be read as a table. Check that it is complete, in UTF-8 (CSV), and that no row has "
            "more cells than the header."
        )
    present = [str(name) for name in raw.columns]
    for name in wanted:
        if present.count(name) > 1:
            raise DataError(f"{path.name}: column '{name}' stands twice in the header. Keep one.")
        if name not in present:
            raise DataError(f"{path.name}: column '{name}' is missing. Columns: {', '.join(present)}.")
    return raw[list(wanted)]


def _read_parquet(path: Path) -> pd.DataFrame | None:
    try:
        table: pd.DataFrame = pq.read_table(path).to_pandas()
        return table
    except (pa.ArrowException, ValueError, OSError):
        return None


def _read_csv(path: Path) -> pd.DataFrame | None:
    """All cells as text. The header is read as a row: else pandas renames doubles and lets a long row pass."""
    try:
        cells = pd.read_csv(path, header=None, dtype="str", na_filter=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, ValueError, OSError, EOFError, zlib.error):
        return None
    header = cells.iloc[0].astype("object").str.strip().tolist()
    return cells.iloc[1:].set_axis(header, axis="columns").reset_index(drop=True)


def _typed(values: "pd.Series[Any]", column: Column, file: str) -> "pd.Series[Any]":
    texts = _texts(values)
    missing = texts.isna() | texts.isin(["", *column.missing_values])
    if missing.any() and not column.nullable:
        raise DataError(
            f"{file}: column '{column.name}' has a missing value, but is not nullable. "
            "Set nullable: true in the schema."
        )
    if column.is_categorical:
        return _typed_categories(texts, missing, column, file)
    numbers = pd.to_numeric(texts.where(~missing), errors="coerce").astype("float64")
    if not np.isfinite(numbers[~missing]).all():
        raise DataError(
            f"{file}: column '{column.name}' has a value that is not a number, but its kind is {column.kind}."
        )
    if column.kind == "integer" and (numbers[~missing] % 1 != 0).any():
        raise DataError(
            f"{file}: column '{column.name}' has a value that is not whole, but its kind is integer. Or use numeric."
        )
    numbers = numbers.clip(*column.bounds)
    if column.kind == "numeric":
        return numbers
    whole = numbers.astype("Float64").astype("Int64")
    return whole if column.nullable else whole.astype("int64")


def _typed_categories(
    texts: "pd.Series[str]", missing: "pd.Series[bool]", column: Column, file: str
) -> "pd.Series[Any]":
    dtype = pd.CategoricalDtype(list(column.categories), ordered=column.kind == "ordinal")
    unknown = ~missing & ~texts.isin(column.categories)
    if unknown.any():
        if column.other is None:
            raise DataError(
                f"{file}: column '{column.name}' has a value that is not among its public categories. Add the category "
                "to the schema if it is publicly known, or name a catch-all with other."
            )
        texts = texts.mask(unknown, column.other)
    return texts.mask(missing).astype(dtype)


def _texts(values: "pd.Series[Any]") -> "pd.Series[str]":
    """Cells as stripped text; whole floats lose their '.0', which a null in an integer column of Parquet brings."""
    if pd.api.types.is_float_dtype(values.dtype):
        whole = values.notna() & (values % 1 == 0) & (values.abs() < 2**53)
        as_text = values.astype("object").where(~whole, values.where(whole, 0).astype("int64").astype("object"))
        return as_text.where(values.notna(), None).astype("str")
    return values.astype("str").str.strip()


def typed_digest(df: pd.DataFrame, schema: Schema, key: bytes) -> str:
    """HMAC-SHA256 of the typed rows in order; the same on every machine, unrelated to any salt.

    Args:
        df: typed table. key: 32 secret bytes of the ledger.
    """
    digest = hmac.new(key, digestmod="sha256")
    for column in schema.columns:
        words, missing = _words(column, df[column.name])
        digest.update(json.dumps([column.name, column.kind, len(words)]).encode())
        digest.update(missing.tobytes())
        digest.update(words.astype("<f8").tobytes())
    return digest.hexdigest()


def row_hashes(df: pd.DataFrame, schema: Schema, seed: int) -> NDArray[np.uint64]:
    """64 bits a row from SHA-256 of the public seed and the row's own content, shape (n,)."""
    parts = []
    for column in schema.columns:
        words, missing = _words(column, df[column.name])
        parts += [words.astype("<f8"), missing.astype("<f8")]
    rows = np.ascontiguousarray(np.stack(parts, axis=1))
    start = hashlib.sha256(f"likeness row {seed}".encode())

    def one(row: bytes) -> bytes:
        own = start.copy()
        own.update(row)
        return own.digest()[:8]

    width = rows.shape[1] * 8
    data = rows.tobytes()
    joined = b"".join(one(data[place : place + width]) for place in range(0, len(data), width))
    return np.frombuffer(joined, dtype="<u8")


def _words(column: Column, values: "pd.Series[Any]") -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A column as numbers (0 where missing) and its missing mask."""
    missing = values.isna().to_numpy(dtype=bool)
    if column.is_categorical:
        words = values.cat.codes.to_numpy().astype(np.float64)
    else:
        words = values.to_numpy(dtype=np.float64, na_value=0.0)
    return np.where(missing, 0.0, words) + 0.0, missing  # + 0.0 makes -0.0 and 0.0 one value


def write_private(table: pd.DataFrame, path: Path) -> None:
    """Write a private table: random salt inside, size a power of two, folder for its owner only, atomically.

    DVC records hash and size of files in dvc.lock: the salt makes the hash say nothing about the rows, and the padding
    makes the size say nothing about their number but its order of magnitude.
    """
    make_private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        content = pa.Table.from_pandas(table, preserve_index=False)
        # Parquet keeps the categories that occur, not the type: an empty table would come back without any.
        categorical = table.select_dtypes("category")
        kept = json.dumps({name: list(column.cat.categories) for name, column in categorical.items()})
        content = content.replace_schema_metadata({**content.schema.metadata, _CATEGORIES: kept.encode()})
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


def iter_private(path: Path, columns: Sequence[str] | None, chunk_rows: int) -> Iterator[pd.DataFrame]:
    """Read a private table in chunks of ``chunk_rows`` rows, the last one smaller; memory does not grow with the table.

    pyarrow cuts its batches at row groups too; they are joined again, so that chunks do not depend on the file.
    """
    held: list[pa.RecordBatch] = []
    for batch in _opened(path).iter_batches(chunk_rows, columns=None if columns is None else list(columns)):
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


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing. Run: dvc repro") from None
    except (pa.ArrowException, OSError):
        raise ArtifactError(f"{path} is damaged. Run: dvc repro") from None
