"""Ledgers that were edited, cut short, lost, restored, moved, raced for or killed."""

import contextlib
import dataclasses
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import event
from toys import ADD, CAP, ledger_of_people, request

from likeness.bundle.chain import chain_extract
from likeness.core.errors import BudgetError, LedgerError
from likeness.ledger.chain import Chain, anchor_path, copies_path
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger, recover
from likeness.ledger.records import Record
from likeness.ledger.witness import Witness, check_witnesses
from likeness.verify.ledger import chain as chain_of
from likeness.verify.ledger import costs

ADA = {"asked_by": "ada"}


@pytest.fixture
def ledger() -> Ledger:
    return ledger_of_people()


@pytest.mark.parametrize(
    ("statements", "match"),
    [
        ("DROP TABLE versions", "table of versions is damaged"),
        ("DELETE FROM versions; INSERT INTO versions VALUES (3, 'then')", r"tables of version 3, .* that wrote it"),
        ("INSERT INTO versions VALUES (99, 'later')", r"tables of version 99, .* that wrote it"),
        ("UPDATE records SET body = '{}' WHERE seq = 1", "broken at record 1"),
    ],
)
def test_a_ledger_of_another_version_is_refused_and_left_alone(ledger: Ledger, statements: str, match: str) -> None:
    with sqlite3.connect(locate().database) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.executescript(statements)
    before = locate().database.read_bytes()
    with pytest.raises(LedgerError, match=match):
        Ledger.open(locate())
    assert locate().database.read_bytes() == before


def test_no_statement_gets_around_the_triggers(ledger: Ledger) -> None:
    """INSERT OR REPLACE deletes without the trigger for deletions: the order of the records refuses it."""
    connection = sqlite3.connect(locate().database)
    edit = "INSERT OR REPLACE INTO records SELECT seq, time, kind, '{}', previous, digest FROM records WHERE seq = 2"
    gap = "INSERT INTO records SELECT 9, 't', 'cap', '{}', digest, 'd' FROM records WHERE seq = 2"
    fork = "INSERT INTO records VALUES (3, 't', 'cap', '{}', 'another head', 'd')"
    for statement in (edit, gap, fork, "UPDATE records SET body = '{}'", "DELETE FROM records", "DELETE FROM versions"):
        with pytest.raises(sqlite3.DatabaseError, match="append-only"):
            connection.execute(statement)


def tamper(statement: str) -> None:
    connection = sqlite3.connect(locate().database)
    connection.execute("DROP TRIGGER records_no_update")
    connection.execute("DROP TRIGGER records_no_delete")
    connection.execute(statement)
    connection.commit()


def test_edited_truncated_and_emptied_ledgers_are_refused(ledger: Ledger) -> None:
    ledger.reserve(request("k", CAP / 2))
    backup = locate().database.read_bytes()
    for statement, message in [
        ("UPDATE records SET body = replace(body, '\"rho\"', '\"rhp\"') WHERE seq = 3", "chain is broken at record 3"),
        ("DELETE FROM records WHERE seq = 2", "chain is broken at record 2"),
        ("DELETE FROM records WHERE seq = 3", "truncated, rewritten, or restored"),
        ("DELETE FROM records", "empty"),
        ("UPDATE records SET time = '2020-01-01' WHERE seq = 3", "chain is broken at record 3"),
        ("UPDATE records SET kind = 'note' WHERE kind = 'reserve'", "chain is broken at record 3"),
        ("UPDATE records SET seq = seq + 1000 WHERE seq = 3", "chain is broken"),
        ("DROP TABLE records", "move it away, and run: likeness ledger recover"),
    ]:
        tamper(statement)
        with pytest.raises(LedgerError, match=message):
            Ledger.open(locate())
        locate().database.write_bytes(backup)
    Ledger.open(locate())


