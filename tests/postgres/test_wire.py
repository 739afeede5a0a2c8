"""Rows that stay in a real PostgreSQL: what its wire carries, and what a cut, a kill and a change leave behind."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from small_project import write_project_files
from sqlalchemy import create_engine
from test_counted_rows import ASKED, run

from likeness.core.errors import DataError
from likeness.core.paths import ProjectPaths
from likeness.features.cells import Cells
from likeness.ledger.ledger import Ledger
from likeness.pipeline.project import Project
from likeness.release.released import load_released
from likeness.stages import auxiliary
from likeness_postgres.backend import PostgresCounts

COUNTS = b"likeness_cells"  # in a statement that counts
TYPED = b"likeness_parts"  # and in each


@dataclass
class Wire:
    """A proxy before the socket of a server. It counts bytes, and what it sees may cut the connection.

    Attributes:
        server: folder of the server's socket.
        folder: of its own.
        cuts: whether bytes to the server cut the connection, instead of reaching it.
        came: bytes from the server.
    """

    server: Path
    folder: str
    cuts: Callable[[bytes], object] = bytes.isspace
    came: int = 0
    _heard: socket.socket = field(default_factory=lambda: socket.socket(socket.AF_UNIX))

    def start(self) -> None:
        self._heard.bind(f"{self.folder}/.s.PGSQL.5432")
        self._heard.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            here, there = self._heard.accept()[0], socket.socket(socket.AF_UNIX)
            there.connect(f"{self.server}/.s.PGSQL.5432")
            for source, target in ((here, there), (there, here)):
                threading.Thread(target=self._pump, args=(source, target, target is here), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, comes: bool) -> None:
        while data := source.recv(1 << 20):
            self.came += len(data) if comes else 0
            if not comes and self.cuts(data):
                break
            target.sendall(data)
        for one in (source, target):
            with suppress(OSError):  # the other thread did it
                one.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def wire(cluster: Path) -> Iterator[Wire]:
    """A server with a table, a role that may only read it, and a proxy."""
    with TemporaryDirectory(prefix="wire") as place:
        one = Wire(cluster, place)
        one.start()
        yield one


@pytest.fixture
def project(wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project after stage ``plan``, whose role may neither write nor make temporary tables."""
    for name in ("LIKENESS_HOME", "LIKENESS_MLFLOW_URI"):
        monkeypatch.delenv(name)
    root, wire.cuts = tmp_path / "people", bytes.isspace
    source = f"postgresql+psycopg://reader@/postgres?host={wire.folder}"
    table = write_project_files(root, {"categories": ["clerk", "nurse"]}, source=source, query="staff", rows="stay")
    written(wire, table.to_sql)
    Ledger.create(Project.load(root).ledger_session.home)
    monkeypatch.chdir(root)
    run(root, [name for name in ASKED[:6] if name != "categories"])
    return root


def written(wire: Wire, use: Callable[..., object] | str) -> None:
    """Write the table, or change it, as its owner."""
    engine = create_engine(f"postgresql+psycopg://owner@/postgres?host={wire.server}")
    if not isinstance(use, str):
        use("staff", engine, index=False, if_exists="replace")
    words = (
        "DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN; REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC; "
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC; GRANT SELECT ON staff TO PUBLIC"
    )
    with engine.begin() as connection:
        for statement in (use if isinstance(use, str) else words).split(";"):
            connection.exec_driver_sql(statement)
    engine.dispose()


def reserved() -> int:
    return [record.kind for record in Project.load(Path()).ledger.records()].count("reserve")


def test_a_cut_connection_is_an_error_that_says_so_and_the_next_run_pays_once(project: Path, wire: Wire) -> None:
    wire.cuts = lambda data: TYPED in data
    with pytest.raises(DataError, match=r"refuses ingest\.query"):
        auxiliary.main(Project.load(project))
    assert reserved() == 0
    wire.cuts = lambda data: COUNTS in data
    with pytest.raises(DataError, match=r"refuses ingest\.query"):
        auxiliary.main(Project.load(project))
    assert reserved() == 1 and not ProjectPaths(project).auxiliary_files
    wire.cuts = bytes.isspace
    run(project, ["auxiliary"])
    receipts = [load_released(path).receipt for path in ProjectPaths(project).auxiliary_files]
    assert reserved() == len(receipts) > 3
    assert all(receipt.backend.startswith("postgres ") for receipt in receipts)


def test_a_cell_that_is_counted_takes_few_bytes_of_the_wire(project: Path, wire: Wire) -> None:
    counts = Project.load(project).counts
    assert isinstance(counts, PostgresCounts)
    rows = counts.rows()
    wire.came = 0
    rows.counts([], 1, False)
    before, wire.came = wire.came, 0
    ((counts,), sums) = rows.counts([[Cells(0, 1000, tuple(np.arange(1, 1000) / 1000))]], 2, True)
    assert counts.sum() == sums.count > 600
    assert wire.came < before + 10 * np.count_nonzero(counts), (wire.came, before)


def test_a_process_that_is_killed_while_the_server_counts_has_paid_and_the_next_one_draws(
    project: Path, wire: Wire
) -> None:
    code = "from likeness.pipeline.project import Project; from likeness.stages import auxiliary; "
    code += "from pathlib import Path; auxiliary.main(Project.load(Path()))"
    counting, killed = threading.Event(), threading.Event()

    def cuts(data: bytes) -> bool:
        if COUNTS in data:
            counting.set()
            killed.wait(300)
        return False

    wire.cuts = cuts
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    assert counting.wait(300)
    process.send_signal(signal.SIGKILL)
    assert process.wait(300) == -9
    wire.cuts = bytes.isspace
    killed.set()
    assert reserved() == 1
    run(project, ["auxiliary"])
    assert reserved() == len(ProjectPaths(project).auxiliary_files)


def test_rows_that_change_between_two_questions_are_not_released(project: Path, wire: Wire) -> None:
    def cuts(data: bytes) -> bool:
        if COUNTS in data:
            written(wire, "UPDATE staff SET x = .5 WHERE x = (SELECT MIN(x) FROM staff)")
        return False

    wire.cuts = cuts
    with pytest.raises(DataError, match="Nothing was released, and the cost of this query stays on record"):
        auxiliary.main(Project.load(project))
    assert reserved() == 1 and not ProjectPaths(project).auxiliary_files
