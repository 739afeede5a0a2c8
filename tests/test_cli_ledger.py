"""The command line of the ledger: what it says of what was spent, who asked, witnesses, caps; and how it says no."""

import errno
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import ledger_of_people, plan_with

from likeness.cli import app as cli
from likeness.features.column_marginals import Constant
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Reservation
from likeness.ledger.witness import Witness
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import QueryShare
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import from_bytes
from likeness.release.request import Dataset

ROOT = Path(__file__).parents[1]
ADD = Adjacency.ADD_REMOVE_ONE
FACTS = {"asked_by": "somebody", "git_commit": "0123456789abcdef", "git_changed": True, "params_sha256": "fedcba987654"}
Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(command: Callable[..., tuple[int, str, str]]) -> Command:
    """Exit code, and both streams together."""

    def run(*words: str) -> tuple[int, str]:
        code, out, errors = command(*words)
        return code, out + errors

    return run


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One release in a ledger, as a file of the working folder."""
    monkeypatch.chdir(tmp_path)
    ledger = ledger_of_people(ADD, 2.0)
    plan = plan_with([QueryShare("q", "privatize", 1.0)])
    rows = [Records(np.zeros((10, 1)), np.zeros(10, dtype=np.int64))]
    facts = {**FACTS, "likeness": "9.9", "software": {"opendp": "8.8"}}
    data = Door(plan, ledger, Dataset("people", "d"), lambda: rows, facts).release(Query("q", "privatize", Constant()))
    path = tmp_path / "q.safetensors"
    path.write_bytes(data)
    return path


def stored() -> Path:
    (path,) = locate().releases.iterdir()
    return path


def test_show_says_who_asked_with_what(released: Path, command: Command) -> None:
    text = command("ledger", "show")[1]
    wanted = "by somebody  commit 0123456789ab with changes  params fedcba987654  likeness 9.9, opendp 8.8"
    assert wanted in text and "never committed" not in text


def test_witnesses_on_the_command_line(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    (tmp_path / "message").write_text("Subject\n")
    assert command("ledger", "witness", "--into", "message") == (0, "")
    line = command("ledger", "witness")[1]
    assert (tmp_path / "message").read_text() == f"Subject\n\n{line}"
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-F", "message"], check=True)
    code, text = command("ledger", "verify", str(released), "--git", ".")
    assert code == 0 and "2 of 2 outside witnesses are of this ledger, and on its chain" in text
    altered = tmp_path / "altered.safetensors"
    data = released.read_bytes()
    altered.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    code, text = command("ledger", "verify", str(altered))
    assert code == 2 and "not hold the bytes that the ledger committed" in text
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path / "other"))
    code, text = command("ledger", "init")
    lost = from_bytes(data, "q").receipt.ledger_id
    assert code == 0 and f"warning: git remembers ledger {lost}" in text
    for witness in (("--git", "."), (str(released),)):
        code, text = command("ledger", "verify", *witness)
        assert code == 2 and f"names ledger {lost}" in text
        code, text = command("ledger", "verify", *witness, "--other", lost)
        assert code == 0 and "0 of 1 outside witnesses" in text


def test_tracking_runs_are_witnesses(released: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    """How they are read from a real store is tested in test_tracking."""
    monkeypatch.setattr("likeness.pipeline.project.Project.load", lambda: None)
    head = Ledger.open(locate()).head()
    for seq, code in ((head.count, 0), (1000, 2)):
        seen = [Witness("tracking run 0123", head.ledger_id, seq, head.head)]
        monkeypatch.setattr("likeness.tracking.run.run_witnesses", lambda params, seen=seen: seen)
        found, text = command("ledger", "verify", "--mlflow")
        assert (found, "tracking run 0123 names record 1000" in text) == (code, code == 2)


def test_lost_bytes_are_restored_or_given_up(released: Path, tmp_path: Path, command: Command) -> None:
    key = stored().stem[:12]
    code, text = command("ledger", "redraw", key)
    assert code == 2 and "is whole in the store" in text
    stored().unlink()
    assert command("ledger", "restore", str(released))[0] == 0
    assert command("ledger", "verify")[0] == 0
    stored().unlink()
    embedding = tmp_path / "data/released/embedding/embedding.safetensors"
    embedding.parent.mkdir(parents=True)
    embedding.write_bytes(released.read_bytes())
    code, text = command("ledger", "redraw", key)
    assert code == 2 and "likeness ledger restore data/released/embedding/embedding.safetensors" in text
    embedding.unlink()
    before = len(Ledger.open(locate()).records())
    for wrong in ("", "0" * 12, key[:4]):
        code, text = command("ledger", "redraw", wrong)
        assert code == 2 and "Give 8 letters or more" in text
    assert len(Ledger.open(locate()).records()) == before
    code, text = command("ledger", "redraw", key)
    assert code == 0 and "costs rho 0.0" in text
    assert command("ledger", "verify")[0] == 0  # given up is not lost
    assert "bytes given up" in command("ledger", "show")[1]


def test_what_scripts_read_is_what_people_read(released: Path, command: Command) -> None:
    """Of budget, verify and show; an infinite cap is text, because JSON has no infinity."""

    def told(*words: str) -> Any:
        code, text = command("ledger", *words, "--json")
        assert code == 0
        return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))

    ledger = Ledger.open(locate())
    budget = ledger.budget("people")
    assert budget is not None
    (found,) = told("budget")
    assert found["identity"] == "people" and found["cap"] == {"epsilon": 2.0, "delta": 1e-5}
    assert found["spent"] == {"epsilon": budget.spent_epsilon, "rho": budget.spent_rho}
    assert found["remaining_rho"] == budget.remaining_rho > 0 and found["uncommitted"] == 0
    found = told("verify", str(released))
    assert (found["releases"], found["witnesses"], found["witnesses_of_this_ledger"]) == (1, 1, 1)
    assert found["head"] == Ledger.open(locate()).head().head
    assert [record["kind"] for record in told("show")][:2] == ["genesis", "cap"]
    ledger.change_cap("people", float("inf"), 1e-5)
    (found,) = told("budget")
    assert found["cap"]["epsilon"] == found["remaining_rho"] == "inf"
    for name in ("params.yaml", "data/schema/adult.yaml"):
        target = released.parent / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    found = told("afford")
    assert found["method"] == "marginals" and 0 < found["rho"] < 0.04
    assert (found["cap"]["epsilon"], found["spent_rho"]) == (10, 0) and found["remaining_rho"] > 0


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Two releases, of which one was never committed."""
    monkeypatch.chdir(tmp_path)
    made = ledger_of_people()
    for key in ("a" * 64, "b" * 64):
        details = {"query": "embedding", "asked_by": "somebody"}
        made.reserve(Reservation(key, "people", Adjacency.ADD_REMOVE_ONE, 0.01, key, {}, "digest", "1", "e", details))
    made.commit("a" * 64, "0" * 64)
    return made


