"""Files that only their owner reads, files that survive a crash, and locks."""

import errno
import math
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock

from likeness.core.errors import LikenessError

FULL = {errno.EDQUOT, errno.EFBIG, errno.ENOSPC}
"""Codes of a disk, a quota or a file that has no more room."""


def expand_home(path: str | Path) -> Path:
    """A path with the home folder in the place of its ``~``.

    Raises:
        LikenessError: it is no path, or the system knows no home folder of the user.
    """
    if not isinstance(path, str | Path) or "\0" in str(path):
        raise LikenessError(f"a path must be a text without NUL, or a Path, got {type(path).__name__}.")
    with _home_known():
        return Path(path).expanduser()


def user_folders() -> tuple[Path, Path]:
    """The user's folders for data and for state; on macOS they are one.

    Raises:
        LikenessError: the system knows no home folder of the user.
    """
    with _home_known():
        import platformdirs  # training alone runs without it

        folders = platformdirs.user_data_dir("likeness"), platformdirs.user_state_dir("likeness")
    return expand_home(folders[0]), expand_home(folders[1])


@contextmanager
def _home_known() -> Iterator[None]:
    try:
        yield
    except RuntimeError:
        raise LikenessError(
            "the system knows no home folder of this user. Set HOME; or set LIKENESS_HOME, LIKENESS_ANCHOR and "
            "LIKENESS_MLFLOW_URI, and give paths without ~."
        ) from None


def make_private_folder(path: Path) -> None:
    """Create a folder that only its owner may enter."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)


def write_privately(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def write_durably(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file that holds either the old bytes or the new ones after a crash.

    The bytes are on the disk before the file has its name, and the name is there before this returns. The temporary
    file has a random name, because two machines that share the folder may have processes of one number.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        temporary.chmod(mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name a file in the system's errors about a full disk: it names none, or the part that it writes."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to. It gets the file's name at the end of the block, so a full disk leaves no part of a file."""
    part = path.with_name(f".{path.name}.part")
    try:
        with naming(path):
            yield part
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def append_durably(path: Path, lines: Iterable[str]) -> None:
    """Append lines to a file that only its owner may read. A crash can cut the last one, and spoils no other."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"\n{line}" for line in lines)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Make a rename in a folder durable. Windows opens no folders; there the file system's journal does it."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def file_lock(path: Path, seconds: float = -1) -> Iterator[None]:
    """An exclusive lock on a file that only its owner reads. The operating system drops it when its holder dies.

    Raises:
        TimeoutError: others held it for so many seconds; it names them. -1 waits for ever.
    """
    # Where a disk has no such locks, a file that stands for one would outlive a killed process: that is refused.
    lock = FileLock(path, timeout=seconds, mode=0o600, fallback_to_soft=False)
    try:
        lock.acquire()
    except TimeoutError:
        raise TimeoutError(_processes_with(path)) from None
    try:
        yield
    finally:
        lock.release()


def _processes_with(path: Path) -> str:
    """Name the processes that have a file open, where the system shows them."""
    ids = list[str]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile, or is another user's
            ids += {process.name for link in (process / "fd").iterdir() if link.resolve() == path}
    return f"process {', '.join(ids)}" if ids else "its process"


def machine_memory() -> float:
    """Bytes; infinite where the system does not say. Windows, which does not, refuses a larger array by itself."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf
