"""Dask as an engine: processes of this machine, or those of a cluster that somebody runs.

What the processes send back are private rows or sums of them. So every connection is encrypted and wants a certificate
that only this run holds (or that of the cluster), nothing is spilled to disk, there is no dashboard, and an error in a
worker comes back as a value: Dask would log its text, which may quote a row.
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
_AHEAD = 2  # items of each worker that are on their way or wait to be fetched: bounds the memory of all


@dataclass(frozen=True)
class _Done:
    """What a worker sends back: results, or why there are none."""

    results: tuple[Any, ...] = ()
    refused: LikenessError | None = None
    failed: str | None = None


class WorkerFailure(RuntimeError):
    """An unexpected error in a worker, with its traceback as text: private, as any unexpected error of a stage."""


class DaskEngine:
    """Processes that a Dask scheduler knows."""

    def __init__(self, client: Any, workers: int) -> None:
        self._client = client
        self.workers = workers

    def stream(self, work: Callable[[T], Iterable[R]], items: Iterable[T]) -> Iterator[R]:
        """All results, in order. An item whose worker dies is worked on again by another.

        Raises:
            EngineError: workers die again and again.
        """
        waiting: deque[Any] = deque()
        try:
            for item in items:
                # A key of its own: Dask must neither merge equal work nor make a name out of what it is about.
                waiting.append(self._client.submit(_guarded, work, item, key=f"part-{uuid4().hex}"))
                if len(waiting) >= _AHEAD * self.workers:
                    yield from self._results(waiting.popleft())
            while waiting:
                yield from self._results(waiting.popleft())
        finally:
            for future in waiting:
                future.cancel()

    def _results(self, future: Any) -> tuple[Any, ...]:
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        done: _Done | None = None
        with suppress(KilledWorker, CancelledError, OSError):
            done = future.result()
        if done is None:  # raised here, so that Dask's own error, which names addresses, does not hang on to it
            raise EngineError(
                "engine: workers of Dask died again and again, or the scheduler was lost. The memory may be too small: "
                "lower engine.workers, or set engine.kind: local, and run again; what was spent is on record."
            )
        if done.refused is not None:
            raise done.refused
        if done.failed is not None:
            raise WorkerFailure(done.failed)
        return done.results


def _guarded(work: Callable[[T], Iterable[R]], item: T) -> _Done:
    """In a worker: no error leaves as an error."""
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
        folder: of the processes, for their owner only; removed in the end.

    Raises:
        EngineError: Dask is not installed; or the scheduler's connections are not encrypted, its workers may write
            results to disk, or they run another version.
    """
    try:
        import dask
        import distributed
    except ImportError:
        raise EngineError("engine.kind is dask, which is not installed. Run: pip install 'likeness[dask]'") from None
    folder.mkdir(parents=True, exist_ok=True)
    for own in (folder.parent, folder):
        own.chmod(0o700)
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
                    memory_limit=0,  # no limit of Dask's: it would write to disk, or kill, near it
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
    """A cluster that somebody runs: certificates are those of Dask's own settings, ``distributed.comm.tls``."""
    if not address.startswith("tls://"):
        raise EngineError(
            f"engine.scheduler must be a tls:// address, got {address!r}: sums of private rows pass over it. Start "
            "scheduler and workers with certificates, and name them in Dask's settings (distributed.comm.tls)."
        )
    client = None
    with suppress(OSError, TypeError, ValueError, RuntimeError):
        client = distributed.Client(address, set_as_default=False, timeout="30s", security=distributed.Security())
    if client is None:
        raise EngineError(
            f"engine.scheduler: no connection to {address}. Check the address, that it runs, and the certificates in "
            "Dask's settings (distributed.comm.tls)."
        )
    with client:
        found = client.run(_about)
        if not found:
            raise EngineError(f"engine.scheduler: {address} has no workers. Start some.")
        if any(spills for spills, _ in found.values()):
            raise EngineError(
                "engine.scheduler: a worker may write results, which are private, to its disk. Start all of them with "
                "--memory-limit 0."
            )
        if {version for _, version in found.values()} != {_version()}:
            raise EngineError(f"engine.scheduler: a worker does not run likeness {_version()}. Install the same.")
        yield DaskEngine(client, len(found))


def _about(dask_worker: Any) -> tuple[bool, str]:
    """Of a worker: whether it may spill, and its version."""
    return bool(dask_worker.memory_manager.memory_limit), _version()


def _version() -> str:
    import likeness

    return likeness.__version__
