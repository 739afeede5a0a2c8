"""A team's ledger against a real PostgreSQL: append-only, one chain, never over the cap, bytes for every machine."""

import contextlib
import dataclasses
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from postgres_server import account, server
from pytest import MonkeyPatch
from toys import ADD, CAP, ledger_of_people, request

from likeness.core.errors import BudgetError, LedgerError
from likeness.core.retry import retry_on_disconnect, transient
from likeness.ledger.chain import Chain, anchor_path
from likeness.ledger.database import holding
from likeness.ledger.first_nights import cohort_members
from likeness.ledger.home import Home, locate
from likeness.ledger.ledger import Ledger, recover
from likeness.ledger.records import Record
from likeness.release.door import Door

TABLES = "records, versions, releases, first_nights"


@pytest.fixture(scope="session")
def socket() -> Iterator[Path]:
    with server() as folder:
        yield folder


@pytest.fixture
def url(socket: Path, tmp_path: Path, monkeypatch: MonkeyPatch) -> str:
    """A fresh database, as ``LIKENESS_LEDGER_URL``."""
    import psycopg

    name = f"ledger_{os.getpid()}_{abs(hash(tmp_path))}"
    with psycopg.connect(f"host={socket} user=owner dbname=postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]
    made = f"postgresql+psycopg://owner@/{name}?host={socket}"
    monkeypatch.setenv("LIKENESS_LEDGER_URL", made)
    return made


@pytest.fixture
def ledger(url: str) -> Ledger:
    return ledger_of_people()


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[str], Home]:
    """Another machine of the team: folders of its own, the same key."""

    def make(name: str, key: bool = True) -> Home:
        home = dataclasses.replace(locate(), path=tmp_path / name / "home", anchor=tmp_path / name / "anchor")
        home.path.mkdir(parents=True)
        if key:
            home.key_file.write_bytes(locate().key_file.read_bytes())
        return home

    return make


