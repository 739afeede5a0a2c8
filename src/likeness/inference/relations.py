r"""Relations between columns that a synthetic table keeps, does not keep, or of which nothing is known. Free.

A verdict follows from released numbers, their public noise and the fitted model, never from rows.

*Measure.* The dependence of two columns is what their joint table has beyond that of independent columns. A release
gives it as the term of two columns (:mod:`likeness.inference.terms`), or as mean products of their features without the
products of their means. It is a vector d of f free numbers, with noise of variance v in each. Its strength is
:math:`|d| / (g_1 g_2)^{1/4}`, with g the squared norm of a column's covariance with itself: the root of Escoufier's RV
coefficient (1973). That is the absolute correlation of ranks for two ordered columns, and Cramér's V for two columns
with two values. The noise in the single columns adds to v.

*Test.* A relation is *seen* where :math:`|d|^2 / v` is above the 99 % quantile of a chi-squared variable with f degrees
of freedom (Wilson and Hilferty 1931). So of independent pairs about one in a hundred is called seen. ``detectable`` is
the strength that is seen in 95 of 100 releases: :math:`|d|^2 / v` is then noncentral, with a normal approximation.

*Verdicts.*

- ``kept``: the relation is seen, and the model has at least half of it and at most twice: the projection of the model's
  dependence on the released one, over its square without noise.
- ``not kept``: it is seen, and the model has less than half or more than twice.
- Where ``detectable`` is at most :data:`SMALL`, and the release shows no more, the verdict is ``kept`` if the model has
  no more either, else ``not kept``.
- ``unknown``: the pair was never measured, or noise explains everything and may hide a relation above :data:`SMALL`, or
  ``detectable`` is above 1, which no relation is.

The model is that of the rows before public rules change any of them. ``rule`` marks pairs that a rule speaks of.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likeness.data.encoding.bins import value_of
from likeness.data.schema.schema import Schema
from likeness.inference.intervals import nearest_distribution
from likeness.inference.measurements import Measurements, measurements
from likeness.methods.row_set import RowSet, rows_of
from likeness.methods.saved_generator import SavedGenerator
from likeness.release.released import Released

Floats = NDArray[np.float64]
KEPT, NOT_KEPT, UNKNOWN = "kept", "not kept", "unknown"
FALSE_ALARMS, POWER = 0.01, 0.95
"""Of independent pairs that are called seen, and of relations of strength ``detectable``."""
SMALL = 0.1
"""A strength up to which a relation does not count (Cohen 1988)."""
_NAMED = 20  # unknown pairs
_HALF = 0.5
_EDGE = 1e-6  # of the unit scale: more than the rounding of a bound
_ROUNDING = 1e-9  # of a share, where no noise was added


@dataclass(frozen=True)
class _Side:
    """A column of a pair."""

    features: Floats  # of each cell, shape (cells, slots)
    mean: Floats  # of the features
    size: float  # squared norm of their covariance
    noise: float  # variance of the noise in all means together

    @classmethod
    def from_shares(cls, features: Floats, shares: Floats, spread: Floats) -> "_Side":
        """Build it from the shares of the cells, and the covariance of their noise."""
        mean = shares @ features
        covariance = (features * shares[:, None]).T @ features - np.outer(mean, mean)
        return cls(features, mean, float(np.square(covariance).sum()), float(((spread @ features) * features).sum()))


@dataclass(frozen=True)
class _Dependence:
    """The released dependence of a pair: d, v and f, and both columns."""

    values: Floats
    variance: float
    freedom: int
    sides: tuple[_Side, _Side]

    @classmethod
    def from_products(
        cls, joint: Floats, variance: float, freedom: int, sides: tuple[_Side, _Side], of_records: float
    ) -> "_Dependence":
        """Build it from the mean products of both features, with the variance of the noise in each of them.

        ``of_records`` is the variance of the noise in the number of records, over its square.
        """
        first, second = sides
        squares = [float(side.mean @ side.mean) for side in sides]
        means = first.noise * (squares[1] + second.noise) + second.noise * squares[0] + of_records * math.prod(squares)
        values = joint - np.outer(first.mean, second.mean)
        return cls(values, variance + means / freedom, freedom, sides)

    @cached_property
    def squares(self) -> float:
        """The squared norm of d."""
        return float(np.square(self.values).sum())

    @property
    def least(self) -> float:
        """Squares from which on a relation is seen."""
        return max(self.variance * _limit(self.freedom), _ROUNDING**2)

    def strength(self, squares: float) -> float:
        """Give the strength of a dependence with such squares; infinite where a column is constant."""
        scale = math.sqrt(self.sides[0].size * self.sides[1].size)
        return min(1.0, math.sqrt(max(squares, 0.0) / scale)) if scale > _ROUNDING**2 else math.inf

    @cached_property
    def detectable(self) -> float:
        """The strength that is seen in 95 of 100 releases; infinite where none is."""
        scale = math.sqrt(self.sides[0].size * self.sides[1].size)
        return math.sqrt(self.variance * _noncentral(self.freedom) / scale) if scale > _ROUNDING**2 else math.inf

    @property
    def decides(self) -> bool:
        """True if noise leaves a verdict: a relation is seen, or none that counts would have been missed."""
        return self.detectable <= SMALL or (self.detectable <= 1 and self.squares > self.least)

    def model_dependence(self, table: Floats) -> Floats:
        """D of the model, from its shares of the cells."""
        first, second = (side.features for side in self.sides)
        joint, means = first.T @ table @ second, (table.sum(axis=1) @ first, table.sum(axis=0) @ second)
        return np.asarray(joint - np.outer(*means), dtype=np.float64)


@cache
def _limit(freedom: int) -> float:
    """The quantile of a chi-squared variable from which on a relation is seen."""
    part = 2 / (9 * freedom)
    return freedom * (1 - part + NormalDist().inv_cdf(1 - FALSE_ALARMS) * math.sqrt(part)) ** 3


@cache
def _noncentral(freedom: int) -> float:
    """The noncentrality with which a chi-squared variable is above the limit as often as :data:`POWER`."""
    beyond, z = _limit(freedom) - freedom, NormalDist().inv_cdf(POWER)
    middle = beyond + 2 * z**2
    return middle + math.sqrt(middle**2 - beyond**2 + 2 * freedom * z**2)


class Relation(NamedTuple):
    """The verdict on a pair of columns; numbers that are unknown are NaN.

    Attributes:
        first: its name.
        second: that of the column after it in the schema.
        verdict: ``kept``, ``not kept`` or ``unknown``.
        strength: of the release.
        detectable: that noise does not hide; 1 where it hides every one.
        synthetic: of the model.
        rule: whether a public rule speaks of the pair.
    """

    first: str
    second: str
    verdict: str = UNKNOWN
    strength: float = math.nan
    detectable: float = math.nan
    synthetic: float = math.nan
    rule: bool = False


def relations(
    row_sets: Sequence[RowSet], released: Iterable[Released], generators: Sequence[SavedGenerator]
) -> list[Relation]:
    """The verdict on each pair of modeled columns, in the order of the schema. Images have none.

    Args:
        row_sets: that the method was asked about.
        released: all files of the run.
        generators: of each row set, fitted to these.
    """
    answers, every = sorted(released, key=lambda release: release.receipt.query), []
    for rows, saved in zip(row_sets, generators, strict=True):
        schema = rows.context.schema.model_schema
        pairs = [] if schema.image is not None else list(combinations(schema.names, 2))
        ruled = {frozenset(pair) for rule in schema.rules for pair in combinations(rule.columns, 2)}
        verdicts: dict[tuple[str, str], tuple[Any, ...]] = {}
        if pairs and saved.network.table_cells:
            ours = [release for release in answers if rows_of(row_sets, release.receipt.query) is rows]
            total = None if rows.prefix else rows.context.num_records
            verdicts = _verdicts(schema, measurements(schema, ours, total), saved)
        every += [Relation(*pair, *verdicts.get(pair, ()))._replace(rule=frozenset(pair) in ruled) for pair in pairs]
    return every


def summary(
    row_sets: Sequence[RowSet], released: Iterable[Released], generators: Sequence[SavedGenerator]
) -> dict[str, Any]:
    """Summarize what a reader may believe, as JSON: verdicts by pair, and what the rows lack. Images have no summary.

    ``kept`` and ``not_kept`` list both columns of a pair, its strength in the release and that in the model, the
    strongest first. ``unknown`` counts the pairs that are in neither list, and ``unknown_pairs`` names the first ones
    in the order of the schema. ``detectable`` has the strength that noise does not hide in half of the measured pairs,
    and that in all of them; it is empty where none was measured. ``cut`` has the least and the largest value that the
    model knows of each number whose bounds are wider.
    """
    every = relations(row_sets, released, generators)
    if not every:
        return {}
    limits = [pair.detectable for pair in every if not math.isnan(pair.detectable)]
    return {
        "false_alarms": FALSE_ALARMS,
        "small": SMALL,
        "kept": _strongest(every, KEPT),
        "not_kept": _strongest(every, NOT_KEPT),
        "unknown": sum(pair.verdict == UNKNOWN for pair in every),
        "unknown_pairs": [[pair.first, pair.second] for pair in every if pair.verdict == UNKNOWN][:_NAMED],
        "detectable": [round(float(f(limits)), 2) for f in (np.median, np.max)] if limits else [],
        "rules": [[pair.first, pair.second] for pair in every if pair.rule],
        "cut": [cut for rows, saved in zip(row_sets, generators, strict=True) for cut in _cut(rows, saved)],
    }


def _strongest(every: Sequence[Relation], verdict: str) -> list[list[str | float]]:
    """The pairs of a verdict with two digits of both strengths."""
    judged = [pair for pair in every if pair.verdict == verdict]
    judged.sort(key=lambda pair: -max(pair.strength, pair.synthetic))
    return [[pair.first, pair.second, round(pair.strength, 2), round(pair.synthetic, 2)] for pair in judged]


def _cut(rows: RowSet, saved: SavedGenerator) -> Iterator[dict[str, Any]]:
    """Numbers whose tails noise has cut off."""
    columns = rows.context.schema.model_schema.feature_columns
    for column, (low, high) in zip(columns, saved.network.support, strict=False):  # empty where a model knows none
        if not column.is_categorical and (low > _EDGE or high < 1 - _EDGE):
            ends = (value_of(column, low), value_of(column, high))
            values = [float(f"{end:.6g}") if column.type.numeric_source else column.type.text(end) for end in ends]
            yield {"column": column.name, "low": values[0], "high": values[1]}


def _verdicts(schema: Schema, measured: Measurements, saved: SavedGenerator) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Verdict, strength, detectable and synthetic strength of each measured pair, in the order of the schema."""
    position = {name: index for index, name in enumerate(schema.names)}.__getitem__
    pairs = dict(_dependences(measured))
    verdicts = {pair: _verdict(pairs[pair], model) for pair, model in _model_tables(schema, measured, pairs, saved)}
    for pair, dependence in pairs.items():
        verdicts.setdefault(pair, (UNKNOWN, math.nan, min(1.0, dependence.detectable), math.nan))  # the rest is noise
    return {(min(pair, key=position), max(pair, key=position)): verdict for pair, verdict in verdicts.items()}


