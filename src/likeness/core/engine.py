"""Where passes over rows run: one thread, or a few of this process.

An engine divides work and returns results in order. It adds nothing up, draws no noise and has no ledger: the door does
that. Threads share the memory of one process, so no row is sent anywhere. NumPy and Arrow release the interpreter's
lock.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_MOST = 2  # threads: each holds a part of the rows


class Engine(Protocol):
    """Runs one function on many items."""

    @property
    def workers(self) -> int:
        """Number of items that run at once."""

    def stream(self, work: Callable[[T], Iterable[R]], items: Iterable[T]) -> Iterator[R]:
        """All results of ``work`` on all items, in the order of the items.

        Args:
            work: a function of one item that changes nothing else.
            items: taken by the caller's thread when a worker is free.
        """


class Local:
    """One thread, one item after the other. Results pass on as they come."""

    workers = 1

    def stream(self, work: Callable[[T], Iterable[R]], items: Iterable[T]) -> Iterator[R]:
        """All results, in order."""
        for item in items:
            yield from work(item)


@dataclass(frozen=True)
class Threads:
    """Threads of this process.

    Attributes:
        workers: number of threads. Memory holds the results of one item more.
    """

    workers: int

    def stream(self, work: Callable[[T], Iterable[R]], items: Iterable[T]) -> Iterator[R]:
        """All results, in order. An error of an item, or of the next one to take, is raised at its place.

        Later items are left. So the error is the same for each number of threads.
        """
        waiting: deque[Future[list[R]]] = deque()
        faults: list[Exception] = []
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                for item in _take_items(items, faults):
                    waiting.append(pool.submit(lambda item=item: list(work(item))))  # type: ignore[misc]
                    if len(waiting) > self.workers:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()
        if faults:
            raise faults[0]


def _take_items(items: Iterable[T], faults: list[Exception]) -> Iterator[T]:
    """Items. An error of them ends them, and comes into the list."""
    try:
        yield from items
    except Exception as error:
        faults.append(error)


LOCAL = Local()


def threads() -> Engine:
    """Give as many threads as this process may use cores, and at most two; for one core none but its own."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return LOCAL if cores == 1 else Threads(min(cores, _MOST))
