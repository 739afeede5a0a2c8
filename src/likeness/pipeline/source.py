"""The private source of a run: its place, its keyed hash, its database, its engine."""

import hmac
import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from likeness.config.params import Params
from likeness.core.errors import DataError
from likeness.engine import Engine, open_engine

if TYPE_CHECKING:
    from likeness.data.source.databases import Database
from likeness.core.paths import WORKERS


def source_path(params: Params) -> Path:
    """The private source.

    Raises:
        DataError: it does not exist.
    """
    path = Path(params.ingest.source)
    if not path.exists():
        raise DataError(
            f"params.yaml: ingest.source {path} does not exist. Give a .csv, .csv.gz or .parquet file, or a folder of "
            ".parquet files."
        )
    return path


def fingerprint(path: Path, key: bytes) -> str:
    """Keyed hash of a file, so that DVC can notice a change without publishing a hash of private bytes.

    Of a folder: of its files' names and hashes.
    """
    digest = hmac.new(key, digestmod="sha256")
    if path.is_dir():
        files = {file.name: fingerprint(file, key) for file in sorted(path.iterdir()) if file.is_file()}
        digest.update(json.dumps(files, sort_keys=True).encode())
        return digest.hexdigest()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def source_digest(params: Params, key: bytes) -> str:
    """Keyed hash of the source: of a file's bytes, or of the rows that a database gives.

    Raises:
        DataError: there is no such file, or the database cannot be read.
    """
    found = database(params)
    return fingerprint(source_path(params), key) if found is None else found.fingerprint(key)


def database(params: Params) -> "Database | None":
    """The source, if it is a database."""
    from likeness.data.source.databases import Database

    return Database(params.ingest.source, params.ingest.query or "") if params.ingest.from_database else None


def engine(params: Params) -> AbstractContextManager[Engine]:
    """Where the passes over rows are worked on."""
    own = params.engine
    return open_engine(own.kind, own.workers, own.scheduler, WORKERS)
