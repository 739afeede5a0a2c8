"""Opening a source: packed or not, on this machine or another. No error of a library reaches a person.

Such an error may quote a row.
"""

import bz2
import csv
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import PurePosixPath
from typing import IO, Any, TypeVar

import pyarrow as pa

from likeness.core.errors import DataError
from likeness.core.remote import Place

T = TypeVar("T")


def _only_file(file: IO[bytes]) -> IO[bytes]:
    """The one file of a zip."""
    (member,) = zipfile.ZipFile(file).infolist()
    return zipfile.ZipFile(file).open(member)


_OPENERS: dict[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zip": _only_file,
    ".zst": lambda file: pa.input_stream(file, compression="zstd"),
}
_TEXTS, _EXCEL = (".csv", ".tsv"), ".xlsx"
FORMATS = (
    "a .csv or .tsv file (also as .gz, .bz2, .xz, .zst, .zip), an .xlsx or .parquet file, a folder of .parquet files"
)
"""What a source may be, in words. Images are beside it."""
SWAPPED_MARKS = str.maketrans(",.", ".,")
"""For numbers with a decimal comma. A point becomes a comma, so that a mark of thousands stays unreadable."""
BROKEN = (
    OSError,
    ValueError,
    RuntimeError,  # a zip with a password
    NotImplementedError,
    EOFError,
    KeyError,
    SyntaxError,  # of the XML in an Excel file
    csv.Error,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    pa.ArrowException,
)
"""What libraries raise on a damaged file."""


@contextmanager
def unpacked(path: Place) -> Iterator[IO[bytes]]:
    """The bytes of a file, without its compression."""
    with path.open("rb") as file, _OPENERS.get(path.suffix, nullcontext)(file) as content:
        yield content


def is_text(name: str) -> bool:
    """Whether a name is that of a CSV file, packed or not."""
    plain = PurePosixPath(name)
    return (plain.with_suffix("") if plain.suffix in _OPENERS else plain).suffix in _TEXTS


def is_excel(name: str) -> bool:
    """Whether a name is that of an Excel file."""
    return name.endswith(_EXCEL)


def table_name(name: str) -> str:
    """The name of a file without the endings of its format."""
    plain = PurePosixPath(name)
    return (plain.with_suffix("") if plain.suffix in _OPENERS else plain).stem


def unbroken(pieces: Iterator[T], path: Place) -> Iterator[T]:
    """The pieces of a source.

    Args:
        pieces: made by a library.
        path: of the source.

    Raises:
        DataError: the library fails. Nothing of its error is in the message or hangs on to it.
    """
    last = object()
    while True:
        piece = None
        with suppress(*BROKEN):
            piece = next(pieces, last)
        if piece is None:
            raise unreadable(path)
        if piece is last:
            return
        yield piece  # type: ignore[misc]


def unreadable(path: Place) -> DataError:
    """The refusal of a damaged file; raise it outside of except blocks, so that no library's error is its cause."""
    if is_text(path.name):
        return DataError(
            f"{path.name}: cannot be read as a table. Check that it is complete, in UTF-8 or ingest.format.encoding, "
            "that no row has more cells than the header, that the header is one line, and that each quote around a "
            "cell has its partner. If quotes are plain text, set ingest.format.quote: ''. A .zip must hold one file."
        )
    return DataError(f"{path.name}: cannot be read as a table. Check that it is complete.")
