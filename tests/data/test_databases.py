"""Databases as sources: the rules of a file, no order of rows, read only, and no private value in any message."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
import yaml
from postgres_server import server
from pytest import MonkeyPatch
from small_project import asking
from sqlalchemy import create_engine
from toys import schema_with
from typer.testing import CliRunner

from likeness.cli.app import app
from likeness.config.params import Ingest
from likeness.core.errors import DataError, LikenessError, ParamsError
from likeness.data.source.databases import Database
from likeness.data.source.files import read_source
from likeness.data.source.header import guesses_of
from likeness.data.source.row_digests import SourceDigest, typed_digest
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.ingest import source_rows
from likeness.pipeline.project import Project
from likeness.preflight.faults import examine

ROOT = Path(__file__).parents[2]
SECRET = "8675309"  # stands for a private value: it must never be in a message
KEY = b"k" * 32
COLUMNS = {
    "a": {"kind": "integer", "lower": 0, "upper": 9, "nullable": True},
    "x": {"kind": "numeric", "lower": 0, "upper": 1},
    "c": {"kind": "categorical", "categories": ["u", "v"]},
    "seen": {"kind": "date", "lower": "2000-01-01", "upper": "2030-01-01"},
}
SCHEMA = schema_with(COLUMNS, name="visits")


def visits(count: int = 300) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "pid": [f"p{n}" for n in generator.integers(0, 90, count)],
            "part": generator.choice(["train", "test"], count),
            "a": pd.array(generator.integers(0, 4, count), dtype="Int64"),
            "x": generator.random(count).round(3),
            "c": generator.choice(["u", "v"], count),
            "seen": [f"2020-01-{day:02d}" for day in generator.integers(1, 29, count)],
        }
    ).mask(lambda table: (table.columns == "a") & (generator.random((count, 1)) < 0.1))


def sqlite(path: Path, table: pd.DataFrame, order: "np.ndarray | None" = None) -> Database:
    with closing(sqlite3.connect(path)) as connection:
        table.iloc[np.arange(len(table)) if order is None else order].to_sql("visits", connection, index=False)
    return Database(f"sqlite:///{path}", "visits")


@pytest.fixture
def database(tmp_path: Path, monkeypatch: MonkeyPatch) -> Database:
    """Chunks of a few rows, so that there are many."""
    monkeypatch.setattr("likeness.data.source.databases._ROWS", 64)
    return sqlite(tmp_path / "people.db", visits())


def test_the_same_rows_as_from_a_file_in_an_order_of_their_own(database: Database, tmp_path: Path) -> None:
    visits().to_csv(tmp_path / "t.csv", index=False)
    expected, parts, people = read_source(tmp_path / "t.csv", SCHEMA, "part", "pid")
    table, split, owners = database.read(SCHEMA, "part", "pid")
    both = [
        own.assign(part=part.to_numpy(), pid=pid.to_numpy()).astype("str").value_counts().sort_index()
        for own, part, pid in [(expected, parts, people), (table, split, owners)]
    ]
    pd.testing.assert_series_equal(*both)
    assert table.dtypes.tolist() == expected.dtypes.tolist()
    asked = Database(database.url, "SELECT c, x, a, seen FROM visits")
    plain, nobody, unknown = asked.read(SCHEMA)
    assert len(plain) == 300 and nobody is None and unknown is None


@pytest.mark.long
def test_the_order_of_rows_makes_no_other_digest_and_a_change_does(database: Database, tmp_path: Path) -> None:
    shuffled = sqlite(tmp_path / "other.db", visits(), np.random.default_rng(1).permutation(300))
    changed = sqlite(tmp_path / "changed.db", visits().replace({"pid": {"p1": "p2"}}))
    fewer = sqlite(tmp_path / "fewer.db", visits(299))
    digests = [
        typed_digest(own.read(SCHEMA, "part", "pid")[0], SCHEMA, KEY, ordered=True) for own in (database, shuffled)
    ]
    assert digests[0] == digests[1]
    prints = [own.fingerprint(KEY) for own in (database, shuffled, changed, fewer)]
    assert prints[0] == prints[1] and len(set(prints)) == 3 and database.fingerprint(b"j" * 32) != prints[0]
    rows = [SourceDigest() for _ in range(5)]
    bare = replace(SCHEMA, columns=SCHEMA.columns[:1])
    turned = Database(database.url, "SELECT seen, c, x, a, part, pid FROM visits")
    for own, asked in zip(rows, [database, shuffled, turned, changed, fewer], strict=True):
        asked.read(bare if asked is shuffled else SCHEMA, source=own)
    assert len({own.digest(KEY) for own in rows[:3]}) == 1 and len({own.digest(KEY) for own in rows}) == 3
    assert Database(database.url, "SELECT a AS b FROM visits").fingerprint(KEY) != Database(
        database.url, "SELECT a FROM visits"
    ).fingerprint(KEY)


@pytest.mark.long
def test_a_cell_without_a_text_hides_no_other_cell_from_the_digest(tmp_path: Path) -> None:
    photos = visits(20_000)[["a", "x"]].assign(photo=[b"\xff" if row == 3 else b"jpeg" for row in range(20_000)])
    one = sqlite(tmp_path / "1.db", photos).fingerprint(KEY)
    assert one == sqlite(tmp_path / "2.db", photos, np.arange(20_000)[::-1]).fingerprint(KEY)
    assert one != sqlite(tmp_path / "3.db", photos.assign(photo=b"\xff")).fingerprint(KEY)


def test_an_empty_answer_is_an_empty_table(database: Database) -> None:
    table, split, people = Database(database.url, "SELECT * FROM visits WHERE x > 2").read(SCHEMA, "part", "pid")
    assert (len(table), len(split), len(people)) == (0, 0, 0) and list(table.columns) == list(SCHEMA.names)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("nowhere", r"refuses ingest.query.*\. It has no table 'nowhere'\. Correct the query"),
        ("SELECT v.Z FROM visits AS v", r"\. It has no column 'v\.Z'\. Correct the query"),
        ("SELECT a FROM visits", "columns 'x', 'c', 'seen' are missing. ingest.query must give: a, x, c, seen"),
        ("SELECT *, a FROM visits", "column 'a' occurs twice"),
        ("SELECT a, x, '8675309' AS c, seen FROM visits", "'c' has a value that is not among its public"),
        ("SELECT a, '8675309!' AS x, c, seen FROM visits", "'x' has a value that is not a number"),
        ("SELECT a, NULL AS x, c, seen FROM visits", "'x' has a missing value"),
        ("SELECT CASE WHEN x < .5 THEN 1 ELSE '8675309!' END AS a, x, c, seen FROM visits", "'a' has a value that is"),
        ("SELECT CAST(X'FF38363735333039' AS TEXT) AS a, x, c, seen FROM visits", "or a row of its answer"),
        ("SELECT X'FF38363735333039' AS c, a, x, seen FROM visits", "'c' holds .* not UTF-8"),
        ("DELETE FROM visits", "refuses ingest.query"),
        ("WITH t AS (SELECT 1) DELETE FROM visits RETURNING a, x, c, seen", "refuses ingest.query"),
    ],
    ids=[
        *("table", "unknown column", "column", "twice", "category", "number", "null", "mixed", "text", "bytes"),
        *("delete", "returning"),
    ],
)
def test_what_does_not_fit_is_refused_without_a_value(database: Database, query: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        Database(database.url, query).read(SCHEMA)
    assert "people.db" in str(caught.value) and caught.value.__context__ is None and SECRET not in str(caught.value)
    assert len(database.read(SCHEMA)[0]) == 300  # and nothing was written


def test_duckdb_says_which_name_it_does_not_know(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS a, '8675309' AS c")
    for query, words in (
        ("visitz", "It has no table 'visitz'"),
        ('SELECT a, "Z b" FROM visits', "It has no column 'Z b'"),
        ("SELECT CAST(c || 'x' AS INTEGER) AS a FROM visits", "Run the query there"),
        (
            """SELECT error('Binder Error: Referenced column "' || c || '" not found') AS a FROM visits""",
            "Run the query",
        ),
    ):
        with pytest.raises(DataError, match=rf"refuses ingest\.query.*\. {words}") as caught:
            Database(f"duckdb:///{tmp_path}/t.duckdb", query).read_first_rows(1)
        assert SECRET not in str(caught.value)
    single = Database(f"duckdb:///{tmp_path}/t.duckdb", "SELECT CAST(.1 AS FLOAT) AS a").read_first_rows(1)
    assert str(single[0][0]) == "0.1"


def test_temporary_files_hold_rows_so_they_lie_where_private_files_do(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data/private").mkdir(parents=True)
    duckdb.connect("t.duckdb").close()
    sqlite3.connect("t.db").close()
    with Database("duckdb:///t.duckdb", "t")._open_connection() as connection:
        ((spilled,),) = connection.exec_driver_sql("SELECT current_setting('temp_directory')").cursor.fetchall()
        assert Path(spilled).stat().st_mode & 0o077 == 0 and Path(spilled).parent.samefile("data/private")
    assert not Path(spilled).exists()
    assert Database("sqlite:///t.db", "t").answers(["PRAGMA temp_store"]) == [[(2,)]]  # in memory


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.db: no such file"):
        Database(f"sqlite:///{tmp_path}/absent.db", "visits").read(SCHEMA)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "text.db").write_text(SECRET * 400)
    with pytest.raises(DataError, match=r"text\.db: the database refuses ingest\.query") as caught:
        Database(f"sqlite:///{tmp_path}/text.db", "visits").fingerprint(KEY)
    assert SECRET not in str(caught.value)


PASSWORD = "hunter2"


@pytest.mark.parametrize(
    ("source", "query", "message"),
    [
        (f"postgresql+psycopg://me:{PASSWORD}@host/db", "t", "must not hold a password"),
        (f"postgresql+psycopg://host/db?password={PASSWORD}", "t", "must not hold a password"),
        ("mysql://host/db", "t", "must be a file, sqlite:///"),
        ("postgresql://host/db", "t", "must be a file, sqlite:///"),
        ("sqlite://", "t", "must be a file, sqlite:///"),
        ("spark://host:7077", "t", "rows of ingest.source spark:// stay there. Set it to stay, or take a Parquet file"),
        ("spark://", None, "likeness init drafts from that"),
        ("sqlite:///a.db?mode=rwc", "t", "must be a file, sqlite:///"),
        ("sqlite:///a.db", None, "ingest.query must be the name of a table, or one SELECT"),
        ("sqlite:///a.db", "DROP TABLE t", "ingest.query must be the name of a table, or one SELECT"),
        ("sqlite:///a.db", "SELECT 1; DELETE FROM t", "without a semicolon"),
        ("sqlite:///a.db", "SELECT a FROM t LIMIT 9 -- few", "must not end with LIMIT"),
        ("sqlite:///a.db", "SELECT a FROM t ORDER BY a LIMIT 9 OFFSET 3", "must not end with LIMIT"),
        ("sqlite:///a.db", "SELECT a FROM t FETCH FIRST 9 ROWS ONLY", "must not end with LIMIT"),
        ("a.csv", "t", "ingest.query is for a database"),
    ],
    ids=[
        *("password", "hidden", "mysql", "driver", "memory", "spark", "spark without a query", "options", "no query"),
        *("drop", "two", "limit", "offset", "fetch", "file"),
    ],
)
def test_settings_hold_no_password_and_ask_one_question(source: str, query: str | None, message: str) -> None:
    with pytest.raises(ParamsError, match=message) as caught:
        Ingest(source, "s.yaml", query=query)
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("source", ["sqlite:///a.db", "duckdb:///a.duckdb"])
def test_rows_of_a_file_come(source: str) -> None:
    with pytest.raises(ParamsError, match=r"stay is not for (sqlite|duckdb), whose file lies here"):
        Ingest(source, "s.yaml", query="t", rows="stay")


@pytest.mark.parametrize(
    "query", ["SELECT x AS limit FROM t", "SELECT a FROM t WHERE c = 'limit 9'", "SELECT a, offset FROM t"]
)
def test_words_like_limit_may_be_names_and_texts(query: str) -> None:
    assert Ingest("sqlite:///a.db", "s.yaml", query=query).query == query


def project(database: Database, folder: Path, **privacy: Any) -> Project:
    """A folder of its own whose params.yaml asks the database."""
    asks = {"source": database.url, "query": "visits", "split": {"column": "part"}}
    return asking(folder, SCHEMA, asks, **privacy)


def test_stages_read_it_and_places_that_do_not_exist_are_refused(
    database: Database, tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked, ledger = project(database, tmp_path), Ledger.create(locate())
    table, split, people = source_rows(asked.sources, asked.written_schema)
    assert len(table) == 300 and set(split) == {"train", "test"} and people is None
    assert asked.source_digest() == database.fingerprint(ledger.key) and examine().faults == ()
    (tmp_path / "schema.yaml").write_text((tmp_path / "schema.yaml").read_text().replace("name: seen", "name: saw"))
    assert [fault.file for fault in examine().faults] == ["people.db"]
    with pytest.raises(ParamsError, match="rows have no fixed order"):
        project(database, tmp_path, adjacency="replace_one", num_records=10)


def test_init_drafts_a_schema_from_a_database(database: Database, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    words = ["init", database.url, "--query", "SELECT * FROM visits", "--person", "pid", "--name", "mine"]
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
    content = yaml.safe_load((tmp_path / "params.yaml").read_text())
    assert (content["ingest"]["source"], content["ingest"]["query"]) == (database.url, "SELECT * FROM visits")
    assert content["ingest"]["unit"] == {"column": "pid", "max_rows": None}
    assert content["privacy"]["unit"] == "one person"
    columns = yaml.safe_load((tmp_path / "data/schema/mine.yaml").read_text())["columns"]
    kinds = {"pid": "drop", "part": "categorical", "a": "integer", "x": "numeric", "c": "categorical", "seen": "date"}
    assert {name: column["kind"] for name, column in columns.items()} == kinds
    assert "p1" not in json.dumps(columns).replace("pid", "")
    told = [fault.text for fault in examine().faults]
    assert any(text.startswith("ingest.unit.max_rows is an open question") for text in told)
    with pytest.raises(LikenessError, match="needs --query"):
        CliRunner().invoke(app, ["init", database.url, "--name", "other"], catch_exceptions=False)


@pytest.mark.process
def test_postgresql_gives_the_same_rows_and_cannot_be_written(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    with server() as folder:
        url = f"postgresql+psycopg://owner@/postgres?host={folder}"
        engine = create_engine(url)
        visits().to_sql("visits", engine, index=False)
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE SEQUENCE counter")
        engine.dispose()
        database = Database(url, "SELECT a, x, c, seen, part, pid FROM visits WHERE c LIKE '%' AND x::text <> ':x'")
        own, other = (each.read(SCHEMA, "part", "pid") for each in (database, sqlite(tmp_path / "t.db", visits())))
        for one, another in zip(own, other, strict=True):
            assert one.equals(another)
        query = "WITH gone AS (DELETE FROM visits RETURNING *) SELECT * FROM gone"
        for words in (
            query,
            "SELECT nextval('counter') AS a, x, c, seen FROM visits",
            "SELECT CAST('8675309x' AS integer) AS a FROM visits",
        ):
            with pytest.raises(DataError, match=r"refuses ingest\.query") as caught:
                Database(url, words).read(SCHEMA)
            assert SECRET not in str(caught.value)
        for words, name in (
            ("SELECT Wardd FROM visits", "column 'wardd'"),
            ("SELECT v.wardd, a FROM visits v", "column 'v.wardd'"),
            ("visitz", "table 'visitz'"),
        ):
            for ask in (Database(url, words).columns, partial(Database(url, words).read, SCHEMA)):
                with pytest.raises(DataError, match=rf"\(Undefined\w+\)\. It has no {name}\. Correct"):
                    ask()
        made = """SELECT query_to_xml('SELECT "8675309" FROM visits', true, false, '')::text"""  # by a function
        with pytest.raises(DataError, match=r"\(UndefinedColumn\)\. Run the query there"):
            Database(url, made).read_first_rows(1)
        monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=20ms")
        with pytest.raises(DataError, match=r"\(QueryCanceled\)\. The server ended the query: by its statement_time"):
            Database(url, "SELECT pg_sleep(5) AS a").read_first_rows(1)
        monkeypatch.delenv("PGOPTIONS")
        assert len(database.columns()) == 6
        no_row_can_come = Database(
            url, "SELECT 1 / (a - a) AS n, x, seen::date AS seen, c, a > 1 AS b FROM visits -- all"
        )
        assert no_row_can_come.columns() == ["n", "x", "seen", "c", "b"]
        kinds, _ = guesses_of(no_row_can_come)
        assert list(kinds.values()) == ["integer", "numeric", "date", "categorical", "boolean"]
        monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=5s -c default_transaction_read_only=off -c jit=on")
        names = ("statement_timeout", "default_transaction_read_only", "jit")
        settings = Database(url, "SELECT " + ", ".join(f"current_setting('{name}') AS {name}" for name in names))
        assert settings.read_first_rows(1) == [("5s", "on", "off")]
    with pytest.raises(DataError, match="postgres: cannot be reached: "):
        database.columns()
