r"""What noise will leave of a table, before anything is released: from the public schema and a number of records.

*Relations.* A relation is seen where squares of f numbers with noise s are above :math:`f + 2\sqrt{f l} + 2 l`, with
l the logarithm of the number of pairs (:mod:`likeness.methods.marginals.release_state`). At least half of it is left
after shrinkage where they are above 2 f. The strength is that of :mod:`likeness.inference.relations`, for columns whose
cells have equal shares: rare cells hide more.

*Total variation.* The noise in columns with K cells on average, each of standard deviation σ in N records, moves a
column by about :math:`0.22\, K \sigma / N`: the mean of a normal, about half of which the sum of the shares takes back.
A pair moves by about :math:`0.19 \sqrt{K \sigma / N}`: noise, and weak dependence that noise hides. Both constants come
from eight tables of strangers, and eight others test them: 13 of all 16 are within a factor of 1.5 for pairs.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

RELATION = 0.3
"""A relation of medium strength (Cohen 1988), whose loss is said."""
_COLUMN, _PAIR = 0.22, 0.19
_PART = 0.25  # of a share: the standard error with which it is lost


class PairNoise(NamedTuple):
    """The expected measurement of pairs of columns of one sort.

    Attributes:
        pairs: how many there are.
        names: of one of them.
        freedom: numbers that say how far a pair is from independence.
        noise: standard deviation of each, as a share of the records.
        sizes: squared norm of each column's covariance with itself.
    """

    pairs: int
    names: tuple[str, str]
    freedom: int
    noise: float
    sizes: tuple[float, float]


class Expected(NamedTuple):
    """The relations and shares of a table that noise is expected to leave.

    Attributes:
        pairs: number of pairs of columns.
        lost: of these, how many would lose a relation of strength :data:`RELATION`.
        detectable: strength from which on a relation survives, in the middle one of all pairs.
        hardest: the same of the hardest pair.
        hardest_pair: its names.
        column_distance: part of the total variation of a column, on average, that noise makes.
        pair_distance: of a pair of columns.
        mean_error: standard error of the mean of a number, in standard deviations; None without numbers.
        class_share: share of a class up to which its standard error is above a quarter of it; None without classes.
        category_share: of a category of another column.
    """

    pairs: int
    lost: int
    detectable: float
    hardest: float
    hardest_pair: tuple[str, str]
    column_distance: float
    pair_distance: float
    mean_error: float | None
    class_share: float | None
    category_share: float


def expect_noise(
    pairs: Iterable[PairNoise], cells: float, column_noise: float, class_noise: float | None, number_cells: int | None
) -> Expected:
    """Forecast what noise leaves, from how all pairs will be measured.

    Args:
        pairs: one at least.
        cells: of a column, on average.
        column_noise: standard deviation of a cell's share in a single column.
        class_noise: of a class's share; None without classes.
        number_cells: cells of a number that hold equal shares; None without numbers.
    """
    sorts = [pair for pair in pairs if pair.pairs]
    count = sum(pair.pairs for pair in sorts)
    strengths = sorted((_strength(pair, math.log(max(count, 2))), pair.names, pair.pairs) for pair in sorts)
    moved = cells * column_noise
    return Expected(
        pairs=count,
        lost=sum(number for strength, _, number in strengths if strength > RELATION),
        detectable=_middle([(strength, number) for strength, _, number in strengths]),
        hardest=strengths[-1][0],
        hardest_pair=strengths[-1][1],
        column_distance=min(1.0, _COLUMN * moved),
        pair_distance=min(1.0, max(_PAIR * math.sqrt(moved), _COLUMN * moved)),
        mean_error=None if number_cells is None else math.sqrt(number_cells) * column_noise,
        class_share=None if class_noise is None else min(1.0, class_noise / _PART),
        category_share=min(1.0, column_noise / _PART),
    )


def _middle(strengths: Iterable[tuple[float, int]]) -> float:
    """The median of ascending numbers, each with how often it comes."""
    every = list(strengths)
    left = sum(number for _, number in every) / 2
    for strength, number in every:
        left -= number
        if left <= 0:
            return strength
    raise ValueError("no pairs")


def _strength(pair: PairNoise, log: float) -> float:
    """Strength from which on a relation survives; infinite where a column has one cell."""
    least = max(pair.freedom + 2 * math.sqrt(pair.freedom * log) + 2 * log, 2 * pair.freedom)
    scale = math.sqrt(pair.sizes[0] * pair.sizes[1])
    return math.sqrt(least / scale) * pair.noise if scale > 0 else math.inf
