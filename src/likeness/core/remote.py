"""Files and folders behind a URL of fsspec, with those methods of :class:`pathlib.Path` that a source needs.

A URL holds no password. fsspec takes credentials from where its file systems look, such as AWS_ACCESS_KEY_ID. No error
repeats what a server says.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, TypeVar

from likeness.core.errors import DataError

T = TypeVar("T")


@dataclass(frozen=True)
class RemotePath:
    """A file or folder that fsspec reads.

    Attributes:
        url: such as ``s3://bucket/people.parquet``.
    """

    url: str

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
        """Whether there is such a file."""
        return self._answer(lambda files, path: bool(files.isfile(path)))

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        # First whether it is a file: of one on a web server the second question would read all bytes.
        return not self.is_file() and self._answer(lambda files, path: bool(files.isdir(path)))

    def exists(self) -> bool:
        """Whether there is such a file or folder."""
        return self.is_file() or self.is_dir()

    def iterdir(self) -> "Iterator[RemotePath]":
        """What a folder holds."""
        listed = self._answer(lambda files, path: [files.unstrip_protocol(item) for item in files.ls(path, False)])
        return map(RemotePath, listed)

    def _answer(self, ask: Callable[[Any, str], T]) -> T:
        """Ask the file system; any error becomes a DataError without the server's words.

        Raises:
            DataError: a package is missing, or the server does not give the file.
        """
        try:
            from fsspec.core import url_to_fs

            return ask(*url_to_fs(self.url, use_listings_cache=False))  # another run may have written since
        except ImportError:
            fault = "needs fsspec and its package for this URL. Run: pip install 'likeness[remote]'"
        except Exception as error:  # each file system has errors of its own
            fault = f"cannot be reached ({type(error).__name__}). Check ingest.source, the network and the credentials."
        raise DataError(f"{self.name}: {fault}")


Place = Path | RemotePath
"""Where a source lies."""


def ending(place: PurePath | RemotePath) -> str:
    """The ending of a name in small letters, with its point: that of ``DATA.CSV`` is ``.csv``."""
    return place.suffix.lower()


def inside(folder: Place) -> "list[Place]":
    """The files and folders in a folder, by name.

    Raises:
        DataError: it holds something else, which a reader may wait for, or a link to a folder above. The message names
            the folder, and no value of a partition, as ``year=2024``: the name of a file may be a person's.
    """
    items = sorted(list[Place](folder.iterdir()), key=lambda item: item.name)
    for item in items:
        fault = _fault(item) if isinstance(item, Path) else ""
        if fault:
            name, mark, _ = folder.name.partition("=")
            raise DataError(
                f"{name}{mark and '=...'}: holds an item that {fault}. Remove it from this folder in ingest.source."
            )
    return items


def _fault(item: Path) -> str:
    if item.is_file():
        return ""
    if not item.is_dir():
        return "is neither a file nor a folder"
    above = {parent.resolve() for parent in item.parents}
    return "is a link to a folder that holds it" if item.is_symlink() and item.resolve() in above else ""


def place_at(root: Path, source: str) -> Place:
    """The place of a source: a URL, or a path that starts at ``root``."""
    return RemotePath(source) if "://" in source else root / source
