"""Sources: a CSV or Parquet file, a folder of Parquet files, or an .npz file of images, typed by the public schema.

Messages name file, column and rule, and never a value, a count or a place of a row. A cell's type and value depend on
that cell and the schema only. So a table larger than memory passes in chunks and gives the same rows.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from likeness.core.errors import DataError
from likeness.data.schema.schema import Schema
from likeness.data.source.cells import texts_of, typed
from likeness.data.source.contribution_bounding import people_of
from likeness.data.source.header import check_names
from likeness.data.source.image_files import read_images
from likeness.data.source.python_cells import python_texts
from likeness.data.source.row_digests import SourceDigest

_MOST_ROWS, _MOST_CELLS = 65_536, 1 << 22  # of a chunk
_BUFFER = 1 << 20  # bytes of a column in one read: without it, memory holds a whole column of a row group

_IN_FILE = "The first row must be a header with the columns that the schema and ingest.split name"
IN_FRAME = "It must have"

Typed = tuple[pd.DataFrame, "pd.Series[str] | None"]


@dataclass(frozen=True)
class SourcePart:
    """A part of a source.

    Attributes:
        path: a file.
        groups: row groups of a Parquet file; None: all of the file.
    """

    path: Path
    groups: tuple[int, ...] | None = None


def read_source(
    path: Path, schema: Schema, split_column: str | None = None, source: SourceDigest | None = None
) -> Typed:
    """Read and type a source: the columns of the schema in its order, and the split column as text if there is one.

    Numbers outside the public bounds are clipped. Unknown categories go to the declared catch-all.

    Args:
        path: .csv, .csv.gz, .parquet, a folder of .parquet files, or .npz for images (see
            :func:`likeness.data.source.image_files.read_images`). Other columns are left out.
        schema: public schema.
        split_column: name of the column that says train or test.
        source: digest that takes the raw rows with all columns.

    Raises:
        DataError: a column is missing, or a value breaks the schema's rule for its column.
    """
    tables, columns = zip(*iter_source(path, schema, split_column, source), strict=True)
    parts = None if split_column is None else pd.concat(columns, ignore_index=True)
    return pd.concat(tables, ignore_index=True), parts


def iter_source(
    path: Path, schema: Schema, split_column: str | None = None, source: SourceDigest | None = None
) -> Iterator[Typed]:
    """Read a source in chunks, as :func:`read_source`, at least one. Memory is bounded, but for .npz."""
    for part in source_parts(path):
        yield from iter_part(part, schema, split_column, source)


def iter_part(
    part: SourcePart, schema: Schema, split_column: str | None = None, source: SourceDigest | None = None
) -> Iterator[Typed]:
    """Read one part of a source in chunks, as :func:`read_source`; at least one."""
    for raw in _raw_chunks(part, schema, [] if split_column is None else [split_column], source):
        split = None if split_column is None else texts_of(raw[split_column])
        yield typed(raw, schema, part.path.name), split


def read_people(
    path: Path,
    schema: Schema,
    split_column: str | None = None,
    person_column: str | None = None,
    source: SourceDigest | None = None,
) -> tuple[pd.DataFrame, "pd.Series[str] | None", "pd.Series[str] | None"]:
    """Read a source as :func:`read_source`, with the column that names people if there is one.

    Raises:
        DataError: as :func:`read_source`, or a row names nobody.
    """
    if person_column is None:
        return *read_source(path, schema, split_column, source), None
    if path.suffix == ".npz":
        raise DataError(f"{path.name}: an .npz file does not name people. Set ingest.unit: null.")
    others = [person_column] if split_column is None else [split_column, person_column]
    tables, extras = [], []
    for part in source_parts(path):
        for raw in _raw_chunks(part, schema, others, source):
            tables.append(typed(raw, schema, path.name))
            people = pd.DataFrame({person_column: people_of(raw[person_column], path.name)})
            more = {} if split_column is None else {split_column: texts_of(raw[split_column])}
            extras.append(people.assign(**more))
    extra = pd.concat(extras, ignore_index=True)
    split = None if split_column is None else extra[split_column]
    return pd.concat(tables, ignore_index=True), split, extra[person_column]


def _raw_chunks(
    part: SourcePart, schema: Schema, others: Sequence[str], source: SourceDigest | None = None
) -> Iterator[pd.DataFrame]:
    """Raw cells: the columns of the schema, and others that settings name."""
    path, wanted = part.path, list(dict.fromkeys([*schema.names, *others]))
    rows = max(1, min(_MOST_ROWS, _MOST_CELLS // len(wanted)))
    if path.suffix == ".npz":
        chunks = iter([read_images(path, schema, others[0] if others else None)])
    elif path.suffix == ".parquet":
        chunks = _parquet_chunks(part, wanted, rows, source)
        source = None
    else:
        chunks = _csv_chunks(path, rows)
    for raw in chunks:
        check_names([str(name) for name in raw.columns], wanted, path.name, _IN_FILE)
        if source is not None:
            source.add_frame(raw)
        yield raw[wanted]


def source_parts(path: Path, most_rows: int | None = None) -> list[SourcePart]:
    """The parts of a source, in the order of its rows: files of a folder by name, in each its row groups.

    Args:
        path: a file, or a folder of .parquet files.
        most_rows: most rows of a part, which has neighboring row groups, at least one. None: a file is one part, as CSV
            and .npz files always are.

    Raises:
        DataError: the source is missing, of an unknown format, or damaged.
    """
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix == ".parquet")
        if not files or any(file.is_dir() for file in path.iterdir()):
            raise DataError(
                f"{path.name}: a folder as a source must hold .parquet files, at least one, and no folders."
            )
    elif not path.name.endswith((".csv", ".csv.gz", ".parquet", ".npz")):
        raise DataError(f"{path.name}: unknown format. Give a .csv, .csv.gz, .parquet or .npz file.")
    elif not path.is_file():
        raise DataError(f"{path.name}: no such file. Give the path of the source in params.yaml, ingest.source.")
    if most_rows is None or path.suffix == ".npz" or files[0].suffix != ".parquet":
        return [SourcePart(file) for file in files]
    parts = []
    for file in files:
        sizes = _group_sizes(_opened(file))
        start = 0
        for stop in range(1, len(sizes) + 1):
            if stop == len(sizes) or sum(sizes[start : stop + 1]) > most_rows:
                parts.append(SourcePart(file, tuple(range(start, stop))))
                start = stop
        if not sizes:
            parts.append(SourcePart(file))
    return parts


def parquet_rows(path: Path) -> int | None:
    """Number of rows of Parquet files, from their footers; None for other formats."""
    files = [part.path for part in source_parts(path)]
    return sum(sum(_group_sizes(_opened(file))) for file in files) if files[0].suffix == ".parquet" else None


def read_frame(
    df: pd.DataFrame, schema: Schema, where: str = "the DataFrame", source: SourceDigest | None = None
) -> pd.DataFrame:
    """Type a table in memory by the rules for a Parquet file.

    Args:
        df: a table; columns outside the schema and the index are left out.
        schema: public schema.
        where: name of the table in messages.
        source: digest that takes all columns.

    Raises:
        DataError: a column is missing, or a value breaks the schema's rule for its column.
    """
    return typed(_frame_cells(df, schema.names, where, source), schema, where)


def read_frame_people(
    df: pd.DataFrame,
    schema: Schema,
    person_column: str,
    where: str = "the DataFrame",
    source: SourceDigest | None = None,
) -> tuple[pd.DataFrame, "pd.Series[str]"]:
    """Type a table as :func:`read_frame`, with the column that names people.

    Raises:
        DataError: as :func:`read_frame`, or a row names nobody.
    """
    raw = _frame_cells(df, [*schema.names, person_column], where, source)
    return typed(raw, schema, where), people_of(raw[person_column], where)


def _frame_cells(
    df: pd.DataFrame, names: Sequence[str], where: str, source: SourceDigest | None = None
) -> pd.DataFrame:
    if not isinstance(df, pd.DataFrame):
        raise DataError(f"{where}: must be a pandas DataFrame, got {type(df).__name__}. Convert it.")
    present = [str(name) for name in df.columns]
    check_names(present, names, where, IN_FRAME)
    # The digest of the source covers all columns, also those outside the schema.
    wanted = present if source is not None else names
    columns = {name: _raw_cells(df.iloc[:, place]) for place, name in enumerate(present) if name in wanted}
    if source is not None:
        source.add_frame(pd.DataFrame({name: cells for name, cells in columns.items() if cells is not None}))
    _check_texts(columns, names, where, "Convert them to texts or numbers")
    return pd.DataFrame({name: columns[name] for name in names})


def cells_of(
    names: Sequence[str],
    values: Sequence[Sequence[Any]],
    wanted: Sequence[str],
    where: str,
    source: SourceDigest | None = None,
) -> pd.DataFrame:
    """Wanted columns of a database's answer as texts, each cell by itself.

    Args:
        names: names of all columns.
        values: cells of each column, Python's objects.
        wanted: names of the wanted columns.
        where: name of the source in messages.
        source: digest that takes all columns.

    Raises:
        DataError: a column is missing, occurs twice, or has a cell without a text.
    """
    columns = {}
    check_names(names, wanted, where, "ingest.query must give")
    for name, cells in zip(names, values, strict=True):
        if source is not None or name in wanted:
            columns[name] = python_texts(cells)
    if source is not None:
        source.add_frame(pd.DataFrame({name: cells for name, cells in columns.items() if cells is not None}))
    _check_texts(columns, wanted, where, "CAST them in ingest.query")
    return pd.DataFrame({name: columns[name] for name in wanted})


def _check_texts(columns: Mapping[str, Any], wanted: Sequence[str], where: str, remedy: str) -> None:
    faults = [
        f"{where}: column '{name}' holds cells that are not single values: lists, records, objects, or bytes that are "
        f"not UTF-8. {remedy}, or give the column kind drop."
        for name in wanted
        if columns[name] is None
    ]
    if faults:
        raise DataError("\n".join(faults))


def _unreadable(path: Path) -> DataError:
    # Raised outside of except blocks: the library's error may quote a row, and must not be its cause.
    return DataError(
        f"{path.name}: cannot be read as a table. Check that it is complete and in UTF-8 (CSV), and that no row has "
        "more cells than the header."
    )


_BROKEN_PARQUET = (pa.ArrowException, ValueError, OSError)
_BROKEN_CSV = (pd.errors.ParserError, ValueError, OSError, EOFError, zlib.error)


def _opened(path: Path) -> pq.ParquetFile:
    file = None
    with suppress(*_BROKEN_PARQUET):
        file = pq.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
    if file is None:
        raise _unreadable(path)
    return file


def _group_sizes(file: pq.ParquetFile) -> list[int]:
    about = file.metadata
    return [about.row_group(place).num_rows for place in range(about.num_row_groups)]


def _parquet_chunks(
    part: SourcePart, wanted: Sequence[str], rows: int, source: SourceDigest | None = None
) -> Iterator[pd.DataFrame]:
    file = _opened(part.path)
    fields = file.schema_arrow
    check_names(fields.names, wanted, part.path.name, _IN_FILE)
    plain = [field.name for field in fields if not pa.types.is_nested(field.type)]
    read = list(wanted) if source is None else list(dict.fromkeys([*wanted, *plain]))
    rows = max(1, min(rows, _MOST_CELLS // len(read)))
    batches = file.iter_batches(rows, row_groups=part.groups, columns=read)
    if not any(_group_sizes(file)):  # without a batch there would be no column
        empty = pa.Table.from_batches([], schema=file.schema_arrow).select(list(wanted))
        batches = iter([pa.RecordBatch.from_arrays([c.combine_chunks() for c in empty.columns], schema=empty.schema)])
    while True:
        frame = None
        with suppress(*_BROKEN_PARQUET):
            batch = next(batches, None)
            if batch is None:
                return
            if source is not None:
                source.add(batch.schema.names, batch.columns)
            frame = _cells(pa.Table.from_batches([batch]).select(list(wanted)), part.path.name)
        if frame is None:
            raise _unreadable(part.path)
        yield frame


def _csv_chunks(path: Path, rows: int) -> Iterator[pd.DataFrame]:
    """Read all cells as text, the header too: else pandas renames doubles and accepts a long row."""
    header, reader = None, None
    with suppress(*_BROKEN_CSV):
        reader = pd.read_csv(
            path, header=None, dtype="str", na_filter=False, encoding="utf-8-sig", chunksize=rows, iterator=True
        )
    while True:
        cells = None
        if reader is not None:
            with suppress(*_BROKEN_CSV):
                cells = next(reader, pd.DataFrame())
        if cells is None:
            raise _unreadable(path)
        if cells.empty:
            return
        if header is None:
            header = cells.iloc[0].astype("object").str.strip().tolist()
            cells = cells.iloc[1:]
        yield cells.set_axis(header, axis="columns").reset_index(drop=True)


def _cells(table: pa.Table, where: str) -> pd.DataFrame:
    """Raw cells of Arrow's columns, each cell by itself: pandas would choose one format for a column."""
    for place, field in enumerate(table.schema):
        kind, cells = field.type, table.column(place)
        cells.validate(full=True)  # a damaged file can hold text that is not UTF-8
        if pa.types.is_nested(kind):
            raise DataError(
                f"{where}: column '{field.name}' holds lists or records, not single values. Give it kind drop, or "
                "split it into columns."
            )
        if pa.types.is_dictionary(kind) and not _is_text(kind.value_type):
            kind, cells = kind.value_type, cells.cast(kind.value_type)
        if pa.types.is_duration(kind):
            cells = cells.cast(pa.int64())
        elif pa.types.is_temporal(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            cells = cells.cast(pa.string())  # bytes are text in UTF-8, or refused here
        table = table.set_column(place, field.name, cells)
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True)
    return frame


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _raw_cells(values: "pd.Series[Any]") -> "pd.Series[Any] | None":
    """A frame's column as raw cells, each by itself; None where one has no text.

    A declared type of a column is public. Types of objects and categories depend on the rows, so they do not count.
    """
    if values.dtype == "object":
        return python_texts(values)
    if isinstance(values.dtype, pd.CategoricalDtype):
        texts = python_texts(values.cat.categories)
        return None if texts is None else pd.Series(texts.array.take(values.cat.codes.to_numpy(), allow_fill=True))
    with suppress(pa.ArrowException, ValueError, TypeError, DataError):
        return _cells(pa.table({"": pa.Array.from_pandas(values)}), "")[""]
    return None
