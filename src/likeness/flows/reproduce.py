"""A stage if it is out of date, recorded by DVC. Stages of Likeness run in this process, other commands in their own.

DVC's own library finds what is out of date, locks, restores and records: only the command of a stage is taken from it.
So ``dvc repro``, ``dvc status``, ``dvc push`` and ``dvc.lock`` know of no difference. Its lock is free while a stage
works. The process of another command ends with this one, also where a signal ends that.
"""

import contextlib
import copy
import ctypes
import gc
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from likeness.core.errors import LikenessError
from likeness.core.files import whole_file
from likeness.core.messages import LOG, MARK, REPORT, Listen, Report, heard_by
from likeness.core.paths import ProjectPaths, read_json
from likeness.pipeline.dvc_repair import dvc_environment, run_at_work, set_aside
from likeness.pipeline.run_stage import Stopped, perform_stage, script

Ending = Literal["Ran", "Restored", "UpToDate", "Failed"]

_PARTS = re.compile(f"(?={MARK})")
_ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has no SIGHUP
_MUCH = 400 << 20  # bytes; a small run stays below
_WORK: ContextVar["_Work"] = ContextVar("work")
"""Who runs the commands of DVC's stages; without one DVC does."""


@dataclass(frozen=True)
class Outcome:
    """The ending of a stage, and a message for a person, which holds no output of the stage but its error message."""

    ending: Ending
    message: str


def reproduce(
    root: Path, stage: str, listen: Listen, timeout: float = threading.TIMEOUT_MAX, force: bool = False
) -> Outcome:
    """Run a stage if it is out of date, or restore its outputs from DVC's cache.

    First, and after an exception, repair what a kill left of DVC's files. An exception, such as that of a signal, ends
    the stage and all that it started. A release survives.

    Args:
        root: the project's folder.
        stage: its name.
        listen: gets every line of the stage.
        timeout: seconds after which the stage is ended.
        force: run it in any case.

    Returns:
        the ending. No error of a stage is raised.
    """
    with contextlib.chdir(root):  # DVC looks for stages in the working folder, whatever its root is
        return _reproduce(stage, _Work(stage, listen, timeout), force)


def _reproduce(stage: str, work: "_Work", force: bool) -> Outcome:
    """Reproduce a stage of the project in the working folder."""
    from dvc.exceptions import DvcException

    _mend()
    for done in (ProjectPaths.typed_done, ProjectPaths.encoded_done):
        if not list(done.parent.glob("*.arrow")):
            done.unlink(missing_ok=True)  # or DVC would take for done what somebody deleted
    repository, token, log = _repository(), _WORK.set(work), logging.getLogger("dvc")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        changed = repository.reproduce(stage, single_item=True, force=force)
    except DvcException:
        other = "" if work.heard else run_at_work(Path())  # DVC begins no stage whose files another one uses
        return Outcome("Failed", work.message or f"{stage}: {other or f'it failed. {work.remedy}'}")
    except BaseException:
        _mend()
        raise
    finally:
        log.setLevel(level)
        _WORK.reset(token)
        repository.close()
    ending: Ending = "Ran" if work.began else "Restored" if changed else "UpToDate"
    return Outcome(ending, f"{stage}: {ending}")


