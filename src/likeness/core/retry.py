"""Trying again what is free, where the connection to a database broke. The ledger knows what was paid."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from likeness.core.errors import LikenessError
from likeness.core.messages import LOG

PAUSES = (2, 10, 30)
"""Seconds before each new attempt."""
_BROKEN = ("08", "57P")  # classes of SQLSTATE: of the connection, and of a server that stops or starts
_NO_SERVER = ("closed", "is the server running", "refused", "reset by", "starting up", "timed out", "timeout")

T = TypeVar("T")


def retry_on_disconnect(work: Callable[[], T]) -> T:
    """The result of work that may begin again at its start, because a release is paid once, whoever asks again.

    Raises:
        LikenessError: what stopped it was no broken connection, or the last attempt failed too.
    """
    for seconds in PAUSES:
        try:
            return work()
        except LikenessError as error:
            if not error.transient:
                raise
            LOG.warning("%s Trying again in %d s; nothing is paid twice.", error, seconds)
        time.sleep(seconds)
    return work()


def transient(error: LikenessError, cause: Any) -> LikenessError:
    """An error, marked where its cause is PostgreSQL's about a broken connection, or a server that is not there yet.

    Only the driver's own errors have no SQLSTATE, so no text that may quote a row is searched.
    """
    state = getattr(cause, "sqlstate", "XX000")
    if state is None:
        error.transient = any(word in str(cause).lower() for word in _NO_SERVER)
    else:
        error.transient = state.startswith(_BROKEN) or state == "53300"  # or too many connections
    return error
