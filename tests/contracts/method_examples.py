"""What contract tests try: small settings of every method, options included, and every map small and large.

A new method of the core has its lines here, and nowhere else in the tests. A wing has them in
``tests/NAME/wing_examples.py``.
"""

from importlib import import_module
from pathlib import Path

from likeness.features.base import FeatureMap
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals, Constant
from likeness.methods.marginals.column_steps import ColumnSteps, Steps
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.pair_products import PairProducts

SMALL: dict[str, dict[str, dict[str, object]]] = {
    "marginals": {"privatize": {"bins": 10}, "train": {"num_components": 30}},
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
ONLY_IMAGES = tuple(name for wing in WINGS for name in wing.ONLY_IMAGES)
MORE = [(SOME_PAIRS, 5), *(example for wing in WINGS for example in wing.MORE)]
DOOR = {
    way: [feature for wing in WINGS for feature in wing.DOOR.get(way, ())]
    for way in ("records", "pairs of records", "outer products", "products of columns")
}
OUTER = [feature for wing in WINGS for feature in wing.OUTER]
IMAGE_GENERATORS = {name: make for wing in WINGS for name, make in wing.IMAGE_GENERATORS.items()}
COLORED = [case for wing in WINGS for case in wing.COLORED]
for wing in WINGS:
    SMALL |= wing.SMALL
    EXAMPLES |= wing.EXAMPLES
    LARGE |= wing.LARGE
SMALL, EXAMPLES, LARGE = (dict(sorted(examples.items())) for examples in (SMALL, EXAMPLES, LARGE))