def test_records_that_an_older_copy_lacks_come_back_from_beside_the_anchor(ledger: Ledger) -> None:
    home = locate()
    ledger.reserve(request("k1", CAP / 4))
    backup = home.database.read_bytes()
    with copies_path(home).open("a") as file:
        file.write('\n{"seq": 3, "ti')  # a crash cut it
    ledger.commit("k1", "00")
    ledger.reserve(request("k2", CAP / 4))
    whole = ledger.records()
    home.database.write_bytes(backup)
    with pytest.raises(LedgerError, match=r"older copy\. Run: likeness ledger recover"):
        Ledger.open(home)
    assert [recover(home, ADA) for _ in range(2)] == [(2, 0), (0, 0)]
    home.database.write_bytes(b"")  # as lost
    with pytest.raises(LedgerError, match=r"is missing, .* likeness ledger recover"):
        Ledger.open(home)
    assert recover(home, ADA) == (5, 0)
    os.truncate(copies_path(home), 900)
    again = Ledger.open(home)
    again.commit("k2", "11")  # writes anew what was cut
    whole = again.records()
    home.database.unlink()
    assert recover(home, ADA) == (6, 0)
    again = Ledger.open(home)
    assert again.records() == whole and copies_path(home).stat().st_mode & 0o777 == 0o600
    copies_path(home).unlink()
    home.database.unlink()
    with pytest.raises(LedgerError, match=r"lacks copies .* Restore the ledger from a backup"):
        recover(home, ADA)


def test_a_lost_record_without_a_copy_costs_all_that_is_left_of_each_cap(ledger: Ledger) -> None:
    home = locate()
    ledger.declare_population("others", ADD, 2.0, 1e-5, selection_delta=1e-6)
    backup = home.database.read_bytes()
    ledger.reserve(request("k1", CAP / 4))
    head = ledger.head()
    home.database.write_bytes(backup)
    copies_path(home).write_text(copies_path(home).read_text().replace("k1", "k2"))
    assert [recover(home, ADA) for _ in range(2)] == [(0, 2), (0, 0)]
    again = Ledger.open(home)
    extract = chain_extract(again.records(), "people")
    project = SimpleNamespace(params=SimpleNamespace(privacy=SimpleNamespace(population="people")))
    records = [Record(**record) for record in extract if "body" in record]
    shown = SimpleNamespace(stated_chain=(extract, extract[-1]["digest"]), project=project, records=records)
    assert "5 records linked, 3 of them whole" in chain_of(shown)  # type: ignore[arg-type]
    assert "1 lost costs by its keeper's word: epsilon 1 of 1" in costs(shown)  # type: ignore[arg-type]
    again.declare_population("later", ADD, 1.0, 1e-5)  # its cap may be one of the lost records
    again.declare_population("later", ADD, 1.0, 1e-5)
    assert again.budget("others").spent_delta == 1e-6
    for people in ("people", "others", "later"):
        assert again.budget(people).remaining_rho == 0 == again.budget(people).uncommitted
        with pytest.raises(BudgetError, match="over budget"):
            again.reserve(request("k3", CAP / 100, population=people))
    again.change_cap("people", 2.0, 1e-5)
    again.reserve(request("k3", CAP / 4))
    assert check_witnesses(again.records(), [Witness("git", again.id, head.count, head.head)]) == 1
    with pytest.raises(LedgerError, match="likeness ledger recover"):
        check_witnesses(again.records(), [Witness("git", again.id, 9, "0" * 64)])
    assert recover(home, ADA, [Witness("git", again.id, 99, "0" * 64)]) == (0, 3)
    assert Ledger.open(home).budget("people").remaining_rho == 0


def test_costs_that_were_lost_once_are_not_lost_with_the_record_that_stands_for_them(ledger: Ledger) -> None:
    home, anchor = locate(), anchor_path(locate().anchor, locate().location)
    older = home.database.read_bytes(), anchor.read_bytes()
    ledger.reserve(request("k1", CAP / 4))
    for key, times in (("k2", 1), ("k3", 2)):  # an older copy goes on, without what the anchor names
        newer = anchor.read_bytes()
        home.database.write_bytes(older[0])
        anchor.write_bytes(older[1])
        Ledger.open(home).reserve(request(key, CAP / 4))
        anchor.write_bytes(newer)
        assert recover(home, ADA) == (0, times)
        assert Ledger.open(home).budget("people").spent_rho == pytest.approx((1 + times) * CAP / 4)


