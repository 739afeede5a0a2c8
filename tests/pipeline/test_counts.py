"""Rows that stay need a wing that counts them: where it is missing, one sentence says how to have it."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import yaml

from likeness.core.errors import LikenessError, MissingPackageError
from likeness.core.wings import Wings
from likeness.data.source.databases import Database
from likeness.ledger.ledger import Ledger
from likeness.pipeline import counts
from likeness.pipeline.project import Project
from likeness.pipeline.run_stage import run_stage
from likeness.preflight.faults import examine
from likeness.stages import ingest

ROOT = Path(__file__).parents[2]
COLUMNS = {"x": {"kind": "integer", "lower": 0, "upper": 9}}
SCHEMA = {
    "name": "t",
    "source": "made up",
    "task": "none",
    "columns": {"x": {"kind": "integer", "lower": 0, "upper": 9}},
}
REMEDY = r"is not installed here\. Run: pip install --force-reinstall --no-deps likeness-dp"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose rows stay, with a ledger."""
    monkeypatch.delenv("LIKENESS_HOME")
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["ingest"] = {
        "source": "postgresql+psycopg://host/db",
        "query": "t",
        "schema": "schema.yaml",
        "rows": "stay",
    }
    content["ledger"] = {"home": "ledger"}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content))
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(SCHEMA))
    monkeypatch.chdir(tmp_path)
    Ledger.create(Project.load(tmp_path).ledger_session.home)
    return Project.load(tmp_path)


@pytest.mark.parametrize("declared", [{}, {"postgresql": EntryPoint("postgresql", "likeness_absent:Counts", "")}])
def test_a_missing_wing_is_refused_by_name(
    project: Project, declared: dict[str, EntryPoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    wings: Wings[type[counts.CountBackend]] = Wings("likeness.counts", {})
    vars(wings)["_entry_points"] = declared
    monkeypatch.setattr(counts, "COUNTS", wings)
    name = "likeness_absent" if declared else "It"
    with pytest.raises(
        MissingPackageError, match=f"rows: stay needs the part .* counts in postgresql. {name} {REMEDY}"
    ):
        _ = project.counts
    monkeypatch.setattr(Database, "columns", lambda _: ["x"])
    monkeypatch.setattr(Database, "types", lambda _: {"x": ("x", "int8")})
    assert any("ingest.rows: stay needs the part of Likeness" in fault.text for fault in examine().faults)
    with pytest.raises((LikenessError, SystemExit)):
        run_stage("ingest", ingest.main, project.root)
    assert not project.paths.table.exists()


def test_the_parser_of_sql_is_an_extra(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("likeness_postgres", reason="the wing likeness_postgres is not here")
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(MissingPackageError, match=r"needs sqlglot, .* Run: pip install 'likeness-dp\[postgres\]'"):
        _ = project.counts
