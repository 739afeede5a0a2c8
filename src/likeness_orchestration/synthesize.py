"""One pipeline run as a Prefect flow: a task with a state for every DVC stage, in order. Needs no server.

DVC decides what is out of date, so Prefect caches and retries nothing: a refusal for lack of budget stays. Prefect's
database holds settings, states, the messages of the library, and the privacy account. Other output of a stage goes to
stderr only.
"""

import argparse
import atexit
import json
import logging
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from httpx import HTTPError
from prefect import Task, flow, task
from prefect.artifacts import Artifact, MarkdownArtifact, TableArtifact
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.exceptions import ObjectNotFound
from prefect.logging import get_run_logger
from prefect.runtime import flow_run
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.states import Completed, Crashed, Failed

from likeness.core.errors import LikenessError, NightError
from likeness.core.files import file_lock
from likeness.core.messages import LOG, Report
from likeness.core.paths import ProjectPaths
from likeness.core.refusals import errors_in_words
from likeness.core.retry import retry_on_disconnect
from likeness.flows.reproduce import ended_by_signals, reproduce
from likeness.flows.stage_graph import stage_graph
from likeness.ledger.budget import Cost
from likeness.ledger.records import moment
from likeness.ledger.witness import trailer
from likeness.pipeline.counts import ANSWERS
from likeness.pipeline.project import Project
from likeness.preflight.cost import afford, remainder

_NO_NIGHT = "NoNight"
_COLUMNS = ("query", "stage", "dimension", "sensitivity", "noise_multiplier", "share", "rho", "ledger_seq", "sha256")
_MINUTE, _DAY = 60.0, 86_400.0
_OVER = "over budget for "  # what every refusal by a cap says


@task(task_run_name="dvc:{stage}", retries=0, cache_policy=NO_CACHE, persist_result=False)
def dvc_stage(stage: str, root: str, timeout: float) -> State[None]:
    """Reproduce one stage; the state's name is Ran, Restored, UpToDate or Failed."""
    logger = get_run_logger() if flow_run.id else LOG

    def listen(report: Report) -> None:
        if not report.text:
            return
        print(report.text, file=sys.stderr, flush=True)
        if report.safe:
            logger.info(report.text)

    outcome = reproduce(Path(root), stage, listen, timeout)
    if outcome.ending == "Failed":
        return Failed(message=outcome.message)
    return Completed(name=outcome.ending, message=outcome.message)


@task(task_run_name="budget", retries=0, cache_policy=NO_CACHE, persist_result=False)
def budget(root: str) -> State[None]:
    """Ask the ledger whether its cap has room for a run and is that of params.yaml, before a stage reads data."""
    try:
        with errors_in_words():
            project = Project.load(Path(root))
            project.ledger_session.check_declared(project.complete_params.ingest.unit)
            costs, left = afford([project])
    except LikenessError as error:
        return Failed(message=str(error))
    return Completed(name="Affordable", message=remainder(left, Cost.total(costs)))


@flow(name="synthesize", retries=0, persist_result=False, log_prints=False)
def synthesize(
    root: str = ".", stage_timeout: float = _DAY, check_budget: bool = False, wait: float = _MINUTE
) -> State[None]:
    """Run every stage of ``dvc.yaml`` in the folder ``root``, then put the privacy account on record.

    A run that failed, was killed or was refused can be started again: finished stages are not repeated, and released
    values come from the ledger's store. A refusal by a cap has a state name, OverBudget.

    Args:
        root: the project's folder.
        stage_timeout: seconds after which a stage is killed.
        check_budget: refuse a run over a cap before data are read. The door refuses it anyway.
        wait: seconds to wait for another run of the same people.
    """
    try:
        project = Project.load(Path(root))
        with ExitStack() as held:
            if flow_run.id:
                held.enter_context(_note_run(project.paths.flow_runs, flow_run.id))
            retry_on_disconnect(lambda: held.enter_context(project.ledger_session.exclusive_run(wait)))
            held.callback(ANSWERS.clear)  # this process may live long
            state = _stages(project.paths, stage_timeout, check_budget)
            if flow_run.id:
                publish(project.paths, account=state.is_completed())
            return state
    except NightError as error:
        return Failed(name=_NO_NIGHT, message=str(error))
    except LikenessError as error:
        return Failed(message=str(error))


@contextmanager
def _note_run(folder: Path, run_id: str) -> Iterator[None]:
    """Keep a locked file of this run while it waits and works. Whose file nobody holds was killed, and cannot say so.

    A server that does not answer hinders no night.
    """
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    for note in folder.glob("*"):
        with suppress(OSError, HTTPError), file_lock(note, 0), get_client(sync_client=True) as client:
            with suppress(ValueError, ObjectNotFound):
                run = client.read_flow_run(UUID(note.name))
                if run.state is not None and run.state.is_running():
                    client.set_flow_run_state(run.id, Crashed(message="its process was killed"))
            note.unlink()
    with ExitStack() as held:
        with suppress(OSError):
            held.enter_context(file_lock(folder / run_id))
            held.callback((folder / run_id).unlink, missing_ok=True)
        yield


def _stages(paths: ProjectPaths, stage_timeout: float, check_budget: bool) -> State[None]:
    """Every stage, in order, up to the first that fails."""
    endings, began = [], moment([])
    if check_budget:
        state = _perform(budget, str(paths.root))
        if not state.is_completed():
            return _failed_state(str(state.message))
    for stage in stage_graph(paths.stages):
        state = _perform(dvc_stage, stage, str(paths.root), stage_timeout)
        if not state.is_completed():
            return _failed_state(str(state.message))
        endings.append(f"{stage} {state.name}")
    Project.load(paths.root).ledger_session.check_night(began)
    return Completed(message=", ".join(endings))