def test_a_deleted_ledger_or_anchor_is_refused(ledger: Ledger) -> None:
    home = locate()
    ledger.reserve(request("k", CAP / 4))
    head = ledger.head().head
    kept = home.database.read_bytes()
    home.database.unlink()
    with pytest.raises(LedgerError, match="anchor counts 3 records"):
        Ledger.open(home)
    with pytest.raises(LedgerError, match="Restore it"):
        Ledger.create(home)
    home.database.write_bytes(kept)
    anchor_path(home.anchor, home.location).unlink()
    for start in (Ledger.open, Ledger.create):
        with pytest.raises(LedgerError, match="reanchor"):
            start(home)
    for other in ("0" * 64, ledger.records()[0].digest):  # the head of an older copy
        with pytest.raises(LedgerError, match="not the newest"):
            Chain.reanchor(home, other)
    Chain.reanchor(home, head)
    again = Ledger.open(home)
    again.commit("k", "00")
    home.database.write_bytes(kept)
    anchor_path(home.anchor, home.location).unlink()
    with pytest.raises(LedgerError, match=r"likeness ledger reanchor [0-9a-f]{64}$") as told:
        Ledger.open(home)
    Chain.reanchor(home, str(told.value).split()[-1])  # the copies are newer than the database
    assert recover(home, ADA) == (1, 0) and len(Ledger.open(home).records()) == 4


def test_a_moved_ledger_says_how_it_goes_on(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, head = locate(), ledger.head().head
    old.path.rename(tmp_path / "moved")
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path / "moved"))
    with pytest.raises(LedgerError) as refused:
        Ledger.open(locate())
    assert f"was at {old.path}" in str(refused.value) and f"likeness ledger reanchor {head}" in str(refused.value)
    monkeypatch.setenv("LIKENESS_ANCHOR", str(tmp_path / "of another home"))
    with pytest.raises(LedgerError, match="set LIKENESS_ANCHOR to the old folder of anchors"):
        Ledger.open(locate())
    monkeypatch.setenv("LIKENESS_ANCHOR", str(old.anchor))
    Chain.reanchor(locate(), head)
    Ledger.open(locate())


def test_an_anchor_one_append_behind_is_healed_two_are_not(ledger: Ledger) -> None:
    path = anchor_path(locate().anchor, locate().location)
    anchors = [path.read_bytes()]
    for place in range(2):
        ledger.reserve(request(f"k{place}", CAP / 8))
        anchors.append(path.read_bytes())
    path.write_bytes(anchors[1])
    Ledger.open(locate())
    assert json.loads(path.read_text())["count"] == 4
    path.write_bytes(anchors[0])
    with pytest.raises(LedgerError, match="truncated"):
        Ledger.open(locate())


def test_a_lost_or_foreign_key_is_refused(ledger: Ledger) -> None:
    locate().key_file.write_bytes(b"x" * 32)
    with pytest.raises(LedgerError, match="not the key"):
        Ledger.open(locate())
    locate().key_file.unlink()
    with pytest.raises(LedgerError, match="missing"):
        Ledger.open(locate())


def test_an_anchor_inside_the_ledger_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LIKENESS_ANCHOR", str(tmp_path / "ledger" / "anchor"))
    with pytest.raises(LedgerError, match="inside each other"):
        locate()


WRITER = """
import sys
from likeness.core.errors import BudgetError
from likeness.privacy.adjacency import Adjacency
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Reservation
ledger = Ledger.open(locate())
for step in range(int(sys.argv[2])):
    key = f"{sys.argv[1]}-{step}"
    try:
        cost = float(sys.argv[3])
        more = {"adjacency": Adjacency.ADD_REMOVE_ONE, "plan": key, "others": {}, "details": {}}
        ledger.reserve(Reservation("people", "d", key=key, rho=cost, **more))
        print("accepted", flush=True)
        ledger.commit(key, "00")
    except BudgetError:
        print("refused", flush=True)
"""


