"""Whole nights of :mod:`nights`: ``python -m flows.synthesize`` on a Prefect server, hurt and run again."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psutil

from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from tests.campaigns.fault_field import CAP_RHO, ROOT, Field, spend
from tests.campaigns.fault_runs import command

REMEDY = "likeness ledger recover"
NEW_ROWS = 5
MOST_SECONDS = 1200.0  # of a run


class PrefectServer:
    """``prefect server start`` on a free port, with a database that stays when it is killed."""

    def __init__(self, home: Path) -> None:
        """Start it."""
        self.home = home
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/api"
        self.start()

    def start(self) -> None:
        """Until it answers."""
        words = [sys.executable, "-m", "prefect", "server", "start", "--no-ui", "--port", str(self.port)]
        environment = {**os.environ, "PREFECT_HOME": str(self.home)}
        self.process = subprocess.Popen(
            words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        deadline = time.monotonic() + 240
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=2):
                    return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(1)

    def kill(self) -> None:
        """kill -9 of it and its children."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Nights:
    """Whole runs of one project, each with more rows, on one server."""

    def __init__(self, folder: Path, field: Field) -> None:
        """A project with the flow's files, and a server."""
        self.field = field
        for name in ("flows", "prefect.toml"):
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, field.root / name)
        field.set(marginals__train__iterations=50, evaluate__classifiers=["logistic_regression"])
        self.server = PrefectServer(folder / "prefect")
        self.seconds = 60.0
        os.environ.update({"LIKENESS_HOME": str(field.home), "LIKENESS_ANCHOR": str(field.anchor)})

    def run(self, night: int, fault: str) -> list[str]:
        """One night, hurt once; what is wrong, and notes in brackets."""
        dice = random.Random(f"run {night}")
        self._more_rows(dice)
        told = RUN_FAULTS[fault](self, dice)
        told += self.field.broken_rules(CAP_RHO)
        code, text, seconds = self._flow()  # the next run, by itself
        if code:
            told.append(f"the next run failed: {text[-300:]}")
        elif not fault:
            self.seconds = seconds
        if "Traceback" in text:
            told.append(f"a traceback: {text[-300:]}")
        released, records = self.field.released(), self.field.records()
        self.field.forget_released()
        again = self.field.child(spend)  # the run after it
        if again.code or self.field.released() != released or self.field.records() != records:
            told.append(f"the run after gave other bytes, or was charged: {again.output.strip()[-200:]}")
        return [*told, *self.field.broken_rules(CAP_RHO)]

    def hurt(self, dice: random.Random, hurt: Callable[["subprocess.Popen[str]"], None], most_bytes: int = 0) -> str:
        """A flow that something hurts at a random moment; what it said."""
        code, text, _ = self._flow(dice.uniform(0.05, 1) * self.seconds, hurt, most_bytes)
        return text if code else f"{text}(too late)"

    def _flow(
        self,
        after: float = MOST_SECONDS,
        hurt: Callable[["subprocess.Popen[str]"], None] | None = None,
        most_bytes: int = 0,
    ) -> tuple[int, str, float]:
        started = time.monotonic()
        with tempfile.TemporaryFile("w+") as output:
            process = command(self.field, output, "flows.synthesize", PREFECT_API_URL=self.server.url)
            if most_bytes:
                subprocess.run(["prlimit", f"--fsize={most_bytes}", "--pid", str(process.pid)], check=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(after)
            if process.poll() is None and hurt is not None:
                hurt(process)
            process.wait(MOST_SECONDS)
            output.seek(0)
            return process.returncode, output.read().strip(), time.monotonic() - started

    def _more_rows(self, dice: random.Random) -> None:
        table = self.field.root / "table.csv"
        lines = table.read_text().splitlines(keepends=True)
        table.write_text("".join([*lines, *dice.sample(lines[1:], NEW_ROWS)]))


def _unhurt(nights: Nights, dice: random.Random) -> list[str]:
    return []


def _signal(number: signal.Signals) -> Callable[[Nights, random.Random], list[str]]:
    def run(nights: Nights, dice: random.Random) -> list[str]:
        text = nights.hurt(dice, lambda process: os.killpg(process.pid, number))
        return [f"a traceback: {text[-300:]}"] if "Traceback" in text else []

    return run


def _kill_stage(nights: Nights, dice: random.Random) -> list[str]:
    """As the kernel does where memory ends: the newest process of the flow dies alone."""

    def hurt(process: "subprocess.Popen[str]") -> None:
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):
            psutil.Process(process.pid).children(recursive=True)[-1].kill()

    text = nights.hurt(dice, hurt)
    return [f"a traceback: {text[-300:]}"] if "Traceback" in text else []


def _kill_server(nights: Nights, dice: random.Random) -> list[str]:
    """It is there again only after the run has ended."""
    text = nights.hurt(dice, lambda process: nights.server.kill())
    if nights.server.process.poll() is None:
        return ["(too late)"]
    nights.server.start()
    return (
        [f"a traceback: {text[-300:]}"] if "Traceback" in text else ["(survived)" if "too late" in text else "(failed)"]
    )


def _small_files(nights: Nights, dice: random.Random) -> list[str]:
    """No file of the flow and its stages may grow beyond a random size: quota and full disks look like this."""
    text = nights.hurt(dice, lambda process: None, most_bytes=dice.choice([4096, 40_000, 100_000, 200_000]))
    return ["(had room)" if "too late" in text else "(refused)"]


def _restored_backup(nights: Nights, dice: random.Random) -> list[str]:
    """The ledger's folder of the night before: the run is refused, and names the command that helps."""
    home = nights.field.home
    backup = home.with_name("backup")
    shutil.rmtree(backup, ignore_errors=True)
    shutil.copytree(home, backup)
    code, text, _ = nights._flow()
    wrong = [f"it failed: {text[-300:]}"] if code else []
    shutil.rmtree(home)
    shutil.copytree(backup, home)
    nights._more_rows(dice)
    code, text, _ = nights._flow()
    wrong += [] if code and REMEDY in text else [f"no remedy: {text[-300:]}"]
    with tempfile.TemporaryFile("w+") as output:
        process = command(nights.field, output, *REMEDY.split())
        wrong += [f"{REMEDY} failed"] if process.wait(MOST_SECONDS) else []
    return [*wrong, f"({REMEDY})"]


def _cut_connections(nights: Nights, dice: random.Random) -> list[str]:
    """All connections of the run to PostgreSQL end, at four random moments."""

    def hurt(process: "subprocess.Popen[str]") -> None:
        for _ in range(4):
            with Ledger.open(locate())._engine.begin() as connection:
                connection.exec_driver_sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'likeness' AND pid <> pg_backend_pid()"
                )
            time.sleep(dice.uniform(0, nights.seconds / 8))

    text = nights.hurt(dice, hurt)
    return ["(went on)"] if "too late" in text else [f"it failed: {text[-300:]}"]


RUN_FAULTS: dict[str, Callable[[Nights, random.Random], list[str]]] = {
    "": _unhurt,
    "kill -9 of the flow": _signal(signal.SIGKILL),
    "kill -9 of a stage": _kill_stage,
    "kill -9 of the server": _kill_server,
    "SIGTERM of the flow": _signal(signal.SIGTERM),
    "Ctrl-C": _signal(signal.SIGINT),
    "small files": _small_files,
    "restored backup": _restored_backup,
    "cut connections": _cut_connections,
}
OF_SQLITE, OF_POSTGRES = (
    tuple(name for name in RUN_FAULTS if name != other) for other in ("cut connections", "restored backup")
)
