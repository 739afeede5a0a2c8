"""Two self-contained HTML pages from files only: a public one, and an internal one that adds the comparison with real rows.

Images and styles are inside the page, there is no script, and a content policy forbids the network. ``render`` is a function of its
arguments: it adds no time, no path and no host name, so equal files give equal public pages.
"""

import base64
import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, UndefinedError
from markupsafe import Markup

from likeness.errors import ArtifactError
from likeness.evaluation import curves
from likeness.evaluation.markup import to_html
from likeness.evaluation.style import label

PRIVACY, STATEMENT, LOSS = "reports/privacy.json", "reports/PRIVACY_STATEMENT.md", "data/models/loss.csv"
PUBLIC_PAGE, INTERNAL_FOLDER = "reports/index.html", "reports/internal"

TABLES = {"synthetic": "Synthetic", "real": "Ceiling (real)", "shuffled": "Floor (shuffled)"}

SCORE_GROUPS = (
    ("From the ranking that a classifier gives", ("roc_auc_score", "average_precision_score")),
    (
        "From predicted classes, as the papers report them",
        ("roc_auc_hard", "average_precision_hard", "f1", "accuracy"),
    ),
    ("Regression, in units of the label's public range", ("r2", "rmse")),
)

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Internal:
    """What ``evaluate`` wrote: NOT private.

    Attributes:
        metrics: ``metrics.json``.
        scores: rows of ``scores.csv``, values as text.
        marginals: rows of ``marginals.csv``, values as text.
        figures: PNG bytes by file name without its suffix.
    """

    metrics: Mapping[str, Any]
    scores: Sequence[Mapping[str, str]]
    marginals: Sequence[Mapping[str, str]]
    figures: Mapping[str, bytes]


def render(privacy: Mapping[str, Any], statement: str, losses: Mapping[str, Sequence[float]], internal: Internal | None) -> str:
    """The page as HTML: public if ``internal`` is None.

    Args:
        privacy: ``reports/privacy.json``.
        statement: ``reports/PRIVACY_STATEMENT.md``, Markdown.
        losses: columns of ``loss.csv``, see :func:`read_losses`.
        internal: results that real rows went into, for the internal page only.

    Raises:
        ArtifactError: a field that the page needs is missing.
    """
    if privacy.get("format") != 1:
        raise ArtifactError(f"{PRIVACY}: this version reads format 1. Run `dvc repro account` to write it again.")
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, percent=percent, spec=spec)
    try:
        return environment.get_template("report.html.j2").render(
            privacy=privacy,
            epsilon=privacy["total"]["epsilon_rdp"],
            factor=_factor(privacy["total"]["epsilon_rdp"]),
            statement=Markup(to_html(_without_title(statement), top=3)),
            loss_image=_embed(curves.loss_curve(losses)) if losses.get("iteration") else None,
            loss_text=_loss_text(losses),
            ledger_share=_ledger_share(privacy["ledger"]["lifetime"]),
            rdp_image=_embed(curves.rdp_curve(privacy["rdp_curve"])) if privacy["private"] else None,
            internal=None if internal is None else _internal_view(internal),
        )
    except UndefinedError as error:
        raise ArtifactError(f"{PRIVACY}: {error.message}. Run `dvc repro account` to write it again.") from None
    except KeyError as error:
        raise ArtifactError(f"{PRIVACY}: {error} is missing. Run `dvc repro account` to write it again.") from None


def write_report(root: Path | str) -> None:
    """Read the artifacts below ``root`` and write ``reports/index.html``, and ``reports/internal/index.html`` where there are results.

    Raises:
        ArtifactError: a file that an earlier stage writes is missing or malformed.
    """
    root = Path(root)
    privacy = _read_json(root / PRIVACY, PRIVACY, "account")
    statement = _read_text(root / STATEMENT, STATEMENT, "account")
    losses = read_losses(root / LOSS)
    public = root / PUBLIC_PAGE
    public.parent.mkdir(parents=True, exist_ok=True)
    public.write_text(render(privacy, statement, losses, None), encoding="utf-8")
    folder = root / INTERNAL_FOLDER
    if (folder / "metrics.json").exists():
        (folder / "index.html").write_text(render(privacy, statement, losses, read_internal(folder)), encoding="utf-8")


def read_internal(folder: Path) -> Internal:
    """Read what ``evaluate`` wrote to a folder."""
    name = INTERNAL_FOLDER
    return Internal(
        metrics=_read_json(folder / "metrics.json", f"{name}/metrics.json", "evaluate"),
        scores=_read_rows(folder / "scores.csv", f"{name}/scores.csv", "evaluate"),
        marginals=_read_rows(folder / "marginals.csv", f"{name}/marginals.csv", "evaluate"),
        figures={path.stem: path.read_bytes() for path in sorted(folder.glob("*.png"))},
    )


