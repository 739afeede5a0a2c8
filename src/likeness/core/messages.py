"""Messages of the library, by the logger ``likeness``, and the progress of long work.

The library installs no handler, so a program that imports it gets warnings only. To silence these:
``logging.getLogger("likeness").setLevel("ERROR")``. Stages and the command line call :func:`show_messages`.
"""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

LOG = logging.getLogger("likeness")
_LINES = 10  # of long work, where there is no terminal

Step = Callable[[int, str], None]
"""Takes the number of finished steps, and a note."""


class _StandardError(logging.Handler):
    """Writes each message in one piece to the present ``sys.stderr``, which may hold a bar."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"{record.getMessage()}\n")
        sys.stderr.flush()


def show_messages() -> None:
    """Show all messages of the library on standard error."""
    LOG.handlers = [_StandardError()]
    LOG.setLevel(logging.INFO)


@contextmanager
def progress(title: str, total: int) -> Iterator[Step]:
    """Show the progress of long work: a bar with the time left on a terminal, elsewhere a line after each tenth.

    Args:
        title: name of the work.
        total: its steps. 0 shows nothing.

    Yields:
        the function to call after a step. Its arguments must not come from private rows.
    """
    if not total or not LOG.isEnabledFor(logging.INFO):
        yield lambda _done, _note: None
        return
    if not sys.stderr.isatty() or find_spec("rich") is None:  # training needs torch, numpy, safetensors and pyyaml only
        yield _lines(title, total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    name, note = (TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[note]"))
    columns = (name, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), note)
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total, note="")
        yield lambda done, note: bar.update(task, completed=done, note=note)


def _lines(title: str, total: int) -> Step:
    """A line after each tenth of the steps, independent of the clock."""
    tenths = 0

    def step(done: int, note: str) -> None:
        nonlocal tenths
        if done * _LINES // total > tenths:
            tenths = done * _LINES // total
            LOG.info("%s: %d of %d%s", title, done, total, note and f", {note}")

    return step
