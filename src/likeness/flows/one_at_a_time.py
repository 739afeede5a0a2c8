"""Mutual exclusion: one run at a time for the same people.

The ledger does not need it: it never exceeds a cap and never releases twice. But two plans that start together can both
begin, and one may not finish: it spends for nothing. So runs wait for each other.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from prefect.client.orchestration import get_client
from prefect.concurrency.sync import concurrency
from prefect.settings import PREFECT_API_URL

from likeness.core.errors import LikenessError
from likeness.core.files import file_lock
from likeness.pipeline.project import Project


def limit_name(identity: str) -> str:
    """Name of the Prefect server's concurrency limit of an identity."""
    return "likeness-" + re.sub(r"[^A-Za-z0-9_.-]+", "-", identity)


@contextmanager
def exclusive_run(project: Project, wait: float, limit: str | None) -> Iterator[None]:
    """Wait until no other run of these people is at work, and keep others waiting while the block lasts.

    On one machine this is a lock file beside the ledger, which the operating system frees when its holder dies. Among
    machines it is a concurrency limit of the Prefect server.

    Args:
        project: whose run it is.
        wait: seconds.
        limit: name of the server's limit, see :func:`server_limit`; None where runs have no server in common.

    Raises:
        LikenessError: the other run took too long.
    """
    population, locks = project.params.privacy.population, project.ledger_session.home.locks
    people = hashlib.sha256(population.encode()).hexdigest()[:16]
    with ExitStack() as held:
        try:
            if locks.is_dir():  # without a ledger the first stage refuses to run
                held.enter_context(file_lock(locks / f"run-{people}.lock", wait))
            if limit is not None:
                held.enter_context(
                    concurrency(limit, timeout_seconds=wait, strict=True, raise_on_lease_renewal_failure=False)
                )
        except TimeoutError:
            raise LikenessError(
                f"another run of '{population}' was still at work after {wait:g} s. "
                "This one did nothing. Start it again when the other has ended."
            ) from None
        yield


def server_limit(project: Project) -> str | None:
    """Make sure that the Prefect server limits runs of these people to one; None where there is no lasting server.

    A server that ends with its flow could not take a slot back from a flow that was killed.
    """
    if not PREFECT_API_URL.value():
        return None
    name = limit_name(project.params.privacy.population)
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name(name, 1)
    return name
