"""Running a stage: it reads settings, shows plain errors and marks its end."""

import contextlib
import json
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from likeness.core.errors import LikenessError
from likeness.core.extras import missing
from likeness.core.files import make_private_folder, write_privately
from likeness.core.messages import LOG, listener, show_messages
from likeness.core.paths import ProjectPaths
from likeness.core.refusals import storage_refusal
from likeness.core.retry import retry_on_disconnect
from likeness.core.yaml import load_written
from likeness.pipeline.project import Project

Stage = Callable[[Project], None]


@dataclass(frozen=True)
class Failure:
    """The end of a stage that failed: an exit code, and a message for the curator without private values."""

    code: int
    message: str


class Stopped(SystemExit):
    """A signal ends this process."""


def script(stage: str) -> str:
    """The file of a project that starts a stage."""
    return f'''"""{stage}: `likeness.stages` says what it reads, writes and spends."""

from likeness.pipeline.run_stage import run_stage
from likeness.stages.{stage} import main

if __name__ == "__main__":
    run_stage("{stage}", main)
'''


def run_stage(name: str, main: Stage, root: Path = Path()) -> None:
    """Run a stage of the project in a folder, as a script does: :func:`perform_stage` says how it ends.

    The exit code is 2 for a refusal, and 3 for a fault of the program. A message that somebody takes from the file is
    not printed.
    """
    show_messages()
    failure = perform_stage(name, main, root)
    if failure is not None:
        if listener() is None or not (root / ProjectPaths.markers / f"{name}.failed").exists():
            LOG.error(failure.message)
        sys.exit(failure.code)


def perform_stage(name: str, main: Stage, root: Path) -> Failure | None:
    """Run a stage in this process, and mark its end.

    An error raised on purpose gives its message, and so does a disk that is full or may not be written. Any other error
    might quote a private value, so it gives only its type and place. Its traceback goes to ``data/private/errors``. A
    stage whose connection to a database broke begins again, three times.

    Returns:
        how it failed; its message lies in a file too. None if it ended well.
    """
    paths = ProjectPaths(root)
    started = time.time()
    try:
        _announce(name, paths)
        retry_on_disconnect(lambda: main(Project.load(root)))
    except LikenessError as error:
        failure = Failure(2, f"{name}: {error}")
    except SystemExit as error:  # of a library: the stage did not end
        if isinstance(error, Stopped):
            raise
        failure = Failure(3, _keep_private(name, error, paths.failures))
    except Exception as error:
        refusal = storage_refusal(error) or missing(error, "it")
        failure = (
            Failure(2, f"{name}: {refusal}") if refusal else Failure(3, _keep_private(name, error, paths.failures))
        )
    else:
        marker = {"ended": time.time(), "seconds": round(time.time() - started, 3)}
        (paths.markers / f"{name}.json").write_bytes(json.dumps(marker).encode())
        return None
    with contextlib.suppress(OSError):
        write_privately(paths.markers / f"{name}.failed", failure.message)
    return failure


def _announce(name: str, paths: ProjectPaths) -> None:
    """Say which stage begins, and delete its last failure."""
    paths.markers.mkdir(parents=True, exist_ok=True)
    (paths.markers / f"{name}.failed").unlink(missing_ok=True)
    stages = load_written(paths.stages.read_text(encoding="utf-8"))["stages"] if paths.stages.exists() else {}
    if name in stages:
        LOG.info("[%2d/%d] %s: %s", [*stages].index(name) + 1, len(stages), name, stages[name].get("desc", ""))
    else:
        LOG.info(name)


def _keep_private(name: str, error: BaseException, target: Path) -> str:
    """A message that does not quote the error, whose text goes to a private file."""
    path = target / f"{name}.txt"
    with contextlib.suppress(OSError):  # of a full disk: its traceback would show this error, too
        for folder in (target.parent, target):
            make_private_folder(folder)
        write_privately(path, "".join(traceback.format_exception(error)))
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"{name}: unexpected {type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}. Its text may quote "
        f"private values, so at most {path} has it. Please report this line."
    )
