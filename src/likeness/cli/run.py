"""``likeness run``: the whole pipeline as one command."""

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from likeness.cli.bars import stage_bars
from likeness.cli.console import JSON, say, say_json
from likeness.cli.summary import summary_json, summary_text
from likeness.core.errors import LikenessError
from likeness.core.extras import need
from likeness.core.messages import LOG
from likeness.core.paths import ProjectPaths
from likeness.flows.reproduce import ended_by_signals, last_seconds, reproduce
from likeness.flows.stage_graph import left_out, stage_graph
from likeness.ledger.records import moment
from likeness.pipeline.project import Project


def run(
    force: Annotated[
        bool, typer.Option("--force", help="Run up-to-date stages too. Releases stay as they are.")
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="STAGE", help="Leave out this stage and all that need it; may be given several times."),
    ] = None,
    bundle: Annotated[
        Path | None, typer.Option(help="Then write the bundle to this new folder or .zip file, and verify it.")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Run the pipeline of this folder: every stage that is out of date, as `dvc repro` does, then the summary.

    Needs params.yaml and dvc.yaml here, and a ledger (`likeness ledger init`). Progress goes to standard error. A
    second run spends nothing, because the ledger's store has all releases. Ctrl-C loses nothing. Exit code 2 if a stage
    fails, 1 if the bundle is wrong, 4 if a run of a series made no night, 130 after Ctrl-C, 143 after SIGTERM.
    """
    if bundle is not None and bundle.exists():  # refused now, not after the run
        raise LikenessError(f"{bundle} exists and is not overwritten. Give --bundle another name, or delete it.")
    need("dvc", "likeness run")
    paths = ProjectPaths()
    graph = stage_graph(paths.stages)
    out = left_out(graph, without or [])
    if bundle is not None and "account" in out:
        raise LikenessError(f"--bundle needs account, and --without leaves out {', '.join(out)}. Give one of both.")
    project = Project.load()
    project.ledger_session.check_ready(project.sources)  # now, not in the first stage
    if "evaluate" in graph and "evaluate" not in out:
        from likeness.preflight.downstream_checks import check_estimators

        check_estimators(project)
    if out:
        LOG.info("left out: %s", ", ".join(out))
        LOG.info("a clone of this run pulls what there is: dvc pull --allow-missing")
    began = moment([])
    try:
        with ended_by_signals():
            _reproduce(paths, [stage for stage in graph if stage not in out], force)
    except (KeyboardInterrupt, SystemExit) as stop:
        say("likeness: stopped. Nothing is lost: finished stages and releases stay. Go on: likeness run", err=True)
        code = 128 + signal.SIGINT if isinstance(stop, KeyboardInterrupt) else int(stop.code or 0)
        raise typer.Exit(code) from None
    if "ingest" not in out:
        project.ledger_session.check_night(began)
    if "account" in out:
        return
    if bundle is None:
        say_json(summary_json(paths)) if as_json else say(summary_text(paths))
        return
    from likeness.bundle.write import write_bundle
    from likeness.cli.verify import checks_text, give_verdict
    from likeness.pipeline.account import account
    from likeness.verify import verify

    project = Project.load()
    write_bundle(project, account(project), bundle)
    checks = verify(bundle)
    if as_json:
        say_json({**summary_json(paths), "bundle": str(bundle), "checks": [vars(check) for check in checks]})
    else:
        say(f"{summary_text(paths)}\n\n{bundle}: everything that may be published, verified:\n{checks_text(checks)}")
    if give_verdict(checks, as_json) == 1:
        raise typer.Exit(1)


def _reproduce(paths: ProjectPaths, stages: Sequence[str], force: bool) -> None:
    """Run every stage that is out of date, with a bar for each; messages of stages go to standard error."""
    ran = 0
    with stage_bars() as bars:
        for stage in stages:
            with bars(stage, last_seconds(paths, stage)) as listen:
                outcome = reproduce(paths.root, stage, listen, force=force)
            if outcome.ending == "Failed":
                raise LikenessError(f"{outcome.message}\nThen go on: likeness run")
            ran += outcome.ending != "UpToDate"
    LOG.info("%d of %d stages were up to date", len(stages) - ran, len(stages))