def execute(url: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[arg-type]


@pytest.mark.long
def test_the_same_chain_as_in_sqlite(ledger: Ledger) -> None:
    first = ledger.reserve(request("k", CAP / 2))
    assert ledger.reserve(request("k", CAP / 2)) == first
    with pytest.raises(BudgetError, match="lifetime cap is epsilon 1"):
        ledger.reserve(request("more", 0.6 * CAP))
    reopened = Ledger.open(locate())
    assert reopened.records() == ledger.records()
    assert [record.kind for record in ledger.records()] == ["genesis", "cap", "reserve"]
    with pytest.raises(LedgerError, match="It is there: nothing is to be done"):
        Ledger.create(locate())


@pytest.mark.parametrize("table", TABLES.split(", "))
@pytest.mark.parametrize("statement", ["UPDATE {0} SET {1} = {1}", "DELETE FROM {0}", "TRUNCATE {0}"])
def test_the_database_refuses_change_deletion_and_truncation(
    ledger: Ledger, url: str, table: str, statement: str
) -> None:
    import psycopg

    ledger.reserve(request("k", CAP / 2))
    ledger.commit("k", "00", b"bytes")
    column = {"records": "body", "releases": "data", "versions": "time", "first_nights": "night"}[table]
    with pytest.raises(psycopg.DatabaseError, match="append-only"):
        execute(url, statement.format(table, column))
    with pytest.raises(psycopg.DatabaseError, match="append-only"):  # as a replica's session, which skips most triggers
        execute(url, f"SET session_replication_role = replica; {statement.format(table, column)}")


def test_a_record_that_does_not_follow_the_last_one_is_refused(ledger: Ledger, url: str) -> None:
    """Two writers that read the same head: whatever became of the lock, the chain does not fork."""
    import psycopg

    head = ledger.head()
    for seq, previous in ((head.count + 2, head.head), (head.count + 1, "0" * 64), (head.count, head.head)):
        row = f"({seq}, 't', 'cap', '{{}}', '{previous}', 'd{seq}')"
        with pytest.raises(psycopg.DatabaseError, match="append-only"):
            execute(url, " ".join(("INSERT INTO records VALUES", row)))


def test_a_writer_needs_only_to_read_and_insert(
    ledger: Ledger, url: str, monkeypatch: MonkeyPatch, tmp_path: Path
) -> None:
    import psycopg

    writer = f"writer_{abs(hash(tmp_path))}"
    execute(url, f"CREATE ROLE {writer} LOGIN; GRANT SELECT, INSERT ON {TABLES} TO {writer}")
    as_writer = url.replace("owner@", f"{writer}@")
    monkeypatch.setenv("LIKENESS_LEDGER_URL", as_writer)
    own = Ledger.open(locate())
    own.reserve(request("k", CAP / 2))
    own.commit("k", "00", b"bytes")
    assert own.chain.released_bytes("k") == b"bytes"
    assert cohort_members(own.chain, "people", "1", ["ann"]).members == {"ann"}
    for forbidden in ("DROP TRIGGER records_append_only ON records", "ALTER TABLE records DISABLE TRIGGER ALL"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            execute(as_writer, forbidden)


def without_triggers(url: str, statement: str) -> None:
    for trigger in ("records_append_only", "records_in_order"):
        execute(url, f"ALTER TABLE records DISABLE TRIGGER {trigger}")
    execute(url, statement)


def test_what_the_owner_of_the_database_edits_or_truncates_is_noticed(ledger: Ledger, url: str) -> None:
    ledger.reserve(request("k1", CAP / 4))
    without_triggers(url, "DELETE FROM records WHERE seq = 3")
    with pytest.raises(LedgerError, match="truncated, rewritten, or restored from an older copy"):
        Ledger.open(locate())
    without_triggers(url, "UPDATE records SET body = replace(body, '1.0', '9.0') WHERE seq = 2")
    with pytest.raises(LedgerError, match="chain is broken at record 2"):
        Ledger.open(locate())
    without_triggers(url, "DROP TABLE records")
    with pytest.raises(LedgerError, match=r"is missing, but its anchor counts 3 records"):
        Ledger.open(locate())


def test_a_machine_joins_with_key_and_head_and_keeps_an_anchor_of_its_own(
    ledger: Ledger, machine: Callable[..., Home]
) -> None:
    second, head = machine("second"), ledger.head().head
    with pytest.raises(LedgerError, match=r"no anchor .* likeness ledger reanchor HEAD"):
        Ledger.open(second)
    with pytest.raises(LedgerError, match="not the one given"):
        Chain.reanchor(second, "0" * 64)
    ledger.reserve(request("k1", CAP / 4))  # somebody is always faster
    Chain.reanchor(second, head)
    for place in range(3):
        ledger.reserve(request(f"more{place}", CAP / 8))
    assert Ledger.open(second).head().count == 6
    assert '"count": 6' in anchor_path(second.anchor, second.location).read_text()
    with pytest.raises(LedgerError, match=r"hmac.key is missing. Copy it from another machine"):
        Ledger.open(machine("third", key=False))


HOLD = """
import dataclasses, sys, time
from pathlib import Path
from likeness.ledger.database import holding
from likeness.ledger.home import locate
with holding(dataclasses.replace(locate(), path=Path(sys.argv[1])), "run"):
    print("in", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="pgbouncer is not installed")
@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_is_refused_before_anything_is_spent(
    ledger: Ledger, url: str, mode: str, socket: Path, monkeypatch: MonkeyPatch
) -> None:
    """In transaction mode two machines held one lock at once, and it outlived both."""
    words, settings = account()[0], socket / f"{mode}.ini"
    both = f"pool_mode={mode}\nlisten_addr=\nlisten_port=6432\nunix_socket_dir={socket}\nauth_type=any"
    settings.write_text(f"[databases]\n*=host={socket} user=owner\n[pgbouncer]\n{both}\n")
    pooler = subprocess.Popen([*words, "pgbouncer", "-q", settings])
    try:
        while not (socket / ".s.PGSQL.6432").exists():
            assert pooler.poll() is None
        pooled = dataclasses.replace(ledger.home, url=f"{url}&port=6432")
        refused = pytest.raises(
            LedgerError, match=r"a connection pooler, such as pgbouncer, .* PostgreSQL server itself"
        )
        with refused, holding(pooled, "run", 1):
            raise AssertionError("at work")
    finally:
        pooler.terminate()
        pooler.wait()


def test_a_lock_among_machines_ends_with_its_holder(ledger: Ledger, machine: Callable[..., Home], url: str) -> None:
    command = [sys.executable, "-c", HOLD, str(machine("second").path)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "in\n"
    with pytest.raises(TimeoutError) as named, holding(ledger.home, "run", 0.3):
        raise AssertionError("two at work")
    execute(url, str(named.value).partition(": ")[2])  # what it says ends a lock of a machine that lost its power
    with holding(ledger.home, "run", 5):
        pass
    holder.kill()
    holder.wait()
    with holding(ledger.home, "run", 60):
        pass


def test_what_a_server_refuses_has_a_remedy_of_its_own(ledger: Ledger, url: str) -> None:
    name = url.partition("@/")[2].partition("?")[0]
    execute(url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(LedgerError, match=r"replica, or the database is read-only. Name the primary server"):
        ledger.reserve(request("k", CAP / 2))


def test_a_restored_dump_is_refused_on_each_machine_until_a_person_recovers_it(
    ledger: Ledger, url: str, machine: Callable[..., Home], socket: Path
) -> None:
    """A machine that had read less than the others would draw a lost release again, and count it once."""
    second, name = machine("second"), url.partition("@/")[2].partition("?")[0]
    Chain.reanchor(second, ledger.head().head)
    client = ["-h", str(socket), "-U", "owner"]
    dump = subprocess.run(["pg_dump", *client, name], check=True, capture_output=True).stdout
    ledger.reserve(request("k1", CAP / 4))
    for statement in (f'DROP DATABASE "{name}"', f'CREATE DATABASE "{name}"'):
        execute(url.replace(name, "postgres"), statement)
    subprocess.run(["psql", *client, "-q", name], check=True, capture_output=True, input=dump)
    for home in (second, locate()):
        with pytest.raises(LedgerError, match=r"another copy of the database .* recover` on the machine that ran last"):
            Ledger.open(home)
    assert [recover(home, {"asked_by": "ada"}) for home in (locate(), second)] == [(1, 0), (0, 0)]
    assert Ledger.open(second).records() == Ledger.open(locate()).records() == ledger.records()


def test_costs_that_an_old_dump_lost_are_back_on_every_machine_that_went_on_without_them(
    ledger: Ledger, url: str, machine: Callable[..., Home]
) -> None:
    second, third = machine("second"), machine("third")
    Chain.reanchor(second, ledger.head().head)
    ledger.reserve(dataclasses.replace(request("k1", CAP / 4), rows_digests=("d" * 64,)))
    ledger.commit("k1", "00")
    Chain.reanchor(third, ledger.head().head)
    without_triggers(url, "DELETE FROM records WHERE seq > 2")
    other = Ledger.open(second)
    other.reserve(request("k1", CAP / 4))  # drawn a second time
    for place, costs in ((locate(), 2), (third, 0), (locate(), 0)):
        with contextlib.suppress(LedgerError):
            assert Ledger.open(place).head() == other.head()
        assert recover(place, {"asked_by": "ada"}) == (0, costs)
    for place in (locate(), second, third):
        assert Ledger.open(place).budget("people").spent_rho == CAP / 2
    other.declare_population("others", ADD, 1.0, 1e-5)
    mine = dataclasses.replace(request("k2", CAP / 4), population="others", digest="new", rows_digests=("d" * 64,))
    with pytest.raises(BudgetError, match="these rows are accounted under population 'people'"):
        other.reserve(mine)


@pytest.mark.long
def test_an_identical_request_on_another_machine_gets_the_same_bytes(
    ledger: Ledger, machine: Callable[..., Home]
) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "release"))
    from test_door import DATASET, forbidden, plan, query, rows

    first = Door(plan(), ledger, DATASET, rows).release(query())
    second = machine("second")
    Chain.reanchor(second, ledger.head().head)
    assert Door(plan(), Ledger.open(second), DATASET, forbidden).release(query()) == first
    assert list(second.releases.iterdir()) == list(locate().releases.iterdir()) == []
    assert list(second.staging.iterdir()) == list(locate().staging.iterdir()) == []
    assert ledger.budget("people").spent_rho == pytest.approx(plan().rho)


def test_bytes_and_commit_are_there_together_or_not_at_all(ledger: Ledger, url: str) -> None:
    ledger.reserve(request("k", CAP / 2))
    without_triggers(url, "CREATE UNIQUE INDEX planted ON releases ((1)); INSERT INTO releases VALUES ('x', 'y')")
    with pytest.raises(LedgerError, match="cannot be used"):
        ledger.commit("k", "00", b"bytes")
    assert [r.kind for r in ledger.records()][-1] == "reserve" and ledger.chain.released_bytes("k") is None
    assert Ledger.open(locate()).head() == ledger.head()


def write(home: Home, name: str, steps: int, cost: float, start: Barrier, told: "Queue[str]") -> None:
    """A writer's life, in a process of its own."""
    ledger = Ledger.open(home)
    start.wait(300)
    for step in range(steps):
        try:
            ledger.reserve(request(f"{name}-{step}", cost))
            told.put("accepted")
            ledger.commit(f"{name}-{step}", "00", b"bytes")
        except BudgetError:
            told.put("refused")


def test_machines_racing_for_the_last_of_the_budget(ledger: Ledger, machine: Callable[..., Home]) -> None:
    """Together they ask for two releases more than fit: never over, one chain, whatever the order."""
    writers, steps = 6, 3
    fits = writers * steps - 2
    # Forked from a fresh process, not from this one: other tests leave threads and exit handlers in it.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["likeness.ledger.ledger", "psycopg", "sqlalchemy.dialects.postgresql"])
    start, told, racers = context.Barrier(writers), context.Queue(), []
    head = ledger.head().head
    for place in range(writers):
        home = machine(f"m{place}")
        Chain.reanchor(home, head)
        racers.append(context.Process(target=write, args=(home, f"w{place}", steps, CAP / fits, start, told)))
    for racer in racers:
        racer.start()
    said = [told.get(timeout=300) for _ in range(writers * steps)]
    for racer in racers:
        racer.join(300)
        assert racer.exitcode == 0
    assert (said.count("accepted"), said.count("refused")) == (fits, 2)
    reopened = Ledger.open(locate())
    assert reopened.budget("people").spent_rho == pytest.approx(CAP)
    records = reopened.records()  # verified
    assert len(records) == 2 + 2 * fits
    assert len({record.previous for record in records}) == len(records)


@pytest.mark.long
def test_a_server_that_is_not_there_and_a_driver_that_is_not_there(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    monkeypatch.setenv("LIKENESS_LEDGER_URL", f"postgresql+psycopg://someone@/ledger?host={tmp_path}")
    with pytest.raises(LedgerError, match=r"cannot be used: .* Is the server running") as told:
        Ledger.open(locate())
    assert "hunter2" not in str(told.value) and "someone" not in locate().location
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"pip install 'likeness-dp\[postgres\]'"):
        Ledger.open(locate())


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://someone:hunter2@host/ledger",
        *("postgresql+psycopg://host/ledger?user=someone&password=hunter2", "postgresql://hunter2@host/ledger"),
        *("mysql://someone:hunter2@host/ledger", "postgresql+psycopg://hunter2@host/"),
    ],
)
def test_a_url_with_a_password_or_of_another_kind_is_refused_and_never_repeated(url: str) -> None:
    with pytest.raises(LedgerError, match=r"ledger\.url must") as told:
        locate(None, url)
    assert "hunter2" not in str(told.value)


