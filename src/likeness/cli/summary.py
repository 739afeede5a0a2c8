"""``likeness summary``: the results of the last run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likeness.cli.console import JSON, say, say_json, table
from likeness.core.errors import ParamsError, no_project
from likeness.core.paths import ProjectPaths, read_json
from likeness.pipeline.dvc_repair import locked_stages


def summary(as_json: JSON = False) -> None:
    """Print the results of the last run: their places, their cost and their scores."""
    if not ProjectPaths.params.exists():
        raise ParamsError(no_project(ProjectPaths.params))
    say_json(summary_json(ProjectPaths())) if as_json else say(summary_text(ProjectPaths()))


def summary_text(paths: ProjectPaths) -> str:
    """Places of the results, ε spent and headline scores, from the files of the run."""
    privacy, metrics = read_json(paths.privacy), scores(paths)
    total, target, lifetime = privacy["total"], privacy["target"], privacy["ledger"]["lifetime"]
    pages = [f"{ProjectPaths.report} (public)"] if _is_current(paths, "report") else []
    pages += [f"{ProjectPaths.internal_report} (with real rows: NOT private)"] if metrics is not None else []
    lines = [
        "",
        f"synthetic table    {', '.join(_tables(privacy))} and {_plain(_tables(privacy)[0]).suffix}",
        f"privacy statement  {ProjectPaths.statement}",
        f"report             {', '.join(pages) or 'none of this table: run without --without'}",
        "",
        f"method {privacy['method']}, {privacy['adjacency']}: epsilon {_number(total['epsilon'])} spent at delta "
        f"{total['delta']:g} (target {_number(target['epsilon'])})",
        f"all releases about these people: {_number(lifetime['spent_epsilon'])} of {_number(lifetime['cap_epsilon'])}",
        "",
    ]
    tables = ("synthetic", "real", "shuffled")
    kinds = (("scores", "{}", ".3f"), ("marginals", "{}-way total variation", ".3f"), ("distances", "{}", ".2g"))
    values = metrics or {}
    rows = [
        [title.format(name.replace("_", " ")), *(format(values[kind][of][name], digits) for of in tables)]
        for kind, title, digits in kinds
        for name in values.get(kind, {}).get("synthetic", {})
    ]
    if rows:
        lines.append(table(("scores", *tables), rows))
        lines.append("real: real training rows. shuffled: these with each column shuffled apart.")
        if names := values.get("estimators"):
            lines.append(f"scores: mean of {len(names)} estimators: {', '.join(names)}.")
    if not privacy["private"]:
        lines.insert(0, "\nNOT PRIVATE: epsilon is inf, no noise was added. Do not publish.")
    return "\n".join(lines)


def _tables(privacy: Mapping[str, Any]) -> list[str]:
    """The Parquet files that an account is about; it names none without privacy."""
    named = [path for path in privacy.get("outputs", {}) if path.endswith(".parquet")]
    return named or [str(ProjectPaths.synthetic)]


def _plain(path: str) -> Path:
    """The file of a table beside that of Parquet."""
    beside = Path(path).parent.glob(f"{Path(path).stem}.*")
    return next((file for file in sorted(beside) if file.suffix != ".parquet"), Path(path).with_suffix(".csv"))


def summary_json(paths: ProjectPaths) -> dict[str, Any]:
    """The summary for scripts. ``internal`` comes from real rows and is NOT private."""
    privacy = read_json(paths.privacy)
    tables = _tables(privacy)
    names = [Path(path).stem for path in tables] if len(tables) > 1 else ["table"]  # people with histories have two
    files = {"statement": str(ProjectPaths.statement), "report": str(ProjectPaths.report)}
    for name, path in zip(names, tables, strict=True):
        files |= {name: path, f"{name}_{_plain(path).suffix[1:]}": str(_plain(path))}
    return {
        "files": files,
        **{name: privacy[name] for name in ("private", "method", "identity", "adjacency", "target")},
        "total": {name: privacy["total"][name] for name in ("rho", "epsilon", "delta")},
        "lifetime": privacy["ledger"]["lifetime"],
        "internal": scores(paths),
    }


def scores(paths: ProjectPaths) -> dict[str, Any] | None:
    """Read what stage ``evaluate`` says of the present table; None where it was left out."""
    if not _is_current(paths, "evaluate") or not paths.internal_metrics.exists():
        return None
    metrics = read_json(paths.internal_metrics)
    metrics.pop("details", None)  # counts of rare groups of real people: for the internal page alone
    return metrics


def _is_current(paths: ProjectPaths, stage: str) -> bool:
    """Tell whether a stage was run on the present table."""
    stages = locked_stages(paths)
    seen = {item["path"]: item.get("md5") for item in stages.get(stage, {}).get("deps", [])}
    drawn = {item["path"]: item.get("md5") for item in stages.get("sample", {}).get("outs", [])}
    return all(seen.get(path) == md5 for path, md5 in drawn.items())


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4f}"
