r"""The best linear unbiased estimate of any table of counts, from all released tables at once.

*Measurements.* Let :math:`x` be the counts of the joint table of all columns. A released table of columns A is
:math:`y_A = M_A x + \xi_A`. :math:`M_A` adds over the other columns. :math:`\xi_A` has independent coordinates of
variance :math:`v_A`. Column a has :math:`n_a` cells, and :math:`n_S = \prod_{a \in S} n_a`.

*Terms.* For a set B of columns let :math:`C_B = \bigotimes_{a \in B} (I - J / n_a)`, with J all ones. The term of B is
:math:`r_B = C_B M_B x`, the part of the table of B that no table of fewer columns knows. A table is the sum of its
terms, each spread evenly over the other columns:

.. math:: M_T x = \sum_{B \subseteq T} r_B \otimes \frac{1_{T \setminus B}}{n_{T \setminus B}}.

*Theorem.* Let each :math:`\hat r_B` be the mean of :math:`C_B S_{AB} y_A` over all tables :math:`A \supseteq B`, where
:math:`S_{AB}` adds over :math:`A \setminus B`, with weights :math:`1 / (v_A n_{A \setminus B})`. The sum above with
:math:`\hat r_B` for :math:`r_B` is then the best linear unbiased estimate of :math:`M_T x`.

*Proof.* The maps :math:`C_B S_{AB}`, :math:`B \subseteq A`, split :math:`y_A` into coordinates on orthogonal subspaces.
So their noises are uncorrelated: :math:`C_B S_{AB} \xi_A` has covariance :math:`v_A n_{A \setminus B} C_B`, and knowing
all of them is knowing :math:`y_A`. Each has the mean :math:`r_B`. The terms are free parameters: any choice of them, in
the ranges of :math:`C_B`, belongs to some :math:`x`. So generalized least squares falls apart into one problem a
term. In it all covariances are multiples of :math:`C_B`, and the weights above solve it. Its covariance is
:math:`\tau_B^2 C_B` with :math:`\tau_B^{-2} = \sum_A 1 / (v_A n_{A \setminus B})`. Linear functions of the best
estimates are the best estimates of linear functions (Gauss and Markov). ∎

*Contrasts.* A table may lack its means: :math:`y_A = C M_A x + \xi_A`, with :math:`C` the product of :math:`C_a` over
all columns of A but perhaps the label. Then :math:`C_B S_{AB} y_A` says nothing about :math:`r_B` unless B has these
columns. For such B all of the above holds. The other coordinates of :math:`y_A` are noise alone.

A public number of records is :math:`r_\emptyset` itself, with :math:`\tau_\emptyset = 0`.

*Finer histograms.* A histogram :math:`y` of one column i may have cells that lie within those of the tables; coarse
cell c holds :math:`s_c` of them. Contrasts within coarse cells are measured by nothing else, and are orthogonal to the
sums :math:`z_c`. These have variances :math:`v s_c`, which differ, so :math:`r_i` and the number of records N mix. With
:math:`e = 1 / n_i` in each coordinate, :math:`z = r_i + N e + \zeta`. Given N, the columns are independent.
Let :math:`S = v\,\mathrm{diag}(s) + \tau_i^2 C_i`. The usual update of normal equations gives, with :math:`\hat r_i` of
the tables on the right,

.. math::
    \hat N &= \frac{\hat N_0 / V_0 + \sum_i e^\top S_i^{-1} (z_i - \hat r_i)}{1 / V_0 + \sum_i e^\top S_i^{-1} e}, &
    \hat r_i &\leftarrow \hat r_i + \tau_i^2 C_i S_i^{-1} (z_i - \hat r_i - \hat N e), \\
    K_i &= \tau_i^2 C_i - \tau_i^4 C_i S_i^{-1} C_i, & g_i &= -\tau_i^2 C_i S_i^{-1} e.

V is the inverse of the denominator. The error of :math:`\hat r_i` is :math:`g_i (\hat N - N)` and an independent part
of covariance :math:`K_i`.

Sources: Hay et al. (VLDB 2010) for consistent histograms; Xiao et al. (ResidualPlanner, NeurIPS 2023) for the terms.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Forms = Mapping[str, Floats]
"""By column a matrix (m, cells) of coefficients. Together they are all products of one row of each."""


@dataclass(frozen=True)
class Table:
    """Noisy counts of all cells of some columns.

    Attributes:
        columns: in the order of the axes.
        counts: one axis a column.
        variance: of the noise of each cell.
    """

    columns: tuple[str, ...]
    counts: Floats
    variance: float


@dataclass(frozen=True)
class Histogram:
    """Noisy counts of cells that are finer than those of the tables.

    Attributes:
        firsts: the first fine cell of each cell of the column.
        counts: of the fine cells.
        variance: of the noise of each.
    """

    firsts: NDArray[np.int64]
    counts: Floats
    variance: float

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Fine cells of each coarse one."""
        sizes: NDArray[np.int64] = np.diff([*self.firsts.tolist(), len(self.counts)])
        return sizes


