"""Counts of all people of a series until a night: sums of what cohorts released."""

from collections.abc import Iterable
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from likeness.core.errors import ArtifactError, ReleaseError
from likeness.inference.estimates import Question, estimate
from likeness.ledger.records import base_attempt
from likeness.privacy.cohorts import Cohort
from likeness.synthesizer.published import Published

if TYPE_CHECKING:
    from pandas import DataFrame


def running_total(
    runs: Iterable[str | Path], columns: str | Iterable[str], by: str | Iterable[str] | None = None, level: float = 0.95
) -> "DataFrame":
    """Count the people of all nights of a series until the newest run, from released numbers alone. It costs nothing.

    The people are the disjoint union of the cohorts of a few runs (:mod:`likeness.privacy.cohorts`). Their counts add
    up, and so do the squares of their errors. Each cohort has the rows of its people as its night had them.

    Args:
        runs: folders of bundles, saved synthesizers or projects. Those that are not needed may be among them.
        columns: of a table.
        by: columns of the groups.
        level: how often the intervals cover the truth.

    Returns:
        a pandas frame with a row for each cell, whose values are its index: ``unbiased``, the number to add up,
        ``noise_error``, its standard error, and ``low`` and ``high``, the interval.

    Raises:
        ArtifactError: a run that is needed is not among them.
        ReleaseError: a run is about everybody, or the runs are of several series, or their cells differ.
        ParamsError: an argument has a wrong value.
    """
    nights, series = {}, set()
    for run in runs:
        published = Published.read(Path(run))
        receipt = next(iter(published.released.values())).receipt
        cohort = Cohort.of(receipt.group)
        if cohort is None:
            raise ReleaseError(f"{run} is about everybody. Give runs with privacy.series: growing.")
        series.add((receipt.ledger_id, receipt.identity, base_attempt(receipt.slot)))
        nights[cohort.last] = (cohort, published)
    if len(series) != 1:
        raise ReleaseError(f"the runs are of {len(series)} series, and totals are of one. Give the runs of one series.")
    question, frames, night = Question.of(columns, by, statistic="count", level=level), [], max(nights)
    while night:
        if night not in nights:
            raise ArtifactError(f"the run of night {night} is not among those given. Give it, too.")
        cohort, published = nights[night]
        frames.append(estimate(published.model.schema, published.released.values(), question, None))
        night = cohort.first - 1
    if not all(frame.index.equals(frames[0].index) for frame in frames):
        raise ReleaseError(
            "the runs count in different cells, so that counts do not add up. Ask for columns of categories."
        )
    total = frames[0][["unbiased", "noise_error"]].copy()
    total["unbiased"] = sum(frame["unbiased"] for frame in frames)
    total["noise_error"] = np.sqrt(sum(frame["noise_error"] ** 2 for frame in frames))
    margin = NormalDist().inv_cdf((1 + level) / 2) * total["noise_error"]
    return total.assign(low=total["unbiased"] - margin, high=total["unbiased"] + margin)
