"""A run whose rows stay in their database: nothing of a row is kept, and the ledger knows the rows from elsewhere.

What the wire of a real PostgreSQL carries, and what a cut, a kill and a change leave behind.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import yaml
from small_project import write_project_files, write_settings
from sqlalchemy import create_engine
from test_statements import change as at_once
from test_statements import write as write_table
from typer.testing import CliRunner
from verdicts import verify

from likeness.bundle.write import write_bundle
from likeness.cli.app import app
from likeness.core.errors import BudgetError, DataError, ParamsError, ReleaseError
from likeness.core.paths import ProjectPaths, read_json
from likeness.data.private_tables import read_manifest, read_private
from likeness.data.source.databases import Database
from likeness.features.cells import Cells
from likeness.ledger.ledger import Ledger
from likeness.methods.base import class_counts_query
from likeness.pipeline.account import account
from likeness.pipeline.doors import door
from likeness.pipeline.project import Project
from likeness.pipeline.run_stage import run_stage
from likeness.preflight.downstream_checks import check_ahead
from likeness.preflight.faults import examine
from likeness.release.released import load_released
from likeness.stages import auxiliary, categories, ingest, settings
from likeness_postgres.backend import PostgresCounts
from likeness_postgres.reader import PostgresReader

ASKED = ["settings", "fingerprint", "ingest", "plan", "categories", "preprocess", "auxiliary", "privatize"]
LATER = ["train", "sample", "evaluate", "account", "report"]


def run(root: Path, stages: list[str]) -> None:
    for name in stages:
        run_stage(name, import_module(f"stages.{name}").main, root)


def change(**changed: object) -> None:
    """Set values in params.yaml, at keys whose dots are two underscores."""
    write_settings(yaml.safe_load(Path("params.yaml").read_text()), changed)


@pytest.fixture
def project(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a database and, with the same rows, a CSV file."""
    for name in ("LIKENESS_HOME", "LIKENESS_MLFLOW_URI"):
        monkeypatch.delenv(name)
    root = tmp_path / "people"
    table = write_project_files(
        root, {"categories": "private", "other": "rest"}, source=url, query="SELECT * FROM staff", rows="stay"
    )
    with (root / "schema.yaml").open("a") as file:
        file.write("rules: [{if: {x: < 0.2}, then: {sick: 'no'}}]\n")
    table["pid"] = [f"p{place % 420}" for place in range(len(table))]
    table.to_csv(root / "rows.csv", index=False)
    write_table(url, "staff", table)
    Ledger.create(Project.load(root).ledger_session.home)
    monkeypatch.chdir(root)
    return root


@pytest.mark.long
def test_a_whole_run_leaves_the_rows_where_they_are(project: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as nobody_reads:
        nobody_reads.setattr("likeness.data.source.databases.Database.read", None)
        nobody_reads.setattr("likeness.data.source.databases.Database.fingerprint", None)
        statements, answers = list[str](), Database.answers
        nobody_reads.setattr(Database, "answers", lambda self, texts: statements.extend(texts) or answers(self, texts))
        run(project, [*ASKED, *LATER])
    # One look for two stages, texts twice, one for each round of numbers, and one for pairs, products and embedding.
    assert len(statements) == 9, [text[-300:] for text in statements]
    paths = ProjectPaths(project)
    assert len(read_private(paths.table)) == len(read_private(paths.encoded)) == 0
    receipts = [load_released(path).receipt for path in paths.released_files]
    assert all(receipt.backend.startswith("postgres ") for receipt in receipts)
    printed = CliRunner().invoke(app, ["sql"], catch_exceptions=False).output
    assert all(f"-- {receipt.query}: {receipt.backend.split()[1]}" in printed for receipt in receipts)
    notes = read_json(paths.privacy)["notes"]
    assert any("stay in their database (postgres)" in note for note in notes)
    assert "no comparison with real rows" in paths.internal_report.read_text()
    write_bundle(Project.load(project), account(Project.load(project)), project / "bundle.zip")
    assert not [check for check in verify(project / "bundle.zip") if check.passed is False]
    ledger, released = Project.load(project).ledger, [path.read_bytes() for path in paths.released_files]
    spent = len(ledger.records())
    for source, query, rows in (("rows.csv", None, "come"), (url, "staff", "come"), (url, "staff", "stay")):
        change(ingest__source=source, ingest__query=query, ingest__rows=rows)
        run(project, ASKED)
        again = [path.read_bytes() for path in paths.released_files]
        assert again == released and len(Project.load(project).ledger.records()) == spent
    assert len(read_private(paths.table)) == 0
    change(privacy__population="others", ingest__split={"test_fraction": 0.3, "seed": 99})
    for source, query, rows in ((url, "staff", "stay"), ("rows.csv", None, "come")):
        change(ingest__source=source, ingest__query=query, ingest__rows=rows)
        settings.main(Project.load(project))
        with pytest.raises(BudgetError, match="accounted under population"):
            ingest.main(Project.load(project))


@pytest.mark.long
def test_rows_of_people_are_bounded_where_they_are(project: Path, url: str) -> None:
    """Two of a person's two or three rows: the release of a file is known, so nothing more is spent."""
    change(privacy__unit="one person", ingest__unit={"column": "pid", "max_rows": 2})
    released = []
    for source, query, rows in (("rows.csv", None, "come"), (url, "staff", "stay")):
        change(ingest__source=source, ingest__query=query, ingest__rows=rows)
        run(project, ASKED)
        released.append([path.read_bytes() for path in ProjectPaths(project).released_files])
        kinds = [record.kind for record in Project.load(project).ledger.records()]
        assert kinds.count("reserve") == len(released[0])
    assert released[0] == released[1]
    given = Project.load(project)
    opened = door(given)
    assert isinstance(opened.read, PostgresReader)
    others = replace(opened.read, rows=replace(opened.read.rows, unit=None))
    with pytest.raises(ReleaseError, match="bounds the rows of people otherwise than plan"):
        replace(opened, read=others)._backend(class_counts_query(given.row_sets[0].context))


def test_rows_that_change_after_ingest_are_not_released(project: Path, url: str) -> None:
    run(project, ASKED[:4])
    at_once(url, "UPDATE staff SET x = 0.5 WHERE x = (SELECT MIN(x) FROM staff)")
    with pytest.raises(DataError, match=r": the rows changed since they were ingested\. Nothing more was spent"):
        categories.main(Project.load(project))
    assert "reserve" not in {record.kind for record in Project.load(project).ledger.records()}
    assert not ProjectPaths(project).category_files
    before = read_manifest(ProjectPaths(project).table)["digest"]
    run(project, ["ingest"])
    assert read_manifest(ProjectPaths(project).table)["digest"] != before  # which looked again


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("tracking__internal_metrics", True, "tracking.internal_metrics asks for comparisons with real rows"),
        ("method", "merf", "method merf asks for more than counts of cells"),
        ("ingest__query", "SELECT 'u' AS job, CAST(B'1' AS bit) AS x, sick FROM staff", "column 'x': its type"),
    ],
    ids=["metrics", "method", "type"],
)
def test_why_rows_have_to_come_is_said(project: Path, key: str, value: object, reason: str) -> None:
    change(**{key: value})
    with pytest.raises((DataError, ParamsError), match=reason):
        CliRunner().invoke(app, ["sql"], catch_exceptions=False)
        check_ahead(Project.load(project))


