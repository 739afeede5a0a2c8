r"""Counts, shares, means and quantiles with margins of error, from released files.

Every number is a ratio of two linear functions of counts. :mod:`likeness.inference.terms` estimates both, and
:mod:`likeness.inference.intervals` makes an interval of them.

*Possible numbers.* ``unbiased`` is that ratio. It has no bias, so a small count may be negative. ``estimate`` is the
nearest possible number. Counts are at least 0 and sum to the number of records, shares of a group are at least 0 and
sum to one (least squares, see :func:`likeness.inference.intervals.nearest_distribution`). A mean lies between the
bounds of its column. Both are functions of released numbers and the public schema. The interval is cut to what is
possible, and reaches as far as ``estimate``. So it covers the truth at least as often as before. Add ``unbiased``
numbers, never ``estimate``: its errors do not cancel.

*Quality.* ``cv`` is the coefficient of variation: the standard error that the interval stands for, over the estimate;
over its distance from the lower bound where a column has negative numbers or dates. A number is ``unreliable`` where
``cv`` is above ``max_cv``, or where its interval excludes nothing. Statistical offices draw this line at 0.2 to 0.35.

*Means.* A cell holds several values, so the mean of the table lies between the means of the lowest and of the highest
values of the cells. The interval reaches from the lower end of the first to the upper end of the second. It covers the
mean at least as often as its level says. ``cell_error`` is half the distance of both.

*Quantiles.* The q-quantile lies in a cell if at most the share q lies below it, and at least q lies below its upper
end. Each half is tested at half the error. The interval holds all cells from the first to the last that pass. It covers
the quantile at least as often as its level says.

*Samples.* The table may be a random sample of rows from a large population. With ``sampling`` the interval is one for
the population. A sample adds to the variance of :math:`x - \theta y` the value :math:`y \theta (1 - \theta)` for a
share, :math:`y s^2` for a mean with variance :math:`s^2`, and :math:`y q (1 - q)` for a quantile.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from likeness.core.errors import ParamsError, ReleaseError
from likeness.core.text import normal_text
from likeness.core.typed import check_allowed, require
from likeness.data.schema.row_sets import PublicSchema
from likeness.data.schema.schema import Schema
from likeness.data.table_columns import with_columns
from likeness.inference.axes import Axis
from likeness.inference.intervals import NOBODY, Ratio, nearest_distribution
from likeness.inference.measurements import Measurements, measurements, measurements_about
from likeness.inference.terms import Forms
from likeness.methods import DEFAULT
from likeness.release.released import Released

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]
STATISTICS = ("share", "count", "mean", "quantile")


@dataclass(frozen=True)
class Question:
    """The numbers that are to be estimated.

    Attributes:
        columns: of the table for counts and shares; for means and quantiles numbers, one after the other.
        by: columns of the groups. Shares are shares of a group.
        statistic: one of :data:`STATISTICS`.
        quantile: its q.
        level: of the intervals.
        sampling: whether they are about the population that the rows come from.
        max_cv: the largest coefficient of variation of a number that is not marked as unreliable.
    """

    columns: tuple[str, ...]
    by: tuple[str, ...] = ()
    statistic: str = "share"
    quantile: float = 0.5
    level: float = 0.95
    sampling: bool = False
    max_cv: float = 0.3

    @classmethod
    def from_columns(
        cls, columns: "str | Iterable[str]", by: "str | Iterable[str] | None" = None, **others: Any
    ) -> "Question":
        """A question whose columns may be one name or several."""
        return cls(_names(columns), () if by is None or by == "" else _names(by), **others)

    def check(self, schema: Schema) -> None:
        """Refuse a question that nobody could answer.

        Raises:
            ParamsError: naming the argument and its rule.
        """
        check_allowed("statistic", self.statistic, STATISTICS)
        require(0 < self.level < 1, "level", self.level, "between 0 and 1, such as 0.95")
        require(0 < self.quantile < 1, "quantile", self.quantile, "between 0 and 1, such as 0.5")
        require(0 < self.max_cv < math.inf, "max_cv", self.max_cv, "above 0, such as 0.3")
        names = (*self.columns, *self.by)
        for name in names:
            check_allowed("columns", name, schema.names)
        different = len(self.columns) > 0 and len(set(names)) == len(names)
        require(different, "columns", ", ".join(names), "different names, at least one")
        if self.statistic in ("mean", "quantile"):
            for name in self.columns:
                if schema.column(name).is_categorical:
                    remedy = "Name a column of numbers, or ask for statistic share."
                    raise ParamsError(f"columns: '{name}' has categories and no {self.statistic}. {remedy}")


def estimate(
    schema: PublicSchema, released: Iterable[Released], question: Question, total: float | None = None
) -> "DataFrame":
    """Answer a question from released files. It costs nothing.

    Args:
        schema: public, with released categories. Of people with histories the question is about people, or about
            pairs of events, see :func:`likeness.inference.measurements.measurements_about`.
        released: all files of a run.
        question: columns, groups and statistic.
        total: the number of records where it is public.

    Returns:
        a frame with one row a cell. Its index has the cells of the columns, as texts. Its columns are ``estimate``,
        ``unbiased``, ``noise_error``, with ``sampling`` also ``sampling_error``, for means ``cell_error``, ``low``,
        ``high``, ``cv`` and ``unreliable``. A quantile has neither ``unbiased`` nor errors. An index of an equal name
        is called ``column:NAME``.

    Raises:
        ParamsError: the question is none for this schema.
        ReleaseError: the release does not have these cells.
    """
    names = (*question.columns, *question.by)
    rows, releases, total = measurements_about(schema, released, names, total, question.sampling)
    question.check(rows)
    return Answers(measurements(rows, releases, total)).frame(question)


@dataclass(frozen=True)
class Answers:
    """Estimates from measurements.

    Attributes:
        measured: the release.
    """

    measured: Measurements

    def frame(self, question: Question) -> "DataFrame":
        """The answer to a checked question.

        Raises:
            ReleaseError: the release does not have these cells.
        """
        if question.statistic in ("share", "count"):
            self._refuse_unmeasured((*question.columns, *question.by))
            return _distinct(self._cells(question))
        number: Callable[[Question, str], DataFrame] = self._mean if question.statistic == "mean" else self._quantile
        for name in question.columns:
            self._refuse_unmeasured((name, *question.by))
        frames = {name: number(question, name) for name in question.columns}
        if not question.by:
            return pd.concat(frames.values()).set_axis(pd.Index(frames, name="column"))
        return pd.concat({name: _distinct(frame, "column") for name, frame in frames.items()}, names=["column"])

    def _refuse_unmeasured(self, names: Sequence[str]) -> None:
        axes = self.measured.axes
        for name in names:
            if name not in axes:
                raise ReleaseError(
                    f"the release counts no cells of '{name}', so it says nothing about it. It counts cells of: "
                    f"{', '.join(axes) or 'no column'}. A release with method {DEFAULT} counts those of all columns."
                )
        if not self.measured.terms.is_measured(names):
            raise ReleaseError(
                f"the release has no joint counts of {', '.join(names)}, so they cannot be estimated together. Ask for "
                "fewer columns, or name them as a table in the workload of the method before the next run."
            )

    def _cells(self, question: Question) -> "DataFrame":
        """Counts or shares of all cells."""
        names = (*question.columns, *question.by)
        cells = {name: np.eye(self.measured.axes[name].size) for name in names}
        groups = {name: np.ones_like(form) if name in question.columns else form for name, form in cells.items()}
        ratio = self._ratio(cells, groups)
        if question.statistic == "share":
            shares = replace(ratio, sampling=(0.0, 1.0, -1.0))
            return self._estimate_frame(question, shares, names, (0.0, 1.0), 1.0)
        records, nothing = max(self.measured.terms.total, 1.0), np.zeros_like(ratio.x)
        noise, sample = (ratio.noise[0], nothing, nothing), (0.0, 1.0, -1 / records)
        most = math.inf if self.measured.terms.total_variance else records
        return self._estimate_frame(question, Ratio(ratio.x, nothing + 1, noise, sample), names, (0.0, most), records)

    def _mean(self, question: Question, column: str) -> "DataFrame":
        """Means of one number in each group."""
        axis, fine = self._axis(question, column)
        values_of_cells = axis.lows, (axis.lows + axis.highs) / 2, axis.highs
        low, middle, high = (self._sum_number(question, column, values, fine) for values in values_of_cells)
        bounds, z, spread = axis.column.bounds, _normal(question.level), np.zeros(())
        if question.sampling:
            squares = self._sum_number(question, column, (axis.lows + axis.highs) ** 2 / 4, fine).estimate
            spread = np.clip(np.nan_to_num(squares - middle.estimate**2), 0, (bounds[1] - bounds[0]) ** 2 / 4)
        low, middle, high = (replace(ratio, sampling=(spread, 0.0, 0.0)) for ratio in (low, middle, high))
        frame = self._estimate_frame(question, middle, question.by, bounds)
        ends = low.interval(z)[0], high.interval(z)[1]
        error = self._flat(question.by, np.maximum(high.estimate - low.estimate, 0) / 2)
        frame.insert(frame.columns.tolist().index("low"), "cell_error", error)
        interval = (self._flat(question.by, end) for end in ends)
        judged = _judge_quality(question, frame["estimate"].to_numpy(), interval, bounds, _origin(axis))
        values = {"estimate": frame["estimate"], "unbiased": frame["unbiased"], **judged}
        return with_columns(frame, _column_values(axis, values))

    def _quantile(self, question: Question, column: str) -> "DataFrame":
        """Quantiles of one number in each group, from the shares below all edges of its cells."""
        axis, fine = self._axis(question, column)
        count, q, z = len(axis.lows), question.quantile, _normal(question.level)
        below = np.tril(np.ones((count + 1, count)), -1)  # row k: the cells below edge k
        ratio = self._sum_number(question, column, below, fine)
        position = 0 if fine else self.measured.terms.axis_order((column, *question.by)).index(column)
        edges_first = (np.moveaxis(array, position, 0) for array in (ratio.x, ratio.y, *ratio.noise))
        x, y, xx, xy, yy = (array.reshape(count + 1, -1) for array in edges_first)  # then all groups
        distance, variance = x - q * y, xx - 2 * q * xy + q**2 * yy
        if question.sampling:
            variance = variance + np.maximum(y, 0) * q * (1 - q)
        error = z * np.sqrt(np.maximum(variance, 0))
        error[[0, -1]] = np.inf  # that the quantile lies between the bounds needs no test
        fits = (distance[:-1] <= error[:-1]) & (distance[1:] >= -error[1:])
        first, last = fits.argmax(axis=0), count - 1 - fits[::-1].argmax(axis=0)
        values = []
        for group in range(distance.shape[1]):
            ordered = isotonic_regression(distance[:, group], weights=1 / np.maximum(variance[:, group], 1e-9)).x
            cell = min(max(int(np.searchsorted(ordered[1:], 0)), 0), count - 1)
            cell = min(max(cell, int(first[group])), int(last[group]))
            rise = ordered[cell + 1] - ordered[cell]
            part = min(max(-ordered[cell] / rise, 0.0), 1.0) if rise > 0 else 0.5
            value = axis.lows[cell] + part * (axis.highs[cell] - axis.lows[cell])
            values.append(round(value) if axis.column.is_integral else value)
        shape = [self.measured.axes[name].size for name in self.measured.terms.axis_order(question.by)]
        estimates = np.where(y[0] > NOBODY, np.array(values, dtype=float), math.nan)  # nobody has a value
        answers = (estimates, axis.lows[first], axis.highs[last])
        estimates, *ends = (self._flat(question.by, numbers.reshape(shape)) for numbers in answers)
        judged = _judge_quality(question, estimates, ends, axis.column.bounds, _origin(axis))
        return self._indexed_frame(question.by, _column_values(axis, {"estimate": estimates, **judged}))

    def tails(self, column: str) -> "DataFrame":
        """The share of the records from the lowest value of each cell of a number on. They are not missing."""
        axis, question = self.measured.axes[column], Question((column,))
        ratio = self._sum_number(question, column, np.triu(np.ones((len(axis.lows),) * 2)), fine=False)
        estimates = np.clip(ratio.estimate, 0.0, 1.0)
        judged = _judge_quality(question, estimates, ratio.interval(_normal(question.level)), (0.0, 1.0), 0.0)
        return self._indexed_frame((), {"from": axis.lows, "estimate": estimates, **judged})

    def _axis(self, question: Question, column: str) -> tuple[Axis, bool]:
        """The cells of a number for this question, and whether they are the fine ones."""
        fine = not question.by and column in self.measured.fine
        return (self.measured.fine if fine else self.measured.axes)[column], fine

    def _sum_number(self, question: Question, column: str, values: Floats, fine: bool) -> Ratio:
        """Sums of values over cells of a number that are not missing, and the number of records in these.

        ``values`` has one a cell, or a row of them for each function.
        """
        axis, rows = (self.measured.fine if fine else self.measured.axes)[column], np.atleast_2d(values)
        form = np.zeros((len(rows), axis.size))
        form[:, : rows.shape[1]] = rows
        present = np.tile(axis.present, (len(rows), 1))
        if fine:
            terms = self.measured.terms
            pairs = ((form, form), (form, present), (present, present))
            noise = tuple(terms.fine_covariance(column, left, right) for left, right in pairs)
            return Ratio(terms.fine(column, form), terms.fine(column, present), noise)  # type: ignore[arg-type]
        groups = {name: np.eye(self.measured.axes[name].size) for name in question.by}
        return self._ratio({column: form, **groups}, {column: present, **groups})

    def _ratio(self, left: Forms, right: Forms) -> Ratio:
        terms = self.measured.terms
        x, y = terms.linear(left), terms.linear(right)
        noise = terms.covariance(left, left), terms.covariance(left, right), terms.covariance(right, right)
        return Ratio(x, np.broadcast_to(y, x.shape), noise)

    def _estimate_frame(
        self, question: Question, ratio: Ratio, names: Sequence[str], possible: tuple[float, float], total: float = 0.0
    ) -> "DataFrame":
        """Estimates, errors and intervals, in the order of the names: those of the columns of the index.

        ``total`` is the sum of the cells of a distribution, at least 1; 0: the numbers are no distribution.
        """
        if not question.sampling:
            ratio = Ratio(ratio.x, ratio.y, ratio.noise)
        interval = (self._flat(names, end) for end in ratio.interval(_normal(question.level)))
        values = {"unbiased": ratio.estimate, "noise_error": ratio.noise_error}
        values |= {"sampling_error": ratio.sampling_error} if question.sampling else {}
        values = {key: self._flat(names, numbers) for key, numbers in values.items()}
        estimates = np.clip(values["unbiased"], *possible)
        if total:
            of_groups = () if question.statistic == "count" else question.by
            groups = math.prod(self.measured.axes[name].size for name in of_groups)
            estimates = nearest_distribution(values["unbiased"].reshape(-1, groups), total).reshape(-1)
        judged = _judge_quality(question, estimates, interval, possible, 0.0)
        return self._indexed_frame(names, {"estimate": estimates, **values, **judged})

    def _flat(self, names: Sequence[str], values: Floats) -> Floats:
        """Values along the axes of the terms, as one vector in the order of the names."""
        order, axes = self.measured.terms.axis_order(names), self.measured.axes
        values = values.reshape([axes[name].size for name in order])
        flat: Floats = values.transpose([order.index(name) for name in names]).reshape(-1)
        return flat

    def _indexed_frame(self, names: Sequence[str], values: dict[str, Any]) -> "DataFrame":
        """A frame with the cells of the named columns as index."""
        labels = [self.measured.axes[name].labels for name in names]
        if not names:
            return pd.DataFrame(values)
        if len(names) == 1:
            return pd.DataFrame(values, index=pd.Index(labels[0], name=names[0]))
        every: list[list[Any]] = [list(texts) for texts in labels]
        return pd.DataFrame(values, index=pd.MultiIndex.from_product(every, names=list(names)))


def _names(labels: "str | Iterable[str]") -> tuple[str, ...]:
    names = [labels] if isinstance(labels, str) or not isinstance(labels, Iterable) else labels
    return tuple(normal_text(str(name)) for name in names)


def _normal(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)


def _judge_quality(
    question: Question, estimates: Floats, interval: Iterable[Floats], possible: tuple[float, float], origin: float
) -> dict[str, Any]:
    """Intervals within what is possible, and the quality of the estimates; ``origin``: from where they are measured."""
    low, high = interval
    error, size = (high - low) / (2 * _normal(question.level)), np.abs(estimates - origin)
    cv = np.where(error > 0, np.divide(error, size, out=np.full_like(size, math.inf), where=size > 0), 0.0)
    low, high = np.clip(np.fmin(low, estimates), *possible), np.clip(np.fmax(high, estimates), *possible)
    excludes = (low > possible[0]) | (high < possible[1])
    return {"low": low, "high": high, "cv": cv, "unreliable": ~((cv <= question.max_cv) & excludes)}


def _origin(axis: Axis) -> float:
    """The number from which sizes are measured: 0, or the lower bound of negative numbers and of dates."""
    lower = axis.column.bounds[0]
    return min(lower, 0.0) if axis.column.type.numeric_source else lower


def _distinct(frame: "DataFrame", *reserved: str) -> "DataFrame":
    """A frame whose index has no name of a column of results."""
    reserved = (*map(str, frame.columns), *reserved)
    names = map(str, frame.index.names)
    return frame.rename_axis(index=[f"column:{name}" if name in reserved else name for name in names])


def _column_values(axis: Axis, values: "dict[str, Any]") -> "dict[str, Any]":
    """Numbers of a column; dates as texts within the bounds, None where nobody has one."""
    kind, (lower, upper) = axis.column.type, axis.column.bounds
    if kind.numeric_source:
        return values
    return {
        key: [None if math.isnan(number) else kind.text(min(max(number, lower), upper)) for number in numbers]
        if key not in ("cv", "unreliable")
        else numbers
        for key, numbers in values.items()
    }
