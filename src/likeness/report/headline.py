"""Headline numbers and figures for orchestration tools, as files, from released files only."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from likeness.core.paths import ProjectPaths


def headline(privacy: Mapping[str, Any], losses: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """The main numbers of a run: flat, with equal names for every method, nothing of real rows.

    They are epsilon, delta and rho, and the ledger's state after the run. ``final_NAME`` is the last number in a column
    of ``loss.csv``.
    """
    total, lifetime = privacy["total"], privacy["ledger"]["lifetime"]
    ends = {
        name: next((one for one in reversed(values) if not math.isnan(one)), math.nan)
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
    from likeness.report.curves import loss_curve  # with it comes matplotlib, which a verifier may not have

    return loss_curve(losses)


def write_public(root: Path, privacy: Mapping[str, Any], losses: Mapping[str, Sequence[float]]) -> None:
    """Write ``reports/metrics.json``, and ``loss.png`` into ``reports/figures`` where something was trained."""
    (root / ProjectPaths.headline).write_bytes((json.dumps(headline(privacy, losses), indent=1) + "\n").encode())
    path, picture = root / ProjectPaths.figures / "loss.png", drawn_loss(losses)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if picture is not None:
        path.write_bytes(picture)
