"""Register the flow with a Prefect server, for workers to run: ``python -m flows.deploy --pool likeness``.

``python -m flows.schedule`` serves the flow from one process. A deployment outlives that process: any worker of the
pool on a machine that has this folder, and the ledger, takes the runs that the cron of params.yaml, a person or another
program starts: ``prefect deployment run synthesize/likeness --param epsilon=0.5``.
"""

import argparse
import sys
from pathlib import Path

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
from prefect.exceptions import ObjectNotFound
from prefect.flows import Flow

from flows.one_at_a_time import server_limit
from flows.schedule import check_server, cron
from likeness.config.load import load_params
from likeness.core.errors import LikenessError

ENTRYPOINT = "flows/synthesize.py:synthesize"


def ensure_pool(name: str) -> None:
    """A work pool whose workers start a process a run, where there is none of that name."""
    with get_client(sync_client=True) as client:
        try:
            client.read_work_pool(name)
        except ObjectNotFound:
            client.create_work_pool(WorkPoolCreate(name=name, type="process"))


def main() -> int:
    """Register, or register again after a change of params.yaml.

    Returns:
        0, or 2 where it was refused.
    """
    parser = argparse.ArgumentParser(prog="python -m flows.deploy", description="Register the flow with a server.")
    parser.add_argument("--pool", default="likeness", help="work pool; made if there is none of that name")
    parser.add_argument("--name", default="likeness", help="name of the deployment: synthesize/NAME")
    parser.add_argument("--paused", action="store_true", help="without its schedule, until somebody resumes it")
    options = parser.parse_args()
    root = Path.cwd()
    try:
        params = load_params()
        when = cron(params.schedule)
        check_server(params.schedule)
    except LikenessError as error:
        print(f"deploy: {error}", file=sys.stderr)
        return 2
    ensure_pool(options.pool)
    server_limit(root)
    flow = Flow.from_source(source=str(root), entrypoint=ENTRYPOINT)
    assert isinstance(flow, Flow)  # outside an event loop it is no coroutine
    flow.deploy(
        name=options.name,
        work_pool_name=options.pool,
        schedule=when,
        paused=options.paused,
        # A run that breaks a cap is refused before it reads data, and says when budget remains again.
        parameters={"root": str(root), "check_budget": True},
        concurrency_limit=ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.ENQUEUE),
        tags=[params.privacy.population],
        description="Every stage of dvc.yaml, then the privacy account. Running again spends nothing.",
        build=False,
        push=False,
        print_next_steps=False,
        ignore_warnings=True,  # of a process pool: it is meant
    )
    print(f"synthesize/{options.name} is registered. A worker takes its runs:", file=sys.stderr)
    print(f"  prefect worker start --pool {options.pool}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