@dataclass(frozen=True)
class _Term:
    """An estimate of one term."""

    values: Floats  # one axis a column
    variance: float  # its covariance is this times C
    covariance: Floats | None = None  # with a histogram that of the part that is independent of the number of records
    slope: Floats | None = None  # with a histogram the error for each record too many


class Terms:
    """Terms of all tables, with the covariance of any linear function of them.

    Attributes:
        sizes: number of cells of each column, in the order of the axes.
        histograms: finer cells, by column.
        total: the number of records.
        total_variance: of the noise in it; 0 where it is public.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        tables: Sequence[Table],
        histograms: Mapping[str, Histogram] | None = None,
        total: float | None = None,
    ) -> None:
        """Estimate the number of records. Other terms are estimated when they are asked for.

        Args:
            sizes: number of cells of each column. Axes of each table are in this order.
            tables: one at least.
            histograms: by column.
            total: the number of records where it is public.
        """
        self.sizes, self._tables, self.histograms = dict(sizes), list(tables), dict(histograms or {})
        self._by_column = {name: [table for table in tables if name in table.columns] for name in sizes}
        self._terms: dict[tuple[str, ...], _Term] = {}
        if total is None:
            first = self._mean_over_tables(())
            self.total, self.total_variance = float(first.values), first.variance
            self._correct_total()
        else:
            self.total, self.total_variance = float(total), 0.0
        self._terms[()] = _Term(np.array(self.total), self.total_variance)

    def axis_order(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Columns in the order of the axes."""
        return tuple(name for name in self.sizes if name in columns)

    def is_measured(self, columns: Sequence[str]) -> bool:
        """Tell whether a released table has all these columns."""
        return bool(self._holding(columns))

    def linear(self, forms: Forms) -> Floats:
        """Estimates of linear functions of the table of some columns.

        Args:
            forms: the functions.

        Returns:
            one axis a column, in the order of :meth:`axis_order`, as long as its matrix has rows.
        """
        columns, total = self.axis_order(list(forms)), np.zeros(())
        for term in _subsets(columns):
            part = self._term(term).values
            for axis, name in enumerate(term):
                part = np.moveaxis(np.tensordot(forms[name], part, axes=(1, axis)), 0, axis)
            inside = part.reshape([len(forms[name]) if name in term else 1 for name in columns])
            outside = [_broadcast_axis(forms[name].mean(axis=1), name, columns) for name in columns if name not in term]
            total = total + reduce(np.multiply, outside, inside)
        return total

    def covariance(self, left: Forms, right: Forms) -> Floats:
        """Covariances of the noise in two families of linear functions, one by one.

        Args:
            left: forms of some columns.
            right: forms of these columns, with as many rows each.

        Returns:
            as :meth:`linear`.
        """
        columns, result = self.axis_order(list(left)), np.zeros(())
        for term in _subsets(columns):
            if term:
                factors = {name: self._inner(term, name, left[name], right[name]) for name in columns}
                result = result + _outer(factors, columns)
        return result + self.total_variance * self._total_growth(left, columns) * self._total_growth(right, columns)

    def covariance_of_sums(self, parts: Mapping[tuple[str, ...], Floats]) -> Floats:
        """The covariance matrix of the noise in sums of linear functions of several tables.

        Args:
            parts: by columns, in the order of the axes, coefficients (m, cells of each column) of their table.
        """
        by_term: dict[tuple[str, ...], Floats] = {}
        for columns, coefficients in parts.items():
            for term in _subsets(columns):
                axes = tuple(index for index, name in enumerate(columns, 1) if name not in term)
                by_term[term] = by_term.get(term, 0.0) + coefficients.mean(axis=axes)
        growth = by_term.pop(())
        result: Floats = np.zeros((len(growth), len(growth)))
        for term, coefficients in by_term.items():
            estimate, flat = self._term(term), coefficients.reshape(len(growth), -1)
            if estimate.covariance is not None and estimate.slope is not None:
                result += flat @ estimate.covariance @ flat.T
                growth = growth + flat @ estimate.slope
            else:
                for axis in range(1, coefficients.ndim):
                    coefficients = _center(coefficients, axis)
                flat = coefficients.reshape(len(growth), -1)
                result += estimate.variance * flat @ flat.T
        return result + self.total_variance * np.outer(growth, growth)

    def interaction(self, first: str, second: str) -> tuple[Floats, float]:
        """The term of two columns, first axis first in the order of the axes, and τ²: its covariance is τ² C."""
        term = self._term(self.axis_order((first, second)))
        return term.values, term.variance

    def spread(self, column: str) -> Floats:
        """The covariance of the noise in the term of one column, shape (cells, cells)."""
        term, size = self._term((column,)), self.sizes[column]
        return term.variance * (np.eye(size) - 1 / size) if term.covariance is None else term.covariance

    def fine(self, column: str, form: Floats) -> Floats:
        """Estimates of linear functions of the fine cells of a column; ``form`` has shape (m, fine cells)."""
        coarse, rest = self._split(column, form)
        values: Floats = self.linear({column: coarse}) + rest @ self.histograms[column].counts
        return values

    def fine_covariance(self, column: str, left: Floats, right: Floats) -> Floats:
        """Covariances of the noise in two families of functions of the fine cells, one by one."""
        (coarse, rest), (other, remainder) = self._split(column, left), self._split(column, right)
        within: Floats = self.histograms[column].variance * (rest * remainder).sum(axis=1)
        return within + self.covariance({column: coarse}, {column: other})

    def _split(self, column: str, form: Floats) -> tuple[Floats, Floats]:
        """A form's mean in each coarse cell, and its rest within them."""
        histogram = self.histograms[column]
        coarse = np.add.reduceat(form, histogram.firsts, axis=1) / histogram.sizes
        return coarse, form - np.repeat(coarse, histogram.sizes, axis=1)

    def _inner(self, term: tuple[str, ...], name: str, left: Floats, right: Floats) -> Floats:
        """The factor of one column in the covariance of a term."""
        if name not in term:
            factor: Floats = left.mean(axis=1) * right.mean(axis=1)
            return factor
        estimate = self._term(term)
        if estimate.covariance is not None:
            product: Floats = np.einsum("mi,ij,mj->m", left, estimate.covariance, right)
            return product
        inner: Floats = (_center(left, 1) * _center(right, 1)).sum(axis=1)
        return inner * (estimate.variance if name == term[0] else 1.0)

    def _total_growth(self, forms: Forms, columns: tuple[str, ...]) -> Floats:
        """Give the growth of each function with the number of records."""
        means = {name: forms[name].mean(axis=1) for name in columns}
        result = _outer(means, columns)
        for name in columns:
            slope = self._term((name,)).slope
            if slope is not None:
                result = result + _outer({**means, name: forms[name] @ slope}, columns)
        return result

    def _term(self, columns: tuple[str, ...]) -> _Term:
        if columns not in self._terms:
            term = self._mean_over_tables(columns)
            self._terms[columns] = self._with_histogram(columns[0], term) if len(columns) == 1 else term
        return self._terms[columns]

    def _holding(self, columns: Sequence[str]) -> list[Table]:
        """The tables that hold these columns."""
        candidates = min((self._by_column.get(name, []) for name in columns), key=len, default=self._tables)
        return [table for table in candidates if set(columns) <= set(table.columns)]

    def _mean_over_tables(self, columns: tuple[str, ...]) -> _Term:
        """The weighted mean over the tables that hold these columns."""
        values, weights, exact = [], [], []
        for table in self._holding(columns):
            axes = tuple(index for index, name in enumerate(table.columns) if name not in columns)
            part = table.counts.sum(axis=axes)
            for axis in range(len(columns)):
                part = _center(part, axis)
            added = math.prod(table.counts.shape[index] for index in axes)
            values.append(part)
            weights.append(1 / (added * (table.variance or 1.0)))
            exact.append(table.variance == 0)
        mean: Floats = np.asarray(np.average(np.stack(values), axis=0, weights=weights))
        return _Term(mean, 0.0 if all(exact) else 1 / math.fsum(weights))

    def _with_histogram(self, column: str, term: _Term) -> _Term:
        histogram, size = self.histograms.get(column), self.sizes[column]
        if histogram is None or histogram.variance == 0:
            return term
        spread, solved = self._solve(histogram, term, size)
        sums = np.add.reduceat(histogram.counts, histogram.firsts)
        gain = np.linalg.solve(solved, spread).T  # τ² C S⁻¹: both are symmetric
        even = np.full(size, 1 / size)
        values = term.values + gain @ (sums - term.values - self.total * even)
        return _Term(values, term.variance, spread - gain @ spread, -gain @ even)

    def _correct_total(self) -> None:
        """Let the histograms speak of the number of records too."""
        precision = 1 / self.total_variance if self.total_variance else math.inf
        if math.isinf(precision):
            return
        weighted = self.total * precision
        for column, histogram in self.histograms.items():
            term, size = self._mean_over_tables((column,)), self.sizes[column]
            even = np.full(size, 1 / size)
            row = np.linalg.solve(self._solve(histogram, term, size)[1], even)
            sums = np.add.reduceat(histogram.counts, histogram.firsts)
            weighted, precision = weighted + float(row @ (sums - term.values)), precision + float(row @ even)
        self.total, self.total_variance = weighted / precision, 1 / precision

    @staticmethod
    def _solve(histogram: Histogram, term: _Term, size: int) -> tuple[Floats, Floats]:
        """τ² C and S."""
        spread = term.variance * (np.eye(size) - 1 / size)
        return spread, np.diag(histogram.variance * histogram.sizes) + spread


def _subsets(columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(columns, size) for size in range(len(columns) + 1))


def _center(values: Any, axis: int) -> Floats:
    centred: Floats = values - values.mean(axis=axis, keepdims=True)
    return centred


def _outer(factors: Mapping[str, Floats], columns: tuple[str, ...]) -> Floats:
    """The products of one number of each column's vector, one axis a column."""
    return reduce(np.multiply, [_broadcast_axis(factors[name], name, columns) for name in columns], np.ones(()))


def _broadcast_axis(values: Floats, name: str, columns: tuple[str, ...]) -> Floats:
    """A vector along the axis of a column."""
    return values.reshape([len(values) if other == name else 1 for other in columns])
