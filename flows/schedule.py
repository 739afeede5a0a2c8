"""Serve the flow on the cron of params.yaml, for those who run a Prefect server. Without one, use cron: see README."""

import shlex
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

from prefect.client.orchestration import get_client
from prefect.schedules import Cron
from prefect.schedules import Schedule as PrefectSchedule
from prefect.settings import PREFECT_API_URL
from prefect.types.entrypoint import EntrypointType

from flows.synthesize import synthesize
from likeness.config.params import Schedule
from likeness.core.errors import LikenessError, ParamsError
from likeness.pipeline.project import Project

NAME = "synthesize"


def remedy(schedule: Schedule) -> str:
    """What to do where there is no server."""
    return (
        "Start one and say where it is:\n"
        "  prefect server start --no-ui\n"
        "  PREFECT_API_URL=http://127.0.0.1:4200/api python -m flows.schedule\n"
        f"or let cron run the flow, which needs no server (cron's hours are the machine's, not {schedule.timezone}):\n"
        f"  {schedule.cron}  cd {shlex.quote(str(Path.cwd()))} && {shlex.quote(sys.executable)} -m flows.synthesize "
        "--check-budget"
    )


def check_server(schedule: Schedule) -> None:
    """Refuse to wait for a scheduler that is not there: without a server Prefect would poll for ever and run nothing.

    Raises:
        LikenessError: no server is configured, or the one configured does not answer.
    """
    url = PREFECT_API_URL.value()
    if not url:
        raise LikenessError(f"PREFECT_API_URL names no Prefect server, so nothing would run. {remedy(schedule)}")
    with get_client(sync_client=True) as client:
        error = client.api_healthcheck()
    if error is not None:
        raise LikenessError(f"no Prefect server answers at {url} ({type(error).__name__}). {remedy(schedule)}")


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


def main() -> int:
    """Serve until interrupted, one run at a time.

    Returns:
        0 after an interrupt, 2 where it was refused.
    """
    try:
        project = Project.load(Path.cwd())
        schedule = project.params.schedule
        when = cron(schedule)
        check_server(schedule)
    except LikenessError as error:
        print(f"schedule: {error}", file=sys.stderr)
        return 2
    # By module, because the stages' folder is the working folder, not that of a script.
    synthesize.serve(
        name=NAME,
        schedule=when,
        # A run that breaks a cap is refused before it reads data, and says when budget remains again.
        parameters={"root": str(project.root), "check_budget": True},
        limit=1,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