def read_losses(path: Path) -> dict[str, list[float]]:
    """Columns of ``loss.csv``; the first is ``iteration``. An empty cell is NaN.

    Raises:
        ArtifactError: the file is missing, has no column ``iteration``, or holds text that is not a number.
    """
    rows = _read_rows(path, LOSS, "train")
    if rows and "iteration" not in rows[0]:
        raise ArtifactError(f"{LOSS}: column 'iteration' is missing. Run `dvc repro train` to write it again.")
    try:
        return {name: [float(row[name] or "nan") for row in rows] for name in (rows[0] if rows else ())}
    except (TypeError, ValueError):
        raise ArtifactError(f"{LOSS}: every value must be a number. Run `dvc repro train` to write it again.") from None


def number(value: Any, digits: int = 4) -> str:
    """A number for people: ``–`` for none, ``∞``, thousands separators, and powers of ten for the very small and very large."""
    if value is None:
        return "–"
    if value in ("inf", "-inf"):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return f"{value:,.0f}" if abs(value) >= 10**digits else text.replace("-", "−")
    mantissa, exponent = text.split("e")
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPT)
    return power if mantissa == "1" else f"{mantissa.replace('-', '−')} × {power}"


def percent(value: Any) -> str:
    """A share in percent, one digit after the point."""
    return "–" if value is None else f"{100 * float(value):.1f} %"


def spec(value: Mapping[str, Any]) -> str:
    """A public map's specification in one line of ``key=value``."""
    return ", ".join(f"{key}={item if isinstance(item, str) else json.dumps(item)}" for key, item in value.items())


def _internal_view(internal: Internal) -> dict[str, Any]:
    """Everything of the internal section, ready to print: numbers as text, images embedded."""
    metrics = internal.metrics
    summary = [_row(label(metric), metrics["scores"], metric) for metric in _common(metrics["scores"])]
    marginals = [_row(f"{order}-way", metrics["marginals"], order) for order in _common(metrics["marginals"])]
    present = set(internal.scores[0]) if internal.scores else set()
    groups = []
    for title, names in SCORE_GROUPS:
        shown = [name for name in names if name in present]
        if shown:
            groups.append({"title": title, "metrics": [label(name) for name in shown], "rows": _by_classifier(internal.scores, shown)})
    worst = sorted(
        (row for row in internal.marginals if row["table"] == "synthetic" and row["order"] in ("1", "2")),
        key=lambda row: -float(row["total_variation"]),
    )
    return {
        "summary": summary,
        "marginals": marginals,
        "groups": groups,
        "worst": [(row["columns"], f"{float(row['total_variation']):.3f}") for row in worst[:10]],
        "figures": {name: _embed(png) for name, png in internal.figures.items()},
        "tables": list(TABLES.values()),
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
    return name, [_three(value) for value in values], place


def _by_classifier(rows: Sequence[Mapping[str, str]], metrics: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Per classifier the values of each metric for each table, in the order of the header."""
    cells = {(row["table"], row["classifier"]): row for row in rows}
    names = dict.fromkeys(row["classifier"] for row in rows)
    return [
        (
            label(name),
            [_three(cells[table, name].get(metric) if (table, name) in cells else None) for metric in metrics for table in TABLES],
        )
        for name in names
    ]


def _three(value: Any) -> str:
    return "–" if value in (None, "") else f"{float(value):.3f}".replace("-", "−")


def _without_title(statement: str) -> str:
    """The statement without its first line if that is a title: the page has one for it."""
    first, _, rest = statement.lstrip().partition("\n")
    return rest if first.startswith("# ") else statement


def _factor(epsilon: Any) -> str | None:
    """e^ε as text, or None where it says nothing."""
    value = math.inf if epsilon is None else float(epsilon)
    return number(math.exp(value), 3) if value < 12 else None


def _ledger_share(lifetime: Mapping[str, Any]) -> float | None:
    """Spent epsilon over its cap, or None where either is infinite."""
    spent, cap = (math.inf if value is None else float(value) for value in (lifetime["spent_epsilon"], lifetime["cap_epsilon"]))
    return spent / cap if math.isfinite(spent) and math.isfinite(cap) and cap > 0 else None


def _loss_text(losses: Mapping[str, Sequence[float]]) -> str:
    """The loss curve in words, for people who do not see it."""
    values = [value for value in losses.get("loss", ()) if math.isfinite(value)]
    if not values:
        return "no loss was recorded"
    last = losses["iteration"][-1]
    return f"from {number(values[0], 3)} at the first to {number(values[-1], 3)} at the last recorded iteration ({number(int(last))})"


def _embed(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _read_text(path: Path, name: str, stage: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ArtifactError(f"{name} is missing. Run `dvc repro {stage}` to write it.") from None


def _read_json(path: Path, name: str, stage: str) -> dict[str, Any]:
    try:
        value = json.loads(_read_text(path, name, stage))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ArtifactError(f"{name} is not a JSON object. Run `dvc repro {stage}` to write it again.")
    return value


def _read_rows(path: Path, name: str, stage: str) -> list[dict[str, str]]:
    return list(csv.DictReader(_read_text(path, name, stage).splitlines()))