def test_a_team_ledger_over_a_ledger_of_this_machine_is_refused(url: str, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.delenv("LIKENESS_LEDGER_URL")
    Ledger.create(locate())
    with pytest.raises(LedgerError, match="would forget what it spent"):
        Ledger.create(locate(None, url))


def test_what_a_cut_connection_stopped_is_tried_again_and_paid_once(
    ledger: Ledger, url: str, monkeypatch: MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import psycopg

    pauses: list[float] = []
    monkeypatch.setattr("likeness.core.retry.time.sleep", pauses.append)
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'likeness'"
    insert = Chain.check_anchor

    def cut_once(ledger: Chain, records: list[Record]) -> None:
        insert(ledger, records)
        if not pauses:  # between reading and writing
            execute(url, cut)

    monkeypatch.setattr(Chain, "check_anchor", cut_once)
    retry_on_disconnect(lambda: ledger.reserve(request("k", CAP / 2)))
    assert pauses == [2] and "Trying again in 2 s; nothing is paid twice" in caplog.text
    assert [record.kind for record in ledger.records()].count("reserve") == 1

    def never() -> None:
        raise transient(LedgerError("no server"), psycopg.OperationalError("connection refused"))

    with pytest.raises(LedgerError, match="no server"):
        retry_on_disconnect(never)
    assert pauses == [2, 2, 10, 30]
    monkeypatch.setenv("LIKENESS_LEDGER_URL", url.replace("owner@", "nobody_here@"))
    with pytest.raises(LedgerError, match='role "nobody_here" does not exist'):
        retry_on_disconnect(lambda: Ledger.open(locate()))
    assert len(pauses) == 4  # a wrong role stays wrong
