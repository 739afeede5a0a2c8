"""Messages of the library, by the logger ``likeness``, and the progress of long work.

The library installs no handler, so a program that imports it gets warnings only. To silence these:
``logging.getLogger("likeness").setLevel("ERROR")``. Stages and the command line call :func:`show_messages`.
"""

import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Self

from likeness.core.text import escape_controls

LOG = logging.getLogger("likeness")
_LINES = 10  # of long work, where there is no terminal
_STEPS = 100  # of long work, for a bar of another process

Step = Callable[[int, str], None]
"""Takes the number of finished steps, and a note."""

MARK = "\x1e"
"""Begins a line with a :class:`Report` in JSON, see RFC 7464."""
REPORT = "LIKENESS_REPORT"
"""Environment variable: set where the process that started this one reads standard error as :class:`Report`."""


@dataclass(frozen=True)
class Report:
    """A line from another process.

    Attributes:
        text: the line, for a person; empty where nothing is to be shown without a bar.
        safe: the library wrote it, so nothing in it comes from private rows.
        done: finished steps of long work.
        total: all its steps; 0 where this is no progress.
        note: beside the bar.
    """

    text: str
    safe: bool = False
    done: int = 0
    total: int = 0
    note: str = ""

    @classmethod
    def read(cls, line: str) -> Self:
        """The report in a line; any line that is no report is text of somebody else."""
        if line.startswith(MARK):
            try:
                return cls(**json.loads(line.removeprefix(MARK)))
            except (TypeError, ValueError):
                return cls(line.removeprefix(MARK).rstrip())
        return cls(line.rstrip())

    def write(self) -> None:
        """Write it to standard error, in one piece."""
        sys.stderr.write(f"{MARK}{json.dumps(asdict(self))}\n")
        sys.stderr.flush()


class _StandardError(logging.Handler):
    """Writes each message in one piece to the present ``sys.stderr``, which may hold a bar."""

    def emit(self, record: logging.LogRecord) -> None:
        (listener() or show)(Report(record.getMessage(), safe=True))


Listen = Callable[[Report], None]
_LISTENERS: list[Listen] = []  # the last one listens


def show(report: Report) -> None:
    """Write the line of a report to the present standard error, which may hold bars."""
    if report.text or not report.safe:
        sys.stderr.write(f"{escape_controls(report.text) if report.safe else report.text}\n")
        sys.stderr.flush()


def listener() -> Listen | None:
    """Give the function that gets the messages of this process; None if they go to standard error."""
    return _LISTENERS[-1] if _LISTENERS else Report.write if REPORT in os.environ else None


@contextmanager
def heard_by(listen: Listen) -> Iterator[None]:
    """Let a function get all messages of the library in this process, and its progress."""
    handlers, level = LOG.handlers, LOG.level
    LOG.handlers = [_StandardError()]
    LOG.setLevel(logging.INFO)
    _LISTENERS.append(listen)
    try:
        yield
    finally:
        _LISTENERS.pop()
        LOG.handlers = handlers
        LOG.setLevel(level)


def show_messages() -> None:
    """Show all messages of the library on standard error. A sign that an output cannot write is written as its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
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
    if (listen := listener()) is not None:
        yield _reports(title, total, listen)
        return
    if not sys.stderr.isatty() or find_spec("rich") is None:  # training needs torch, numpy, safetensors and pyyaml only
        yield _evenly_spaced(_LINES, total, lambda done, note: LOG.info(_line(title, done, total, note)))
        return
    from rich import console
    from rich import progress as bars

    name, note = (bars.TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[note]"))
    columns = (name, bars.BarColumn(), bars.MofNCompleteColumn(), bars.TimeRemainingColumn(), note)
    with bars.Progress(*columns, console=console.Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total, note="")
        yield lambda done, note: bar.update(task, completed=done, note=note)


def _reports(title: str, total: int, listen: Listen) -> Step:
    """Reports for a bar elsewhere, and with each tenth the line for where it has no bar."""
    tenth = 0

    def report(done: int, note: str) -> None:
        nonlocal tenth
        passed, tenth = tenth, done * _LINES // total
        listen(Report(_line(title, done, total, note) if tenth > passed else "", True, done, total, note))

    return _evenly_spaced(_STEPS, total, report)


def _evenly_spaced(parts: int, total: int, show: Step) -> Step:
    """Show the first step in each of so many equal parts, independent of the clock."""
    passed = 0

    def step(done: int, note: str) -> None:
        nonlocal passed
        if done * parts // total > passed:
            passed = done * parts // total
            show(done, note)

    return step


def _line(title: str, done: int, total: int, note: str) -> str:
    return f"{title}: {done} of {total}{note and f', {note}'}"
