"""Parquet files, and folders of them: one table in parts. Folders within, such as ``year=2024``, are columns."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from likeness.core.errors import DataError
from likeness.core.remote import SourcePath, ending, files_in
from likeness.core.text import normal_text
from likeness.data.schema.dtypes import arrow_name, dtype_name
from likeness.data.schema.kinds import day_of
from likeness.data.source.cells import IN_FILE, check_names, check_texts, texts_of
from likeness.data.source.formats import format_of_images
from likeness.data.source.opening import MOST_CELLS, drop_errors, unbroken, unreadable
from likeness.data.source.python_cells import seconds_text, text_of
from likeness.data.source.row_digests import SourceDigest
from likeness.data.table_columns import TEXT, with_pixels

_BUFFER = 1 << 20  # bytes of a column in one read: without it, memory holds a whole column of a row group
_SHORT = 2**32
_ZEROS = r"\.?0+(Z?)$"  # at the end of a fraction of a second
_MISSING = "__HIVE_DEFAULT_PARTITION__"
pa.array(pd.period_range("2000", periods=1, freq="D"))  # from here on Arrow knows types of pandas, whatever ran before


@dataclass(frozen=True)
class SourcePart:
    """A file of a source.

    Attributes:
        path: a file.
        folders: names and values of the columns that the folders of the file stand for.
        source: name of the folder that the source is; None: the source is the file.
    """

    path: SourcePath
    folders: tuple[tuple[str, str | None], ...] = ()
    source: str | None = None

    @property
    def name(self) -> str:
        """The name of the source. Messages have it, because that of a file in a folder may be a person's."""
        return self.path.name if self.source is None else self.source


def parquet_parts(path: SourcePath) -> list[SourcePart]:
    """The files of a Parquet file or folder, as :func:`likeness.data.source.files.source_parts`.

    Raises:
        DataError: a folder has no such file, or others within it than those of partitions; or a file is damaged; or
            :func:`likeness.core.remote.files_in` refuses what it holds.
    """
    files = _files(path) if path.is_dir() else [SourcePart(path)]
    if not files or len({tuple(name for name, _ in file.folders) for file in files}) > 1:
        raise _wrong_folder(path.name)
    return files


def _files(source: SourcePath) -> list[SourcePart]:
    files = []
    for names, file in files_in(source):
        pairs = [name.partition("=") for name in names]
        if not all(name and mark for name, mark, _ in pairs):
            raise _wrong_folder(source.name)
        if ending(file) == ".parquet":
            cells = ((name, None if value == _MISSING else unquote(value)) for name, _, value in pairs)
            folders = tuple((normal_text(unquote(name)), cell) for name, cell in cells)
            files.append(SourcePart(file, folders, source.name))
    return files


def _wrong_folder(where: str) -> DataError:
    return DataError(
        f"{where}: a folder as a source must hold .parquet files, at least one. Folders in it are partitions, as "
        "year=2024, and all of its files lie in folders of the same names."
    )


def parquet_fields(path: SourcePath) -> list[pa.Field]:
    """Names and types of the columns. No row is read; a folder has those of its first file.

    Raises:
        DataError: there is no such file, or it is damaged.
    """
    first = parquet_parts(path)[0]
    return [*_open_parquet(first).schema_arrow, *(pa.field(name, pa.string()) for name, _ in first.folders)]


def parquet_dtypes(path: SourcePath) -> dict[str, str]:
    """The word of each column's dtype, as pandas reads it. No row is read; a folder has those of its first file.

    Raises:
        DataError: there is no such file, or it is damaged.
    """
    content = _open_parquet(parquet_parts(path)[0]).schema_arrow
    dtypes = {name: dtype_name(dtype) for name, dtype in content.empty_table().to_pandas().dtypes.items()}
    decimals = {field.name: arrow_name(field.type) for field in content if pa.types.is_decimal(field.type)}
    # Without rows pandas takes categories of texts for objects.
    return {normal_text(name): word.replace("[object", "[str") for name, word in (dtypes | decimals).items()}