def test_check_says_that_a_column_cannot_be_counted(project: Path) -> None:
    change(ingest__query="SELECT 'u' AS job, CAST(B'1' AS bit) AS x, sick FROM staff")
    (fault,) = examine(project).faults
    assert "rows have to come here: column 'x': its type" in fault.text


COUNTS = b"likeness_cells"  # in a statement that counts


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
def wired(wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


def test_a_cut_connection_is_an_error_that_says_so_and_the_next_run_pays_once(wired: Path, wire: Wire) -> None:
    wire.cuts = lambda data: COUNTS in data
    with pytest.raises(DataError, match=r"refuses ingest\.query"):
        auxiliary.main(Project.load(wired))
    assert reserved() == 0 and not ProjectPaths(wired).auxiliary_files
    wire.cuts = bytes.isspace
    run(wired, ["auxiliary"])
    receipts = [load_released(path).receipt for path in ProjectPaths(wired).auxiliary_files]
    assert reserved() == len(receipts) > 3
    assert all(receipt.backend.startswith("postgres ") for receipt in receipts)


def test_a_cell_that_is_counted_takes_few_bytes_of_the_wire(wired: Path, wire: Wire) -> None:
    counts = Project.load(wired).counts
    assert isinstance(counts, PostgresCounts)
    rows = counts.rows()
    wire.came = 0
    rows.counts([], 1, False)
    before, wire.came = wire.came, 0
    ((counts,), sums) = rows.counts([[Cells(0, 1000, tuple(np.arange(1, 1000) / 1000))]], 2, True)
    assert counts.sum() == sums.count > 600
    assert wire.came < before + 10 * np.count_nonzero(counts), (wire.came, before)


def test_a_process_that_is_killed_while_the_server_counts_has_paid_nothing(wired: Path, wire: Wire) -> None:
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
    assert reserved() == 0
    run(wired, ["auxiliary"])
    assert reserved() == len(ProjectPaths(wired).auxiliary_files)


def test_rows_that_change_between_two_questions_are_not_released(wired: Path, wire: Wire) -> None:
    def cuts(data: bytes) -> bool:
        if COUNTS in data:
            written(wire, "UPDATE staff SET x = .5 WHERE x = (SELECT MIN(x) FROM staff)")
        return False

    wire.cuts = cuts
    with pytest.raises(DataError, match="Nothing more was spent on this query"):
        auxiliary.main(Project.load(wired))
    assert reserved() == 0 and not ProjectPaths(wired).auxiliary_files


def test_a_cost_without_room_asks_nothing(wired: Path, wire: Wire) -> None:
    change(privacy__epsilon=11.0)
    run(wired, ["settings", "plan"])
    wire.cuts = lambda data: COUNTS in data
    with pytest.raises(BudgetError, match=r"The lifetime cap is epsilon 10 .* No private row was read"):
        auxiliary.main(Project.load(wired))
