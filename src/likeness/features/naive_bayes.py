"""The class that a public classifier gives to a record: summed by class, a confusion matrix."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import OneHotMap
from likeness.features.cells import Cells, cells_of

_STEPS = 64
"""Of one unit of a logarithm: scores are integers, so every machine gives a record the same class."""


@dataclass(frozen=True)
class NaiveBayes(OneHotMap):
    r"""The one-hot class that naive Bayes gives to a record, :math:`\phi(x) = e_{k(x)}`.

    :math:`k(x) = \arg\max_k \bigl( \log \pi_k + \sum_i \log p_{k, i, c_i(x)} \bigr)` with :math:`c_i(x)` the cell of
    column i. Class shares π and cell shares p come from public counts, such as those of synthetic rows.

    Bound: a record gets exactly one class, so the norm is 1; nothing is negative. Reached by every record.

    Source: naive Bayes with Laplace's rule, as in Hastie, Tibshirani and Friedman (2009), chapter 6.6.

    Attributes:
        columns: cells of each column.
        classes: number of classes.
        scores: class by class the rounded logarithm of its share, then those of the cells of each column.

    Raises:
        ReleaseError: no columns, or scores that are none.
    """

    name: ClassVar[str] = "naive_bayes"
    columns: tuple[Cells, ...]
    classes: int
    scores: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", cells_of(self.columns, self.name))
        count = 1 + sum(column.size for column in self.columns)
        whole = type(self.classes) is int and all(type(score) is int and abs(score) < 2**31 for score in self.scores)
        if not (self.columns and whole and self.classes > 0 and len(self.scores) == self.classes * count):
            raise ReleaseError(f"{self.name} needs columns, and {count} whole scores a class")

    @property
    def parts(self) -> tuple[Part, ...]:
        """One part, with a coordinate a class."""
        return (Part(self.classes, Fraction(1), nonnegative=True),)

    def places(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The class of each row, shape (n, 1); the first of equals."""
        scores = np.array(self.scores, dtype=np.int64).reshape(self.classes, -1)
        total, start = np.repeat(scores[:, :1], len(x), axis=1), 1
        for column in self.columns:
            total += scores[:, start + column.places(x)]
            start += column.size
        chosen: NDArray[np.int64] = total.argmax(axis=0)[:, None].astype(np.int64)
        return chosen


def trained(columns: tuple[Cells, ...], counts: NDArray[np.int64]) -> NaiveBayes:
    """Naive Bayes from public counts.

    Args:
        columns: cells of each column.
        counts: records by class in the cells of each column, side by side, shape (classes, cells).
    """
    ends = np.cumsum([column.size for column in columns])
    blocks = np.split(counts, ends[:-1], axis=1)
    scores = np.concatenate([_log_shares(blocks[0].sum(axis=1)[None]).T, *map(_log_shares, blocks)], axis=1)
    return NaiveBayes(columns, len(counts), tuple(np.rint(scores * _STEPS).astype(int).ravel().tolist()))


def _log_shares(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Logarithms of the shares in each row, by Laplace's rule: one record more in every cell."""
    logs: NDArray[np.float64] = np.log((counts + 1) / (counts + 1).sum(axis=1, keepdims=True))
    return logs
