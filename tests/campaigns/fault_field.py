"""Where faults are tried: a small project with a ledger, children that can be hurt, and what must stay true.

Children are forks of one process that has everything imported but has run nothing, so that a trial takes seconds and
still goes through the real stages, the real door and the real ledger.
"""

import contextlib
import dataclasses
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from likeness.core.hashing import sha256_bytes
from likeness.privacy.calibration import rho_for
from tests.small_project import Clone, copy_project

ROOT = Path(__file__).parents[2]

IDENTITY = "fault-people"
EPSILON, ROOM = 1.0, 1e6  # of a plan; of a cap that nothing in a trial of kills reaches
CAP_RHO = rho_for(ROOM, 1e-5)
REFUSED = 2  # exit code of an error raised on purpose
AUXILIARY = ("class_counts", "steps", "histograms", "finer_histograms", "columns", "products", "second")
QUERIES = (*(f"auxiliary/{query}" for query in AUXILIARY), "embedding")  # of marginals, as shipped
RELEASED = tuple(f"data/released/{query}.safetensors" for query in QUERIES)


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a child ended: exit code (negative: signal), everything it printed, seconds."""

    code: int
    output: str
    seconds: float

    @property
    def clear(self) -> bool:
        """Whether it went well, or said why not in words meant for a person."""
        told = len(self.output.strip()) > 20 and "Traceback" not in self.output and "unexpected" not in self.output
        return self.code == 0 or (self.code == REFUSED and told)


@dataclasses.dataclass
class Field:
    """A project and its ledger; ``another`` is a second workspace beside it."""

    root: Path
    home: Path
    anchor: Path

    @classmethod
    def make(cls, folder: Path, epsilon: float, cap: float) -> "Field":
        """A project that is ready to spend: everything before the door has run."""
        root = folder / "project"
        root.mkdir(parents=True)
        copy_project(root)
        field = cls(root, folder / "ledger", folder / "anchor")
        field.set(
            method="marginals",
            privacy__epsilon=epsilon,
            privacy__population=IDENTITY,
            ledger__cap={"epsilon": cap, "delta": 1e-5},
        )
        made = field.child(_init_and_prepare)
        assert made.code == 0, made.output
        return field

    def another(self, root: Path) -> "Field":
        """A clone of the working folder, with the same ledger."""
        shutil.copytree(self.root, root, ignore=shutil.ignore_patterns(".git", ".dvc", "src"))
        return Field(root, self.home, self.anchor)

    def set(self, **values: Any) -> None:
        """Change params.yaml; keys with two underscores for a dot."""
        Clone(self.root).set(**values)

    def start(self, body: Callable[[], None], most_bytes: int | None = None) -> "Child":
        """Fork; the child works in the project's folder and may write files of ``most_bytes`` at most."""
        return Child(self, body, most_bytes)

    def child(self, body: Callable[[], None], most_bytes: int | None = None) -> Ended:
        """Fork, and wait."""
        return self.start(body, most_bytes).wait()

    def spend(self) -> Ended:
        """Run the stages that ask the door."""
        return self.child(spend)

    def records(self) -> list[dict[str, Any]] | str:
        """The ledger as the product reads it, by a child; or the message with which it is refused."""
        told = self.child(_print_records)
        if told.code:
            return told.output
        found: list[dict[str, Any]] = json.loads(told.output.splitlines()[-1])
        return found

    def released(self) -> dict[str, bytes]:
        """Released files in the working folder."""
        return {name: (self.root / name).read_bytes() for name in RELEASED if (self.root / name).exists()}

    def forget_released(self) -> None:
        """Empty the working folder of released files, as DVC does before it runs a stage."""
        shutil.rmtree(self.root / "data/released", ignore_errors=True)
        (self.root / "data/released").mkdir(parents=True)

    def broken_rules(self, cap_rho: float) -> list[str]:
        """What must never be, whatever happened; empty if all is well."""
        records = self.records()
        if isinstance(records, str):
            return [f"the ledger does not open: {records.strip()[:200]}"]
        reserved = [r["body"] for r in records if r["kind"] == "reserve"]
        committed = [r["body"] for r in records if r["kind"] == "commit"]
        wrong = []
        for name, bodies in (("reserved", reserved), ("committed", committed)):
            if len({body["key"] for body in bodies}) != len(bodies):
                wrong.append(f"a release was {name} twice")
        digests = {body["key"]: body["sha256"] for body in committed}
        for path in (self.home / "releases").glob("*.safetensors"):
            if digests.get(path.stem) != sha256_bytes(path.read_bytes()):
                wrong.append("a published file without its entry")
        known = set(digests.values())
        for name, data in self.released().items():
            # A kill may cut the copy in the working folder short; later stages refuse that file.
            if sha256_bytes(data) not in known and _whole(data):
                wrong.append(f"{name} is a whole release without an entry")
        spent = sum(float(body["rho"]) for body in reserved if body["identity"] == IDENTITY)
        if spent > cap_rho * (1 + 1e-9):
            wrong.append(f"spent rho {spent:.6g}, the cap is {cap_rho:.6g}")
        return wrong

    def recovered(self, cap_rho: float) -> list[str]:
        """After a fault: the next run succeeds, and the one after it gives the same bytes for nothing."""
        wrong = self.broken_rules(cap_rho)
        first = self.spend()
        if first.code != 0:
            return [*wrong, f"the next run failed: {first.output.strip()[:300]}"]
        bytes_now, records_now = self.released(), self.records()
        self.forget_released()
        second = self.spend()
        if second.code != 0 or self.released() != bytes_now:
            wrong.append("the run after gave other bytes")
        if self.records() != records_now:
            wrong.append("the run after was charged again")
        return [*wrong, *self.broken_rules(cap_rho)]


