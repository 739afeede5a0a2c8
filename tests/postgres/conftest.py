"""A PostgreSQL server for the tests of this folder, and a database of its own for each."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from postgres_server import server
from sqlalchemy import create_engine

NUMBERS = count()


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
