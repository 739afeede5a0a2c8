"""How the default method will measure each pair of columns, from public facts alone."""

import math
from collections.abc import Collection, Iterator, Mapping
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from likeness.methods.base import CLASS_COUNTS, EMBEDDING, Context
from likeness.methods.expected import Expected, PairNoise, expect_noise
from likeness.methods.marginals.columns import USUAL_CELLS
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.release_state import COLUMNS, PRODUCTS, SECOND, TOO_NOISY, ReleaseState

_Sort = tuple[int, float]  # numbers of a column's feature, and squared norm of its covariance


def expected_noise(
    state: ReleaseState,
    feature: PairMarginals,
    context: Context,
    sigmas: Mapping[str, float],
    rows: int,
    private: Collection[str],
    twice: float,
) -> Expected | None:
    """Forecast what the noise of the releases leaves; None where no pair of columns has public categories.

    Args:
        state: without answers.
        feature: the map of the embedding before anything is released.
        context: public facts.
        sigmas: standard deviation of a coordinate's noise, by the name of the query.
        rows: number of records.
        private: names of columns with private categories, which are in no pair.
        twice: variance of the noise where products are released twice, over that of the first release.
    """
    columns, classes = context.schema.feature_columns, context.layout.num_classes
    names, cells = [column.name for column in columns], [column.size for column in feature.columns]
    of_cells: list[_Sort] = [(size - 1, (size - 1) / size**2) for size in cells]
    hidden = PRODUCTS in sigmas and sigmas[PRODUCTS] / rows > TOO_NOISY
    if PRODUCTS in sigmas:
        sorts = [(content.shape[1], _size(content)) for content in state.feature.contents()]
        noise = sigmas[PRODUCTS] * math.sqrt(twice if hidden else 1.0) / rows
    else:
        sorts, noise = of_cells, sigmas[EMBEDDING] * math.sqrt(classes / min(feature.weights)) / rows
    pairs = list(_pairs({name: sort for name, sort in zip(names, sorts, strict=True) if name not in private}, noise))
    label = context.schema.label if classes > 1 else None
    if label is not None and label not in private:
        both = (sigmas[name] for name in (EMBEDDING, *(() if hidden else (SECOND,))) if name in sigmas)
        weights = zip(feature.tables, feature.squared_table_weights, strict=True)
        weight = min(weight for table, weight in weights if len(table) == 1)
        if hidden:  # one pair is taken, and single columns have its budget each
            weight *= (len(names) + len(feature.sizes)) / (len(names) + 1)
        noise = 1 / math.sqrt(weight * math.fsum(sigma**-2 for sigma in both)) / rows
        size = (classes - 1) / classes**2
        pairs += [
            PairNoise(1, (label, name), max(1, (classes - 1) * free), noise, (size, other))
            for name, (free, other) in zip(names, of_cells, strict=True)
            if name not in private
        ]
    if not any(pair.pairs for pair in pairs):
        return None
    numbers = any(not column.is_categorical for column in columns)
    return expect_noise(
        pairs,
        math.fsum(cells) / len(cells),
        sigmas[COLUMNS] / rows,
        None if label is None else sigmas[CLASS_COUNTS] / rows,
        USUAL_CELLS if numbers else None,
    )


def _pairs(sorts: Mapping[str, _Sort], noise: float) -> Iterator[PairNoise]:
    """All pairs, those of equal sorts together."""
    alike: dict[_Sort, list[str]] = {}
    for name, sort in sorts.items():
        alike.setdefault(sort, []).append(name)
    for (first, ours), (second, theirs) in combinations_with_replacement(alike.items(), 2):
        same = first == second
        count = math.comb(len(ours), 2) if same else len(ours) * len(theirs)
        yield PairNoise(count, (ours[0], theirs[-1]), max(1, first[0] * second[0]), noise, (first[1], second[1]))


def _size(content: NDArray[np.float64]) -> float:
    """Squared norm of the covariance of a feature whose cells have equal shares."""
    centred = content - content.mean(axis=0)
    return round(float(np.square(centred.T @ centred / len(content)).sum()), 12)
