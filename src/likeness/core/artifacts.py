"""Files of a run that lie in memory, and never on a disk."""

import io
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, ClassVar


class Artifacts(dict[str, bytes]):
    """Files by their names in a project, such as ``data/plan/plan.json``.

    Attributes:
        root: the project's folder as a path, so that code for files works on these.
    """

    _visible: list[str] | None = None

    @cached_property
    def root(self) -> Path:
        """The root as a path; its class, which knows these files, is no other's."""
        root: Path = type("MemoryPath", (MemoryPath,), {"files": self})()
        return root

    @contextmanager
    def limited_to(self, paths: Iterable[PurePath]) -> Iterator[None]:
        """Hide all other files and folders while the block lasts; nothing else can be written."""
        self._visible = [path.as_posix() for path in paths]
        try:
            yield
        finally:
            self._visible = None

    def shows(self, name: str) -> bool:
        """Tell whether a file of this name may be seen now."""
        return self._visible is None or any(f"{name}/".startswith(f"{path}/") for path in self._visible)

    def __repr__(self) -> str:
        """Give the names alone: private files are among them."""
        return f"Artifacts({', '.join(self)})"

    def remove(self, folder: PurePath) -> None:
        """Forget each file in a folder."""
        for name in [name for name in self if PurePath(name).is_relative_to(folder)]:
            del self[name]


class MemoryPath(type(Path())):  # type: ignore[misc]
    """A path of a file in memory: those methods of :class:`pathlib.Path` that stages use. All others are refused."""

    files: ClassVar[Artifacts]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy the files and the name, from which a copy makes its own class."""
        return _path_in, (self.files, self.as_posix())

    def __fspath__(self) -> str:
        """Refuse: the system must never get such a path."""
        raise TypeError(f"{self} lies in memory, and on no disk")

    def read_bytes(self) -> bytes:
        """The bytes themselves, without a copy."""
        if not self.is_file():
            raise FileNotFoundError(2, "no such file in memory", str(self))
        return self.files[self.as_posix()]

    def read_text(self, *_: Any, **__: Any) -> str:
        """The text, which is always UTF-8."""
        return self.read_bytes().decode()

    def write_bytes(self, data: Any) -> int:
        """Store the bytes."""
        if not self.files.shows(self.as_posix()):
            raise PermissionError(13, "no output of this stage", str(self))
        self.files[self.as_posix()] = bytes(data)
        return len(data)

    def open(self, mode: str = "rb", *_: Any, **__: Any) -> Any:
        """Open the file as bytes. What is written is stored when the file is closed."""
        data = b"" if "w" in mode else self.read_bytes()
        return io.BytesIO(data) if mode == "rb" else _Written(self, data)

    def is_file(self) -> bool:
        """Tell whether there is such a file."""
        return self.as_posix() in self.files and self.files.shows(self.as_posix())

    exists = is_file

    def glob(self, pattern: str, **_: Any) -> Generator["MemoryPath", None, None]:
        """The files of this folder whose names fit."""
        paths = (type(self)(name) for name in list(self.files))
        return (path for path in paths if path.parent == self and fnmatch(path.name, pattern) and path.is_file())

    def replace(self, target: Any) -> Any:
        """Give the file another name."""
        target.write_bytes(self.read_bytes())
        self.unlink()
        return target

    def unlink(self, missing_ok: bool = False) -> None:
        """Forget the file."""
        if self.is_file() or not missing_ok:
            del self.files[self.as_posix()]

    def absolute(self) -> "MemoryPath":
        """The path itself."""
        return self

    def mkdir(self, *_: Any, **__: Any) -> None:
        """Do nothing: each file has its folder."""

    def chmod(self, *_: Any, **__: Any) -> None:
        """Do nothing: only this process has the files."""


def _path_in(files: Artifacts, name: str) -> Path:
    return type(files.root)(name)


class _Written(io.BytesIO):
    """A file that is stored when it is closed."""

    def __init__(self, path: Path, data: bytes) -> None:
        super().__init__(data)
        self._path = path

    def __del__(self) -> None:
        """Store nothing: whoever left the file open did not finish it, and private files may be forgotten by now."""
        super().close()

    def close(self) -> None:
        if not self.closed:
            self._path.write_bytes(self.getbuffer())
        super().close()
