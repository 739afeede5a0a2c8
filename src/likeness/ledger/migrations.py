"""Versions of the ledger's tables, and the way forward from each. Applied under the ledger's lock, all or nothing.

A list of functions and not Alembic: it would bring an environment, a folder of scripts and a version table that is
updated in place, for what are a few statements here; and a ledger never goes backwards. No migration touches a record.
"""

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import Connection, func, insert, inspect, select

from likeness.core.errors import LedgerError
from likeness.ledger.database import RECORDS, RELEASES, VERSIONS, is_postgres

_APPEND_ONLY = "the ledger is append-only"


def version_of(connection: Connection) -> int:
    """0: no ledger. 1: before versions were recorded."""
    tables = set(inspect(connection).get_table_names())
    if RECORDS.name not in tables:
        return 0
    if VERSIONS.name not in tables:
        return 1
    found = connection.execute(select(func.coalesce(func.max(VERSIONS.c.version), 1))).scalar_one()
    if not isinstance(found, int):
        raise LedgerError("the ledger's table of versions is damaged. Restore the ledger from a backup.")
    return found


def migrate(connection: Connection, place: str) -> None:
    """Bring the tables to this version. The caller holds the lock and the transaction.

    Raises:
        LedgerError: they were written by a newer version.
    """
    found, known = version_of(connection), len(MIGRATIONS)
    if found > known:
        raise LedgerError(
            f"the ledger at {place} has tables of version {found}, this Likeness knows versions up to {known}. It was "
            "used by a newer Likeness: install that one."
        )
    for version, step in enumerate(MIGRATIONS[found:], start=found + 1):
        step(connection)
        if version > 1:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            connection.execute(insert(VERSIONS), {"version": version, "time": now})


def _records(connection: Connection) -> None:
    """Version 1: the records, no update, no deletion."""
    RECORDS.create(connection)
    if is_postgres(connection):
        connection.exec_driver_sql(
            "CREATE FUNCTION likeness_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{_APPEND_ONLY}'; END $$"
        )
    _append_only(connection, RECORDS.name)


def _order_and_versions(connection: Connection) -> None:
    """Version 2: the database itself refuses a record that does not follow the last one; versions; a team's releases.

    The order also closes SQLite's INSERT OR REPLACE, which deletes without asking the trigger for deletions, and makes
    of two writers that read the same head one that is refused: the chain cannot fork, with or without a lock.
    """
    if is_postgres(connection):
        connection.exec_driver_sql(
            "CREATE FUNCTION likeness_in_order() RETURNS trigger LANGUAGE plpgsql AS $$ "
            "DECLARE last_seq integer; last_digest text; BEGIN "
            "SELECT seq, digest INTO last_seq, last_digest FROM records ORDER BY seq DESC LIMIT 1; "
            "IF NEW.seq <> COALESCE(last_seq, 0) + 1 OR NEW.previous <> COALESCE(last_digest, repeat('0', 64)) "
            "THEN RAISE EXCEPTION 'the ledger is append-only: not the next record'; END IF; RETURN NEW; END $$"
        )
        connection.exec_driver_sql(
            "CREATE TRIGGER records_in_order BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION likeness_in_order()"
        )
        connection.exec_driver_sql("ALTER TABLE records ENABLE ALWAYS TRIGGER records_in_order")
        RELEASES.create(connection)
        _append_only(connection, RELEASES.name)
    else:
        connection.exec_driver_sql(
            "CREATE TRIGGER records_in_order BEFORE INSERT ON records "
            "WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM records) OR NEW.previous <> "
            "coalesce((SELECT digest FROM records ORDER BY seq DESC LIMIT 1), printf('%064d', 0)) "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: not the next record'); END"
        )
    VERSIONS.create(connection)
    _append_only(connection, VERSIONS.name)


def _delta(connection: Connection) -> None:
    """Version 3: an entry may cost δ as well (``delta_keys``), which programs before it would not count.

    Nothing is done to the tables: the number makes such a program refuse the ledger.
    """


def _populations(connection: Connection) -> None:
    """Version 4: a record's digest is over its population and its content, which programs before it cannot check.

    Nothing is done to the tables, as in :func:`_delta`.
    """


def _append_only(connection: Connection, table: str) -> None:
    if is_postgres(connection):
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION likeness_append_only()"
        )
        connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_append_only")
        return
    for verb in ("UPDATE", "DELETE"):
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{_APPEND_ONLY}'); END"
        )


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_records, _order_and_versions, _delta, _populations)
"""The n-th leads to version n."""
