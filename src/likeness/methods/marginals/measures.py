"""What the release of pairs, tables and single columns measures, and how well."""

from collections.abc import Iterator

from likeness.methods.base import Measured
from likeness.methods.marginals.pair_map import PairMarginals


def measures_of_cells(feature: PairMarginals, sigma: float, classes: int) -> Iterator[Measured]:
    """A cell of a pair, of a table and of a single column, if all pairs were chosen.

    The rule does not apply to cells of pairs: the generator is fitted to all of them at once.
    """
    by_class = ", by class" if classes > 1 else ""
    cells = sum(a * b for a, b in feature.sizes) / len(feature.sizes)
    of = f"share in a cell of a pair of columns{by_class}, if all pairs were chosen"
    yield Measured(of, sigma / min(feature.weights) ** 0.5, 1 / (classes * cells), False)
    parts = zip(feature.tables, feature.table_parts, feature.squared_table_weights, strict=True)
    for several, words in ((True, "a named table"), (False, "a single column")):
        sizes = [(part.width, weight) for places, part, weight in parts if (len(places) > 1) is several]
        if sizes:
            width = sum(size for size, _ in sizes) / len(sizes)
            noise = sigma / min(weight for _, weight in sizes) ** 0.5
            yield Measured(f"share in a cell of {words}{by_class}", noise, 1 / (classes * width), False)
        parts = zip(feature.tables, feature.table_parts, feature.squared_table_weights, strict=True)
