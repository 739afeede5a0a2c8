"""Small maps whose bounds hold, one for each way in which the door sums vectors: their tests need no wing."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import torch
from torch import Tensor

from likeness.core.bounds import Part
from likeness.features.base import Map
from likeness.features.frequencies import FrequencyMap


def cosine_sine(angles: Tensor) -> Tensor:
    """Map angles (n, k) to (n, 2k), of norm √k: all cosines, then all sines."""
    return torch.cat([angles.cos(), angles.sin()], dim=1)


def outer_products(factors: tuple[tuple[Tensor, Tensor], ...]) -> Tensor:
    """The products of each block, row by row of the left factor, side by side."""
    return torch.cat([(left[:, :, None] * right[:, None, :]).flatten(1) for left, right in factors], dim=1)


@dataclass(frozen=True)
class Trigonometric(FrequencyMap):
    """Cosines and sines of k angles. Norm exactly √k."""

    name: ClassVar[str] = "trigonometric"
    num_frequencies: int
    dimension: int
    scale: float
    seed: int
    digest: str = ""

    def __post_init__(self) -> None:
        self._draw(self.num_frequencies, self.dimension, self.scale)

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        return (Part(2 * self.num_frequencies, Fraction(self.num_frequencies)),)

    def __call__(self, x: Tensor) -> Tensor:
        return cosine_sine(self.angles(x))


@dataclass(frozen=True)
class Outer(FrequencyMap):
    """Outer products of cosines and sines; a left factor of width 1 is the number 1. Norm exactly 1."""

    name: ClassVar[str] = "outer"
    sizes: tuple[tuple[int, int], ...]
    dimension: int
    seed: int
    digest: str = ""

    def __post_init__(self) -> None:
        self._draw(sum(left // 2 + right // 2 for left, right in self.sizes), self.dimension, 1.5)

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        return (Part(sum(left * right for left, right in self.sizes), Fraction(1)),)

    def factors(self, x: Tensor) -> tuple[tuple[Tensor, Tensor], ...]:
        widths = [width // 2 for size in self.sizes for width in size]
        units = [
            cosine_sine(own) / math.sqrt(own.shape[1]) if own.shape[1] else x.new_ones(len(x), 1)
            for own in self.angles(x).split(widths, dim=1)
        ]
        rights = [right / math.sqrt(len(self.sizes)) for right in units[1::2]]
        return tuple(zip(units[::2], rights, strict=True))

    def __call__(self, x: Tensor) -> Tensor:
        return outer_products(self.factors(x))


@dataclass(frozen=True)
class Products(Map):
    """Features of columns, and their products, which have a share of the squared norm 1.

    The features of a number are cosines and sines of its multiples, a hair shorter than 1. A mark takes their place
    where it is missing. Those of a category are its one-hot block.

    Attributes:
        numbers: places of numbers, each with the place of its mark or None. blocks: start and end of each category.
        pairs: of columns, numbers before categories. order: multiples of each number.
    """

    name: ClassVar[str] = "products"
    numbers: tuple[tuple[int, int | None], ...]
    blocks: tuple[tuple[int, int], ...]
    order: int
    pairs: tuple[tuple[int, int], ...]
    product_share: float

    @property
    def column_sizes(self) -> tuple[int, ...]:
        numbers = [2 * self.order + (missing is not None) for _, missing in self.numbers]
        return (*numbers, *(end - start for start, end in self.blocks))

    @property
    def sum_width(self) -> int:
        return sum(self.column_sizes) if self.product_share < 1 else 0

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        sizes, bound = self.column_sizes, Fraction(self.product_share) / len(self.pairs)
        products = tuple(Part(sizes[i] * sizes[j], bound, min(i, j) >= len(self.numbers)) for i, j in self.pairs)
        first = (Part(self.sum_width, 1 - Fraction(self.product_share)),) if self.sum_width else ()
        return (*first, *products)

    def paired(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        columns = []
        for place, missing in self.numbers:
            angles = x[:, [place]] * torch.arange(1, self.order + 1, dtype=x.dtype)
            number = 0.995 * cosine_sine(angles) / math.sqrt(self.order)
            mark = x[:, [place if missing is None else missing]]
            columns.append(number if missing is None else torch.cat([number * (1 - mark), mark], dim=1))
        columns += [x[:, start:end] for start, end in self.blocks]
        weight = math.sqrt((1 - self.product_share) / len(columns))
        return weight * torch.cat(columns, dim=1)[:, : self.sum_width], tuple(columns)

    def __call__(self, x: Tensor) -> Tensor:
        first, columns = self.paired(x)
        weight = math.sqrt(self.product_share / len(self.pairs))
        return torch.cat(
            [first, weight * outer_products(tuple((columns[i], columns[j]) for i, j in self.pairs))], dim=1
        )