def _repository() -> Any:
    """The project as DVC's library sees it. It asks :class:`_Work` to run commands, where there is one.

    It parses and validates a text once. It writes ``dvc.lock`` only where that changes, because a kill may cut a write
    in place. Lines of other stages stay: to write all again takes DVC 20 times as long, and gives equal bytes.
    """
    import dvc.stage.run as dvc_run
    from dvc.dvcfile import Lockfile
    from dvc.repo import Repo
    from dvc.stage.serialize import to_lockfile
    from dvc.utils import strictyaml
    from dvc.utils.serialize import _yaml, dumps_yaml

    if not hasattr(dvc_run.cmd_run, "by_dvc"):
        by_dvc, parse, dump = dvc_run.cmd_run, _yaml.parse_yaml, Lockfile.dump_stages
        cached, validate, valid = lru_cache(maxsize=8)(parse), strictyaml.validate, deque[Any](maxlen=8)

        def run_command(stage: Any, dry: bool = False, run_env: Any = None) -> None:
            work = None if dry else _WORK.get(None)
            by_dvc(stage, dry, run_env) if work is None else work.run(stage)

        def parse_once(text: str, path: str, typ: str = "safe") -> Any:
            return copy.deepcopy(cached(text, path)) if typ == "safe" else parse(text, path, typ)

        def validate_once(data: Any, schema: Any, text: str | None = None, **where: Any) -> Any:
            if text is None or (schema, text) not in valid:
                validate(data, schema, text, **where)
                valid.append((schema, text))
            return data

        def dump_changes(lock: Any, stages: Any, **options: Any) -> None:
            recorded = lock.load().get("stages", {}) if lock.exists() else {}
            for stage in stages:
                entry = to_lockfile(stage, **options)
                if recorded.get(stage.name) == entry[stage.name]:
                    continue
                path, block = Path(lock.path), dumps_yaml({"stages": entry}).partition("\n")[2]
                before = path.read_text(encoding="utf-8") if recorded else ""
                old = re.findall(rf"^  {re.escape(stage.name)}:\n(?: {{4}}.*\n)*", before, re.M)
                after = before.replace(old[0], block) if old else before + block
                is_known = len(old) == (stage.name in recorded) and recorded
                if is_known and parse_once(after, lock.path).get("stages") == {**recorded, **entry}:
                    with whole_file(path) as part:
                        part.write_text(after, encoding="utf-8")
                    lock.repo.scm_context.track_file(lock.relpath)
                else:
                    dump(lock, [stage], **options)

        run_command.by_dvc = by_dvc  # type: ignore[attr-defined]
        dvc_run.cmd_run, Lockfile.dump_stages = run_command, dump_changes
        _yaml.parse_yaml = strictyaml.parse_yaml = parse_once
        strictyaml.validate = validate_once
    site = dvc_environment(Path())["DVC_SITE_CACHE_DIR"]
    return Repo(config={"core": {"site_cache_dir": site}}, _wait_for_lock=True)


