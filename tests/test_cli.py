"""The command line of the ledger: what it says of what was spent, and how it says no."""

import json
import sys
from pathlib import Path

import pytest

from likeness import cli
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.home import locate
from likeness.privacy.ledger import Ledger, Reservation


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Two releases, of which one was never committed."""
    monkeypatch.chdir(tmp_path)
    made = Ledger.create(locate())
    made.declare_identity("people", Adjacency.ADD_REMOVE_ONE, 1.0, 1e-5)
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
    assert code == 2 and "identity 'nobody' is not in the ledger" in text and "Traceback" not in text


def test_verify_finds_lost_bytes(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = run("ledger", "verify", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2 and "released bytes are lost or altered: entry 3" in text
    assert run("ledger", "init", monkeypatch=monkeypatch, capsys=capsys)[0] == 2
    assert run("ledger", "init", "--if-absent", monkeypatch=monkeypatch, capsys=capsys)[0] == 0
