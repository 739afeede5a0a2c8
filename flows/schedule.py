"""Serve the flow on the cron of params.yaml, against a Prefect server. Without a server, use plain cron: see README."""

import sys
from pathlib import Path

from prefect.schedules import Cron
from prefect.settings import PREFECT_API_URL

from flows.synthesize import synthesize
from likeness.errors import LikenessError
from likeness.params import load_params

NO_SERVER = """schedule: no Prefect server is configured, and without one nothing would ever run.
Start one and name it:
    prefect server start --no-ui
    PREFECT_API_URL=http://127.0.0.1:4200/api python -m flows.schedule
Or let plain cron do it, which needs no server:
    {cron}  cd {folder} && {python} -m flows.synthesize"""


def main() -> int:
    """Register the deployment and wait for its runs, one at a time."""
    try:
        schedule = load_params().schedule
    except LikenessError as error:
        print(f"schedule: {error}", file=sys.stderr)
        return 2
    if not PREFECT_API_URL.value():
        print(NO_SERVER.format(cron=schedule.cron, folder=Path.cwd(), python=sys.executable), file=sys.stderr)
        return 2
    synthesize.serve(name="synthesize", schedule=Cron(schedule.cron, timezone=schedule.timezone), limit=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