def _dependences(measured: Measurements) -> Iterator[tuple[tuple[str, str], _Dependence]]:
    """Give the released dependence of each measured pair, in the order of the axes: by cells or by products."""
    terms, records = measured.terms, max(measured.terms.total, 1.0)
    shares, spreads, cells = {}, {}, {}
    for name, axis in measured.axes.items():
        eye = np.eye(axis.size)
        shares[name] = nearest_distribution(terms.linear({name: eye})[:, None] / records, 1.0)[:, 0]
        spreads[name] = terms.spread(name) / records**2
        cells[name] = _Side.from_shares(eye - 1 / axis.size, shares[name], spreads[name])
    scores: dict[str, _Side] = {}
    of_records = terms.total_variance / records**2
    for first, second in combinations(measured.axes, 2):
        candidates, products = [], measured.products.get((first, second))
        if terms.is_measured((first, second)):
            values, variance = terms.interaction(first, second)
            freedom, sides = (values.shape[0] - 1) * (values.shape[1] - 1), (cells[first], cells[second])
            if freedom:
                means = values / records, variance / records**2
                candidates.append(_Dependence.from_products(*means, freedom, sides, of_records))
        if products is not None:
            for name, features in zip((first, second), products.features, strict=True):
                if name not in scores:
                    scores[name] = _Side.from_shares(features, shares[name], spreads[name])
            means, sides = (products.sums / records, products.variance / records**2), (scores[first], scores[second])
            candidates.append(_Dependence.from_products(*means, products.sums.size, sides, of_records))
        if candidates:
            yield (first, second), min(candidates, key=lambda candidate: candidate.detectable)


