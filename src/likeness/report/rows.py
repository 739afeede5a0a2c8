"""The internal page as plain lists of text: the template does no arithmetic."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from likeness.core.errors import ArtifactError
from likeness.report.charts import Cell, chart, heat_map
from likeness.report.files import EVALUATION, Internal
from likeness.report.formats import MOST_LISTED, embed, label, number, percent, three

TABLES = {"synthetic": "Synthetic", "real": "Real", "shuffled": "Shuffled"}

_NEARER = 0.1  # of the way from shuffled rows to real ones: less than that is no relation kept

SCORE_GROUPS = (
    ("From the ranking that a classifier gives", ("roc_auc_score", "average_precision_score")),
    ("From predicted classes, as the papers report them", ("roc_auc_hard", "average_precision_hard", "f1", "accuracy")),
    ("Regression, in units of the label's public range", ("r2", "rmse")),
)


def internal_rows(internal: Internal) -> dict[str, Any]:
    """Everything of the internal page, ready to print: numbers as text, images embedded.

    Raises:
        ArtifactError: ``metrics.json`` does not have its sections.
    """
    metrics = internal.metrics
    if not isinstance(metrics.get("scores"), dict) or not isinstance(metrics.get("marginals"), dict):
        fault = "scores or marginals are missing"
        raise ArtifactError(f"{EVALUATION}/metrics.json: {fault}. Run `likeness run` to write it.")
    distances, marginals = metrics.get("distances", {}), metrics["marginals"]
    present = set(internal.scores[0]) if internal.scores else set()
    shown = [(title, [name for name in names if name in present]) for title, names in SCORE_GROUPS]
    return {
        "independent": _is_independent([marginals.get(table, {}).get("2") for table in TABLES]),
        "estimators": len({row["classifier"] for row in internal.scores}),
        "summary": [_row(label(metric), metrics["scores"], metric) for metric in _common(metrics["scores"])],
        "marginals": [_row(f"{order}-way", marginals, order) for order in _common(marginals)],
        "groups": [
            {"title": title, "metrics": list(map(label, names)), "rows": _classifier_rows(internal.scores, names)}
            for title, names in shown
            if names
        ],
        "rules": [
            (rule, *(f"{counts[rule]:,}" for counts in metrics["rules"].values()))
            for rule in _common(metrics.get("rules", {}))
        ],
        "figures": {name: embed(png) for name, png in internal.figures.items()},
        "tables": list(TABLES.values()),
        "distances": [_distance(name, distances) for name in _common(distances)],
        "auc_error": three(metrics["auc_error"]) if "auc_error" in metrics else "",
        "image": bool(metrics.get("image")),
        "unit": metrics.get("unit", "rows"),
        "caption": metrics.get("caption", ""),
        "notes": metrics.get("notes", []),
        "halved": bool(metrics.get("halved")),
        "of_anybody": bool(metrics.get("of_anybody")),
        "regression": "r2" in present,
        "more": _details(metrics["details"], internal.marginals) if metrics.get("details") else None,
    }


def _is_independent(pairs: Sequence[float | None]) -> bool:
    """Tell whether pairs of the synthetic table are hardly nearer to real rows than shuffled ones are.

    ``pairs`` has the mean total variation of the synthetic, the real and the shuffled rows.
    """
    synthetic, real, shuffled = pairs
    if synthetic is None or real is None or shuffled is None:
        return False
    return synthetic >= shuffled - _NEARER * max(0.0, shuffled - real)


def _details(details: Mapping[str, Any], marginals: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Numbers of :mod:`likeness.evaluation.details` as text, those of pairs beside the other tables."""
    names, near = details["mapped"], details["neighbors"]
    texts: dict[str, Callable[[Any], str]] = {"missing": percent, "center": str, "spread": partial(number, digits=3)}
    distances = {(names[first], names[second]): value for first, second, value, *_ in details["pairs"]}
    strengths = {(names[first], names[second]): both for first, second, _, *both in details["pairs"]}
    of_tables = {(row["table"], row["columns"]): row["total_variation"] for row in marginals if row["order"] == "2"}
    worst = sorted(distances, key=lambda pair: (-distances[pair], pair))[: 2 * MOST_LISTED]
    return {
        "charts": [_chart(row) for row in details["columns"]],
        "columns": [
            (
                row["column"],
                three(row["total_variation"]),
                *(text(row[table][key]) for key, text in texts.items() for table in ("synthetic", "held_out")),
            )
            for row in details["columns"]
        ],
        "map": heat_map(names, distances) if distances else None,
        "worst": [
            (
                " × ".join(pair),
                three(distances[pair]),
                *(three(of_tables.get((table, " × ".join(pair)))) for table in ("real", "shuffled")),
                *map(three, strengths[pair]),
            )
            for pair in worst
        ],
        "crosstabs": [
            {
                "names": " × ".join(tab["columns"]),
                "across": tab["across"],
                "rows": [
                    (name, *(f"{100 * drawn:.1f} / {100 * real:.1f}" for drawn, real in zip(*shares, strict=True)))
                    for name, *shares in zip(tab["down"], tab["synthetic"], tab["held_out"], strict=True)
                ],
            }
            for tab in details["crosstabs"]
        ],
        "groups": [
            (
                row["group"],
                *(percent(row[f"{table}_share"]) for table in ("synthetic", "held_out")),
                *(three(row[table]) for table in ("synthetic", "real")),
            )
            for row in details["groups"]
        ],
        "rare": [
            (name, number(count), *(f"{100 * share:.3f} %" for share in shares))
            for name, count, *shares in details["rare"]
        ],
        "near": near
        and {
            "rows": number(near["rows"]),
            "nearer": percent(near["nearer"]),
            "distances": [
                (title, number(near[f"median_{name}"], 3), percent(near[f"equal_{name}"]))
                for name, title in (("train", "training row"), ("held_out", "held-out row"))
            ],
        },
    }


def _chart(row: Mapping[str, Any]) -> dict[str, Any]:
    """Real rows as bars, synthetic ones as strokes."""
    shares = zip(row["cells"], row["shares"]["real"], row["shares"]["synthetic"], strict=True)
    cells = [Cell(name, real, synthetic=synthetic) for name, real, synthetic in shares]
    return chart(row["column"], cells, row["categories"], f"differs by {three(row['total_variation'])}")


def _common(by_table: Mapping[str, Mapping[str, float]]) -> list[str]:
    return list(next(iter(by_table.values()), {}))


def _row(name: str, by_table: Mapping[str, Mapping[str, float]], key: str) -> tuple[str, ...]:
    """Name, and the value of each table."""
    return name, *(three(by_table.get(table, {}).get(key)) for table in TABLES)


def _distance(name: str, by_table: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    """Name and the value of each table; some are far below a thousandth."""
    return label(name), *(number(by_table.get(table, {}).get(name), 3) for table in TABLES)


def _classifier_rows(rows: Sequence[Mapping[str, str]], metrics: Sequence[str]) -> list[tuple[str, list[str]]]:
    """List by classifier the values of each metric for each table, in the order of the header."""
    cells = {(row["table"], row["classifier"]): row for row in rows}
    names = dict.fromkeys(row["classifier"] for row in rows)
    return [
        (label(name), [three(cells.get((table, name), {}).get(metric)) for metric in metrics for table in TABLES])
        for name in names
    ]