def texts_without_cells(kind: pa.DataType, texts: Sequence[str]) -> list[str]:
    """The texts that no cell of a type can give, as '1.0' of a column of floats, whose cell is read as '1'.

    Args:
        kind: type of a column.
        texts: categories of a schema.
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return [text for text in texts if not _can_give(kind, text)]


def _can_give(kind: pa.DataType, text: str) -> bool:
    try:
        cells = arrow_cells({"": pa.array([text]).cast(kind)})[""]
    except pa.ArrowInvalid:
        return False
    except pa.ArrowException:  # nothing is certain of a type that texts do not become
        return True
    if cells is None:
        return True
    cell_text = texts_of(cells).iloc[0]
    return bool(cell_text == text or (day_of(text) and day_of(cell_text) == day_of(text)))


def num_rows(part: SourcePart) -> int:
    """Rows of a file, from its footer."""
    return int(_open_parquet(part).metadata.num_rows)


def _open_parquet(part: SourcePart) -> pq.ParquetFile:
    file = None
    with drop_errors():
        source = part.path if isinstance(part.path, Path) else part.path.open()
        file = pq.ParquetFile(source, buffer_size=_BUFFER, pre_buffer=False)
    if file is None:
        raise unreadable(part.name)
    return file


def parquet_chunks(
    part: SourcePart,
    wanted: Sequence[str],
    rows: int,
    source: SourceDigest | None = None,
    shape: tuple[int, ...] | None = None,
) -> Iterator[pd.DataFrame]:
    """Wanted columns as raw cells, in chunks, at least one.

    Args:
        part: a file.
        wanted: names of columns.
        rows: most rows of a chunk.
        source: digest that takes all columns of single values.
        shape: of images, whose pixels are the first wanted columns. If the file has no such columns, one column of
            bytes holds the images.

    Raises:
        DataError: a wanted column is missing or holds lists, the file is damaged, or
            :func:`likeness.data.source.formats.SourceFormat.decode_images` refuses an image.
    """
    file = _open_parquet(part)
    fields = file.schema_arrow
    folders = dict(part.folders)
    present = list(map(normal_text, fields.names))
    pixels = [] if shape is None or wanted[0] in present else list(wanted[: math.prod(shape)])
    types = dict(zip(present, fields.types, strict=True))
    reader = format_of_images(part.name) if pixels else None
    images = None if reader is None else reader.encoded_column(types, part.name)
    wanted = list(wanted[len(pixels) :])
    check_names([*present, *folders], wanted, part.name, IN_FILE)
    plain = [field.name for field in fields if not pa.types.is_nested(field.type)]
    written = dict(zip(present, fields.names, strict=True))
    read = [written[name] for name in [*wanted, *([] if images is None else [images])] if name not in folders]
    read = read if source is None else list(dict.fromkeys([*read, *plain]))
    rows = max(1, min(rows, MOST_CELLS // len(read)))

    def chunks() -> Iterator[pd.DataFrame]:
        batches = file.iter_batches(rows, columns=read)
        if not file.metadata.num_rows:  # without a batch there would be no column
            empty = [pa.array([], field.type) for field in map(fields.field, read)]
            batches = iter([pa.RecordBatch.from_arrays(empty, names=read)])
        for batch in batches:
            batch = pa.RecordBatch.from_arrays(batch.columns, list(map(normal_text, batch.schema.names)))
            for name, value in folders.items():
                batch = batch.append_column(name, pa.array([value] * len(batch), pa.string()))
            batch = batch if reader is None or images is None else reader.only_bytes(batch, images)
            singles = dict(zip(batch.schema.names, map(_digest_column, batch.columns), strict=True))
            columns = arrow_cells({name: singles[name] for name in wanted})
            check_texts(columns, wanted, part.name, "Cast them to texts or numbers")
            if source is not None:
                source.add(batch.schema.names, list(singles.values()))
            cells = pd.DataFrame(columns, range(len(batch)))
            if reader is not None and shape is not None:
                where = f"{part.name}: column '{images}' has"
                values = reader.decode_images((image.as_py() for image in batch.column(images)), shape, where)
                cells = with_pixels(values, pixels, cells)
            yield cells

    return unbroken(chunks(), part.name)


def arrow_cells(columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> "dict[str, pd.Series[Any] | None]":
    """Raw cells of Arrow's columns, each cell by itself: pandas would choose one format for a column.

    A column that does not hold single values, or bytes that are not UTF-8, has None.
    """
    cells = dict.fromkeys(columns)
    for name, column in columns.items():
        with drop_errors():
            column.validate(full=True)  # a damaged file can hold text that is not UTF-8
            single = single_cells(column)
            if single is not None:
                cells[name] = _in_pandas(single)
    return cells


def _in_pandas(cells: pa.Array | pa.ChunkedArray) -> "pd.Series[Any]":
    if isinstance(cells, pa.DictionaryArray) and pa.types.is_signed_integer(cells.type.index_type):
        codes = cells.indices.fill_null(-1).to_numpy()  # in a third of the time
        return pd.Series(pd.Categorical.from_codes(codes, dtype=cells[:0].to_pandas().dtype))
    return cells.to_pandas(integer_object_nulls=not _are_short(cells)).rename(None)  # type: ignore[no-any-return]


def single_cells(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray | None:
    """A column whose cells have one text, whatever its resolution, scale or dictionary; None of lists and objects.

    Rows decide resolutions and scales where a library guessed the type of the column.

    Raises:
        pyarrow.ArrowInvalid: bytes are not UTF-8.
        ValueError: a moment has no text.
    """
    kind, of = column.type, pa.types
    if of.is_dictionary(kind) and not _is_text(kind.value_type):
        return single_cells(column.cast(kind.value_type))
    if of.is_date(kind) and isinstance(column, pa.Array):  # few days, and each has its own text
        cells = column.dictionary_encode()
        return pa.DictionaryArray.from_arrays(cells.indices, cells.dictionary.cast(pa.string()))
    if of.is_duration(kind):
        counts = column.cast(pa.int64()).to_pylist()
        return pa.array([None if count is None else seconds_text(count, kind.unit) for count in counts], pa.string())
    is_extension = isinstance(kind, pa.BaseExtensionType)
    if is_extension and kind.extension_name.startswith("pandas."):  # a period or an interval
        return pa.array(column.to_pandas().astype(TEXT), pa.string(), from_pandas=True)
    if of.is_decimal(kind) or is_extension:
        return pa.array(map(text_of, column.to_pylist()), pa.string())
    if of.is_date(kind) or of.is_time(kind) or of.is_timestamp(kind):
        zoned = getattr(kind, "tz", None) is not None
        texts = (column.cast(pa.timestamp(kind.unit, "UTC")) if zoned else column).cast(pa.string())
        if pc.any(pc.starts_with(texts, "<")).as_py():  # Arrow's words about a moment after the year 32767
            raise ValueError("a moment without a text")
        return texts if getattr(kind, "unit", "s") == "s" else pc.replace_substring_regex(texts, _ZEROS, r"\1")
    if of.is_fixed_size_binary(kind) or _is_binary(kind):
        return column.cast(pa.binary()).cast(pa.string())
    plain = of.is_boolean(kind) or of.is_integer(kind) or of.is_floating(kind) or of.is_null(kind)
    return column if plain or of.is_dictionary(kind) or _is_text(kind) else None


def _are_short(cells: pa.Array | pa.ChunkedArray) -> bool:
    """Tell whether these are whole numbers whose floats are the same numbers, and have the same texts."""
    if not pa.types.is_integer(cells.type):
        return False
    ends = pc.min_max(cells).as_py().values()
    return all(end is None or abs(end) < _SHORT for end in ends)


def _digest_column(column: pa.Array) -> pa.Array:
    """A column for the digest of a source, the same in each resolution. Bytes that are no text stay bytes."""
    single = None
    with drop_errors():
        single = single_cells(column)
    return column if single is None else single


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
