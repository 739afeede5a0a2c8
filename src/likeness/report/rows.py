"""The internal section of the report as plain lists of text: the template does no arithmetic."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from likeness.core.errors import ArtifactError
from likeness.report.files import EVALUATION, Internal
from likeness.report.formats import embed, heat_map, number, percent, three
from likeness.report.style import label

TABLES = {"synthetic": "Synthetic", "real": "Ceiling (real)", "shuffled": "Floor (shuffled)"}

SCORE_GROUPS = (
    ("From the ranking that a classifier gives", ("roc_auc_score", "average_precision_score")),
    ("From predicted classes, as the papers report them", ("roc_auc_hard", "average_precision_hard", "f1", "accuracy")),
    ("Regression, in units of the label's public range", ("r2", "rmse")),
)


def internal_rows(internal: Internal) -> dict[str, Any]:
    """Everything of the internal section, ready to print: numbers as text, images embedded.

    Raises:
        ArtifactError: ``metrics.json`` does not have its sections.
    """
    metrics = internal.metrics
    if not isinstance(metrics.get("scores"), dict) or not isinstance(metrics.get("marginals"), dict):
        raise ArtifactError(
            f"{EVALUATION}/metrics.json: scores or marginals are missing. Run `dvc repro evaluate` to write it."
        )
    summary = [_row(label(metric), metrics["scores"], metric) for metric in _common(metrics["scores"])]
    distances = metrics.get("distances", {})
    marginals = [_row(f"{order}-way", metrics["marginals"], order) for order in _common(metrics["marginals"])]
    present = set(internal.scores[0]) if internal.scores else set()
    groups = []
    for title, names in SCORE_GROUPS:
        shown = [name for name in names if name in present]
        if shown:
            groups.append(
                {
                    "title": title,
                    "metrics": [label(name) for name in shown],
                    "rows": _by_classifier(internal.scores, shown),
                }
            )
    worst = sorted(
        (row for row in internal.marginals if row["table"] == "synthetic" and row["order"] in ("1", "2")),
        key=lambda row: -float(row["total_variation"]),
    )
    return {
        "summary": summary,
        "marginals": marginals,
        "groups": groups,
        "worst": [(row["columns"], f"{float(row['total_variation']):.3f}") for row in worst[:10]],
        "rules": [
            (rule, [f"{counts[rule]:,}" for counts in metrics["rules"].values()])
            for rule in _common(metrics.get("rules", {}))
        ],
        "figures": {name: embed(png) for name, png in internal.figures.items()},
        "tables": list(TABLES.values()),
        "distances": [_distance(name, distances) for name in _common(distances)],
        "row_counts": _by_rows(internal.row_counts),
        "image": bool(metrics.get("image")),
        "histories": bool(metrics.get("histories")),
        "strangers": metrics.get("strangers"),
        "regression": "r2" in present,
        "details": _details(metrics["details"]) if metrics.get("details") else None,
    }


def _details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers of :mod:`likeness.evaluation.details` as text."""
    names, near = details["mapped"], details["neighbors"]
    texts: dict[str, Callable[[Any], str]] = {
        "missing": percent,
        "center": str,
        "spread": lambda value: number(value, 3),
    }
    return {
        "columns": [
            (
                row["column"],
                three(row["total_variation"]),
                [text(row[table][key]) for key, text in texts.items() for table in ("synthetic", "held_out")],
            )
            for row in details["columns"]
        ],
        "map": heat_map(names, {(names[first], names[second]): value for first, second, value in details["pairs"]})
        if details["pairs"]
        else None,
        "crosstabs": [
            {
                "names": " × ".join(tab["columns"]),
                "across": tab["across"],
                "rows": [
                    (name, [f"{100 * one:.1f} / {100 * other:.1f}" for one, other in zip(*shares, strict=True)])
                    for name, *shares in zip(tab["down"], tab["synthetic"], tab["held_out"], strict=True)
                ],
            }
            for tab in details["crosstabs"]
        ],
        "groups": [
            (
                row["group"],
                [percent(row[f"{table}_share"]) for table in ("synthetic", "held_out")]
                + [three(row[table]) for table in ("synthetic", "real")],
            )
            for row in details["groups"]
        ],
        "rare": [
            (name, [number(count), *(f"{100 * share:.3f} %" for share in shares)])
            for name, count, *shares in details["rare"]
        ],
        "neighbors": {
            "rows": number(near["rows"]),
            "nearer": percent(near["nearer"]),
            "distances": [
                (words, [number(near[f"median_{name}"], 3), percent(near[f"equal_{name}"])])
                for name, words in (("train", "training row"), ("held_out", "held-out row"))
            ],
        },
    }


def _common(by_table: Mapping[str, Mapping[str, float]]) -> list[str]:
    return list(next(iter(by_table.values()), {}))


def _row(name: str, by_table: Mapping[str, Mapping[str, float]], key: str) -> tuple[str, list[str], str]:
    """Name, the value of each table, and where the synthetic one lies between floor (0 %) and ceiling (100 %)."""
    values = [by_table.get(table, {}).get(key) for table in TABLES]
    synthetic, ceiling, floor = values
    place = "–"
    if synthetic is not None and ceiling is not None and floor is not None and abs(ceiling - floor) > 1e-9:
        place = f"{100 * (synthetic - floor) / (ceiling - floor):.0f} %".replace("-", "−")
    return name, [three(value) for value in values], place


def _distance(name: str, by_table: Mapping[str, Mapping[str, float]]) -> tuple[str, list[str]]:
    """Name and the value of each table; some are far below a thousandth."""
    return label(name), [number(by_table.get(table, {}).get(name), 3) for table in TABLES]


def _by_rows(rows: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Scores by number of synthetic rows: names of the metrics, and a line for each estimator and number."""
    metrics = [name for _, names in SCORE_GROUPS for name in names if rows and name in rows[0]]
    return {
        "metrics": [label(name) for name in metrics],
        "rows": [
            (label(row["classifier"]), number(int(row["rows"])), [three(row[name]) for name in metrics]) for row in rows
        ],
    }


def _by_classifier(rows: Sequence[Mapping[str, str]], metrics: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Per classifier the values of each metric for each table, in the order of the header."""
    cells = {(row["table"], row["classifier"]): row for row in rows}
    names = dict.fromkeys(row["classifier"] for row in rows)
    return [
        (
            label(name),
            [
                three(cells[table, name].get(metric) if (table, name) in cells else None)
                for metric in metrics
                for table in TABLES
            ],
        )
        for name in names
    ]
