r"""Counts, shares, means and quantiles with margins of error, from released files.

Every number is a ratio of two linear functions of counts. :mod:`likeness.inference.terms` estimates both, and
:mod:`likeness.inference.intervals` makes an interval of them. Estimates of counts and shares have no bias, so a small
one may be negative, and so may an end of its interval. Nothing is cut at 0: cutting would bias sums of such numbers.

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
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from likeness.config.typed import allowed, require
from likeness.core.errors import ParamsError, ReleaseError
from likeness.core.text import normal_text
from likeness.data.beside import with_columns
from likeness.data.histories.schema import HistorySchema
from likeness.data.schema.schema import Schema
from likeness.inference.axes import Axis
from likeness.inference.intervals import NOBODY, Ratio
from likeness.inference.measurements import Measurements, about, measurements
from likeness.inference.terms import Forms
from likeness.methods import DEFAULT
from likeness.release.released import Released

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]
STATISTICS = ("share", "count", "mean", "quantile")


@dataclass(frozen=True)
class Question:
    """What is to be estimated.

    Attributes:
        columns: of the table for counts and shares; for means and quantiles numbers, one after the other.
        by: columns of the groups. Shares are shares of a group.
        statistic: one of :data:`STATISTICS`.
        quantile: its q.
        level: of the intervals.
        sampling: whether they are about the population that the rows come from.
    """

    columns: tuple[str, ...]
    by: tuple[str, ...] = ()
    statistic: str = "share"
    quantile: float = 0.5
    level: float = 0.95
    sampling: bool = False

    @classmethod
    def of(cls, columns: "str | Iterable[str]", by: "str | Iterable[str] | None" = None, **others: Any) -> "Question":
        """A question whose columns may be one name or several."""
        return cls(_names(columns), () if by is None or by == "" else _names(by), **others)

    def check(self, schema: Schema) -> None:
        """Refuse a question that nobody could answer.

        Raises:
            ParamsError: naming the argument and its rule.
        """
        allowed("statistic", self.statistic, STATISTICS)
        require(0 < self.level < 1, "level", self.level, "between 0 and 1, such as 0.95")
        require(0 < self.quantile < 1, "quantile", self.quantile, "between 0 and 1, such as 0.5")
        names = (*self.columns, *self.by)
        for name in names:
            allowed("columns", name, schema.names)
        different = len(self.columns) > 0 and len(set(names)) == len(names)
        require(different, "columns", ", ".join(names), "different names, at least one")
        if self.statistic in ("mean", "quantile"):
            for name in self.columns:
                if schema.column(name).is_categorical:
                    raise ParamsError(
                        f"columns: '{name}' has categories and no {self.statistic}. Name a column of numbers, or ask "
                        "for statistic share."
                    )


def estimate(
    schema: Schema | HistorySchema, released: Iterable[Released], question: Question, total: float | None = None
) -> "DataFrame":
    """Answer a question from released files. It costs nothing.

    Args:
        schema: public, with released categories. Of people with histories the question is about people, or about
            pairs of events, see :func:`likeness.inference.measurements.about`.
        released: all files of a run.
        question: columns, groups and statistic.
        total: the number of records where it is public.

    Returns:
        a frame with one row a cell. Its index has the cells of the columns, as texts. Its columns are ``estimate``,
        ``noise_error``, with ``sampling`` also ``sampling_error``, for means ``cell_error``, and ``low`` and ``high``.

    Raises:
        ParamsError: the question is none for this schema.
        ReleaseError: the release does not have these cells.
    """
    rows, releases, total = about(schema, released, (*question.columns, *question.by), total, question.sampling)
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
            return self._cells(question)
        number: Callable[[Question, str], DataFrame] = self._mean if question.statistic == "mean" else self._quantile
        for name in question.columns:
            self._refuse_unmeasured((name, *question.by))
        frames = {name: number(question, name) for name in question.columns}
        return (
            pd.concat(frames, names=["column"])
            if question.by
            else pd.concat(frames.values()).set_axis(pd.Index(frames, name="column"))
        )

    def _refuse_unmeasured(self, names: Sequence[str]) -> None:
        axes = self.measured.axes
        for name in names:
            if name not in axes:
                raise ReleaseError(
                    f"the release counts no cells of '{name}', so it says nothing about it. It counts cells of: "
                    f"{', '.join(axes) or 'no column'}. A release with method {DEFAULT} counts those of all columns."
                )
        if not self.measured.terms.measured(names):
            raise ReleaseError(
                f"the release has no joint counts of {', '.join(names)}, so they cannot be estimated together. Ask for "
                "fewer columns, or release a table of these."
            )

    def _cells(self, question: Question) -> "DataFrame":
        """Counts or shares of all cells."""
        names = (*question.columns, *question.by)
        cells = {name: np.eye(self.measured.axes[name].size) for name in names}
        groups = {name: np.ones_like(form) if name in question.columns else form for name, form in cells.items()}
        ratio = self._ratio(cells, groups)
        if question.statistic == "count":
            records = max(self.measured.terms.total, 1.0)
            nothing = np.zeros_like(ratio.x)
            sample = (0.0, 1.0, -1 / records)
            ratio = Ratio(ratio.x, np.ones_like(ratio.x), (ratio.noise[0], nothing, nothing), sample)
        else:
            ratio = Ratio(ratio.x, ratio.y, ratio.noise, (0.0, 1.0, -1.0))
        return self._framed(question, ratio, names, possible=(0.0, 1.0))

    def _mean(self, question: Question, column: str) -> "DataFrame":
        """Means of one number in each group."""
        axis, fine = self._axis(question, column)
        low, middle, high = (
            self._of_number(question, column, values, fine)
            for values in (axis.lows, (axis.lows + axis.highs) / 2, axis.highs)
        )
        bounds, z, spread = axis.column.bounds, _normal(question.level), np.zeros(())
        if question.sampling:
            squares = self._of_number(question, column, (axis.lows + axis.highs) ** 2 / 4, fine).estimate
            spread = np.clip(np.nan_to_num(squares - middle.estimate**2), 0, (bounds[1] - bounds[0]) ** 2 / 4)
        low, middle, high = (Ratio(one.x, one.y, one.noise, (spread, 0.0, 0.0)) for one in (low, middle, high))
        frame = self._framed(question, middle, question.by, bounds)
        ends = {"low": low.interval(z, bounds)[0], "high": high.interval(z, bounds)[1]}
        error = self._flat(question.by, np.maximum(high.estimate - low.estimate, 0) / 2)
        frame.insert(frame.columns.tolist().index("low"), "cell_error", error)
        flat = {name: self._flat(question.by, numbers) for name, numbers in ends.items()}
        return with_columns(frame, _in_units(axis, {"estimate": frame["estimate"], **flat}))

    def _quantile(self, question: Question, column: str) -> "DataFrame":
        """Quantiles of one number in each group, from the shares below all edges of its cells."""
        axis, fine = self._axis(question, column)
        count, q, z = len(axis.lows), question.quantile, _normal(question.level)
        below = np.tril(np.ones((count + 1, count)), -1)  # row k: the cells below edge k
        ratio = self._of_number(question, column, below, fine)
        place = 0 if fine else self.measured.terms.in_order((column, *question.by)).index(column)
        # One axis of edges first, then all groups.
        x, y, xx, xy, yy = (
            np.moveaxis(one, place, 0).reshape(count + 1, -1) for one in (ratio.x, ratio.y, *ratio.noise)
        )
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
            values.append(round(value) if axis.column.is_whole else value)
        shape = [self.measured.axes[name].size for name in self.measured.terms.in_order(question.by)]
        estimates = np.where(y[0] > NOBODY, np.array(values, dtype=float), math.nan)  # nobody has a value
        ends = {"estimate": estimates, "low": axis.lows[first], "high": axis.highs[last]}
        flat = {name: self._flat(question.by, numbers.reshape(shape)) for name, numbers in ends.items()}
        return self._indexed(question.by, _in_units(axis, flat))

    def tails(self, column: str) -> "DataFrame":
        """The share of the records from the lowest value of each cell of a number on. They are not missing."""
        axis = self.measured.axes[column]
        ratio = self._of_number(Question((column,)), column, np.triu(np.ones((len(axis.lows),) * 2)), fine=False)
        low, high = ratio.interval(_normal(0.95), (0.0, 1.0))
        values = {"estimate": ratio.estimate, "low": low, "high": high}
        return self._indexed((), {"from": axis.lows, **values})

    def _axis(self, question: Question, column: str) -> tuple[Axis, bool]:
        """The cells of a number for this question, and whether they are the fine ones."""
        fine = not question.by and column in self.measured.fine
        return (self.measured.fine if fine else self.measured.axes)[column], fine

    def _of_number(self, question: Question, column: str, values: Floats, fine: bool) -> Ratio:
        """Sums of values over cells of a number that are not missing, and the number of records in these.

        Args:
            question: its groups.
            column: the number.
            values: one a cell, or a row of them for each function.
            fine: whether the cells are the fine ones.
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

    def _framed(
        self, question: Question, ratio: Ratio, names: Sequence[str], possible: tuple[float, float]
    ) -> "DataFrame":
        """Estimates, errors and intervals, in the order of the names."""
        if not question.sampling:
            ratio = Ratio(ratio.x, ratio.y, ratio.noise)
        low, high = ratio.interval(_normal(question.level), possible)
        values = {"estimate": ratio.estimate, "noise_error": ratio.noise_error}
        values |= {"sampling_error": ratio.sampling_error} if question.sampling else {}
        values |= {"low": low, "high": high}
        return self._indexed(names, {key: self._flat(names, numbers) for key, numbers in values.items()})

    def _flat(self, names: Sequence[str], values: Floats) -> Floats:
        """Values along the axes of the terms, as one vector in the order of the names."""
        order, axes = self.measured.terms.in_order(names), self.measured.axes
        values = values.reshape([axes[name].size for name in order])
        flat: Floats = values.transpose([order.index(name) for name in names]).reshape(-1)
        return flat

    def _indexed(self, names: Sequence[str], values: dict[str, Any]) -> "DataFrame":
        """A frame with the cells of the named columns as index."""
        labels = [self.measured.axes[name].labels for name in names]
        if not names:
            return pd.DataFrame(values)
        if len(names) == 1:
            return pd.DataFrame(values, index=pd.Index(labels[0], name=names[0]))
        every: list[list[Any]] = [list(texts) for texts in labels]
        return pd.DataFrame(values, index=pd.MultiIndex.from_product(every, names=list(names)))


def _names(given: "str | Iterable[str]") -> tuple[str, ...]:
    names = [given] if isinstance(given, str) or not isinstance(given, Iterable) else given
    return tuple(normal_text(str(name)) for name in names)


def _normal(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)


def _in_units(axis: Axis, values: "dict[str, Any]") -> "dict[str, Any]":
    """Numbers of a column; dates as texts within the bounds, None where nobody has one."""
    kind, (lower, upper) = axis.column.type, axis.column.bounds
    if kind.are_numbers:
        return values
    return {
        key: [None if math.isnan(one) else kind.text(min(max(one, lower), upper)) for one in numbers]
        for key, numbers in values.items()
    }
