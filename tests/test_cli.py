"""The command line of the ledger: what it says of what was spent, and how it says no."""

import errno
import json
import sys
from pathlib import Path

import pytest

from likeness.cli import app as cli
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Reservation
from likeness.privacy.adjacency import Adjacency


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Two releases, of which one was never committed."""
    monkeypatch.chdir(tmp_path)
    made = Ledger.create(locate())
    made.declare_population("people", Adjacency.ADD_REMOVE_ONE, 1.0, 1e-5)
    for key in ("a" * 64, "b" * 64):
        details = {"query": "embedding", "asked_by": "somebody"}
        made.reserve(Reservation(key, "people", Adjacency.ADD_REMOVE_ONE, 0.01, key, {}, "digest", "1", "e", details))
    made.commit("a" * 64, "0" * 64)
    return made


def run(*words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code, and both streams."""
    monkeypatch.setattr(sys, "argv", ["likeness", *words])
    code = 0
    try:
        cli.main()
    except SystemExit as end:
        code = int(end.code or 0)
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_show_tells_what_was_never_committed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = run("ledger", "show", monkeypatch=monkeypatch, capsys=capsys)
    reserves = [line for line in text.splitlines() if " reserve " in line]
    assert code == 0 and ["never committed: counts as spent" in line for line in reserves] == [False, True]


def test_export_is_the_whole_chain_as_json(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = run("ledger", "export", monkeypatch=monkeypatch, capsys=capsys)
    records = [json.loads(line) for line in text.splitlines()]
    assert code == 0 and [record["kind"] for record in records] == ["genesis", "cap", "reserve", "reserve", "commit"]
    assert records[2]["body"]["asked_by"] == "somebody" and records[-1]["digest"] == ledger.head().head


def test_budget_and_cap(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = run("ledger", "budget", monkeypatch=monkeypatch, capsys=capsys)[1]
    assert "people (add_remove_one): spent epsilon" in text and "rho 0.02 spent" in text and "1 reserved" in text
    words = ("ledger", "cap", "people", "--epsilon", "2", "--delta", "1e-5")
    assert run(*words, monkeypatch=monkeypatch, capsys=capsys) == (0, "cap of people: epsilon 2 at delta 1e-05\n")
    code, text = run("ledger", "cap", "nobody", *words[3:], monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2 and "population 'nobody' is not in the ledger" in text and "Traceback" not in text


def test_verify_finds_lost_bytes(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = run("ledger", "verify", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2 and "released bytes are lost or altered: entry 3" in text
    assert run("ledger", "init", monkeypatch=monkeypatch, capsys=capsys)[0] == 2
    assert run("ledger", "init", "--if-absent", monkeypatch=monkeypatch, capsys=capsys)[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("sample", ".", "--rows", "10", "--out", "absent/x.csv"), "--out absent/x.csv: absent is not a folder"),
        (("ledger", "init"), "file/ledger cannot be used (Not a directory)"),
    ],
    ids=["folder of a table", "folder of a ledger"],
)
def test_a_path_that_is_none_is_told_in_a_line(
    words: tuple[str, ...],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path / "file/ledger"))
    code, text = run(*words, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2 and told in text and text.count("\n") == 1 and "Traceback" not in text


def test_a_full_disk_is_told_in_a_line_and_a_fault_of_the_program_is_not_hidden(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(error: Exception) -> None:
        raise error

    for error in (OSError(errno.ENOSPC, "No space left on device", "x"), RuntimeError("a fault")):
        monkeypatch.setattr(cli, "app", lambda error=error: fail(error))
        if isinstance(error, OSError):
            code, text = run("sample", monkeypatch=monkeypatch, capsys=capsys)
            assert code == 2 and text.startswith("likeness: x cannot be written (No space left on device). Make room")
            continue
        with pytest.raises(RuntimeError, match="a fault"):
            run("sample", monkeypatch=monkeypatch, capsys=capsys)
