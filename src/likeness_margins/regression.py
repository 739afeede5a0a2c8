r"""Least squares on main effects, straight from released tables of pairs.

Let :math:`A = \sum_i x_i x_i^\top` and :math:`b = \sum_i x_i y_i` over the records. The regressors :math:`x` are one,
an indicator for each category but the first, and for numbers the middle of the cell. So A and b are linear in the
tables of one and two columns, and :math:`\beta = A^{-1} b` needs nothing else.

*Standard errors.* With :math:`\hat A` and :math:`\hat b` from noisy tables, :math:`\hat\beta - \beta = \hat A^{-1}
(\hat b - \hat A \beta)`. The vector in brackets is linear in the tables and 0 without noise, so
:mod:`likeness.inference.terms` gives its exact covariance V at :math:`\hat\beta`. The covariance of
:math:`\hat\beta` is :math:`\hat A^{-1} V \hat A^{-1}`, to first order in the noise. A sample adds the usual
:math:`s^2 \hat A^{-1}` of least squares with equal variances.

*Limits.* Noise in A pulls effects towards 0 by a second-order part. So a regression is refused where the least
eigenvalue of A is below three standard errors of itself. A number counts as the middle of its cell. Logistic
regression needs the joint table of all its columns, which no pairs have.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core.errors import ParamsError, ReleaseError
from likeness.core.typed import check_allowed, require
from likeness.data.schema.row_sets import PublicSchema
from likeness.data.schema.schema import Schema
from likeness.inference.axes import Axis
from likeness.inference.measurements import Measurements, measurements, measurements_about
from likeness.release.released import Released

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]
INTERCEPT = "(intercept)"
_MISSING = "(missing)"
_LEAST = 3.0  # the smallest eigenvalue of A beside its standard error


@dataclass(frozen=True)
class LinearModel:
    """The outcome and the regressors of a linear model.

    Attributes:
        outcome: a column; of a number the middles of its cells.
        columns: of the main effects.
        category: of an outcome with categories, the one whose probability is modeled.
        level: of the intervals.
        sampling: whether they are about the population that the rows come from.
    """

    outcome: str
    columns: tuple[str, ...]
    category: str | None = None
    level: float = 0.95
    sampling: bool = False

    def check(self, schema: Schema) -> None:
        """Refuse what nobody could compute.

        Raises:
            ParamsError: naming the argument and its rule.
        """
        require(0 < self.level < 1, "level", self.level, "between 0 and 1, such as 0.95")
        names = (self.outcome, *self.columns)
        for name in names:
            check_allowed("columns", name, schema.names)
        different = len(self.columns) > 0 and len(set(names)) == len(names)
        require(different, "columns", ", ".join(names), "different names, at least one beside the outcome")
        column = schema.column(self.outcome)
        if column.is_categorical:
            check_allowed("category", str(self.category), column.categories)
        elif self.category is not None or column.nullable:
            raise ParamsError(f"outcome: '{self.outcome}' must be a number without missing values, or have a category.")

    def fit(self, schema: PublicSchema, released: Iterable[Released], total: float | None = None) -> "DataFrame":
        """Coefficients of least squares with margins of error. They cost nothing.

        Args:
            schema: public, with released categories.
            released: all files of a run.
            total: the number of records where it is public.

        Returns:
            a frame with a row for each regressor, as :func:`likeness.inference.estimates.estimate` gives it.

        Raises:
            ParamsError: the model is none for this schema.
            ReleaseError: the release does not have these pairs, or too much noise for so many regressors.
        """
        names = (self.outcome, *self.columns)
        rows, releases, total = measurements_about(schema, released, names, total, self.sampling)
        self.check(rows)
        return coefficients(measurements(rows, releases, total), self)


def coefficients(measured: Measurements, model: LinearModel) -> "DataFrame":
    """The answer to a checked model.

    Raises:
        ReleaseError: the release does not have these pairs, or too much noise for so many regressors.
    """
    for index, name in enumerate(model.columns):
        for pair in ((name, model.outcome), *((name, other) for other in model.columns[:index])):
            if not measured.terms.is_measured(pair):
                raise ReleaseError(f"the release has no joint counts of {', '.join(pair)}. Leave one of them out.")
    blocks: dict[str, tuple[tuple[tuple[str, str], ...], Floats]] = {"": (((INTERCEPT, ""),), np.ones((1, 1)))}
    blocks |= {name: _regressors(measured.axes[name]) for name in model.columns}
    names = [label for labels, _ in blocks.values() for label in labels]
    scales = np.concatenate([np.abs(values).max(axis=1) for _, values in blocks.values()])
    moments = _Moments(measured, {name: values for name, (_, values) in blocks.items()}, model)
    matrix, vector = moments.matrix() / np.outer(scales, scales), moments.vector() / scales
    _refuse_singular(matrix, moments, scales)
    inverse = np.linalg.inv(matrix)
    beta = inverse @ vector
    noise = inverse @ (moments.covariance(beta / scales) / np.outer(scales, scales)) @ inverse
    variance = np.diag(noise)
    columns = {"estimate": beta / scales, "noise_error": np.sqrt(np.maximum(variance, 0)) / scales}
    if model.sampling:
        rest = max(moments.squares() - float(vector @ beta), 0.0) / max(measured.terms.total - len(beta), 1.0)
        sampling = np.maximum(rest * np.diag(inverse), 0.0)
        columns["sampling_error"], variance = np.sqrt(sampling) / scales, variance + sampling
    half = NormalDist().inv_cdf(0.5 + model.level / 2) * np.sqrt(variance) / scales
    columns |= {"low": columns["estimate"] - half, "high": columns["estimate"] + half}
    return pd.DataFrame(columns, index=pd.MultiIndex.from_tuples(names, names=["column", "value"]))


def _regressors(axis: Axis) -> tuple[tuple[tuple[str, str], ...], Floats]:
    """Names of a column's regressors, and the value of each in each cell."""
    name, texts = axis.column.name, [_MISSING if label is None else label for label in axis.labels]
    if axis.column.is_categorical:
        return tuple((name, text) for text in texts[1:]), np.eye(axis.size)[1:]
    middle = np.zeros((1, axis.size))
    middle[0, : len(axis.lows)] = (axis.lows + axis.highs) / 2
    missing = np.array([[float(label is None) for label in axis.labels]])
    rows = np.concatenate([middle, missing]) if missing.any() else middle
    return tuple((name, text) for text in ("", _MISSING)[: len(rows)]), rows