@pytest.mark.process
def test_processes_racing_for_the_last_of_the_budget(ledger: Ledger) -> None:
    """Four processes ask for a quarter twice each: four are accepted, whatever the order."""
    command = [sys.executable, "-c", WRITER]
    racers = [
        subprocess.Popen([*command, str(place), "2", repr(CAP / 4)], stdout=subprocess.PIPE, text=True)
        for place in range(4)
    ]
    output = "".join(racer.communicate(timeout=60)[0] for racer in racers)
    assert output.count("accepted") == 4 and output.count("refused") == 4
    assert Ledger.open(locate()).budget("people").spent_rho == pytest.approx(CAP)


@pytest.mark.process
def test_kill_at_any_moment_leaves_a_ledger_that_opens(ledger: Ledger) -> None:
    """Whatever a killed writer had been told was accepted is on record."""
    for attempt in range(4):
        command = [sys.executable, "-c", WRITER, f"a{attempt}", "1000", repr(CAP / 1e6)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        told = 0
        while told <= 7 * attempt:
            line = writer.stdout.readline()
            assert line, "the writer ended by itself"
            told += line.strip() == "accepted"
        os.kill(writer.pid, signal.SIGKILL)
        told += writer.communicate()[0].count("accepted")
        records = Ledger.open(locate()).records()
        on_record = sum(r.kind == "reserve" and r.body["key"].startswith(f"a{attempt}-") for r in records)
        assert told <= on_record <= told + 1


@pytest.mark.parametrize("old", [b"TRIGGER records_no_update", b"CREATE TABLE records"])
def test_a_file_whose_text_is_spoiled_is_told_plainly(ledger: Ledger, old: bytes) -> None:
    """SQLite quotes bytes that are no text, and Python fails to read what it quotes."""
    whole = locate().database.read_bytes()
    place = whole.index(old)
    for offset in (0, len(old) - 3):
        spoiled = bytearray(whole)
        spoiled[place + offset : place + offset + 3] = b"\xff\xfe\xc3"
        locate().database.write_bytes(spoiled)
        try:
            Ledger.open(locate())
        except LedgerError as told:
            assert "Restore" in str(told)


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        ("PRAGMA max_page_count = 1", "the disk is full. The ledger is as it was. Make room"),
        ("PRAGMA query_only = 1", "Give this user both rights"),
    ],
)
def test_what_the_disk_refuses_has_a_remedy_of_its_own(ledger: Ledger, fault: str, remedy: str) -> None:
    event.listen(ledger.chain.engine, "begin", lambda connection: connection.exec_driver_sql(fault))
    with pytest.raises(LedgerError, match=remedy) as refused:
        ledger.reserve(dataclasses.replace(request("k", CAP / 2), details={"query": "q" * 10_000}))
    assert "backup" not in str(refused.value) and len(Ledger.open(locate()).records()) == 2


def test_a_locked_database_is_waited_for_and_then_said_to_be_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likeness.ledger.database._PATIENCE", 0.2)
    ledger_of_people()
    with contextlib.closing(sqlite3.connect(locate().database)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerError, match=r"is locked by another program.* End it"):
            Ledger.open(locate())


@pytest.mark.parametrize("value", ["NULL", "7", "'no json'", "x'ff'", "'null'"])
def test_a_record_that_holds_no_text_is_told_plainly(ledger: Ledger, value: str) -> None:
    with sqlite3.connect(locate().database) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE type = 'trigger'")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE name = 'records'")
    with sqlite3.connect(locate().database) as connection:
        connection.execute(f"UPDATE records SET body = {value} WHERE seq = 2")  # noqa: S608
    with pytest.raises(LedgerError, match=r"not a readable ledger|chain is broken"):
        Ledger.open(locate())
