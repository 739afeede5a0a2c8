r"""One estimate with its error from several replicates.

Each replicate b gives an estimate :math:`q_b` and its usual variance :math:`u_b`, as if its rows were a sample. Their
mean is the estimate. Its variance is :math:`T = \bar u + (1 + 1/B)\, b`, with b the variance between replicates: the
first part is the sampling of rows, the second the privacy noise and the fit. Intervals are Student's, with
:math:`(B - 1) (1 + \bar u / ((1 + 1/B) b))^2` degrees of freedom. These are the rules of Rubin (1987) for multiple
imputation. They hold where replicates scatter around the estimate as a posterior does. Noise-aware posteriors do so
(Räisä et al., NAPSU-MQ, 2023). A parametric bootstrap does so up to the bias of the model.

No share of a model is below 0, so a fit to noise pulls effects towards 0. Replicates show how far. They come from
releases that are drawn again from the model of the synthetic table, and the same fit makes them. Their mean less the
estimate of that table, :math:`\bar q - q_\text{table}`, is the pull. The first table, the base, comes from this fit to
the real release. So the estimate is :math:`q_\text{base} - (\bar q - q_\text{table})`, the bootstrap's correction of
bias (Efron and Tibshirani 1993, chapter 10; Gouriéroux and others 1993, indirect inference). The rows of the synthetic
table are drawn too, which adds :math:`\bar u`: the variance is :math:`T + \bar u`.

Without variances the error is that of noise and fit alone: it is about the rows of the table, and not about their
population.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from likeness.core.errors import ParamsError
from likeness.core.typed import require

if TYPE_CHECKING:
    from pandas import DataFrame


def combine(
    estimates: "Sequence[Any] | Any",
    variances: "Sequence[Any] | Any | None" = None,
    base: Any = None,
    table: Any = None,
    level: float = 0.95,
) -> "DataFrame":
    """Pool the estimates of replicates.

    Args:
        estimates: one a replicate: numbers, or vectors such as the coefficients of a model.
        variances: of each, in the same form: squared standard errors. None: the error without sampling.
        base: the estimate from the first table of ``sample(replicates=...)``.
        table: the estimate from the synthetic table: that of ``sample()``. With both, bias is taken off.
        level: of the intervals.

    Returns:
        a frame with a row for each number: ``estimate``, ``standard_error``, ``low``, ``high``, and ``df``, the degrees
        of freedom. Its index is that of the estimates, if they are pandas' Series.

    Raises:
        ParamsError: fewer than two replicates, other shapes, or a variance below 0.
    """
    names = getattr(estimates[0], "index", None) if len(estimates) else None
    replicates = _matrix(estimates, "estimates")
    count = len(replicates)
    require(count >= 2, "estimates", f"{count} replicates", "at least two replicates")
    require(0 < level < 1, "level", level, "between 0 and 1, such as 0.95")
    within = np.zeros_like(replicates) if variances is None else _matrix(variances, "variances")
    if within.shape != replicates.shape or not (within >= 0).all():
        raise ParamsError("variances must have the shape of estimates, and be 0 or more. Square the standard errors.")
    if (base is None) is not (table is None):
        raise ParamsError("base and table go together. Give the estimates of both, or of neither.")
    usual = within.mean(axis=0) * (1 if base is None else 2)  # the rows of the table are drawn too
    between = (1 + 1 / count) * replicates.var(axis=0, ddof=1)
    freedom = np.full(len(usual), math.inf)
    noisy = between > 0
    freedom[noisy] = (count - 1) * (1 + usual[noisy] / between[noisy]) ** 2
    mean = replicates.mean(axis=0)
    if base is not None:
        mean = _alike(base, mean, "base") + _alike(table, mean, "table") - mean
    error = np.sqrt(usual + between)
    half = stdtrit(freedom, 0.5 + level / 2) * error
    columns = {"estimate": mean, "standard_error": error, "low": mean - half, "high": mean + half, "df": freedom}
    return pd.DataFrame(columns, index=names)


def _alike(value: Any, mean: "np.ndarray[Any, np.dtype[np.float64]]", name: str) -> Any:
    vector = _matrix([value], name)[0]
    require(vector.shape == mean.shape, name, f"{len(vector)} numbers", "an estimate as each of estimates is")
    return vector


def _matrix(values: Any, name: str) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """One row a replicate."""
    try:
        matrix = np.stack([np.atleast_1d(np.asarray(value, dtype=np.float64)) for value in values])
    except (TypeError, ValueError):
        raise ParamsError(f"{name} must hold one number, or one vector of equal length, for each replicate.") from None
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise ParamsError(f"{name} must hold finite numbers, or vectors of them, one for each replicate.")
    return matrix