def test_show_tells_what_was_never_committed(ledger: Ledger, command: Command) -> None:
    code, text = command("ledger", "show")
    reserves = [line for line in text.splitlines() if " reserve " in line]
    assert code == 0 and ["never committed: counts as spent" in line for line in reserves] == [False, True]


def test_show_gives_the_whole_chain_as_json(ledger: Ledger, command: Command) -> None:
    code, text = command("ledger", "show", "--json")
    records = json.loads(text)
    assert code == 0 and [record["kind"] for record in records] == ["genesis", "cap", "reserve", "reserve", "commit"]
    assert records[2]["body"]["asked_by"] == "somebody" and records[-1]["digest"] == ledger.head().head


def test_budget_and_cap(ledger: Ledger, command: Command) -> None:
    text = command("ledger", "budget")[1]
    assert "people (add_remove_one): spent epsilon" in text and "rho 0.02 spent" in text and "1 reserved" in text
    words = ("ledger", "cap", "people", "--epsilon", "2", "--delta", "1e-5")
    assert command(*words) == (0, "cap of people: epsilon 2 at delta 1e-05\n")
    code, text = command("ledger", "cap", "nobody", *words[3:])
    assert code == 2 and "population 'nobody' is not in the ledger" in text and "Traceback" not in text


@pytest.mark.long
def test_verify_finds_lost_bytes(ledger: Ledger, command: Command) -> None:
    code, text = command("ledger", "verify")
    assert code == 2 and "released bytes are lost or altered: entry 3" in text
    for place in range(9):
        key = f"{place:064}"
        ledger.reserve(Reservation(key, "people", ADD, 1e-6, "plan", {}, "digest", "1", "e", {"query": key}))
        ledger.commit(key, key)
    assert " and 5 more. Restore" in command("ledger", "verify")[1]  # of years there are thousands
    assert command("ledger", "init")[0] == 2
    assert command("ledger", "init", "--if-absent")[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("sample", ".", "--rows", "10", "--out", "absent/x.csv"), "--out absent/x.csv: absent is not a folder"),
        (("ledger", "init"), "file/ledger cannot be used (Not a directory)"),
    ],
    ids=["folder of a table", "folder of a ledger"],
)
def test_a_path_that_is_none_is_told_in_a_line(
    words: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path / "file/ledger"))
    code, text = command(*words)
    assert code == 2 and told in text and text.count("\n") == 1 and "Traceback" not in text


def test_a_full_disk_is_told_in_a_line_and_a_fault_of_the_program_is_not_hidden(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    def fail(error: Exception) -> None:
        raise error

    for error in (OSError(errno.ENOSPC, "No space left on device", "x"), RuntimeError("a fault")):
        monkeypatch.setattr(cli, "app", lambda error=error: fail(error))
        if isinstance(error, OSError):
            code, text = command("sample")
            assert code == 2 and text.startswith("likeness: x cannot be written (No space left on device). Make room")
            continue
        code, text = command("sample")
        assert code == 1 and text.startswith("Traceback") and "RuntimeError: a fault" in text
