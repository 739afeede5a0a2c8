"""``likeness run`` and ``likeness compare``: the whole pipeline as one command, and two runs side by side."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likeness.core.errors import ArtifactError, LikenessError
from likeness.core.paths import ProjectPaths
from likeness.pipeline.dvc_repair import set_aside

if TYPE_CHECKING:
    from likeness.verify.verdict import Check

JSON = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]

_RUNNING = re.compile(r"^Running stage '([^']+)'")
_SKIPPED = re.compile(r"^Stage '([^']+)' (?:didn't change|is cached)")
# What DVC says around its stages; all else, the stages' own lines first of all, is passed on.
_CHATTER = re.compile(
    r"^(> |Updating lock file|Generating lock file|To track the changes|To enable auto|\tgit add|\tdvc config|Use `dvc)"
)


def run(
    force: Annotated[bool, typer.Option("--force", help="Run up-to-date stages too. Releases stay the same.")] = False,
    bundle: Annotated[
        Path | None,
        typer.Option(help="Then bundle what may be published here, a new folder or .zip file, and verify it."),
    ] = None,
    as_json: JSON = False,
) -> None:
    """Run the pipeline of this folder: every stage that is out of date (`dvc repro`), then the summary.

    Needs params.yaml and dvc.yaml here, and a ledger (`likeness ledger init`). Progress goes to standard error. Running
    again spends nothing: what was released before comes from the ledger's store. Exit code 2 if a stage fails, 1 if the
    bundle is wrong.
    """
    from likeness.cli.summary import summary_json, summary_text
    from likeness.pipeline.project import Project

    if bundle is not None and bundle.exists():  # told now, not after the run
        raise LikenessError(f"{bundle} exists and is not overwritten. Give --bundle another name, or delete it.")
    paths = ProjectPaths()
    stages = _stages(paths.stages)
    Project.load().ledger  # noqa: B018 (a missing ledger is an error now, not in the first stage)
    for told in set_aside(paths.root):
        typer.echo(told, err=True)
    code = _repro(stages, ["--force"] if force else [])
    if code:
        raise LikenessError(f"dvc repro ended with exit code {code}; what the stage said stands above")
    if bundle is None:
        typer.echo(json.dumps(summary_json(paths), indent=1) if as_json else summary_text(paths))
        return
    from likeness.bundle.write import write_bundle
    from likeness.verify import verify

    write_bundle(Project.load(), bundle)
    checks = verify(bundle)
    if as_json:
        found = {**summary_json(paths), "bundle": str(bundle), "checks": [vars(check) for check in checks]}
        typer.echo(json.dumps(found, indent=1))
    else:
        typer.echo(f"{summary_text(paths)}\n\n{bundle}: all that may be published, verified:\n{checks_text(checks)}")
    if give_verdict(checks, as_json) == 1:
        raise typer.Exit(1)


def checks_text(checks: "Sequence[Check]") -> str:
    """What ``likeness verify`` says, a line a check."""
    words = {True: "ok", False: "WRONG", None: "not tested"}
    return "\n".join(f"{words[check.passed]:<11}{check.name:<16}{check.text}" for check in checks)


UNTESTED = 3
"""Exit code of a bundle in which nothing is wrong, but not everything could be tested."""


def give_verdict(checks: "Sequence[Check]", quiet: bool) -> int:
    """Say whether a bundle may be trusted.

    Args:
        checks: of the bundle.
        quiet: standard output is JSON.

    Returns:
        the exit code: 0, 1 for a wrong bundle, :data:`UNTESTED`.
    """
    wrong = [check.name for check in checks if check.passed is False]
    untested = [check.name for check in checks if check.passed is None]
    if wrong:
        typer.echo(f"verdict: WRONG ({', '.join(wrong)}). Do not trust this bundle.", err=True)
        return 1
    if untested:
        typer.echo(f"verdict: nothing is wrong, but not everything was tested ({', '.join(untested)})", err=quiet)
        return UNTESTED
    typer.echo("verdict: everything was recomputed and is right", err=quiet)
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

    A bundle has no internal scores; those of a folder, or of a run tracked with tracking.internal_metrics, come from
    real rows and are NOT private. Both accounts are believed as they stand: `likeness verify` recomputes a bundle's.
    """
    from likeness.cli.compare import NOT_PRIVATE, comparison_text, read_run
    from likeness.cli.compare import compare as compared

    found = compared(read_run(run_a), read_run(run_b))
    if as_json:
        typer.echo(json.dumps({"runs": [str(run_a), str(run_b)], **found, "internal_is": NOT_PRIVATE}, indent=1))
    else:
        typer.echo(comparison_text(found, (str(run_a), str(run_b))))


def _stages(path: Path) -> dict[str, str]:
    """Stages of dvc.yaml and what each does, in its order."""
    import yaml

    if not path.exists():
        raise ArtifactError(f"{ProjectPaths.stages} is missing. Run from the project's folder.")
    stages = yaml.safe_load(path.read_text())["stages"]
    return {name: str(stage.get("desc", "")) for name, stage in stages.items()}


def _repro(stages: dict[str, str], options: list[str]) -> int:
    """``dvc repro``, told as progress; its exit code."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dvc", "repro", *options],
        # DVC runs `python`: it must be this one, whether or not its virtual environment is active.
        env={**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    seen: list[str] = []
    for line in process.stdout:
        told = _progress(line, stages, seen)
        if told:
            typer.echo(told, err=True)
    return process.wait()


def _progress(line: str, stages: dict[str, str], seen: list[str]) -> str:
    """What to tell of a line: which stage of how many, or the line as it is; nothing of DVC's chatter."""
    for pattern, ending in ((_RUNNING, ""), (_SKIPPED, " (up to date)")):
        found = pattern.match(line)
        if found:
            name = found[1]
            if name not in seen:
                seen.append(name)
            return f"[{seen.index(name) + 1:>2}/{len(stages)}] {name}: {stages.get(name, '')}{ending}"
    return "" if _CHATTER.match(line) else line.rstrip()
