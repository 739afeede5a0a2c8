"""Opening a source: packed or not, on this machine or another. No error of a library reaches a person.

Such an error may quote a row.
"""

import io
import lzma
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import PurePosixPath
from typing import IO, Any, TypeVar

import pyarrow as pa

from likeness.core.errors import DataError, LikenessError
from likeness.core.remote import SourcePath, ending

T = TypeVar("T")
_BLOCK = 1 << 18  # bytes of one read


def _only_file(file: IO[bytes]) -> IO[bytes]:
    """The one file of a zip."""
    (member,) = zipfile.ZipFile(file).infolist()
    return zipfile.ZipFile(file).open(member)


def _unpacker(compression: str) -> Callable[[IO[bytes]], Any]:
    """The unpacker of Arrow: Python's readers ignore what follows a whole stream, also the damaged half of a table."""
    return lambda file: pa.input_stream(file, compression=compression)


class _Streams(io.RawIOBase):
    """All streams of an .xz file. Python's own reader ends in silence at a damaged one behind the first."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._decoder, self._packed = file, lzma.LZMADecompressor(), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data:
            if self._decoder.eof:
                self._packed = self._decoder.unused_data.lstrip(b"\0")  # zeros may stand between streams
                while not self._packed:
                    if not (block := self._file.read(_BLOCK)):
                        return 0
                    self._packed = block.lstrip(b"\0")
                self._decoder = lzma.LZMADecompressor()
            elif self._decoder.needs_input:
                self._packed = self._packed or self._file.read(_BLOCK)
                if not self._packed:
                    raise EOFError("a stream is cut off")
            data, self._packed = self._decoder.decompress(self._packed, len(buffer)), b""
        buffer[: len(data)] = data
        return len(data)


_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": _unpacker("gzip"),
    ".bz2": _unpacker("bz2"),
    ".zst": _unpacker("zstd"),
    ".xz": lambda file: io.BufferedReader(_Streams(file), _BLOCK),
    ".zip": _only_file,
}
MOST_CELLS = 1 << 22  # of a chunk
_TEXTS, _EXCEL = (".csv", ".tsv"), ".xlsx"
FORMATS = (
    "a .csv or .tsv file (also as .gz, .bz2, .xz, .zst, .zip), an .xlsx or .parquet file, a folder of .parquet files"
)
"""What a source may be, in words. Images are beside it."""


@contextmanager
def read_unpacked(path: SourcePath) -> Iterator[IO[bytes]]:
    """The bytes of a file, without its compression."""
    with path.open("rb") as file, _OPENERS.get(ending(path), nullcontext)(file) as content:
        yield content


def is_text(name: str) -> bool:
    """Tell whether a name is that of a CSV file, packed or not."""
    return ending(_unpacked_name(name)) in _TEXTS


def is_excel(name: str) -> bool:
    """Tell whether a name is that of an Excel file."""
    return ending(PurePosixPath(name)) == _EXCEL


def table_name(name: str) -> str:
    """The name of a file without the endings of its format."""
    return _unpacked_name(name).stem


def _unpacked_name(name: str) -> PurePosixPath:
    plain = PurePosixPath(name)
    return plain.with_suffix("") if ending(plain) in _OPENERS else plain


def unbroken(pieces: Iterator[T], source: str) -> Iterator[T]:
    """The pieces that a library makes of a source of this name.

    Raises:
        DataError: the library fails. Nothing of its error is in the message or hangs on to it.
    """
    last = object()
    while True:
        piece = None
        with drop_errors():
            piece = next(pieces, last)
        if piece is None:
            raise unreadable(source)
        if piece is last:
            return
        yield piece  # type: ignore[misc]


@contextmanager
def drop_errors() -> Iterator[None]:
    """Drop errors of libraries on a damaged file: each library has its own, and it may quote a row."""
    try:
        yield
    except (LikenessError, MemoryError):
        raise
    except Exception:
        pass


def unreadable(source: str) -> DataError:
    """The refusal of a damaged file; raise it outside of except blocks, so that no library's error is its cause."""
    text = f"{source}: cannot be read as a table. Check that it is complete."
    if is_text(source):
        text += " Is it in UTF-8? Else set ingest.format.encoding, or: likeness init FILE --format encoding=latin-1."
        text += " A .zip must hold one file."
    if is_excel(source):
        text += " Remove chart sheets, and save it in Excel again."
    return DataError(text)
