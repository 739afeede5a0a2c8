"""Files and folders behind a URL of fsspec, with those methods of :class:`pathlib.Path` that a source needs.

A URL holds no password. fsspec takes credentials from where its file systems look, such as AWS_ACCESS_KEY_ID. No error
repeats what a server says.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import SplitResult, parse_qsl, urlsplit

from likeness.core.errors import DataError, LikenessError

T = TypeVar("T")


@dataclass(frozen=True)
class RemotePath:
    """A file or folder that fsspec reads.

    Attributes:
        url: such as ``s3://bucket/people.parquet``.
        source: name of the folder that messages name, because the name of a file in it may be a person's; empty: none.
    """

    url: str
    source: str = ""

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return PurePosixPath(self.url).name

    @property
    def suffix(self) -> str:
        """The ending of the name, with its point."""
        return PurePosixPath(self.url).suffix

    def open(self, mode: str = "rb") -> Any:
        """Open the file for reading."""
        return self._answer(lambda files, path: files.open(path, mode))

    def is_file(self) -> bool:
        """Tell whether there is such a file."""
        return self._answer(lambda files, path: bool(files.isfile(path)))

    def is_dir(self) -> bool:
        """Tell whether it is a folder."""
        # First whether it is a file: of one on a web server the second question would read all bytes.
        return not self.is_file() and self._answer(lambda files, path: bool(files.isdir(path)))

    def exists(self) -> bool:
        """Tell whether there is such a file or folder."""
        return self.is_file() or self.is_dir()

    def iterdir(self) -> "Iterator[RemotePath]":
        """The files and folders in a folder."""
        listed = self._answer(lambda files, path: [files.unstrip_protocol(item) for item in files.ls(path, False)])
        return (RemotePath(url, self.source or self.name) for url in listed)

    def _answer(self, ask: Callable[[Any, str], T]) -> T:
        """Ask the file system; any error becomes a DataError without the server's words."""
        try:
            from fsspec.core import url_to_fs

            return ask(*url_to_fs(self.url, use_listings_cache=False))  # another run may have written since
        except ImportError:
            fault = "needs fsspec and its package for this URL. Run: pip install 'likeness-dp[remote]'"
        except Exception as error:  # each file system has errors of its own
            fault = f"cannot be reached ({type(error).__name__}). Check ingest.source, the network and the credentials."
        raise DataError(f"{self.source or self.name}: {fault}")


SourcePath = Path | RemotePath
"""Where a source lies."""


def ending(path: PurePath | RemotePath) -> str:
    """The ending of a name in small letters, with its point: that of ``DATA.CSV`` is ``.csv``."""
    return path.suffix.lower()


@contextmanager
def reading(source: str) -> Iterator[None]:
    """Refuse what cannot be read by the name of its source: that of a file within may be a person's.

    Args:
        source: name of a file or folder, as the settings give it.

    Raises:
        DataError: the system or a server refuses. Nothing of its words is in the message.
    """
    try:
        yield
    except (LikenessError, MemoryError):
        raise
    except Exception as error:  # each file system has errors of its own
        fault = f"cannot be read ({type(error).__name__}). Check that you may read all of it, and that its disk works."
        raise DataError(f"{source}: {fault}") from None


def files_in(
    folder: SourcePath, folders: tuple[str, ...] = (), source: str | None = None
) -> Iterator[tuple[tuple[str, ...], SourcePath]]:
    """Every file in a folder and in the folders within, by name, each with the names of its folders.

    Args:
        folder: the source.
        folders: names of those between the source and this folder.
        source: name of the source; None: that of the folder.

    Raises:
        DataError: it cannot be read, or holds something else, which a reader may wait for, or a link to a folder
            above. The message names the source alone.
    """
    source = folder.name if source is None else source
    with reading(source):
        items = sorted(list[SourcePath](folder.iterdir()), key=lambda item: item.name)
        fault = next(filter(None, (_fault(item) for item in items if isinstance(item, Path))), None)
    if fault is not None:
        raise DataError(f"{source}: holds an item that {fault}. Remove it from ingest.source, or from ingest.people.")
    for item in items:
        with reading(source):
            is_folder = item.is_dir()
        if is_folder:
            yield from files_in(item, (*folders, item.name), source)
        else:
            yield folders, item


def _fault(item: Path) -> str:
    if item.is_file():
        return ""
    if not item.is_dir():
        return "is neither a file nor a folder"
    above = {parent.resolve() for parent in item.parents}
    return "is a link to a folder that holds it" if item.is_symlink() and item.resolve() in above else ""


def split_url(url: str) -> tuple[SplitResult, bool]:
    """The parts of a URL, empty ones of what is none, and whether it holds a password."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return urlsplit(""), False
    names = {name.lower() for name, _ in parse_qsl(parts.query)}
    return parts, password is not None or bool({"password", "sslpassword", "passwd"} & names)


def source_path(root: Path, source: str) -> SourcePath:
    """The place of a source: a URL, or a path that starts at ``root``."""
    return RemotePath(source) if "://" in source else root / source