class Child:
    """A fork at work."""

    def __init__(self, field: Field, body: Callable[[], None], most_bytes: int | None) -> None:
        """Start it."""
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (read when the child has ended)
        self._started = time.monotonic()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid:
            return
        code = 70
        try:
            os.setsid()
            for stream in (1, 2):
                os.dup2(self._output.fileno(), stream)
            os.chdir(field.root)
            os.environ.update({"LIKENESS_HOME": str(field.home), "LIKENESS_ANCHOR": str(field.anchor)})
            if most_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
            body()
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def wait(self) -> Ended:
        """Until it ends."""
        _, status = os.waitpid(self.pid, 0)
        self._output.seek(0)
        told = self._output.read().decode(errors="replace")
        return Ended(os.waitstatus_to_exitcode(status), told, time.monotonic() - self._started)

    def kill(self, after: float, number: int = signal.SIGKILL) -> Ended:
        """Send a signal after so many seconds, wherever it is then."""
        time.sleep(max(0.0, after - (time.monotonic() - self._started)))
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
        return self.wait()


class Grounds:
    """Fields to try things on: one that every trial of a kind shares, with another slot each time."""

    def __init__(self, folder: Path) -> None:
        """Make the shared one."""
        self.folder = folder
        self.shared = Field.make(folder / "shared", EPSILON, ROOM)
        self.seconds = self._measure()

    def fresh(self, name: str, cap: float = ROOM) -> Field:
        """A field with a ledger of its own, which may be ruined."""
        target = self.folder / name
        shutil.rmtree(target, ignore_errors=True)
        return Field.make(target, EPSILON, cap)

    def slot(self, name: str) -> Field:
        """The shared field, about to make releases of its own."""
        self.shared.set(ledger__attempt=name)
        self.shared.forget_released()
        return self.shared

    def _measure(self) -> float:
        done = [self.slot(f"measure {trial}").spend() for trial in range(2)]
        assert all(one.code == 0 for one in done), done[-1].output
        return done[-1].seconds


def spend() -> None:
    """The stages that ask the door, as ``python -m stages.NAME`` runs them."""
    from likeness.pipeline.run_stage import run_stage
    from likeness.stages import auxiliary, privatize

    run_stage("auxiliary", auxiliary.main)
    run_stage("privatize", privatize.main)


def check() -> None:
    """What a later stage does first: refuse released files that the ledger does not know."""
    from likeness.pipeline.project import Project
    from likeness.pipeline.run_stage import run_stage

    def main(project: Project) -> None:
        project.check_known(project.paths.released_files)

    run_stage("train", main)


def preload() -> None:
    """Import what the stages need, so that forks need not; run nothing of it: threads do not survive a fork."""
    import opendp.prelude
    import pandas
    import pyarrow.parquet
    import scipy.optimize

    import likeness.data.private_tables
    import likeness.pipeline.run_stage
    from likeness.stages import auxiliary, fingerprint, ingest, plan, preprocess, privatize

    used = opendp, pandas, pyarrow, scipy, likeness, auxiliary, fingerprint, ingest, plan, preprocess, privatize
    assert all(used)


def _init_and_prepare() -> None:
    from likeness.ledger.home import locate
    from likeness.ledger.ledger import Ledger
    from likeness.pipeline.run_stage import run_stage
    from likeness.stages import fingerprint, ingest, plan, preprocess

    Ledger.create(locate())
    for name, stage in (("fingerprint", fingerprint), ("ingest", ingest), ("plan", plan), ("preprocess", preprocess)):
        run_stage(name, stage.main)


def _print_records() -> None:
    from likeness.core.errors import LikenessError
    from likeness.core.hashing import json_value
    from likeness.ledger.home import locate
    from likeness.ledger.ledger import Ledger

    try:
        records = Ledger.open(locate()).records()
    except LikenessError as error:
        print(error)
        sys.exit(REFUSED)
    print(json.dumps([json_value(record._asdict()) for record in records]))


def _whole(data: bytes) -> bool:
    from likeness.core.errors import ReleaseError
    from likeness.release.released import from_bytes

    try:
        from_bytes(data, "file")
    except ReleaseError:
        return False
    return True


@contextlib.contextmanager
def saved(folder: Path) -> Iterator[None]:
    """Put a folder back as it was, file by file."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "copy"
        shutil.copytree(folder, copy)
        try:
            yield
        finally:
            shutil.rmtree(folder)
            shutil.copytree(copy, folder)
