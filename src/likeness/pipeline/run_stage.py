"""How a stage runs: settings in, plain errors out, a marker of when it ended."""

import errno
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from likeness.core.errors import LikenessError
from likeness.core.paths import ProjectPaths
from likeness.pipeline.project import Project

# What a disk or a folder refuses. The texts of these errors are the system's own, and hold no value.
_STORAGE = {
    errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EROFS
}  # fmt: skip
# What can be wrong with a path that a person gives to a command. In a stage it would be a fault of the program.
_PLACE = {errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR}


def run_stage(name: str, main: Callable[[Project], None], root: Path = Path()) -> None:
    """Run a stage of the project in a folder, as a script does.

    An error raised on purpose is shown as its message, exit code 2, and so is a disk that is full or may not be
    written. Any other error might quote a private value, so only its type and place are shown, exit code 3; the
    traceback goes to ``data/private/errors``.
    """
    started, paths = time.time(), ProjectPaths(root)
    try:
        main(Project.load(root))
    except LikenessError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        refusal = storage_refusal(error)
        if refusal is not None:
            print(f"{name}: {refusal}", file=sys.stderr)
            sys.exit(2)
        _keep_private(name, error, paths.failures)
        sys.exit(3)
    if os.environ.get("RANK", "0") != "0":  # one of several that torchrun started: the first one writes
        return
    paths.markers.mkdir(parents=True, exist_ok=True)
    marker = {"ended": time.time(), "seconds": round(time.time() - started, 3)}
    (paths.markers / f"{name}.json").write_text(json.dumps(marker))


def place_refusal(error: Exception) -> str | None:
    """What to tell of a path that is none; None for every other error."""
    if not isinstance(error, OSError) or error.errno not in _PLACE:
        return None
    return f"{error.filename or 'a file'} cannot be used ({error.strerror}). Make its folder, or give another path."


def storage_refusal(error: Exception) -> str | None:
    """What to tell of a disk that is full or may not be written; None for every other error."""
    import sqlite3

    own = getattr(error, "orig", None)  # what SQLAlchemy wraps; its own text would quote statement and values
    if isinstance(own, sqlite3.OperationalError):
        what = f"the ledger's database cannot be used ({own})"
    elif isinstance(error, OSError) and error.errno in _STORAGE:
        what = f"{error.filename or 'a file'} cannot be written ({error.strerror})"
    else:
        return None
    return f"{what}. Make room, or make the folder writable, and run again: what was spent is on record and not lost."


def say(line: str) -> None:
    """A progress line in one piece, so that those of threads that end at once do not run into each other."""
    sys.stderr.write(f"{line}\n")


def _keep_private(name: str, error: Exception, target: Path) -> None:
    """Tell what went wrong without quoting it."""
    for folder in (target.parent, target):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    path = target / f"{name}.txt"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("".join(traceback.format_exception(error)))
    place = traceback.extract_tb(error.__traceback__)[-1]
    print(
        f"{name}: unexpected {type(error).__name__} at {Path(place.filename).name}:{place.lineno}. Its text may quote "
        f"private values, so it is kept in {path}. Please report the line above.",
        file=sys.stderr,
    )
