"""A ledger of the first version opens with its chain as it was; one of a later version is refused; all or nothing."""

import json
import sqlite3
from pathlib import Path

import pytest

from likeness.core.errors import LedgerError
from likeness.core.hashing import canonical_json, sha256_bytes, sha256_json
from likeness.ledger import database, records
from likeness.ledger.chain import Anchor, write_anchor
from likeness.ledger.home import Home, locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.records import SALT
from likeness.ledger.reservation import Reservation
from likeness.privacy.adjacency import Adjacency

# As version 0.1.0 wrote it.
FIRST = """
CREATE TABLE records (
    seq INTEGER NOT NULL, time TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, previous TEXT NOT NULL,
    digest TEXT NOT NULL, PRIMARY KEY (seq)
);
CREATE TRIGGER records_no_update BEFORE UPDATE ON records BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER records_no_delete BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""


@pytest.fixture
def old() -> list[tuple[object, ...]]:
    """Four records of the first version, with key and anchor."""
    home = locate()
    home.path.mkdir(mode=0o700)
    home.key_file.write_bytes(b"k" * 32)
    bodies = [
        ("genesis", {"format": 1, "ledger_id": "0123456789abcdef", "key_sha256": sha256_bytes(b"k" * 32)}),
        ("cap", {"identity": "people", "adjacency": "add_remove_one", "epsilon": 1.0, "delta": 1e-5, "nonce": "00"}),
        (
            "reserve",
            {"key": "k" * 64, "identity": "people", "adjacency": "add_remove_one", "rho": 0.01, "plan": "p"}
            | {"digest": "d", "slot": "1", "encoding": "e", "query": "embedding", "asked_by": "somebody"},
        ),
        ("commit", {"key": "k" * 64, "reserve_seq": 3, "sha256": "0" * 64}),
    ]
    rows: list[tuple[object, ...]] = []
    previous = "0" * 64
    for seq, (kind, body) in enumerate(bodies, start=1):
        time = f"2025-01-0{seq}T00:00:00+00:00"
        digest = sha256_json([seq, time, kind, body, previous])
        rows.append((seq, time, kind, canonical_json(body), previous, digest))
        previous = digest
    with sqlite3.connect(home.database) as connection:
        connection.executescript(FIRST)
        connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", rows)
    write_anchor(home, Anchor("0123456789abcdef", str(home.path), 4, previous))
    return rows


def stored() -> list[tuple[object, ...]]:
    return sqlite3.connect(locate().database).execute("SELECT * FROM records ORDER BY seq").fetchall()


def version() -> int:
    return int(sqlite3.connect(locate().database).execute("SELECT max(version) FROM versions").fetchone()[0])


def test_a_ledger_of_the_first_version_keeps_its_chain_and_goes_on(old: list[tuple[object, ...]]) -> None:
    ledger = Ledger.open(locate())
    assert stored() == old and version() == len(database.MIGRATIONS)
    assert ledger.budget("people").spent_rho == 0.01 and ledger.commits() == {"k" * 64: (3, "0" * 64)}
    ledger.reserve(Reservation("l" * 64, "people", Adjacency.ADD_REMOVE_ONE, 0.01, "p", {}, "d", "1", "e", {}))
    ledger.commit("l" * 64, "1" * 64)
    chain = Ledger.open(locate()).records()
    assert stored()[:4] == old and len(chain) == 6
    assert [SALT in record.body for record in chain] == [False] * 4 + [True] * 2


def test_a_day_on_which_an_older_version_wrote_seconds_does_not_go_back(
    old: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As text, a day is before each of its seconds: the first record of the new version has the last one's time."""
    monkeypatch.setattr(records, "_now", lambda: "2025-01-04")
    Ledger.open(locate()).change_cap("people", 2.0, 1e-5)
    monkeypatch.setattr(records, "_now", lambda: "2025-01-05")
    Ledger.open(locate()).change_cap("people", 3.0, 1e-5)
    times = [record.time for record in Ledger.open(locate()).records()]
    assert times == sorted(times) and times[-2:] == ["2025-01-04T00:00:00+00:00", "2025-01-05"]


def test_the_new_triggers_hold_for_an_old_ledger(old: list[tuple[object, ...]]) -> None:
    """INSERT OR REPLACE deletes without asking the trigger for deletions: the first version let it pass."""
    edit = "INSERT OR REPLACE INTO records SELECT seq, time, kind, '{}', previous, digest FROM records WHERE seq = 2"
    connection = sqlite3.connect(locate().database)
    connection.execute(edit)  # not committed: only to see that it was possible
    connection.close()
    Ledger.open(locate())
    connection = sqlite3.connect(locate().database)
    head = old[-1][-1]
    gap = "INSERT INTO records VALUES (9, 't', 'cap', '{}', 'HEAD', 'd')".replace("HEAD", str(head))
    fork = "INSERT INTO records VALUES (5, 't', 'cap', '{}', 'another head', 'd')"
    for statement in (edit, gap, fork, "DELETE FROM versions"):
        with pytest.raises(sqlite3.DatabaseError, match="append-only"):
            connection.execute(statement)


def tables(path: Path) -> set[str]:
    """Tables and triggers, whatever the blanks."""
    rows = sqlite3.connect(path).execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {"".join(str(sql).split()) for (sql,) in rows}


def test_a_fresh_ledger_has_the_tables_of_a_migrated_one(old: list[tuple[object, ...]]) -> None:
    home = Ledger.open(locate()).home
    fresh = Ledger.create(Home(home.path / "fresh", home.anchor / "fresh")).home
    assert tables(fresh.database) == tables(home.database) and len(tables(home.database)) == 7


def test_a_newer_version_is_refused(old: list[tuple[object, ...]]) -> None:
    Ledger.open(locate())
    with sqlite3.connect(locate().database) as connection:
        connection.execute("INSERT INTO versions VALUES (99, 'later')")
    with pytest.raises(LedgerError, match=r"tables of version 99. This Likeness reads versions up to 4"):
        Ledger.open(locate())
    assert stored() == old


def test_a_migration_that_fails_leaves_the_old_ledger(
    old: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(connection: object) -> None:
        raise RuntimeError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(database, "MIGRATIONS", (*database.MIGRATIONS, fails))
        with pytest.raises(RuntimeError, match="planted"):
            Ledger.open(locate())
    names = sqlite3.connect(locate().database).execute("SELECT name FROM sqlite_master").fetchall()
    assert ("versions",) not in names and stored() == old
    Ledger.open(locate())
    assert json.loads(str(old[0][3]))["ledger_id"] == Ledger.open(locate()).id
