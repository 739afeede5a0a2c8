"""Where passes over rows run: in this process, or in processes of Dask.

An engine divides work and returns results in order. It adds nothing up, draws no noise and has no ledger: the door does
that.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

KINDS = ("local", "dask")


class Engine(Protocol):
    """Runs one function on many items."""

    @property
    def workers(self) -> int:
        """Number of items that run at once."""
        ...

    def stream(self, work: Callable[[T], Iterable[R]], items: Iterable[T]) -> Iterator[R]:
        """All results of ``work`` on all items, in the order of the items.

        Args:
            work: a function of a module.
            items: public values or places of files, never rows.
        """
        ...


class Local:
    """This process, one item after the other. Results pass on as they come."""

    workers = 1

    def stream(self, work: Callable[[T], Iterable[R]], items: Iterable[T]) -> Iterator[R]:
        """All results, in order."""
        for item in items:
            yield from work(item)


LOCAL = Local()


def open_engine(kind: str, workers: int, scheduler: str | None, folder: Path) -> AbstractContextManager[Engine]:
    """The engine of the settings, for the time of the context.

    Args:
        kind: one of :data:`KINDS`.
        workers: number of processes that ``dask`` starts.
        scheduler: address of a running Dask scheduler; None: start processes.
        folder: private folder for files of the workers, removed in the end.

    Raises:
        EngineError: Dask is not installed, or the scheduler cannot be used.
    """
    if kind == "local":
        return nullcontext(LOCAL)
    from likeness.engine.cluster import open_cluster

    return open_cluster(workers, scheduler, folder)
