"""A bar with the time left for each stage of a run on a terminal; elsewhere the lines of the stages."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.progress_bar import ProgressBar
from rich.text import Text

from likeness.core.messages import Listen, Report, show

StageBar = Callable[[str, float | None], AbstractContextManager[Listen]]
"""Takes the name of a stage and the seconds of its last run."""


@contextmanager
def stage_bars() -> Iterator[StageBar]:
    """Show the stages of a run on standard error. The bar of a finished stage stays, with its time."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines
        return
    name, note = (TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[note]"))
    with Progress(name, _Bar(bar_width=30), _Time(), note, console=console) as progress:

        @contextmanager
        def bar(stage: str, seconds: float | None) -> Iterator[Listen]:
            task = progress.add_task(f"{stage:<11}", total=None, seconds=seconds, note="")
            heard = False

            def listen(report: Report) -> None:
                nonlocal heard
                heard = True
                if report.total:
                    progress.update(task, total=report.total, completed=report.done, note=report.note)
                elif not report.text.startswith("["):  # the announcement, which the bar says
                    show(report)

            yield listen
            # A stage that is up to date says nothing.
            progress.update(task, total=1, completed=1, note="", visible=heard)

        yield bar


@contextmanager
def _lines(_stage: str, _seconds: float | None) -> Iterator[Listen]:
    yield show


class _Bar(BarColumn):
    """A bar by the steps of a stage or, without steps, by the seconds of its last run."""

    def render(self, task: Task) -> ProgressBar:
        bar = super().render(task)
        if task.total is None and task.fields["seconds"]:
            bar.total, bar.completed, bar.pulse = *_last_run_seconds(task), False
        return bar


class _Time(ProgressColumn):
    """The time left, by the steps of a stage or by its last run; the time that it took, when it has ended."""

    def render(self, task: Task) -> Text:
        left = task.time_remaining
        if task.finished:
            return Text(f"{_clock(task.finished_time or 0)}     ", style="progress.elapsed")
        if task.total is None and task.fields["seconds"]:
            total, elapsed = _last_run_seconds(task)
            left = total - elapsed
        return Text(f"{'-:--:--' if left is None else _clock(left)} left", style="progress.remaining")


def _last_run_seconds(task: Task) -> tuple[float, float]:
    """Seconds of the last run, and those so far, which are at most as many."""
    seconds = float(task.fields["seconds"])
    return seconds, min(task.elapsed or 0.0, seconds)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
