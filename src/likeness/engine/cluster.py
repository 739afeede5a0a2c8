"""Dask as an engine: processes of this machine, or of a running cluster.

The processes send private rows, or sums of them. So each connection is encrypted, with a certificate of this run alone
(or of the cluster). Nothing is spilled to disk, and there is no dashboard. A worker returns an error as a value: Dask
would log its text, which may quote a row.
"""

import logging
import shutil
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from likeness.core.errors import EngineError, LikenessError
from likeness.core.files import make_private_folder

T = TypeVar("T")
R = TypeVar("R")

_SETTINGS = {
    "distributed.worker.memory.target": False,  # nothing is spilled
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.scheduler.http.routes": [],  # nothing is shown
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.logging": {"distributed": "critical", "tornado": "critical", "asyncio": "critical"},
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.comm.timeouts.connect": "120s",
    "distributed.admin.large-graph-warning-threshold": "10GB",
}
_WAITING = 2  # items a worker on their way or ready to fetch: a bound on memory


@dataclass(frozen=True)
class _Done:
    """Reply of a worker: results, or the reason without results."""

    results: tuple[Any, ...] = ()
    refused: LikenessError | None = None
    failed: str | None = None


class WorkerError(RuntimeError):
    """An unexpected error in a worker, with its traceback as text. It is private, as any unexpected error."""


class DaskEngine:
    """The processes of a Dask scheduler."""

    def __init__(self, client: Any, workers: int) -> None:
        self._client = client
        self.workers = workers

    def stream(self, work: Callable[[T], Iterable[R]], items: Iterable[T]) -> Iterator[R]:
        """All results, in order. Another worker repeats an item whose worker dies.

        Raises:
            EngineError: workers die again and again.
        """
        waiting: deque[Any] = deque()
        try:
            for item in items:
                # A random key: Dask must neither merge equal work nor name a key after its arguments.
                waiting.append(self._client.submit(_guarded, work, item, key=f"part-{uuid4().hex}"))
                if len(waiting) >= _WAITING * self.workers:
                    yield from self._results(waiting.popleft())
            while waiting:
                yield from self._results(waiting.popleft())
        finally:
            for future in waiting:
                future.cancel()

    def _results(self, future: Any) -> tuple[Any, ...]:
        from distributed import CancelledError, KilledWorker

        done: _Done | None = None
        with suppress(KilledWorker, CancelledError, OSError):
            done = future.result()
        if done is None:  # raised here, without Dask's error, which names addresses, as its cause
            raise EngineError(
                "engine: workers of Dask died repeatedly, or the scheduler was lost. The memory may be too small. "
                "Lower engine.workers, or set engine.kind: local. Then run again: spent budget is on record."
            )
        if done.refused is not None:
            raise done.refused
        if done.failed is not None:
            raise WorkerError(done.failed)
        return done.results


def _guarded(work: Callable[[T], Iterable[R]], item: T) -> _Done:
    """Run in a worker, and return each error as a value."""
    try:
        return _Done(tuple(work(item)))
    except LikenessError as error:
        return _Done(refused=error)
    except Exception:
        return _Done(failed=traceback.format_exc())


@contextmanager
def open_cluster(workers: int, scheduler: str | None, folder: Path) -> Iterator[DaskEngine]:
    """Start processes on this machine, or connect to a scheduler.

    Args:
        workers: number of processes to start.
        scheduler: address of a running scheduler; None: start processes.
        folder: folder of the processes, for their owner only; removed in the end.

    Raises:
        EngineError: Dask is not installed; the scheduler's connections are not encrypted; or its workers may write
            results to disk or run another version.
    """
    try:
        import dask
        import distributed
    except ImportError:
        raise EngineError(
            "engine.kind: dask needs Dask, which is not installed. Run: pip install 'likeness-dp[dask]'"
        ) from None
    for private in (folder.parent, folder):
        make_private_folder(private)
    try:
        with dask.config.set(_SETTINGS):
            if scheduler is not None:
                with _connected(distributed, scheduler) as engine:
                    yield engine
                return
            with (
                distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=0,  # near a limit Dask would write to disk or kill a worker
                    security=distributed.Security.temporary(),
                    dashboard_address=None,
                    scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                    local_directory=str(folder),
                    silence_logs=logging.CRITICAL,
                ) as cluster,
                distributed.Client(cluster, set_as_default=False) as client,
            ):
                yield DaskEngine(client, workers)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _connected(distributed: Any, address: str) -> Iterator[DaskEngine]:
    """Connect to a running cluster, with the certificates of Dask's settings, ``distributed.comm.tls``."""
    if not address.startswith("tls://"):
        raise EngineError(
            f"engine.scheduler must be a tls:// address, got {address!r}: sums of private rows use it. Start scheduler "
            "and workers with certificates, and name them in Dask's settings (distributed.comm.tls)."
        )
    client = None
    with suppress(OSError, TypeError, ValueError, RuntimeError):
        client = distributed.Client(address, set_as_default=False, timeout="30s", security=distributed.Security())
    if client is None:
        raise EngineError(
            f"engine.scheduler: no connection to {address}. Check the address, the scheduler, and the certificates in "
            "Dask's settings (distributed.comm.tls)."
        )
    with client:
        workers = client.run(_about)
        if not workers:
            raise EngineError(f"engine.scheduler: {address} has no workers. Start at least one.")
        if any(spills for spills, _ in workers.values()):
            raise EngineError(
                "engine.scheduler: a worker may write private results to its disk. Start all workers with "
                "--memory-limit 0."
            )
        if {version for _, version in workers.values()} != {_version()}:
            raise EngineError(f"engine.scheduler: a worker does not run likeness {_version()}. Install that version.")
        yield DaskEngine(client, len(workers))


def _about(dask_worker: Any) -> tuple[bool, str]:
    """Whether a worker may spill, and its version."""
    return bool(dask_worker.memory_manager.memory_limit), _version()


def _version() -> str:
    import likeness

    return likeness.__version__
