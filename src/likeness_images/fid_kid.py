r"""Fréchet and kernel distance between two sets of network features: FID and KID.

.. math:: \mathrm{FID} = \lVert m_a - m_b \rVert^2
    + \mathrm{Tr}\,(\Sigma_a + \Sigma_b - 2 (\Sigma_a^{1/2} \Sigma_b \Sigma_a^{1/2})^{1/2})

is the squared Wasserstein distance of two Gaussians with the means and covariances of the features. It is biased upward
by a term of order 1 / rows: compare only values from equally many rows. KID is the unbiased squared MMD with the kernel
:math:`(x \cdot y / d + 1)^3`, averaged over subsets. Its mean is 0 under equality, so a value may be below 0. Smaller
is better.

Sources: Heusel et al. (2017) for FID; Bińkowski et al. (2018) for KID; Liew et al. (PEARL, ICLR 2022), appendix G, for
features of a LeNet, 10 bootstrap resamplings and subsets of 100.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeness.core import rng
from likeness.core.errors import DataError

Array = NDArray[Any]


def frechet_distance(mean_a: Array, cov_a: Array, mean_b: Array, cov_b: Array) -> float:
    """Squared Wasserstein distance of two Gaussians in d dimensions: means (d,), covariances (d, d)."""
    values, vectors = np.linalg.eigh(cov_a)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    # Eigenvalues of a symmetric product of positive matrices are real, and negative by rounding only.
    inner = np.linalg.eigvalsh(root @ cov_b @ root)
    trace = np.trace(cov_a) + np.trace(cov_b) - 2 * np.sqrt(np.maximum(inner, 0)).sum()
    return float(np.sum((mean_a - mean_b) ** 2) + max(0.0, trace))


def fid(a: Array, b: Array) -> float:
    """FID between two sets of features, (n, d) and (m, d).

    Raises:
        DataError: a set has fewer than two rows.
    """
    _check(a, b, 2)
    moments = [
        (rows.mean(axis=0), np.atleast_2d(np.cov(rows, rowvar=False)))
        for rows in (a.astype(np.float64), b.astype(np.float64))
    ]
    return frechet_distance(*moments[0], *moments[1])


def fid_bootstrap(a: Array, b: Array, resamplings: int = 10, seed: int = 0) -> float:
    """Standard deviation of FID when rows of ``b`` are drawn again with replacement."""
    stream = rng.public(seed, "evaluation.fid")
    return float(np.std([fid(a, b[stream.integers(0, len(b), len(b))]) for _ in range(resamplings)], ddof=1))


def polynomial_mmd(a: Array, b: Array) -> float:
    """Unbiased squared MMD with the kernel (x·y / d + 1)³ between (n, d) and (m, d).

    Raises:
        DataError: a set has fewer than two rows.
    """
    _check(a, b, 2)
    a, b = a.astype(np.float64), b.astype(np.float64)
    n, m, d = len(a), len(b), a.shape[1]
    aa, bb, ab = (a @ a.T / d + 1) ** 3, (b @ b.T / d + 1) ** 3, (a @ b.T / d + 1) ** 3
    return float(
        (aa.sum() - np.trace(aa)) / (n * (n - 1)) + (bb.sum() - np.trace(bb)) / (m * (m - 1)) - 2 * ab.sum() / (n * m)
    )


def kid(a: Array, b: Array, subset: int = 100, subsets: int = 100, seed: int = 0) -> tuple[float, float]:
    """Mean and standard deviation over subsets of :func:`polynomial_mmd`.

    Args:
        a: features (n, d).
        b: features (m, d).
        subset: rows of each set in one subset, drawn without replacement; fewer where a set is smaller.
        subsets: number of subsets.
        seed: public seed of the subsets.
    """
    _check(a, b, 2)
    size = min(subset, len(a), len(b))
    stream = rng.public(seed, "evaluation.kid")
    values = [
        polynomial_mmd(a[stream.choice(len(a), size, replace=False)], b[stream.choice(len(b), size, replace=False)])
        for _ in range(subsets)
    ]
    return float(np.mean(values)), float(np.std(values, ddof=1))


def _check(a: Array, b: Array, least: int) -> None:
    if min(len(a), len(b)) < least:
        raise DataError(f"fid and kid: a set has fewer than {least} images. Give at least {least} of each.")
