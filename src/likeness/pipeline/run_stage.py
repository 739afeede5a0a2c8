"""Running a stage: it reads settings, shows plain errors and marks its end."""

import contextlib
import errno
import json
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from likeness.core.errors import LikenessError
from likeness.core.extras import missing
from likeness.core.files import make_private_folder, write_privately
from likeness.core.messages import LOG, listener, show_messages
from likeness.core.paths import ProjectPaths
from likeness.core.retry import retry_on_disconnect
from likeness.core.yaml import load_written
from likeness.pipeline.project import Project

# Refusals of a disk or a folder. The system writes the texts of these errors, and they hold no value.
_STORAGE = {
    errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EROFS
}  # fmt: skip
# Faults of a path that a person gives to a command. In a stage they would be a fault of the program.
_PLACE = {errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR}


Stage = Callable[[Project], None]


@dataclass(frozen=True)
class Failure:
    """The end of a stage that failed: an exit code, and a message for the curator without private values."""

    code: int
    message: str


def script(stage: str) -> str:
    """The file of a project that starts a stage."""
    return f'''"""{stage}: `likeness.stages.{stage}` says what it reads, writes and spends."""

from likeness.pipeline.run_stage import run_stage
from likeness.stages.{stage} import main

if __name__ == "__main__":
    run_stage("{stage}", main)
'''


def stage_function(name: str) -> Stage:
    """The function of a stage, as its script finds it."""
    main: Stage = import_module(f"likeness.stages.{name}").main
    return main


def run_stage(name: str, main: Stage, root: Path = Path()) -> None:
    """Run a stage of the project in a folder, as a script does: :func:`perform_stage` says how it ends.

    The exit code is 2 for a refusal, and 3 for a fault of the program. A message that somebody takes from the file is
    not printed.
    """
    show_messages()
    failure = perform_stage(name, main, root)
    if failure is not None:
        if listener() is None or not (root / ProjectPaths.markers / f"{name}.failed").exists():
            LOG.error(failure.message)
        sys.exit(failure.code)


def perform_stage(name: str, main: Stage, root: Path) -> Failure | None:
    """Run a stage in this process, and mark its end.

    An error raised on purpose gives its message, and so does a disk that is full or may not be written. Any other error
    might quote a private value, so it gives only its type and place. Its traceback goes to ``data/private/errors``. A
    stage whose connection to a database broke begins again, three times.

    Returns:
        how it failed; its message lies in a file too. None if it ended well.
    """
    paths = ProjectPaths(root)
    started = time.time()
    try:
        _announce(name, paths)
        retry_on_disconnect(lambda: main(Project.load(root)))
    except LikenessError as error:
        failure = Failure(2, f"{name}: {error}")
    except Exception as error:
        refusal = storage_refusal(error) or missing(error, "it")
        failure = (
            Failure(2, f"{name}: {refusal}") if refusal else Failure(3, _keep_private(name, error, paths.failures))
        )
    else:
        marker = {"ended": time.time(), "seconds": round(time.time() - started, 3)}
        (paths.markers / f"{name}.json").write_bytes(json.dumps(marker).encode())
        return None
    with contextlib.suppress(OSError):
        write_privately(paths.markers / f"{name}.failed", failure.message)
    return failure


def _announce(name: str, paths: ProjectPaths) -> None:
    """Say which stage begins, and delete its last failure."""
    paths.markers.mkdir(parents=True, exist_ok=True)
    (paths.markers / f"{name}.failed").unlink(missing_ok=True)
    stages = load_written(paths.stages.read_text(encoding="utf-8"))["stages"] if paths.stages.exists() else {}
    if name in stages:
        LOG.info("[%2d/%d] %s: %s", [*stages].index(name) + 1, len(stages), name, stages[name].get("desc", ""))
    else:
        LOG.info(name)


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
