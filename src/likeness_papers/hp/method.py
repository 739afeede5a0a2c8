"""DP-HP: Hermite features of all columns and of public subsets of them, by class (Vinaroz et al. 2022)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

from likeness.core.errors import PlanError
from likeness.core.rng import public
from likeness.core.typed import Section, require, setting
from likeness.features.base import FeatureMap
from likeness.methods.base import EMBEDDING, Context
from likeness.methods.settings import FREE, MAP_SEED, NetworkTraining, check_limit, coordinates, one_each
from likeness.release.query import Query
from likeness.release.released import Released
from likeness_papers.hp.hermite_map import HermiteFeatures
from likeness_papers.networks.network_method import TwoQueryMethod

if TYPE_CHECKING:
    from torch import Tensor

KERNELS = ("sum", "product", "combined")
_WHERE = "hp.privatize"
_MULTIPLICATIONS_A_FUNCTION = 70  # a Hermite function of one number, by recurrence


@dataclass(frozen=True)
class Privatize(Section):
    """Section ``hp.privatize``."""

    everyday: ClassVar = ("order", "lengthscale", "num_subsets")
    kernel: str = setting("combined", "sum | product | combined", options=KERNELS)
    order: int = setting(
        20,
        "of the sum kernel: order + 1 features a number. Paper: 100 (5 to 150) on unscaled inputs",
        least=0,
        most=200,
    )
    lengthscale: float | tuple[float, ...] = setting(
        0.1,
        "of the Gaussian kernels on the unit interval, one or a list of one for each number; public (the paper's "
        "median heuristic leaks). Paper for pixels: 0.07 (MNIST), 0.39",
        least=0.01,
        most=100,
        rule="from 0.01 to 100, one for all numbers or one for each",
    )
    product_order: int = setting(10, "of the products. Paper: 5 (Adult, Census), 20 (images)", least=0, most=200)
    product_dimension: int = setting(
        2, "columns in a product: (product_order + 1)**dimension features. Paper: 5; images: 2", least=1
    )
    num_subsets: int | None = setting(
        None,
        "products, drawn at random and all released at once; null: all. Images: 10",
        least=1,
        rule="at least 1, or null for all",
    )
    product_share: float = setting(
        0.8, "of the embedding's rho; 0.8 gives each column and each pair of Adult about the same", above=0, below=1
    )
    max_coordinates: int = coordinates(5_000_000)

    def __post_init__(self) -> None:
        """Check ranges."""
        super().__post_init__()
        require(self.lengthscale != (), f"{_WHERE}.lengthscale", [], "one number, or one for each numeric column")


@dataclass(frozen=True)
class TrainHp(NetworkTraining):
    """Section ``hp.train``."""

    gamma: float | None = setting(
        None,
        "weight of the products in the loss; null: as the noise says. Paper: 0.1 (Adult, Census)",
        above=0,
        below=math.inf,
        rule="above 0, or null for the weights of the noise",
    )


@dataclass(frozen=True)
class Hp(TwoQueryMethod):
    """Sum kernel, product kernel or both, of Hermite features; all subsets in one release, before training."""

    name: ClassVar[str] = "hp"
    maps: ClassVar = (HermiteFeatures,)
    multiplications_a_coordinate: ClassVar[int] = 2  # of products of columns: their mean is one product of matrices
    multiplications_a_value: ClassVar[float] = 0
    privatize: Privatize = setting(Privatize())
    train: TrainHp = setting(TrainHp(), FREE)

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """Hermite features by class; length scales and subsets are public settings.

        Raises:
            PlanError: the settings do not fit the table.
        """
        from likeness_papers.hp.mehler import good_scale, rho_of

        settings, blocks = self.privatize, context.layout.blocks
        numbers = [block.start for block in blocks if block.kind == "unit"]
        lengthscales = one_each(settings.lengthscale, len(numbers), f"{_WHERE}.lengthscale", "numeric columns")
        has_sum, has_products = settings.kernel != "product", settings.kernel != "sum"
        least = min([settings.order] * has_sum + [settings.product_order] * has_products)
        scales = {value: good_scale(value, least) for value in set(lengthscales)}  # the paper stretches no inputs
        categorical = tuple((block.start, block.stop) for block in blocks if block.kind == "onehot")
        feature = HermiteFeatures(
            numeric=tuple(numbers),
            nullable=tuple(block.start - 1 for block in blocks if block.kind == "indicator"),
            categorical=categorical,
            rho=tuple(rho_of(value * scales[value]) for value in lengthscales),
            scale=tuple(scales[value] for value in lengthscales),
            order=settings.order if has_sum else 0,
            product_order=settings.product_order if has_products else 0,
            subsets=self._subsets(len(numbers) + len(categorical)) if has_products else (),
            product_share={"sum": 0.0, "product": 1.0, "combined": settings.product_share}[settings.kernel],
        )
        query = Query(EMBEDDING, "privatize", feature, num_groups=context.layout.num_classes)
        remedy = f"Lower {_WHERE}.order, product_order, product_dimension or num_subsets, merge categories"
        check_limit("hp", query.dimension, settings.max_coordinates, remedy)
        return query

    def multiplications(self, context: Context, coordinates: Mapping[str, int]) -> float:
        """Those of all methods, and the Hermite functions of each number."""
        numbers = sum(block.kind == "unit" for block in context.layout.blocks)
        functions = numbers * (1 + max(self.privatize.order, self.privatize.product_order))
        network = super().multiplications(context, coordinates)
        return network + self.train.batch_size * _MULTIPLICATIONS_A_FUNCTION * functions

    def coordinate_weights(self, feature: FeatureMap) -> "Tensor | None":
        """γ of the paper's loss."""
        assert isinstance(feature, HermiteFeatures)
        return feature.coordinate_weights(self.train.gamma)

    def _subsets(self, columns: int) -> tuple[tuple[int, ...], ...]:
        """Subsets of columns, drawn without replacement from public randomness, in ascending order."""
        settings = self.privatize
        if settings.product_dimension > columns:
            raise PlanError(
                f"{_WHERE}.product_dimension is {settings.product_dimension}, but the table has {columns} feature "
                f"columns. Lower it, or set {_WHERE}.kernel to sum."
            )
        total = math.comb(columns, settings.product_dimension)
        wanted = total if settings.num_subsets is None else min(settings.num_subsets, total)
        check_limit("hp", wanted, settings.max_coordinates, f"Set {_WHERE}.num_subsets", "products")
        if wanted == total:
            return tuple(combinations(range(columns), settings.product_dimension))
        draws = public(MAP_SEED, "hermite.subsets")
        subsets: set[tuple[int, ...]] = set()
        while len(subsets) < wanted:
            drawn = draws.choice(columns, settings.product_dimension, replace=False)
            subsets.add(tuple(sorted(int(column) for column in drawn)))
        return tuple(sorted(subsets))