class _Moments:
    """The sums A and b, and the covariance of b - A β."""

    def __init__(self, measured: Measurements, blocks: dict[str, Floats], model: LinearModel) -> None:
        self._terms, self._blocks = measured.terms, blocks
        axis, self._outcome = measured.axes[model.outcome], model.outcome
        middles = (axis.lows + axis.highs) / 2
        indicator = np.array([float(label == model.category) for label in axis.labels])
        self._y = indicator if axis.column.is_categorical else middles
        ends = np.cumsum([0, *(len(values) for values in blocks.values())])
        self._slices = {name: slice(ends[index], ends[index + 1]) for index, name in enumerate(blocks)}
        self._size = int(ends[-1])

    def matrix(self) -> Floats:
        """A."""
        matrix = np.zeros((self._size, self._size))
        for first, left in self._blocks.items():
            for second, right in self._blocks.items():
                block = self._products(first, left, second, right)
                matrix[self._slices[first], self._slices[second]] = block
        return matrix

    def vector(self) -> Floats:
        """B."""
        outcome = self._outcome, self._y[None]
        return np.concatenate([self._products(*block, *outcome)[:, 0] for block in self._blocks.items()])

    def squares(self) -> float:
        """The sum of the outcome's squares."""
        return float(self._terms.linear({self._outcome: self._y[None] ** 2})[0])

    def _products(self, first: str, left: Floats, second: str, right: Floats) -> Floats:
        """Sums of the products of two columns' regressors; the column without a name is one."""
        if first == second:
            both = (left[:, None] * right[None]).reshape(len(left) * len(right), -1)
            sums = self._terms.linear({first: both} if first else {})
            return np.asarray(sums, dtype=np.float64).reshape(len(left), len(right))
        forms = {name: values for name, values in ((first, left), (second, right)) if name}
        sums = self._terms.linear(forms)
        turned = self._terms.axis_order(list(forms))[0] != next(iter(forms))
        return (sums.T if turned else sums).reshape(len(left), len(right))

    def covariance(self, beta: Floats, outcome: float = 1.0) -> Floats:
        """The covariance of the noise in b times a factor - A β."""
        functions = {name: -beta[self._slices[name]] @ values for name, values in self._blocks.items()}
        functions[self._outcome] = outcome * self._y
        parts: dict[tuple[str, ...], Floats] = {}
        for name, values in self._blocks.items():
            for other, function in functions.items():
                self._add(parts, name, values, other, function)
        return self._terms.covariance_of_sums(parts)

    def _add(self, parts: dict[tuple[str, ...], Floats], first: str, left: Floats, second: str, right: Floats) -> None:
        """Add the sum of one column's regressors times a function of another to the rows of these regressors."""
        columns = self._terms.axis_order([name for name in (first, second) if name])
        block = left * right if first == second else left[:, :, None] * right
        if first != second and columns[0] == second:
            block = block.transpose(0, 2, 1)
        block = block.reshape(len(left), *(self._terms.sizes[name] for name in columns))
        total = parts.setdefault(columns, np.zeros((self._size, *block.shape[1:])))
        total[self._slices[first]] += block


def _refuse_singular(matrix: Floats, moments: _Moments, scales: Floats) -> None:
    """Refuse a matrix that noise may have made singular: its least eigenvalue is near 0 beside its standard error."""
    values, vectors = np.linalg.eigh(matrix)
    least = vectors[:, 0] / scales
    error = math.sqrt(max(float(least @ moments.covariance(least, outcome=0.0) @ least), 0.0))
    if values[0] <= max(_LEAST * error, 1e-9 * values[-1]):
        fault = "noise hides how these columns differ, or two of them say the same"
        raise ReleaseError(f"columns: {fault}. Name fewer columns.")
