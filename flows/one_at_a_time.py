"""One run at a time for the same people.

The ledger needs no such thing: it never exceeds a cap and never releases twice. But two plans that start together can
both begin and one not finish, and what it used is then spent in vain. So runs wait for each other.
"""

import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from likeness.config.load import load_params
from likeness.config.params import Params
from likeness.core.errors import LikenessError
from likeness.ledger.home import locate

_POLL = 0.5  # seconds


def limit_name(identity: str) -> str:
    """Name of the Prefect server's concurrency limit of an identity."""
    return "likeness-" + re.sub(r"[^A-Za-z0-9_.-]+", "-", identity)


@contextmanager
def own_turn(root: Path, wait: float, limit: str | None) -> Iterator[None]:
    """Wait until no other run of these people is at work, and keep others waiting for as long as the block lasts.

    On one machine by a lock file beside the ledger, which the operating system drops when its holder dies; among
    machines by a concurrency limit of the Prefect server.

    Args:
        root: the project's folder. wait: seconds. limit: name of the server's limit, see :func:`server_limit`; None
            where runs have no server in common.

    Raises:
        LikenessError: the other run took too long, or params.yaml cannot be read.
    """
    params = load_params(root / "params.yaml")
    busy = LikenessError(
        f"another run of '{params.privacy.population}' was still at work after {wait:g} s. This one did nothing."
    )
    with _file_turn(_lock_file(params, root), wait, busy):
        if limit is None:
            yield
            return
        from prefect.concurrency.sync import concurrency

        taken = concurrency(limit, timeout_seconds=wait, strict=True, raise_on_lease_renewal_failure=False)
        try:
            taken.__enter__()
        except TimeoutError:
            raise busy from None
        try:
            yield
        finally:
            taken.__exit__(None, None, None)


def server_limit(root: Path) -> str | None:
    """Make sure that the Prefect server limits runs of these people to one; None where there is no lasting server.

    A server that ends with its flow could not take a slot back from a flow that was killed.
    """
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL

    if not PREFECT_API_URL.value():
        return None
    name = limit_name(load_params(root / "params.yaml").privacy.population)
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name(name, 1)
    return name


def _lock_file(params: Params, root: Path) -> Path | None:
    """Beside the ledger; None where there is no ledger, of which the first stage will tell."""
    home = None if params.ledger.home is None else str(root / params.ledger.home)
    locks = locate(home, params.ledger.url).locks
    name = hashlib.sha256(params.privacy.population.encode()).hexdigest()[:16]
    return locks / f"run-{name}.lock" if locks.is_dir() else None


@contextmanager
def _file_turn(path: Path | None, wait: float, busy: LikenessError) -> Iterator[None]:
    if path is None:
        yield
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise busy from None
                time.sleep(_POLL)
        yield
    finally:
        os.close(descriptor)
