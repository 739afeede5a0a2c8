"""The files that a report is made from, read with errors that name the file and the stage that writes it."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likeness.core.errors import ArtifactError
from likeness.core.paths import ProjectPaths

PRIVACY, STATEMENT, LOSS = str(ProjectPaths.privacy), str(ProjectPaths.statement), str(ProjectPaths.loss)
EVALUATION = str(ProjectPaths.evaluation)


@dataclass(frozen=True)
class Internal:
    """The files that ``evaluate`` wrote: NOT private.

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


def read_internal(folder: Path) -> Internal:
    """Read what ``evaluate`` wrote to a folder."""
    name = EVALUATION
    metrics = read_json(folder / "metrics.json", f"{name}/metrics.json")
    return Internal(
        metrics=metrics,
        scores=read_rows(folder / "scores.csv", f"{name}/scores.csv"),
        marginals=read_rows(folder / "marginals.csv", f"{name}/marginals.csv"),
        figures={path.stem: path.read_bytes() for path in sorted(folder.glob("*.png"))},
    )


def read_losses(path: Path) -> dict[str, list[float]]:
    """Columns of ``loss.csv``; the first is ``iteration``. An empty cell is NaN.

    Raises:
        ArtifactError: the file is missing, has no column ``iteration``, or holds text that is not a number.
    """
    rows = read_rows(path, LOSS)
    if rows and "iteration" not in rows[0]:
        raise ArtifactError(f"{LOSS}: column 'iteration' is missing. Run `likeness run` to write it again.")
    try:
        return {name: [float(row[name] or "nan") for row in rows] for name in (rows[0] if rows else ())}
    except (TypeError, ValueError):
        raise ArtifactError(f"{LOSS}: every value must be a number. Run `likeness run` to write it again.") from None


def read_text(path: Path, name: str) -> str:
    """A text file, or an error that names it."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ArtifactError(f"{name} is missing. Run `likeness run` to write it.") from None


def read_json(path: Path, name: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        value = json.loads(read_text(path, name))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ArtifactError(f"{name} is not a JSON object. Run `likeness run` to write it again.")
    return value


def read_rows(path: Path, name: str) -> list[dict[str, str]]:
    """The rows of a CSV file with a header, values as text."""
    return list(csv.DictReader(io.StringIO(read_text(path, name), newline="")))


def headline(privacy: Mapping[str, Any], losses: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """The main numbers of a run: flat, with equal names for every method, nothing of real rows.

    They are epsilon, delta and rho, and the ledger's state after the run. ``final_NAME`` is the last number in a column
    of ``loss.csv``.
    """
    total, lifetime = privacy["total"], privacy["ledger"]["lifetime"]
    ends = {
        name: next((number for number in reversed(values) if not math.isnan(number)), math.nan)
        for name, values in losses.items()
        if name != "iteration" and values
    }
    return {
        "epsilon": total["epsilon"],
        "delta": total["delta"],
        "rho": total["rho"],
        "lifetime_epsilon": lifetime["spent_epsilon"],
        "lifetime_cap": lifetime["cap_epsilon"],
        "queries": len(privacy["queries"]),
        **{f"final_{name}": value if math.isfinite(value) else None for name, value in ends.items()},
    }


def drawn_loss(losses: Mapping[str, Sequence[float]]) -> bytes | None:
    """The figure of the training loss; None where a closed form trained nothing, so that it has one point."""
    if len(losses.get("iteration", ())) < 2:
        return None
    from likeness.report.charts import loss_curve  # with it comes matplotlib, which a verifier may not have

    return loss_curve(losses)


def write_public(root: Path, privacy: Mapping[str, Any], losses: Mapping[str, Sequence[float]]) -> None:
    """Write ``reports/metrics.json``, and ``loss.png`` into ``reports/figures`` where something was trained."""
    (root / ProjectPaths.headline).write_bytes((json.dumps(headline(privacy, losses), indent=1) + "\n").encode())
    path, picture = root / ProjectPaths.figures / "loss.png", drawn_loss(losses)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if picture is not None:
        path.write_bytes(picture)
