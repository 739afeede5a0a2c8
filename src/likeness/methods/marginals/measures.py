"""What the release of pairs and named tables measures, and how well."""

import math
from collections.abc import Collection, Iterator

from likeness.methods.base import Context, Measured
from likeness.methods.marginals.pair_map import PairMarginals


def measures_of_cells(
    feature: PairMarginals,
    sigma: float,
    classes: int,
    context: Context,
    private: Collection[str],
    first_share: float = 0.0,
) -> Iterator[Measured]:
    """A cell of a pair, and a cell of the column that is measured worst: as this release and a first look give them.

    The rule does not apply to single cells of pairs: the generator is fitted to all of them at once. It does not apply
    to columns with private categories: released ones clear a threshold.
    """
    sizes, pairs = [column.size for column in feature.columns], len(feature.sizes)
    norm = math.fsum(float(part.norm_bound_squared) for part in feature.parts)
    # A budget is in proportion to the squared norm over the variance of a cell of weight 1.
    of_pairs, of_columns = feature.variances(first_share / (1 - first_share) * norm / pairs)
    noise = [sigma * math.sqrt(variance) for variance in of_columns]
    names, by_class = [column.name for column in context.schema.feature_columns], ", by class" if classes > 1 else ""
    cells = sum(a * b for a, b in feature.sizes) / pairs
    drawn = f" of {pairs:,} pairs, those that are released" if feature.pairs else ""
    of = f"share in a cell of a pair of columns{by_class}{drawn}"
    yield Measured(of, sigma * math.sqrt(max(of_pairs)), 1 / (classes * cells), False)
    if feature.tables:
        cells = sum(part.width for part in feature.table_parts) / len(feature.tables)
        noise_of_one = sigma / math.sqrt(min(feature.squared_table_weights))
        yield Measured(f"share in a cell of a named table{by_class}", noise_of_one, 1 / (classes * cells), False)
    listed = [place for place, name in enumerate(names) if name not in private]
    if listed:
        worst = max(listed, key=lambda place: noise[place] * sizes[place])
        of = f"share in a cell of '{names[worst]}', the hardest column{by_class}"
        yield Measured(of, noise[worst], 1 / (classes * sizes[worst]), True)