class _Work:
    """The command of one stage. DVC's lock is free while it works.

    Attributes:
        began: whether it was started. heard: whether it said anything.
        message: why it failed, for a person; empty if it did not.
    """

    def __init__(self, name: str, listen: Listen, timeout: float) -> None:
        self.name, self.timeout = name, timeout
        self.began = self.heard = False
        self.message, self.remedy = "", f"Run it alone to see why: dvc repro -s {name}"
        self._listen = listen

    def run(self, stage: Any) -> None:
        """Run the command of a stage of DVC, here or in a process.

        Raises:
            LikenessError: it failed, or took too long.
        """
        self.began = True
        in_reach = threading.current_thread() is threading.main_thread()  # of a signal, which ends a stage here
        try:
            self.message = self._run_in_process() if in_reach and self._is_ours(stage) else self._run_command(stage)
        except _OutOfTime:
            self.message = f"{self.name}: stopped after {self.timeout:g} s. {self.remedy}"
        if self.message:
            raise LikenessError(self.message)

    def hear(self, report: Report) -> None:
        """Pass a line on."""
        self.heard = True
        self._listen(report)

    def _is_ours(self, stage: Any) -> bool:
        """Tell whether the command starts a stage of Likeness here, by a file that nobody changed."""
        path = Path("stages", f"{self.name}.py")
        unchanged = path.exists() and path.read_text(encoding="utf-8") == script(self.name)
        return unchanged and stage.cmd == f"python -m stages.{self.name}" and Path(stage.wdir).samefile(Path())

    def _run_in_process(self) -> str:
        """Run a stage of Likeness in this process; memory that it needed is given back."""
        try:
            with _time_limit(self.timeout), heard_by(self.hear):
                failure = perform_stage(self.name, import_module(f"likeness.stages.{self.name}").main, Path())
            return failure.message if failure else ""
        except BaseException as error:
            stop = error
        finally:
            _give_memory_back()
        # It may come while the stage handles an error that quotes a cell: no traceback may show that one.
        stop.__cause__ = stop.__context__ = None
        raise stop.with_traceback(None)

    def _run_command(self, stage: Any) -> str:
        """Run a command by the shell, in a new group of processes, all of which an exception kills."""
        failure, late = ProjectPaths.markers / f"{self.name}.failed", threading.Event()
        failure.unlink(missing_ok=True)
        process = subprocess.Popen(
            stage.cmd if isinstance(stage.cmd, str) else " && ".join(stage.cmd),
            shell=True,
            cwd=stage.wdir,
            env={**dvc_environment(Path()), REPORT: "1", "DVC_ROOT": stage.repo.root_dir, "DVC_STAGE": self.name},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        assert process.stdout is not None

        def stop() -> None:
            late.set()
            kill(process)

        clock = threading.Timer(self.timeout, stop)
        clock.daemon = True
        clock.start()
        try:
            for line in process.stdout:
                # What a stage writes without an end of line stands before the mark.
                for part in filter(None, _PARTS.split(line)):
                    self.hear(Report.read(part))
            process.wait()
        except BaseException:
            kill(process)
            raise
        finally:
            clock.cancel()
        if late.is_set():
            raise _OutOfTime
        text = failure.read_text(encoding="utf-8") if failure.exists() else ""  # empty where the disk is full
        return (text or f"{self.name}: it failed. {self.remedy}") if process.returncode else ""


class _OutOfTime(BaseException):
    """The time of a stage is up. No handler of a stage takes it for an error of its own."""


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`_OutOfTime` in this main thread after so many seconds; on Windows never."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _OutOfTime

    if hasattr(signal, "setitimer"):
        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    else:
        yield


def _give_memory_back() -> None:
    """Give memory that nobody uses back to the system, where it is much: to look for it takes a tenth of a second."""
    import psutil  # DVC needs it

    if psutil.Process().memory_info().rss < _MUCH:
        return
    gc.collect()
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # of glibc
        ctypes.CDLL(None).malloc_trim(0)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise :class:`Stopped` with their exit code, as Ctrl-C raises KeyboardInterrupt.

    Cron's ``timeout``, systemd and a closed terminal send them. By default they end this process alone: DVC and its
    stage would go on, and spend. A signal that is ignored, as under ``nohup``, stays ignored.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        for signum in signums:  # ``timeout`` sends it twice: the second must not stop the kill of the stage
            signal.signal(signum, signal.SIG_IGN)
        raise Stopped(128 + number)

    signums = [signum for signum in _ENDS if signal.getsignal(signum) is signal.SIG_DFL]
    for signum in signums:
        signal.signal(signum, end)
    try:
        yield
    finally:
        for signum in signums:
            if signal.getsignal(signum) is end:
                signal.signal(signum, signal.SIG_DFL)


def _mend() -> None:
    """Mend what a kill left of DVC's files, and say so."""
    for line in set_aside(Path()):
        LOG.warning(line)


def kill(process: "subprocess.Popen[str]") -> None:
    """Kill a process that leads a group, and all that it started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:  # Windows ends no group of processes at once
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):
            first = psutil.Process(process.pid)
            for member in [first, *first.children(recursive=True)]:
                member.kill()
    process.wait()


def last_seconds(paths: ProjectPaths, stage: str) -> float | None:
    """Tell how long a stage took when it last ended well; None if it never did."""
    marker = paths.markers / f"{stage}.json"
    return float(read_json(marker)["seconds"]) if marker.exists() else None
