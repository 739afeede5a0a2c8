"""What ``make demo`` prints at its end."""

from typing import Any

from likeness.cli.console import table
from likeness.core.paths import ProjectPaths, read_json


def summary_text(paths: ProjectPaths) -> str:
    """Places of the results, ε spent and headline scores, from the run's own files."""
    privacy, metrics = read_json(paths.privacy), read_json(paths.internal_metrics)
    total, target = privacy["total"], privacy["target"]
    lines = [
        "",
        f"synthetic table    {ProjectPaths.synthetic} and .csv",
        f"privacy statement  {ProjectPaths.statement}",
        f"report             {ProjectPaths.report} (public), {ProjectPaths.internal_report} (with real rows: "
        "NOT private)",
        "",
        f"method {privacy['method']}, {privacy['adjacency']}: epsilon {_number(total['epsilon'])} spent at delta "
        f"{total['delta']:g} (target {_number(target['epsilon'])})",
        "",
    ]
    tables = ("synthetic", "real", "shuffled")
    kinds = (("scores", "{}", ".3f"), ("marginals", "{}-way total variation", ".3f"), ("distances", "{}", ".2g"))
    rows = [
        [title.format(name.replace("_", " ")), *(format(metrics[kind][of][name], digits) for of in tables)]
        for kind, title, digits in kinds
        for name in metrics.get(kind, {}).get("synthetic", {})
    ]
    lines.append(table(("scores on real test rows", *tables), rows))
    if not privacy["private"]:
        lines.insert(0, "\nNOT PRIVATE: epsilon is inf, no noise was added. Do not publish.")
    return "\n".join(lines)


def summary_json(paths: ProjectPaths) -> dict[str, Any]:
    """The summary for scripts; ``internal`` was computed on real rows and is NOT private."""
    privacy, metrics = read_json(paths.privacy), read_json(paths.internal_metrics)
    files = {
        "table": ProjectPaths.synthetic,
        "table_csv": ProjectPaths.synthetic_csv,
        "statement": ProjectPaths.statement,
        "report": ProjectPaths.report,
    }
    return {
        "files": {name: str(path) for name, path in files.items()},
        **{name: privacy[name] for name in ("private", "method", "identity", "adjacency", "target")},
        "total": {name: privacy["total"][name] for name in ("rho", "epsilon", "delta")},
        "lifetime": privacy["ledger"]["lifetime"],
        "internal": metrics,
    }


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4f}"
