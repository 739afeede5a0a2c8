"""A PostgreSQL server for the tests of this folder, and a database of its own for each."""

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
from postgres_server import server
from sqlalchemy import create_engine

NUMBERS = count()
OF_HISTORIES = ["test_history_statements.py", "test_counted_histories.py"]
collect_ignore = [] if find_spec("likeness_histories") else OF_HISTORIES


@pytest.fixture(scope="session")
def cluster() -> Iterator[Path]:
    """A running server: the folder of its socket."""
    with server() as folder:
        yield folder


@pytest.fixture
def url(cluster: Path) -> str:
    """A new database, as its owner."""
    name = f"of_test_{next(NUMBERS)}"
    engine = create_engine(f"postgresql+psycopg://owner@/postgres?host={cluster}", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return f"postgresql+psycopg://owner@/{name}?host={cluster}"
