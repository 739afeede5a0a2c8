"""The stages of a run in one process: DVC finds what it would have written itself, however the run ends."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from unittest.mock import Mock, patch

import pytest
import yaml
from dvc.repo import Repo
from small_project import Clone

from likeness.flows.reproduce import ended_by_signals, reproduce
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger

RUN = ("likeness", "run", "--without", "evaluate")
# A child for each attempt, which has loaded everything already. After each stage, before DVC records it, it dies once.
KILLED = """
import os, signal, sys
from importlib import import_module
from pathlib import Path
from likeness.cli.app import main
from likeness.flows import ended_by_signals, reproduce
from likeness.stages import FOLDERS

for stage in ("settings", *FOLDERS):
    import_module(f"likeness.stages.{stage}")
perform, argv, starts = reproduce.perform_stage, ["likeness", "run", "--without", "evaluate"], 0

def dies(name, main, root):
    failure, mark = perform(name, main, root), Path(f"{name}.died")
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return failure

reproduce.perform_stage, sys.argv, status = dies, argv, 1
while status:
    starts += 1
    if not (child := os.fork()):
        main()
    _, status = os.waitpid(child, 0)
print("starts", starts)
"""


def check_record(project: Clone) -> None:
    """The lock file is what DVC writes over the same files, and DVC finds nothing out of date."""
    lock = project.bytes("dvc.lock")
    with project.here():
        repository = Repo(".")
        assert set(repository.status()) == {"settings", "fingerprint", "account", "evaluate", "track"}
        for stage in yaml.safe_load(lock)["stages"]:
            repository.commit(stage, force=True)
    assert project.bytes("dvc.lock") == lock


def test_a_run_starts_no_process_and_dvc_finds_its_own_record(alone: Clone) -> None:
    with patch.object(subprocess, "Popen", wraps=subprocess.Popen) as started:
        told = alone.run(*RUN)
    assert {call.args[0][0] for call in started.call_args_list} <= {"git", "uname"}
    assert "0 of 12 stages were up to date" in told
    check_record(alone)
    assert "9 of 12 stages were up to date" in alone.run(*RUN)
    check_record(alone)


@pytest.mark.slow
def test_a_run_that_is_killed_after_each_stage_releases_once_and_ends_with_the_same_record(alone: Clone) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=alone.root, env=alone.environment, capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "starts 13", done.stderr[-2000:]
    check_record(alone)
    with alone.here():
        kinds = [record.kind for record in Ledger.open(locate()).records()]
    assert kinds.count("reserve") == kinds.count("commit") == 7


def test_a_stage_with_another_command_or_script_is_a_process(alone: Clone) -> None:
    with (alone.root / "stages/settings.py").open("a") as file:
        file.write("print('a script of our own')\n")
    assert "a script of our own" in alone.run(*RUN, "--without", "fingerprint")


def test_an_error_that_quotes_a_cell_shows_its_type_and_place_only(
    alone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotes = Mock(side_effect=ValueError("cell 7f3e9"))
    monkeypatch.setattr("likeness.stages.settings.main", quotes)
    told = alone.run(*RUN, ok=False)
    assert "settings: unexpected ValueError at mock.py:" in told and "7f3e9" not in told
    assert "cell 7f3e9" in alone.bytes("data/private/errors/settings.txt").decode()
    shown = b"".join(
        path.read_bytes() for path in alone.root.rglob("*") if path.is_file() and "private" not in str(path)
    )
    assert b"7f3e9" not in shown


class Ended(BaseException):
    """As Prefect raises at SIGTERM: it has no argument without a name."""

    def __init__(self, *, signal: int) -> None:
        super().__init__()


@pytest.mark.parametrize("ends", [lambda: os.kill(os.getpid(), signal.SIGTERM), Mock(side_effect=Ended(signal=15))])
def test_a_signal_that_meets_an_error_of_a_stage_shows_nothing_of_it(
    alone: Clone, monkeypatch: pytest.MonkeyPatch, ends: Callable[[], None]
) -> None:
    def stopped(_: object) -> None:
        try:
            raise ValueError("cell 7f3e9")
        except ValueError:
            ends()
            time.sleep(60)

    monkeypatch.setattr("likeness.stages.settings.main", stopped)
    with alone.here(), ended_by_signals(), pytest.raises((SystemExit, Ended)) as stop:
        reproduce(Path(), "settings", print)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # after the first one it is ignored
    assert "7f3e9" not in "".join(traceback.format_exception(stop.value))


def test_a_project_runs_from_any_working_folder(alone: Clone, tmp_path: Path) -> None:
    """Also from another project: DVC by itself takes the stages of the working folder."""
    shutil.copytree(alone.root, tmp_path / "other", symlinks=True)
    for folder in (tmp_path, tmp_path / "other"):
        with alone.here(), contextlib.chdir(folder):
            assert reproduce(alone.root, "settings", print).ending == "Ran"
    assert (alone.root / "data/plan/settings.yaml").exists() and not (tmp_path / "other/data/plan").exists()


def test_a_stage_that_a_library_ends_has_failed(alone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likeness.stages.settings.main", lambda _: sys.exit())
    assert "settings: unexpected SystemExit" in alone.run(*RUN, ok=False)


def test_a_stage_that_takes_too_long_or_gets_a_signal_ends(alone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likeness.stages.settings.main", lambda _: time.sleep(60))
    with alone.here():
        outcome = reproduce(Path(), "settings", print, timeout=0.5)
    assert outcome.ending == "Failed" and outcome.message.startswith("settings: stopped after 0.5 s.")
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
    with alone.here() as output, patch.object(sys, "argv", list(RUN)), pytest.raises(SystemExit, match="143"):
        import_module("likeness.cli.app").main()
    assert "Nothing is lost: finished stages and releases stay" in output.getvalue()
