"""Pairwise association of the columns of a table, one measure for all kinds of columns."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def cramers_v(codes: NDArray[np.int64], sizes: Sequence[int]) -> NDArray[np.float64]:
    r"""Matrix (k, k) of Bergsma's bias-corrected Cramer's V between columns of cell numbers (n, k).

    .. math:: \tilde V = \sqrt{\frac{\max(0, \chi^2/n - (r-1)(c-1)/(n-1))}{\min(\tilde r, \tilde c) - 1}},
        \qquad \tilde r = r - \frac{(r-1)^2}{n-1}

    with r, c the cells that occur. One measure for all kinds of columns: numeric ones count by their bins. 0 is
    independence, 1 is a function of one another; a constant column has 0 with everything. It has no sign. Source:
    Bergsma (2013).
    """
    n, k = codes.shape
    matrix = np.eye(k)
    for i in range(k):
        for j in range(i):
            joint = np.bincount(codes[:, i] * sizes[j] + codes[:, j], minlength=sizes[i] * sizes[j])
            joint = joint.reshape(sizes[i], sizes[j]) / n
            joint = joint[joint.sum(1) > 0][:, joint.sum(0) > 0]
            r, c = joint.shape
            if min(r, c) < 2 or n < 2:
                continue
            expected = np.outer(joint.sum(1), joint.sum(0))
            phi = max(0.0, float(((joint - expected) ** 2 / expected).sum()) - (r - 1) * (c - 1) / (n - 1))
            least = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
            matrix[i, j] = matrix[j, i] = min(1.0, math.sqrt(phi / least)) if least > 0 else 0.0
    return matrix
