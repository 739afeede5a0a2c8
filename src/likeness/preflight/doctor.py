"""What is wrong with the places of a project: settings, ledger, locks, disks and servers. It changes nothing."""

import base64
import os
import shutil
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from likeness.config.params import NONE
from likeness.core.errors import LedgerError, LikenessError
from likeness.core.paths import ProjectPaths
from likeness.core.refusals import storage_refusal
from likeness.ledger.chain import lock_chain
from likeness.ledger.first_nights import check_series
from likeness.ledger.home import Home, locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.records import MOST_BACK, days_between, moment
from likeness.ledger.series import Series
from likeness.pipeline.dvc_repair import cut_files, run_at_work
from likeness.pipeline.project import Project
from likeness.pipeline.tracking import TRACKING
from likeness.release.store import check_store

LEAST_FREE = 100 * 2**20
"""Bytes that a disk must have left beside the size of the last run's tables; the ledger needs a few kilobytes."""
_SECONDS = 5.0  # to wait for a lock that others hold for milliseconds, or for a server


class Finding(NamedTuple):
    """One place, and what is wrong with it.

    Attributes:
        place: what was looked at.
        fault: with the remedy; empty where all is well.
    """

    place: str
    fault: str


def examine_places(root: Path) -> Iterator[Finding]:
    """Look at each place on which a run of the project in a folder depends; without a project at those of a machine."""
    project, folders = None, [Path(tempfile.gettempdir())]
    if (root / ProjectPaths.params).exists():
        try:
            project = Project.load(root)
            home = project.ledger_session.home
        except LikenessError as error:
            yield Finding("settings", str(error))
            return
        yield Finding("settings", "")
        folders.append(root.resolve())
    else:
        home = locate()
    for folder in dict.fromkeys((*folders, home.path, home.anchor)):
        yield Finding(f"disk of {folder}", _fault(partial(_check_disk, folder)))
    busy = _fault(lambda: _check_free(home))
    yield Finding("lock of the ledger", busy)
    fault = busy or _fault(lambda: Ledger.open(home) if project is None else project.ledger_session.ledger)
    if not busy:  # else opening it would wait
        yield Finding(f"ledger at {home.location}, its key and its anchor", fault)
    if project is None:
        return
    session, mlflow = project.ledger_session, "LIKENESS_MLFLOW_URI"
    urls = {name: os.environ.get(name) or "" for name in ("PREFECT_API_URL", mlflow)}
    urls[mlflow] = urls[mlflow] or project.params.tracking.uri or ""
    servers = {name: url for name, url in urls.items() if url.startswith(("http://", "https://"))}
    if not fault:
        yield Finding("lock of runs", _fault(lambda: _check_other_runs(project)))
        yield Finding("witnesses in git", _fault(session.check_witnesses))
        if mlflow not in servers and "run_witnesses" in TRACKING and find_spec("mlflow"):
            witnesses = partial(TRACKING["run_witnesses"], project)
            yield Finding("database of MLflow", _fault(lambda: session.check_witnesses(*witnesses())))
        yield Finding("series of nights", _fault(lambda: _check_series(project)))
        yield Finding("released files", _fault(lambda: check_store(project.ledger)))
    yield Finding("source", _fault(lambda: project.sources.all_sources))
    cut = [f"A kill cut {name} short, or a hand changed it. `likeness run` mends it." for name in cut_files(root)]
    yield Finding("files of DVC", " ".join(filter(None, (*cut, run_at_work(root)))))
    for name, url in servers.items():
        yield Finding(f"server of {name}", _fault(partial(_check_server, name, url)))


def _fault(check: Callable[[], object]) -> str:
    """Run a check and return the fault that it names; empty where it names none."""
    try:
        check()
    except LikenessError as error:
        return str(error)
    except OSError as error:
        return storage_refusal(error) or f"{error.filename or 'a file'} cannot be used ({error.strerror or error})."
    return ""


def _check_disk(folder: Path) -> None:
    """Write a file where there is a folder, else see how much is free where it would be made."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    if existing == folder:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".likeness-") as probe:
            probe.write(b"x" * 4096)
            probe.flush()
            os.fsync(probe.fileno())
    tables = (path.stat().st_size for path in (folder / ProjectPaths.private).rglob("*") if path.is_file())
    free, room = shutil.disk_usage(existing).free, LEAST_FREE + sum(tables)
    if free < room:
        raise LikenessError(f"{free // 2**20} MB are free, and a run needs up to {room // 2**20} MB. Make room.")


def _check_free(home: Home) -> None:
    if not home.locks.is_dir():  # there is no ledger, or its anchor says that it was lost
        return
    try:
        with lock_chain(home, _SECONDS):
            pass
    except TimeoutError as holder:
        raise LedgerError(f"{holder} has held it for seconds. Wait, or end that: the lock ends with it.") from None


def _check_other_runs(project: Project) -> None:
    with project.ledger_session.exclusive_run(0):
        pass


def _check_series(project: Project) -> None:
    """See that each series can go on, and that the next night has a day."""
    ledger, params = project.ledger, project.params
    check_series(ledger.chain)
    records = ledger.records()
    if params.privacy.series != NONE:
        Series.from_records(records, params.privacy.population, params.ledger.attempt).day_of_night(records)
        project.ledger_session.check_night("")
    elif days_between(moment([]), records[-1].time) > MOST_BACK:
        days = f"the clock says {moment([])}, and the ledger's last record is of {records[-1].time}"
        raise LedgerError(f"{days}. Set the clock. If it is right, run: likeness ledger day {moment([])}")


def _check_server(name: str, url: str) -> None:
    """Ask a server whether it is there. What is shown of its URL is scheme, host and port: the rest may be secret."""
    try:
        parts = urlsplit(url)
        address = f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        raise LikenessError(f"{name} is not a URL. Give http://HOST:PORT and a path.") from None
    path = parts.path if name == "LIKENESS_MLFLOW_URI" else f"{parts.path.rstrip('/')}/health"
    request = urllib.request.Request(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, parts.query, "")))
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS):
            pass
    except (OSError, HTTPException, ValueError) as error:  # their texts may repeat the URL
        code = getattr(error, "code", None) or type(getattr(error, "reason", error)).__name__
        raise LikenessError(f"{address} does not answer ({code}). Start it, or correct {name}.") from None