def _perform(step: "Task[Any, State[None]]", *arguments: Any) -> State[None]:
    """Run a task, without Prefect where no server answered."""
    return step(*arguments, return_state=True) if flow_run.id else step.fn(*arguments)


def _failed_state(message: str) -> State[None]:
    """A failed state; its name is OverBudget where a cap refused the run."""
    return Failed(name="OverBudget" if _OVER in message else "Failed", message=message)


def publish(paths: ProjectPaths, account: bool) -> None:
    """Leave what the server lacks as Prefect artifacts, whether a stage ran or all were up to date.

    They are the ledger's head, the table of the queries, and the statement for a person. All of it is public. Without
    noise no digest leaves, as for the tracking store.

    Args:
        paths: of the project.
        account: leave table and statement too. After a failure they may be of an earlier run; the head never is.
    """
    with suppress(LikenessError):  # there may be no ledger yet
        head = Project.load(paths.root).ledger.head()
        _leave(MarkdownArtifact(key="ledger-head", markdown=f"`{trailer(head)}`"))  # a witness, see PRIVACY.md
    if account and paths.privacy.exists():
        privacy = json.loads(paths.privacy.read_text(encoding="utf-8"))
        _leave(TableArtifact(key="privacy", table=privacy_table(privacy), description=_headline(privacy)))
    if account and paths.statement.exists():
        _leave(MarkdownArtifact(key="privacy-statement", markdown=paths.statement.read_text(encoding="utf-8")))


def _leave(artifact: Artifact) -> None:
    """Create an artifact, unless it is the server's newest of its key."""
    newest = Artifact.get(artifact.key)
    assert not isinstance(newest, Coroutine)  # outside an event loop
    content = artifact.description, artifact.format()
    if newest is None or (newest.description, newest.data) != content:
        artifact.create()


def privacy_table(privacy: dict[str, Any]) -> list[dict[str, Any]]:
    """One row a query; without noise no digests, which would be those of private sums."""
    columns = [column for column in _COLUMNS if privacy["private"] or column != "sha256"]
    return [{column: _six_digits(query[column]) for column in columns} for query in privacy["queries"]]


def _headline(privacy: dict[str, Any]) -> str:
    total = privacy["total"]
    stamp = "" if privacy["private"] else "NOT PRIVATE: no noise was added. "
    return (
        f"{stamp}{privacy['identity']}, {privacy['method']}, {privacy['adjacency']}: epsilon "
        f"{_six_digits(total['epsilon'])} at delta {total['delta']}, rho {_six_digits(total['rho'])}"
    )


def _six_digits(value: Any) -> Any:
    """Round to six digits, for reading; the statement has them all."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def main() -> int:
    """Run once in the working folder; with ``--check-budget``, only if the cap has room.

    Returns:
        0; 4 if the run of a series made no night, because a clock is wrong; or 1 if a stage, or Prefect, failed. The
        last lines on stderr say why, without a traceback.
    """
    parser = argparse.ArgumentParser(prog="python -m flows.synthesize", description="Run the pipeline once.")
    parser.add_argument("--check-budget", action="store_true", help="refuse before reading data what exceeds a cap")
    check_budget = parser.parse_args().check_budget
    stop_cleanly()
    try:
        if fault := _server_fault():
            print(f"synthesize: no server of Prefect answers ({fault}). The run goes on without it", file=sys.stderr)
            state: State[Any] = synthesize.fn(check_budget=check_budget)
        else:
            # The heartbeat's thread costs a second at the end of a run and has no listener.
            with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
                state = synthesize(check_budget=check_budget, return_state=True)
    except KeyboardInterrupt:
        print("synthesize: interrupted; the running stage was stopped", file=sys.stderr)
        return 128 + signal.SIGINT
    except Exception as error:  # of Prefect's: what a stage does wrong is a state
        print(f"synthesize: Prefect failed: {type(error).__name__}: {error}", file=sys.stderr)
        print("synthesize: the pipeline itself needs no Prefect: dvc repro", file=sys.stderr)
        return 1
    if state.is_completed():
        return 0
    print(f"synthesize: {state.name}: {state.message}", file=sys.stderr)
    return NightError.exit_code if state.name == _NO_NIGHT else 1


def _server_fault() -> str:
    """The kind of error of a server that does not answer, or a temporary one that does not start in time; or empty."""
    try:
        with get_client(sync_client=True) as client:
            error = client.api_healthcheck()
    except Exception as failure:  # of Prefect's, or of its server
        error = failure
    return type(error).__name__ if error else ""


def stop_cleanly() -> None:
    """Prepare this process to run a flow: stages and Prefect's server end with it, a failure is printed once."""
    # Prefect's handler runs first while the flow runs, then ours. An exception stops Prefect's server; with the
    # default action that child would stay for ever.
    held = ExitStack()
    held.enter_context(ended_by_signals())
    atexit.register(held.close)  # when Prefect has stopped its server
    logging.getLogger("prefect").setLevel(logging.ERROR)
    for name in ("prefect.flow_runs", "prefect.task_runs"):  # to the server only: main and stages print for themselves
        logging.getLogger(name).setLevel(logging.INFO)
        logging.getLogger(name).propagate = False
