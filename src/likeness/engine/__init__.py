"""Where the passes over rows are worked on: in this process, or in processes of Dask.

An engine divides work and brings back results in order. It adds nothing up, draws no noise and knows no ledger: that
stays with the door.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

KINDS = ("local", "dask")


class Engine(Protocol):
    """Runs the same function on many items."""

    @property
    def workers(self) -> int:
        """How many items are worked on at once."""
        ...

    def stream(self, work: Callable[[T], Iterable[R]], items: Iterable[T]) -> Iterator[R]:
        """All results of ``work`` on every item, in the order of the items.

        Args:
            work: a function of a module. items: values that are public or places of files, never rows.
        """
        ...


class Local:
    """This process, one item after the other; results are passed on as they come."""

    workers = 1

    def stream(self, work: Callable[[T], Iterable[R]], items: Iterable[T]) -> Iterator[R]:
        """All results, in order."""
        for item in items:
            yield from work(item)


LOCAL = Local()


def open_engine(kind: str, workers: int, scheduler: str | None, folder: Path) -> AbstractContextManager[Engine]:
    """The engine that the settings ask for, for as long as the context lasts.

    Args:
        kind: one of :data:`KINDS`. workers: processes that ``dask`` starts.
        scheduler: address of a running Dask scheduler, to be used instead.
        folder: private; workers may keep files there, and leave none.

    Raises:
        EngineError: Dask is not installed, or the scheduler cannot be used.
    """
    if kind == "local":
        return nullcontext(LOCAL)
    from likeness.engine.cluster import open_cluster

    return open_cluster(workers, scheduler, folder)