def _model_tables(
    schema: Schema, measured: Measurements, dependences: Mapping[tuple[str, str], _Dependence], saved: SavedGenerator
) -> Iterator[tuple[tuple[str, str], Floats]]:
    """The model's shares of the cells of each pair on which the release has something to say."""
    network, label = saved.network, schema.label if len(schema.classes) > 1 else None
    weights = np.array(saved.class_weights) / sum(saved.class_weights)
    named = [column.name for column in schema.feature_columns]
    fits = [measured.cells.get(name) == cells for name, cells in zip(named, network.table_cells, strict=True)]
    indices = {name: index for index, name in enumerate(named) if fits[index]}
    judged = [pair for pair, dependence in dependences.items() if dependence.decides]
    for _, name in (pair for pair in judged if pair[0] == label and pair[1] in indices):
        yield (str(label), name), network.table((network.table_cells[indices[name]],)) * weights[:, None]
    pairs = [pair for pair in judged if set(pair) <= indices.keys()]
    tables = network.pairs([(indices[first], indices[second]) for first, second in pairs], weights)
    for pair, table in zip(pairs, tables, strict=True):
        yield pair, table.sum(axis=0)


def _verdict(dependence: _Dependence, table: Floats) -> tuple[str, float, float, float]:
    """The verdict on a pair from the model's shares of its cells."""
    model = dependence.model_dependence(table)
    clear = dependence.squares - dependence.freedom * dependence.variance  # without what noise adds
    strength, synthetic = dependence.strength(clear), dependence.strength(float(np.square(model).sum()))
    if dependence.squares > dependence.least and max(strength, dependence.detectable) > SMALL:
        part = float((model * dependence.values).sum()) / clear
        holds = _HALF <= part <= 1 / _HALF
    else:
        holds = synthetic <= max(SMALL, strength / _HALF)
    return KEPT if holds else NOT_KEPT, strength, min(1.0, dependence.detectable), synthetic
