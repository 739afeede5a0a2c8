"""DP-HP: Hermite features of all columns and of public subsets of them, by class (Vinaroz et al. 2022)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

from likeness.config.typed import allowed, require
from likeness.core.errors import PlanError
from likeness.core.rng import public
from likeness.features.base import FeatureMap
from likeness.methods.base import EMBEDDING, Context
from likeness.methods.hp.hermite_map import HermiteFeatures
from likeness.methods.network_method import TwoQueryMethod
from likeness.methods.settings import (
    NetworkTraining,
    one_each,
    require_limit,
    within_limit,
)
from likeness.release.query import Query
from likeness.release.released import Released

if TYPE_CHECKING:
    from torch import Tensor

KERNELS = ("sum", "product", "combined")
_WHERE = "hp.privatize"


@dataclass(frozen=True)
class Privatize:
    """Section ``hp.privatize``."""

    kernel: str = "combined"
    order: int = 20
    lengthscale: float | tuple[float, ...] = 0.1
    input_scale: float | None = None
    product_order: int = 10
    product_dimension: int = 2
    num_subsets: int | None = None
    product_share: float = 0.8
    seed: int = 0
    max_coordinates: int = 5_000_000

    def __post_init__(self) -> None:
        """Check ranges."""
        allowed(f"{_WHERE}.kernel", self.kernel, KERNELS)
        for name in ("order", "product_order"):
            require(0 <= getattr(self, name) <= 200, f"{_WHERE}.{name}", getattr(self, name), "from 0 to 200")
        own = self.lengthscale if isinstance(self.lengthscale, tuple) else (self.lengthscale,)
        good = bool(own) and all(0.01 <= value <= 100 for value in own)
        require(
            good, f"{_WHERE}.lengthscale", self.lengthscale, "from 0.01 to 100, one for all numbers or one for each"
        )
        good = self.input_scale is None or 0 < self.input_scale <= 16
        require(good, f"{_WHERE}.input_scale", self.input_scale, "above 0 and at most 16, or null")
        require(self.product_dimension >= 1, f"{_WHERE}.product_dimension", self.product_dimension, "at least 1")
        good = self.num_subsets is None or self.num_subsets >= 1
        require(good, f"{_WHERE}.num_subsets", self.num_subsets, "at least 1, or null for all")
        require(0 < self.product_share < 1, f"{_WHERE}.product_share", self.product_share, "between 0 and 1")
        require_limit("hp", self.max_coordinates)


@dataclass(frozen=True)
class TrainHp(NetworkTraining):
    """Section ``hp.train``."""

    gamma: float | None = None

    def __post_init__(self) -> None:
        """Check ranges."""
        super().__post_init__()
        good = self.gamma is None or 0 < self.gamma < math.inf
        require(good, "hp.train.gamma", self.gamma, "above 0, or null for the weights of the noise")


@dataclass(frozen=True)
class Hp(TwoQueryMethod):
    """Sum kernel, product kernel or both, of Hermite features; all subsets in one release, before training."""

    name: ClassVar[str] = "hp"
    maps: ClassVar = (HermiteFeatures,)
    multiplications_a_coordinate: ClassVar[int] = 8
    train: TrainHp = field(default_factory=TrainHp)
    privatize: Privatize = field(default_factory=Privatize)

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """Hermite features by class; length scales and subsets are public settings.

        Raises:
            PlanError: the settings do not fit the table.
        """
        from likeness.methods.hp.mehler import good_scale, rho_of

        own, blocks = self.privatize, context.layout.blocks
        numbers = [block.start for block in blocks if block.kind == "unit"]
        lengthscales = one_each(own.lengthscale, len(numbers), f"{_WHERE}.lengthscale", "numeric columns")
        orders = [own.order] * (own.kernel != "product") + [own.product_order] * (own.kernel != "sum")
        scales = {
            value: own.input_scale if own.input_scale is not None else good_scale(value, min(orders))
            for value in set(lengthscales)
        }
        categorical = tuple((block.start, block.stop) for block in blocks if block.kind == "onehot")
        feature = HermiteFeatures(
            numeric=tuple(numbers),
            nullable=tuple(block.start - 1 for block in blocks if block.kind == "indicator"),
            categorical=categorical,
            rho=tuple(rho_of(value * scales[value]) for value in lengthscales),
            scale=tuple(scales[value] for value in lengthscales),
            order=own.order if own.kernel != "product" else 0,
            product_order=own.product_order if own.kernel != "sum" else 0,
            subsets=self._subsets(len(numbers) + len(categorical)) if own.kernel != "sum" else (),
            product_share={"sum": 0.0, "product": 1.0, "combined": own.product_share}[own.kernel],
        )
        query = Query(EMBEDDING, "privatize", feature, num_groups=context.layout.num_classes)
        remedy = (
            f"Lower {_WHERE}.order, product_order, product_dimension or num_subsets, merge categories in the schema"
        )
        within_limit("hp", query.dimension, own.max_coordinates, remedy)
        return query

    def coordinate_weights(self, feature: FeatureMap) -> "Tensor | None":
        """γ of the paper's loss."""
        assert isinstance(feature, HermiteFeatures)
        return feature.coordinate_weights(self.train.gamma)

    def _subsets(self, columns: int) -> tuple[tuple[int, ...], ...]:
        """Subsets of columns, drawn without replacement from public randomness, in ascending order."""
        own = self.privatize
        if own.product_dimension > columns:
            raise PlanError(
                f"{_WHERE}.product_dimension is {own.product_dimension}, the table has {columns} feature columns. "
                f"Lower it, or set {_WHERE}.kernel to sum."
            )
        total = math.comb(columns, own.product_dimension)
        wanted = total if own.num_subsets is None else min(own.num_subsets, total)
        within_limit("hp", wanted, own.max_coordinates, f"Set {_WHERE}.num_subsets", "products")
        if wanted == total:
            return tuple(combinations(range(columns), own.product_dimension))
        draws = public(own.seed, "hermite.subsets")
        found: set[tuple[int, ...]] = set()
        while len(found) < wanted:
            drawn = draws.choice(columns, own.product_dimension, replace=False)
            found.add(tuple(sorted(int(place) for place in drawn)))
        return tuple(sorted(found))
