"""``likeness run`` and ``likeness compare``: the whole pipeline as one command, and two runs side by side."""

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likeness.cli.console import say, say_json, table
from likeness.core.errors import LikenessError
from likeness.core.extras import need
from likeness.core.messages import LOG
from likeness.core.paths import ProjectPaths
from likeness.flows.reproduce import last_seconds, reproduce
from likeness.flows.stage_graph import left_out, stage_graph

if TYPE_CHECKING:
    from likeness.bundle.verdict import Check

JSON = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


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
    fails, 1 if the bundle is wrong, 130 after Ctrl-C.
    """
    from likeness.cli.summary import summary_json, summary_text
    from likeness.pipeline.project import Project
    from likeness.preflight.later_stages import check_estimators

    if bundle is not None and bundle.exists():  # refused now, not after the run
        raise LikenessError(f"{bundle} exists and is not overwritten. Give --bundle another name, or delete it.")
    need("dvc", "likeness run")
    paths = ProjectPaths()
    graph = stage_graph(paths.stages)
    out = left_out(graph, without or [])
    if bundle is not None and "account" in out:
        raise LikenessError(f"--bundle needs account, and --without leaves out {', '.join(out)}. Give one of both.")
    project = Project.load()
    project.check_ready()  # now, not in the first stage
    if "evaluate" in graph and "evaluate" not in out:
        check_estimators(project)
    if out:
        LOG.info("left out: %s", ", ".join(out))
    try:
        _reproduce(paths, [stage for stage in graph if stage not in out], force)
    except KeyboardInterrupt:
        say("likeness: stopped. Nothing is lost: finished stages and releases stay. Go on: likeness run", err=True)
        raise typer.Exit(128 + signal.SIGINT) from None
    if "account" in out:
        return
    if bundle is None:
        say_json(summary_json(paths)) if as_json else say(summary_text(paths))
        return
    from likeness.bundle.write import write_bundle
    from likeness.verify import verify

    write_bundle(Project.load(), bundle)
    checks = verify(bundle)
    if as_json:
        summary = {**summary_json(paths), "bundle": str(bundle), "checks": [vars(check) for check in checks]}
        say_json(summary)
    else:
        say(f"{summary_text(paths)}\n\n{bundle}: everything that may be published, verified:\n{checks_text(checks)}")
    if give_verdict(checks, as_json) == 1:
        raise typer.Exit(1)


def checks_text(checks: "Sequence[Check]") -> str:
    """The output of ``likeness verify``, one line a check."""
    words = {True: "ok", False: "WRONG", None: "not tested"}
    return table(("", "check", ""), [(words[check.passed], check.name, check.text) for check in checks], words=3)


UNTESTED = 3
"""Exit code of a bundle without a wrong check, of which not everything could be tested."""


def give_verdict(checks: "Sequence[Check]", quiet: bool) -> int:
    """Print whether to trust a bundle.

    Args:
        checks: of the bundle.
        quiet: standard output is JSON.

    Returns:
        the exit code: 0, 1 for a wrong bundle, :data:`UNTESTED`.
    """
    wrong = [check.name for check in checks if check.passed is False]
    untested = [check.name for check in checks if check.passed is None]
    if wrong:
        say(f"verdict: WRONG ({', '.join(wrong)}). Do not trust this bundle.", err=True)
        return 1
    if untested:
        say(f"verdict: nothing is wrong, but not everything was tested ({', '.join(untested)})", err=quiet)
        return UNTESTED
    say("verdict: everything was recomputed and is right", err=quiet)
    return 0


def compare(
    run_a: Annotated[
        Path,
        typer.Argument(metavar="RUN_A", help="A project's folder, a bundle, a saved synthesizer, or an MLflow run id."),
    ],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another one.")],
    as_json: JSON = False,
) -> None:
    """Compare two runs: method, ε, lifetime, and internal scores where a project's folder has them.

    A bundle has no internal scores. Those of a folder, or of a run tracked with tracking.internal_metrics, come from
    real rows and are NOT private. This command believes both accounts; `likeness verify` recomputes that of a bundle.
    """
    from likeness.cli.compare import NOT_PRIVATE, comparison_text, read_run
    from likeness.cli.compare import compare as compared

    comparison = compared(read_run(run_a), read_run(run_b))
    if as_json:
        say_json({"runs": [str(run_a), str(run_b)], **comparison, "internal_is": NOT_PRIVATE})
    else:
        say(comparison_text(comparison, (str(run_a), str(run_b))))


def _reproduce(paths: ProjectPaths, stages: Sequence[str], force: bool) -> None:
    """Run every stage that is out of date, with a bar for each; messages of stages go to standard error.

    Raises:
        LikenessError: a stage failed.
    """
    from likeness.cli.bars import stage_bars

    ran = 0
    with stage_bars() as bars:
        for stage in stages:
            with bars(stage, last_seconds(paths, stage)) as listen:
                outcome = reproduce(paths.root, stage, listen, force=force)
            if outcome.ending == "Failed":
                raise LikenessError(f"{outcome.message}\nThen go on: likeness run")
            ran += outcome.ending != "UpToDate"
    LOG.info("%d of %d stages were up to date", len(stages) - ran, len(stages))
