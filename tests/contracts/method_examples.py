"""What contract tests try: small settings of every method, options included, and every map small and large.

A new method of the core has its lines here, and nowhere else in the tests. A wing has them in
``tests/NAME/wing_examples.py``: ``SMALL``, ``EXAMPLES`` and ``LARGE``, and what else of :func:`optional` it needs.
``tests/contracts/golden_integers.json`` gets the integers of each small setting at the first run, which fails.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from likeness.features.base import FeatureMap
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals, Constant
from likeness.methods.marginals.column_steps import ColumnSteps, Steps
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.pair_products import PairProducts
from likeness.methods.marginals.relations.tables import Operand, Relation, RelationCells

SMALL: dict[str, dict[str, dict[str, object]]] = {
    "marginals": {"privatize": {"bins": 10}, "train": {"num_components": 30}}
}
# Maps, each with the number of inputs that it takes.
EXAMPLES: dict[str, tuple[FeatureMap, int]] = {
    "column_marginals": (
        ColumnMarginals((Cells(0, 3, (0.25, 0.55)), Cells(1, 3, (0.45,), missing=True), Cells(3, 2))),
        5,
    ),
    "column_steps": (
        ColumnSteps((Steps(0, -2.0, 8.0, (1.0, 0.5, 0.1)), Steps(1, 0.0, 1e4, (500.0, 100.0), missing=True))),
        5,
    ),
    "constant": (Constant(), 5),
    "pair_marginals": (
        PairMarginals(
            (Cells(0, 3, (0.25, 0.55)), Cells(1, 3, (0.45,), missing=True), Cells(3, 2)),
            squared_weights=(1, 2, 3),
            tables=((0, 1, 2),),
            squared_table_weight=0.7,
        ),
        5,
    ),
    "relation_cells": (
        RelationCells(
            (
                Operand(Cells(0, 3, (0.25, 0.55)), 0.0, 9.0, 1.0),
                Operand(Cells(1, 3, (0.45,), missing=True), 0.0, 9.0, 1.0),
                Operand(Cells(3, 2)),
            ),
            (Relation("difference", (0, 1)), Relation("function", (2, 0))),
        ),
        5,
    ),
    "pair_products": (
        PairProducts(
            (Cells(0, 3, (0.25, 0.55)), Cells(1, 3, (0.45,), missing=True), Cells(3, 2)),
            ((0, 0, 0), (0, 0, 1), (0, 1)),
            ((-1.0, 0.25, 1.0), (-0.5, 0.5, 1.0), (1.0, 0.0)),
        ),
        5,
    ),
}
SOME_PAIRS = PairMarginals(
    (Cells(0, 3, (0.25, 0.55)), Cells(1, 2, (0.45,)), Cells(3, 2)), (1, 3), pairs=((0, 1), (1, 2))
)
# The same maps as large as a real table makes them.
LARGE: dict[str, tuple[FeatureMap, int]] = {
    "column_marginals": (
        ColumnMarginals(tuple(Cells(at, 256, tuple(step / 256 for step in range(1, 256))) for at in range(12))),
        100,
    ),
    "column_steps": (ColumnSteps(tuple(Steps(at, 0.0, 10.0, (1.0, 0.5, 0.1, 1e-6)) for at in range(12))), 12),
    "constant": (Constant(), 100),
    "pair_marginals": (PairMarginals(tuple(Cells(at, 4, (0.25, 0.55, 0.75)) for at in range(12))), 100),
    "relation_cells": (
        RelationCells(
            tuple(Operand(Cells(at, 4, (0.25, 0.55, 0.75)), 0.0, 9.0, 0.1 * (at % 2), at % 3 == 0) for at in range(12)),
            tuple(Relation("difference", (at, at + 1)) for at in range(11)),
        ),
        100,
    ),
    "pair_products": (
        PairProducts(
            tuple(Cells(at, 4, (0.25, 0.55, 0.75)) for at in range(30)),
            ((0, 0, 0, 0), (0, 1, 2, 3)) * 15,
            ((-1.0, -0.4, 0.3, 1.0), (1.0, 1.0, 0.0, 1.0)) * 15,
        ),
        100,
    ),
}

WINGS = [
    import_module(f"{path.parent.name}.wing_examples")
    for path in sorted(Path(__file__).parents[1].glob("*/wing_examples.py"))
]


def optional(name: str) -> list[Any]:
    """What each wing has under a name; nothing of those that lack it."""
    return [getattr(wing, name) for wing in WINGS if hasattr(wing, name)]


ONLY_IMAGES = tuple(name for names in optional("ONLY_IMAGES") for name in names)
MORE = [(SOME_PAIRS, 5), *(example for examples in optional("MORE") for example in examples)]
DOOR = {
    way: [feature for maps in optional("DOOR") for feature in maps.get(way, ())]
    for way in ("records", "pairs of records", "outer products", "products of columns")
}
OUTER = [feature for features in optional("OUTER") for feature in features]
IMAGE_GENERATORS = {name: make for makers in optional("IMAGE_GENERATORS") for name, make in makers.items()}
COLORED = [case for cases in optional("COLORED") for case in cases]
for wing in WINGS:
    SMALL |= wing.SMALL
    EXAMPLES |= wing.EXAMPLES
    LARGE |= wing.LARGE
SMALL, EXAMPLES, LARGE = (dict(sorted(examples.items())) for examples in (SMALL, EXAMPLES, LARGE))
