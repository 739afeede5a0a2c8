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

    def __init__(self, mixture: ProductMixture, given: Sequence[int], ceiling: int | None = None) -> None:
        """Work the tables out.

        Args:
            mixture: of one class.
            given: places of the columns whose cells are given.
            ceiling: place of a number without missing values, which each row bounds from above.
        """
        parts, weights = mixture.exact()
        self.mixture, self.given, self.ceiling = mixture, tuple(given), ceiling
        self.drawn = tuple(place for place in range(len(mixture.columns)) if place not in set(given))
        self._start = np.log(np.maximum(weights[0], _RARE)).astype(np.float32)
        self._logs = {i: np.log(np.maximum(parts[i], _RARE)).T.astype(np.float32) for i in self.given}
        self._below = {i: np.cumsum(parts[i], axis=1) for i in self.drawn}
        if ceiling is not None:
            column = mixture.columns[ceiling]
            self._lows = np.array(column.lows)[list(column.firsts) or slice(None)]
            self._log_below = np.log(np.maximum(self._below[ceiling], _RARE)).T.astype(np.float32)

    def draw(
        self, x: NDArray[np.float64], random: np.random.Generator, highest: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Dense encoded rows (n, width) that hold the drawn columns.

        Args:
            x: dense encoded rows (n, width) that hold the given columns.
            random: public.
            highest: of each row, the largest value of the bounded number, on its unit scale.
        """
        chosen = np.empty((len(x), len(self.drawn)), dtype=np.int64)
        allowed = None if highest is None else self._allowed(highest)
        for start in range(0, len(x), _ROWS):
            rows = slice(start, start + _ROWS)
            chosen[rows] = self._cells(x[rows], random, None if allowed is None else allowed[rows])
        columns = [self.mixture.columns[place] for place in self.drawn]
        made = rows_from_cells(columns, self.mixture.width, chosen, random)
        if highest is not None and self.ceiling is not None:
            place = self.mixture.columns[self.ceiling].cells.start
            made[:, place] = np.minimum(made[:, place], np.maximum(highest, 0))
        return made

    def _allowed(self, highest: NDArray[np.float64]) -> NDArray[np.int64]:
        """The last cell that begins at or below each bound."""
        last: NDArray[np.int64] = np.searchsorted(self._lows, highest + 1e-12, side="right") - 1
        return np.maximum(last, 0)

    def _cells(
        self, x: NDArray[np.float64], random: np.random.Generator, allowed: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        logs = np.repeat(self._start[None], len(x), axis=0)
        for place in self.given:
            logs += self._logs[place][self.mixture.columns[place].cells.places(x)]
        if allowed is not None:
            logs += self._log_below[allowed]
        logs -= logs.max(axis=1, keepdims=True)
        below = np.cumsum(np.exp(logs), axis=1, dtype=np.float64)
        component = _first_above(below, random.random(len(x)) * below[:, -1])
        cells = []
        for place in self.drawn:
            of_row = self._below[place][component]
            end = of_row[np.arange(len(x)), allowed] if place == self.ceiling and allowed is not None else of_row[:, -1]
            cells.append(_first_above(of_row, random.random(len(x)) * end))
        return np.stack(cells, axis=1)


def _first_above(below: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.int64]:
    """The first place of each row whose cumulative probability is above a point."""
    places: NDArray[np.int64] = (below <= points[:, None]).sum(axis=1)
    places = np.minimum(places, below.shape[1] - 1)
    return places
