"""Sources typed by the public schema: CSV, Excel and Parquet, folders of Parquet files or images, .npz of images.

Messages name file, column and rule, and never a value, a count or a place of a row. A cell's type and value depend on
that cell and the schema only. So a table larger than memory passes in chunks and gives the same rows.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa

from likeness.config.params import FileFormat
from likeness.core.errors import DataError
from likeness.core.remote import SourcePath, ending
from likeness.core.text import normal_text
from likeness.data.schema.schema import Schema
from likeness.data.source.cells import IN_FILE, check_names, check_texts, texts_of, type_table
from likeness.data.source.contribution_bounding import people_of
from likeness.data.source.csv_files import csv_chunks
from likeness.data.source.excel_files import excel_chunks
from likeness.data.source.formats import SOURCE_FORMATS, format_of
from likeness.data.source.opening import FORMATS, MOST_CELLS, drop_errors, is_excel, is_text
from likeness.data.source.parquet_files import (
    SourcePart,
    arrow_cells,
    num_rows,
    parquet_chunks,
    parquet_parts,
)
from likeness.data.source.python_cells import python_texts
from likeness.data.source.row_digests import SourceDigest

_MOST_ROWS = 1 << 18  # of a chunk: what its distinct cells mean is worked out once

IN_FRAME = "It must have"

_PLAIN = FileFormat()
Typed = tuple[pd.DataFrame, "pd.Series[str] | None", "pd.Series[str] | None"]


def read_source(
    path: SourcePath,
    schema: Schema,
    split_column: str | None = None,
    person_column: str | None = None,
    source: SourceDigest | None = None,
    layout: FileFormat = _PLAIN,
) -> Typed:
    """Read and type a source: the columns of the schema in its order, and those of split and person as text.

    Numbers outside the public bounds are clipped. Unknown categories go to the declared catch-all. Other columns are
    left out, but for the digest ``source`` of raw rows.

    Raises:
        DataError: a column is missing, a value breaks the schema's rule for its column, or a row names nobody.
    """
    if person_column is not None and format_of(path) is not None:
        raise DataError(f"{path.name}: a file or folder of images does not name people. Set ingest.unit: null.")
    columns = [name for name in (split_column, person_column) if name is not None]
    raw = raw_chunks(path, schema, columns, source, layout)
    typed_chunks = (typed_chunk(cells, path.name, schema, split_column, person_column, layout) for cells in raw)
    tables, *others = zip(*typed_chunks, strict=True)
    split, people = (None if parts[0] is None else pd.concat(parts, ignore_index=True) for parts in others)
    return pd.concat(tables, ignore_index=True), split, people


def typed_chunk(
    raw: pd.DataFrame,
    where: str,
    schema: Schema,
    split_column: str | None = None,
    person_column: str | None = None,
    layout: FileFormat = _PLAIN,
) -> Typed:
    """Type some rows of a source, as :func:`read_source`.

    Args:
        raw: cells, from :func:`raw_chunks`.
        where: name of the source.
        schema: public schema.
        split_column: name of the public column that splits.
        person_column: name of the column that names people.
        layout: how a text file is written.
    """
    split = None if split_column is None else texts_of(raw[split_column])
    people = None if person_column is None else people_of(raw[person_column], where)
    return type_table(raw, schema, where, layout.decimal if is_text(where) else "."), split, people


def raw_chunks(
    path: SourcePath,
    schema: Schema,
    others: Sequence[str] = (),
    source: SourceDigest | None = None,
    layout: FileFormat = _PLAIN,
) -> Iterator[pd.DataFrame]:
    """The raw cells of a source in chunks, at least one. Memory is bounded, but for .npz.

    Args:
        path: of the source.
        schema: public schema.
        others: names of columns that settings name.
        source: digest that takes all columns.
        layout: how a text file is written.

    Raises:
        DataError: the source is missing, of an unknown format or damaged, or a column is missing.
    """
    return chain.from_iterable(_part_chunks(part, schema, others, source, layout) for part in source_parts(path))


def _part_chunks(
    part: SourcePart, schema: Schema, others: Sequence[str], source: SourceDigest | None, layout: FileFormat
) -> Iterator[pd.DataFrame]:
    """Raw cells: the columns of the schema, and others that settings name."""
    path, wanted = part.path, list(dict.fromkeys([*schema.names, *others]))
    rows = max(1, min(_MOST_ROWS, MOST_CELLS // len(wanted)))
    reader = format_of(path)
    if reader is not None:
        chunks = reader.chunks(path, schema, others[0] if others else None, rows)
    elif ending(path) == ".parquet":
        chunks = parquet_chunks(part, wanted, rows, source, schema.image)
        source = None
    else:
        chunks = csv_chunks(path, layout, rows) if is_text(path.name) else excel_chunks(path, layout, rows)
    for raw in chunks:
        check_names([str(name) for name in raw.columns], wanted, part.name, IN_FILE)
        if source is not None:
            source.add_frame(raw)
        yield raw[wanted]


def source_parts(path: SourcePath) -> list[SourcePart]:
    """The files of a source, in the order of its rows: those of a folder by name.

    Args:
        path: a file, or a folder of .parquet files or of images, which is one part.

    Raises:
        DataError: the source is missing, of an unknown format, or damaged.
    """
    reader = format_of(path)
    if path.is_dir():
        return [SourcePart(path)] if reader is not None else parquet_parts(path)
    if not (reader is not None or is_text(path.name) or is_excel(path.name) or ending(path) == ".parquet"):
        images = ", or images: an .npz file, or a folder of them" if SOURCE_FORMATS else ""
        raise DataError(f"{path.name}: unknown format. Give {FORMATS}{images}.")
    if not path.is_file():
        raise DataError(f"{path.name}: no such file. Give the path of the source in params.yaml, ingest.source.")
    return parquet_parts(path) if ending(path) == ".parquet" else [SourcePart(path)]


def has_names_of_records(path: SourcePath) -> bool:
    """Tell whether a record decides names within a source, which decide the order of all rows.

    It is a folder of images, or of partitions as ``year=2024``.
    """
    return path.is_dir() and (format_of(path) is not None or any(part.folders for part in parquet_parts(path)))


def parquet_rows(path: SourcePath) -> int | None:
    """Number of rows of Parquet files, from their footers; None for other formats."""
    parts = source_parts(path)
    return sum(map(num_rows, parts)) if ending(parts[0].path) == ".parquet" else None


def read_frame(
    df: pd.DataFrame,
    schema: Schema,
    where: str = "the DataFrame",
    source: SourceDigest | None = None,
    exact: bool = False,
) -> pd.DataFrame:
    """Type a table in memory by the rules for a Parquet file, as :func:`likeness.data.source.cells.type_table`.

    Args:
        df: a table; columns outside the schema and the index are left out.
        schema: public schema.
        where: name of the table in messages.
        source: digest that takes all columns.
        exact: refuse a value instead of changing it.
    """
    return type_table(_frame_cells(df, schema.names, where, source), schema, where, exact=exact)


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
    return type_table(raw, schema, where), people_of(raw[person_column], where)


def _frame_cells(
    df: pd.DataFrame, names: Sequence[str], where: str, source: SourceDigest | None = None
) -> pd.DataFrame:
    if not isinstance(df, pd.DataFrame):
        raise DataError(f"{where}: must be a pandas DataFrame, got {type(df).__name__}. Convert it.")
    present = [normal_text(str(name)) for name in df.columns]
    check_names(present, names, where, IN_FRAME)
    # The digest of the source covers all columns, also those outside the schema.
    wanted = present if source is not None else names
    columns = {name: raw_cells(df.iloc[:, index]) for index, name in enumerate(present) if name in wanted}
    if source is not None:
        source.add_frame(pd.DataFrame({name: cells for name, cells in columns.items() if cells is not None}))
    check_texts(columns, names, where, "Convert them to texts or numbers")
    return pd.DataFrame({name: columns[name] for name in names})


def raw_cells(values: "pd.Series[Any]") -> "pd.Series[Any] | None":
    """A frame's column as raw cells, each by itself; None where one has no text.

    A declared type of a column is public. Types of objects and categories depend on the rows, so they do not count.
    """
    if values.dtype == "object":
        return python_texts(values)
    if isinstance(values.dtype, pd.CategoricalDtype):
        texts = python_texts(values.cat.categories.array)
        return None if texts is None else pd.Series(texts.array.take(values.cat.codes.to_numpy(), allow_fill=True))
    with drop_errors():
        return arrow_cells({"": pa.Array.from_pandas(values)})[""]
    return None
