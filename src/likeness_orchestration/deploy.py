"""Register the flow with a Prefect server, for workers to run: ``python -m flows.deploy --pool likeness``.

Any worker of the pool takes the runs, on a machine that has this folder and the ledger. The cron of params.yaml starts
them, or a person does: ``prefect deployment run synthesize/likeness``. Without a server, cron runs the flow itself.
"""

import argparse
import shlex
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectNotFound
from prefect.flows import Flow
from prefect.schedules import Cron
from prefect.schedules import Schedule as PrefectSchedule
from prefect.settings import PREFECT_API_URL

from likeness.config.params import Schedule
from likeness.core.errors import LikenessError, ParamsError
from likeness.pipeline.project import Project

ENTRYPOINT = "flows/synthesize.py:synthesize"


def check_server(schedule: Schedule) -> None:
    """Refuse to register with a server that is not there.

    Raises:
        LikenessError: no server is configured, or it does not answer.
    """
    url = PREFECT_API_URL.value()
    if not url:
        raise LikenessError(f"PREFECT_API_URL names no Prefect server. {_remedy(schedule)}")
    with get_client(sync_client=True) as client:
        error = client.api_healthcheck()
    if error is not None:
        raise LikenessError(f"no Prefect server answers at {url} ({type(error).__name__}). {_remedy(schedule)}")


def _remedy(schedule: Schedule) -> str:
    """Say what to do where there is no server."""
    return (
        "Start one and say where it is:\n"
        "  prefect server start --no-ui\n"
        "  PREFECT_API_URL=http://127.0.0.1:4200/api python -m flows.deploy\n"
        f"or let cron run the flow, which needs no server (cron's hours are the machine's, not {schedule.timezone}):\n"
        f"  {schedule.cron}  cd {shlex.quote(str(Path.cwd()))} && {shlex.quote(sys.executable)} -m flows.synthesize "
        "--check-budget"
    )


def cron(schedule: Schedule) -> PrefectSchedule:
    """The schedule for Prefect.

    Raises:
        ParamsError: params.yaml holds no cron line, or no timezone.
    """
    try:
        return Cron(schedule.cron, timezone=ZoneInfo(schedule.timezone).key)
    except (KeyError, ValueError):  # ZoneInfo raises either
        raise ParamsError(
            f"params.yaml: schedule ({schedule.cron!r}, {schedule.timezone!r}) must be a cron line of five fields "
            "and an IANA timezone such as Europe/Vienna"
        ) from None


def ensure_pool(name: str) -> None:
    """Make a work pool whose workers start a process a run, unless it exists."""
    with get_client(sync_client=True) as client:
        try:
            client.read_work_pool(name)
        except ObjectNotFound:
            client.create_work_pool(WorkPoolCreate(name=name, type="process"))


def main(arguments: list[str] | None = None) -> int:
    """Register, or register again after a change of params.yaml.

    Args:
        arguments: arguments; None for those of the command line.

    Returns:
        0, or 2 where it was refused.
    """
    parser = argparse.ArgumentParser(prog="python -m flows.deploy", description="Register the flow with a server.")
    parser.add_argument("--pool", default="likeness", help="work pool; made if there is none of that name")
    parser.add_argument("--name", default="likeness", help="name of the deployment: synthesize/NAME")
    parser.add_argument("--paused", action="store_true", help="without its schedule, until somebody resumes it")
    options = parser.parse_args(arguments)
    try:
        project = Project.load(Path.cwd())
        when = cron(project.params.schedule)
        check_server(project.params.schedule)
    except LikenessError as error:
        print(f"deploy: {error}", file=sys.stderr)
        return 2
    ensure_pool(options.pool)
    flow = Flow.from_source(source=str(project.root), entrypoint=ENTRYPOINT)
    assert isinstance(flow, Flow)  # outside an event loop it is no coroutine
    flow.deploy(
        name=options.name,
        work_pool_name=options.pool,
        schedule=when,
        paused=options.paused,
        # A run that breaks a cap is refused before it reads data, and says when budget remains again.
        parameters={"root": str(project.root), "check_budget": True},
        tags=[project.params.privacy.population],
        description="Every stage of dvc.yaml, then the privacy account. Running again spends nothing.",
        build=False,
        push=False,
        print_next_steps=False,
        ignore_warnings=True,  # of a process pool: it is meant
    )
    print(f"synthesize/{options.name} is registered. A worker takes its runs:", file=sys.stderr)
    print(f"  prefect worker start --pool {options.pool}", file=sys.stderr)
    return 0
