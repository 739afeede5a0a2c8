"""``likeness run`` and ``likeness compare``: the whole pipeline as one command, and two runs side by side."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likeness.cli.console import say, say_json, table
from likeness.core.errors import ArtifactError, LikenessError, no_project
from likeness.core.extras import need
from likeness.core.paths import ProjectPaths
from likeness.pipeline.dvc_repair import dvc_environment, set_aside

if TYPE_CHECKING:
    from likeness.verify.verdict import Check

JSON = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]

# DVC without standard output prints errors only. Its stages have theirs.
_DVC = "import sys; sys.stdout = None; from dvc.cli import main; sys.exit(main(sys.argv[1:]))"


def run(
    force: Annotated[
        bool, typer.Option("--force", help="Run up-to-date stages too. Releases stay as they are.")
    ] = False,
    bundle: Annotated[
        Path | None, typer.Option(help="Then write the bundle to this new folder or .zip file, and verify it.")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Run the pipeline of this folder: every stage that is out of date (`dvc repro`), then the summary.

    Needs params.yaml and dvc.yaml here, and a ledger (`likeness ledger init`). Progress goes to standard error. A
    second run spends nothing, because the ledger's store has all releases. Exit code 2 if a stage fails, 1 if the
    bundle is wrong.
    """
    from likeness.cli.summary import summary_json, summary_text
    from likeness.pipeline.project import Project

    if bundle is not None and bundle.exists():  # refused now, not after the run
        raise LikenessError(f"{bundle} exists and is not overwritten. Give --bundle another name, or delete it.")
    need("dvc", "likeness run")
    paths = ProjectPaths()
    if not paths.stages.exists():
        raise ArtifactError(no_project(paths.stages))
    Project.load().ledger  # noqa: B018 (refuses a missing ledger now, not in the first stage)
    for line in set_aside(paths.root):
        say(line, err=True)
    _repro(["--force"] if force else [])
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


def _repro(options: list[str]) -> None:
    """``dvc repro``; messages of its stages go to standard error.

    Raises:
        LikenessError: a stage failed.
    """
    done = subprocess.run([sys.executable, "-c", _DVC, "repro", *options], env=dvc_environment(), stdout=2, check=False)
    if done.returncode:
        raise LikenessError(f"dvc repro ended with exit code {done.returncode}. Read the message of the stage above.")
