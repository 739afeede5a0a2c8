"""Running a stage: it reads settings, shows plain errors and marks its end."""

import contextlib
import errno
import json
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import yaml

from likeness.core.errors import LikenessError
from likeness.core.extras import missing
from likeness.core.files import make_private_folder, write_privately
from likeness.core.messages import LOG, is_reported, show_messages
from likeness.core.paths import ProjectPaths
from likeness.core.retry import retry_on_disconnect
from likeness.pipeline.project import Project

# Refusals of a disk or a folder. The system writes the texts of these errors, and they hold no value.
_STORAGE = {
    errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EROFS
}  # fmt: skip
# Faults of a path that a person gives to a command. In a stage they would be a fault of the program.
_PLACE = {errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR}


def run_stage(name: str, main: Callable[[Project], None], root: Path = Path()) -> None:
    """Run a stage of the project in a folder, as a script does.

    An error raised on purpose shows its message, with exit code 2. So does a disk that is full or may not be written.
    Any other error might quote a private value, so it shows only its type and place, with exit code 3. Its traceback
    goes to ``data/private/errors``. A stage whose connection to a database broke begins again, three times.
    """
    paths = ProjectPaths(root)
    show_messages()
    started = time.time()
    try:
        _announce(name, paths)
        retry_on_disconnect(lambda: main(Project.load(root)))
    except LikenessError as error:
        _fail(name, f"{name}: {error}", 2, paths)
    except Exception as error:
        refusal = storage_refusal(error) or missing(error, "it")
        if refusal is not None:
            _fail(name, f"{name}: {refusal}", 2, paths)
        _fail(name, _keep_private(name, error, paths.failures), 3, paths)
    marker = {"ended": time.time(), "seconds": round(time.time() - started, 3)}
    (paths.markers / f"{name}.json").write_bytes(json.dumps(marker).encode())


def _announce(name: str, paths: ProjectPaths) -> None:
    """Say which stage begins, and delete its last failure."""
    paths.markers.mkdir(parents=True, exist_ok=True)
    (paths.markers / f"{name}.failed").unlink(missing_ok=True)
    stages = yaml.safe_load(paths.stages.read_text(encoding="utf-8"))["stages"] if paths.stages.exists() else {}
    if name in stages:
        LOG.info("[%2d/%d] %s: %s", [*stages].index(name) + 1, len(stages), name, stages[name].get("desc", ""))
    else:
        LOG.info(name)


def _fail(name: str, message: str, code: int, paths: ProjectPaths) -> NoReturn:
    """End the stage with a message for the curator. A process that shows messages takes it from a file."""
    left = False
    with contextlib.suppress(OSError):
        write_privately(paths.markers / f"{name}.failed", message)
        left = True
    if not (left and is_reported()):
        LOG.error(message)
    sys.exit(code)


def place_refusal(error: Exception) -> str | None:
    """The message about a wrong path; None for every other error."""
    if not isinstance(error, OSError) or error.errno not in _PLACE:
        return None
    return f"{error.filename or 'a file'} cannot be used ({error.strerror}). Make its folder, or give another path."


@contextlib.contextmanager
def errors_in_words() -> Iterator[None]:
    """Turn what the system refuses to a caller in Python into a message.

    Raises:
        LikenessError: a disk, a path or the memory is not enough.
    """
    try:
        yield
    except Exception as error:
        refusal = storage_refusal(error) or place_refusal(error)
        if refusal is None:
            raise
        raise LikenessError(refusal) from None


def storage_refusal(error: Exception) -> str | None:
    """The message about a disk or a memory that is full, or may not be written, or not so; None for other errors."""
    if isinstance(error, MemoryError):
        return "it needs more memory than there is. Ask for fewer rows, or use a larger machine."
    inner = getattr(error, "orig", None)  # what SQLAlchemy wraps; the outer text would quote statement and values
    if isinstance(inner, sqlite3.OperationalError):
        failure = f"the ledger's database cannot be used ({inner})"
    elif isinstance(error, UnicodeEncodeError) and error.encoding != "utf-8":
        return f"the locale's encoding, {error.encoding}, cannot write a name or text. Set PYTHONUTF8=1, and run again."
    elif isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "it needs more open files than the system allows. Raise the limit, as by ulimit -n 1024, and run again."
    elif isinstance(error, OSError) and error.errno in _STORAGE:
        # Of a copy the second name is the file that is written.
        failure = f"{error.filename2 or error.filename or 'a file'} cannot be written ({error.strerror})"
    else:
        return None
    return f"{failure}. Make room, or make the folder writable, and run again. The ledger keeps all costs."


def _keep_private(name: str, error: Exception, target: Path) -> str:
    """A message that does not quote the error, whose text goes to a private file."""
    for folder in (target.parent, target):
        make_private_folder(folder)
    path = target / f"{name}.txt"
    write_privately(path, "".join(traceback.format_exception(error)))
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"{name}: unexpected {type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}. Its text may quote "
        f"private values, so it is in {path} only. Please report this line."
    )
