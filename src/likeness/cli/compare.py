"""``likeness compare``: two runs side by side, and internal scores where a folder has them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from likeness.bundle.contents import PRIVACY
from likeness.bundle.files import opened
from likeness.cli.console import JSON, say, say_json, table
from likeness.cli.summary import scores
from likeness.core.errors import ArtifactError
from likeness.core.paths import ProjectPaths, read_json
from likeness.core.text import shown
from likeness.pipeline.project import Project
from likeness.synthesizer.published import check_given

_RUN_ID = re.compile(r"[0-9a-f]{32}")
NOT_PRIVATE = "computed on real rows, NOT private: keep them inside"


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
    comparison = compared(read_run(run_a), read_run(run_b))
    if as_json:
        say_json({"runs": [str(run_a), str(run_b)], **comparison, "internal_is": NOT_PRIVATE})
    else:
        say(comparison_text(comparison, (str(run_a), str(run_b))))


@dataclass(frozen=True)
class Run:
    """One of the runs to compare.

    Attributes:
        privacy: its account.
        internal: flat scores of the synthetic table, computed on real rows; empty for a bundle.
    """

    privacy: Mapping[str, Any]
    internal: Mapping[str, float]


def read_run(path: Path) -> Run:
    """A project's folder after a run, a bundle (folder or zip file), a saved synthesizer, or the id of a tracked run.

    Raises:
        LikenessError: the path is none of these.
    """
    if _RUN_ID.fullmatch(str(path)) and not path.exists():
        return _tracked(str(path))
    with opened(path) as folder:
        paths = ProjectPaths(folder)
        if paths.privacy.exists():
            return Run(read_json(paths.privacy), _flat(scores(paths) or {}))
        if (folder / PRIVACY).exists():
            check_given(folder)
            return Run(read_json(folder / PRIVACY), {})
    raise ArtifactError(
        f"{shown(path)} holds no run. Give a project's folder after dvc repro, a bundle or a saved synthesizer."
    )


def compared(a: Run, b: Run) -> dict[str, dict[str, list[Any]]]:
    """Compare both runs: ``{"account": {field: [a, b]}, "internal": {...}}``, with None for a missing value."""
    facts = [_facts(run.privacy) for run in (a, b)]
    account = {name: [one[name] for one in facts] for name in facts[0]}
    scores = list(dict.fromkeys([*a.internal, *b.internal]))
    return {"account": account, "internal": {name: [a.internal.get(name), b.internal.get(name)] for name in scores}}


def comparison_text(comparison: Mapping[str, Mapping[str, list[Any]]], names: tuple[str, str]) -> str:
    """The comparison as a table for a terminal."""
    account, scores = ([(name, _shown(a), _shown(b)) for name, (a, b) in part.items()] for part in comparison.values())
    text = table(("", *names), account)
    return f"{text}\n\ninternal scores, {NOT_PRIVATE}\n{table(('', *names), scores)}" if scores else text


def _tracked(run: str) -> Run:
    from likeness.tracking.run import tracked_run

    privacy, metrics = tracked_run(Project.load(), run)
    names = {name: name.split(".", 3) for name in metrics if name.startswith("internal.")}  # internal.KIND.TABLE.NAME
    scores = {(kind, score): metrics[name] for name, (_, kind, table, score) in names.items() if table == "synthetic"}
    return Run(privacy, {f"{kind} {score}".replace("_", " "): value for (kind, score), value in scores.items()})


def _facts(privacy: Mapping[str, Any]) -> dict[str, Any]:
    total, lifetime = privacy["total"], privacy["ledger"]["lifetime"]
    return {
        "method": privacy["method"],
        "private": privacy["private"],
        "identity": privacy["identity"],
        "adjacency": privacy["adjacency"],
        "rows of a person": (privacy.get("rows_of_a_person") or {"max_rows": 1})["max_rows"],
        "epsilon": total["epsilon"],
        "target epsilon": privacy["target"]["epsilon"],
        "delta": total["delta"],
        "rho": total["rho"],
        "lifetime epsilon": lifetime["spent_epsilon"],
        "lifetime cap": lifetime["cap_epsilon"],
        "queries": len(privacy["queries"]),
        "rows": privacy["sample"]["rows"],
    }


def _flat(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Numbers of the synthetic table, by kind and name, without those of real and shuffled rows."""
    flat = {}
    for kind, tables in metrics.items():
        scores = tables.get("synthetic") if isinstance(tables, Mapping) else None
        if isinstance(scores, Mapping):
            numbers = {name: value for name, value in scores.items() if isinstance(value, int | float)}
            flat.update({f"{kind} {name}".replace("_", " "): float(value) for name, value in numbers.items()})
    return flat


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else shown(value)
