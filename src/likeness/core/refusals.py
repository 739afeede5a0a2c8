"""Refusals of the system as messages: a disk or memory that is full, a wrong path."""

import contextlib
import errno
import sqlite3
from collections.abc import Callable, Iterator

from likeness.core.errors import LikenessError

# Refusals of a disk or a folder. The system writes the texts of these errors, and they hold no value.
_STORAGE = {
    errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EROFS
}  # fmt: skip
# Faults of a path that a person gives to a command. In a stage they would be a fault of the program.
_PLACE = {errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR}


def refusals_of(action: Callable[[], object], kind: type[LikenessError] = LikenessError) -> list[LikenessError]:
    """The refusal of an action, if it refuses. Another kind of error passes."""
    try:
        action()
    except kind as error:
        return [error]
    return []


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
    inner = getattr(error, "orig", error)  # what SQLAlchemy wraps; the outer text would quote statement and values
    if isinstance(inner, sqlite3.OperationalError):  # of the ledger, or one in which DVC remembers digests
        failure = f"a database of SQLite cannot be used ({inner})"
    elif isinstance(error, UnicodeEncodeError) and error.encoding != "utf-8":
        return f"the locale's encoding, {error.encoding}, cannot write a name or text. Set PYTHONUTF8=1, and run again."
    elif isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "it needs more open files than the system allows. Raise the limit, as by ulimit -n 1024, and run again."
    elif isinstance(error, OSError) and error.errno in _STORAGE:
        # Of a copy the second name is the file that is written.
        failure = f"{error.filename2 or error.filename or 'a file'} cannot be read or written ({error.strerror})"
    else:
        return None
    return f"{failure}. Make room, or give this user both rights to it, and run again. The ledger keeps all costs."
