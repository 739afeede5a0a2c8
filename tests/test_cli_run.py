"""`likeness run` and `summary` without a run: no stage starts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from likeness.bundle.verdict import Check
from likeness.cli import run as cli_run
from likeness.cli.summary import scores, summary_text
from likeness.core.paths import ProjectPaths

Command = Callable[..., tuple[int, str, str]]


def test_a_summary_needs_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (("summary",), ("summary", "--json")):
        code, _, error = command(*words)
        assert code == 2 and "params.yaml is missing: go to the folder of a project, or make a project with" in error


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Graph and settings of a project, as the working folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("dvc.yaml", "params.yaml"):
        (tmp_path / name).write_text((Path(__file__).parents[1] / name).read_text())
    return tmp_path


@pytest.fixture
def ran(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The stages of each run of a project that is ready. Nothing runs."""
    stages: list[list[str]] = []
    monkeypatch.setattr("likeness.pipeline.ledger_session.LedgerSession.check_ready", lambda session, sources: None)
    monkeypatch.setattr("likeness.preflight.downstream_checks.check_estimators", lambda project: None)
    monkeypatch.setattr(cli_run, "_reproduce", lambda paths, of, force: stages.append([*of]))
    monkeypatch.setattr("likeness.cli.run.summary_text", lambda folder: "the summary")
    return stages


def test_run_needs_a_project_and_a_ledger(folder: Path, command: Command) -> None:
    code, _, error = command("run")
    assert code == 2 and "ingest.source data/raw/adult.csv.gz does not exist" in error and "elsewhere" not in error
    (folder / "data/raw").mkdir(parents=True)
    (folder / "data/raw/adult.csv.gz").touch()
    code, _, error = command("run")
    assert code == 2 and "likeness ledger init" in error and "Running" not in error
    (folder / "dvc.yaml").unlink()
    code, _, error = command("run")
    assert code == 2 and "dvc.yaml is missing: go to the folder of a project, or" in error


def test_a_run_may_end_with_a_verified_bundle(
    folder: Path, ran: list[list[str]], monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    written = list[str]()
    monkeypatch.setattr("likeness.bundle.write.write_bundle", lambda *given: written.append(given[2].name) or [])
    monkeypatch.setattr("likeness.pipeline.account.account", lambda project: {})
    monkeypatch.setattr("likeness.cli.run.summary_json", lambda folder: {"method": "m"})
    checks = [Check("files", True, "13 files"), Check("noise", True, "as claimed")]
    monkeypatch.setattr("likeness.verify.verify", lambda path: checks)
    code, text, _ = command("run", "--bundle", "out.zip")
    assert code == 0 and len(ran) == 1 and written == ["out.zip"]
    assert text.splitlines()[0] == "the summary" and text.endswith("verdict: everything was recomputed and is right\n")
    checks[1] = Check("noise", False, "too small")
    code, text, error = command("run", "--bundle", "out.zip", "--json")
    assert code == 1 and "WRONG (noise)" in error
    assert json.loads(text)["checks"][1] == {"name": "noise", "text": "too small", "passed": False}
    # What is there is refused before two minutes are spent.
    (folder / "out.zip").write_text("")
    code, _, error = command("run", "--bundle", "out.zip")
    assert code == 2 and "out.zip exists and is not overwritten" in error and (len(ran), len(written)) == (2, 2)
    command("run")
    assert (len(ran), len(written)) == (3, 2)


def test_a_run_leaves_out_stages_and_ends_at_ctrl_c(
    ran: list[list[str]], monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    code, text, error = command("run", "--without", "evaluate")
    assert (
        code == 0 and "left out: evaluate, track\n" in error and "--allow-missing" in error and text == "the summary\n"
    )
    assert ran[0][-1] == "report" and {"evaluate", "track"}.isdisjoint(ran[0])
    code, text, error = command("run", "--without", "train", "--bundle", "out.zip")
    assert code == 2 and "--bundle needs account" in error and len(ran) == 1
    code, text, _ = command("run", "--without", "train")
    assert code == 0 and text == ""  # without an account there is nothing to sum up

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_run, "_reproduce", interrupted)
    code, text, error = command("run")
    assert code == 130 and "Nothing is lost" in error and "Go on: likeness run" in error and text == ""


def test_scores_of_another_table_are_not_shown(folder: Path) -> None:
    """As after ``likeness run --without evaluate``."""
    account = {
        "private": True, "method": "marginals", "adjacency": "add_remove_one",
        "target": {"epsilon": 1.0, "delta": 1e-5}, "total": {"epsilon": 1.0, "delta": 1e-5},
        "ledger": {"lifetime": {"spent_epsilon": 2.5, "cap_epsilon": 10.0}},
    }  # fmt: skip
    paths = ProjectPaths(folder)
    measured = {name: {"f1": 0.625} for name in ("synthetic", "real", "shuffled")}
    metrics = {"scores": measured, "estimators": ["lda", "mlp"]}
    paths.internal_metrics.parent.mkdir(parents=True)
    paths.privacy.write_text(json.dumps(account))
    paths.internal_metrics.write_text(json.dumps(metrics))
    assert scores(paths) == metrics
    item = {"path": "data/synthetic/synthetic.parquet"}
    stages = {"sample": {"outs": [item | {"md5": "new"}]}, "evaluate": {"deps": [item | {"md5": "old"}]}}
    paths.lock.write_text(json.dumps({"stages": stages}))
    assert scores(paths) is None and "none of this table" in summary_text(paths)
    stages["evaluate"]["deps"][0]["md5"] = "new"
    paths.lock.write_text(json.dumps({"stages": stages}))
    assert "0.625" in summary_text(paths) and "mean of 2 estimators: lda, mlp" in summary_text(paths)
    assert "about these people: 2.5000 of 10.0000" in summary_text(paths)
