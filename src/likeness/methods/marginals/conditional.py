"""Cells of some columns of a mixture, row by row, given cells of the others."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likeness.methods.marginals.mixture import ProductMixture, rows_from_cells

_ROWS = 4096  # rows whose components are compared at once
_RARE = 1e-30  # a cell that the mixture rules out is rarer than any other, and never stops a row


class Conditional:
    r"""The distribution of some columns of a mixture, given the cells of others.

    By Bayes' rule component k has the weight :math:`\pi_k \prod_{i \in \text{given}} p_{ki}(c_i)`, and within it the
    other columns are independent. So a row comes from the exact conditional distribution of the mixture.
    """

    def __init__(self, mixture: ProductMixture, given: Sequence[int]) -> None:
        """Work the tables out.

        Args:
            mixture: of one class.
            given: places of the columns whose cells are given.
        """
        parts, weights = mixture.exact()
        self.mixture, self.given = mixture, tuple(given)
        self.drawn = tuple(place for place in range(len(mixture.columns)) if place not in set(given))
        self._start = np.log(np.maximum(weights[0], _RARE)).astype(np.float32)
        self._logs = {i: np.log(np.maximum(parts[i], _RARE)).T.astype(np.float32) for i in self.given}
        self._below = {i: np.cumsum(parts[i], axis=1) for i in self.drawn}

    def draw(self, x: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
        """Dense encoded rows (n, width) that hold the drawn columns.

        Args:
            x: dense encoded rows (n, width) that hold the given columns.
            random: public.
        """
        chosen = np.empty((len(x), len(self.drawn)), dtype=np.int64)
        for start in range(0, len(x), _ROWS):
            rows = slice(start, start + _ROWS)
            chosen[rows] = self._cells(x[rows], random)
        columns = [self.mixture.columns[place] for place in self.drawn]
        return rows_from_cells(columns, self.mixture.width, chosen, random)

    def alike(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """A number for each row (n,). Rows with equal numbers have equal given cells, so equal distributions."""
        numbers = np.zeros(len(x), dtype=np.int64)
        for place in self.given:
            cells = self.mixture.columns[place].cells
            numbers = np.unique(numbers * cells.size + cells.places(x), return_inverse=True)[1]
        return numbers

    def within(self, drawn: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
        """Other values from the cells of drawn rows."""
        columns = [self.mixture.columns[place] for place in self.drawn]
        chosen = np.stack([column.cells.places(drawn) for column in columns], axis=1)
        return rows_from_cells(columns, self.mixture.width, chosen, random)

    def _cells(self, x: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
        logs = np.repeat(self._start[None], len(x), axis=0)
        for place in self.given:
            logs += self._logs[place][self.mixture.columns[place].cells.places(x)]
        logs -= logs.max(axis=1, keepdims=True)
        component = _drawn(np.cumsum(np.exp(logs), axis=1, dtype=np.float64), random)
        return np.stack([_drawn(self._below[place][component], random) for place in self.drawn], axis=1)


def _drawn(below: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    """A place of each row by its cumulative weights."""
    points = random.random(len(below)) * below[:, -1]
    places: NDArray[np.int64] = np.minimum((below <= points[:, None]).sum(axis=1), below.shape[1] - 1)
    return places
