"""One Prefect test server for the session."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import likeness.flows  # noqa: F401  (quiet, before Prefect)

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def outside(tmp_path_factory: pytest.TempPathFactory, prefect_server: Path) -> dict[str, str]:
    """Environment of a process of its own, with one Prefect home for the session: a fresh database costs seconds."""
    home = tmp_path_factory.mktemp("prefect")
    with closing(sqlite3.connect(prefect_server)) as made, closing(sqlite3.connect(home / "prefect.db")) as copy:
        made.backup(copy)
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return ours | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300",
    }


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[Path]:
    """An ephemeral Prefect API, and its temporary database; its start takes up to ten seconds, once."""
    from prefect import settings
    from prefect.testing.utilities import prefect_test_harness

    os.environ["PREFECT_LOGGING_LEVEL"] = "ERROR"
    no_heartbeat = settings.temporary_settings({settings.PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None})
    with prefect_test_harness(server_startup_timeout=300), no_heartbeat:
        yield Path(str(settings.PREFECT_SERVER_DATABASE_CONNECTION_URL.value()).partition("///")[2])
