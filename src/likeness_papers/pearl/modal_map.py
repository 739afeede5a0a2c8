"""Another map, applied to rows whose multi-modal numbers are split into a mode and a place within it."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.core.extras import torch
from likeness.features.base import FeatureMap, Map
from likeness.features.frequencies import INPUT_BITS
from likeness_papers.pearl.mode import Modes, modes_of

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Modal(Map):
    """``φ(x) = inner(m(x))`` with mode-specific normalization m, row by row (Xu et al. 2019).

    m puts a one-hot block before each of the chosen numbers, 1 at the most probable mode. It replaces the number by its
    place in that mode's window; every other coordinate stays. m depends on one record and on released parameters,
    so each bound of ``inner`` holds for φ. Its values lie in the unit cube, rounded like the door's inputs: matrix
    products in ``inner`` stay exact (:func:`likeness.features.frequencies.draw_frequencies`).

    It serves the door, and its rounding has no gradient. The network makes split rows and is trained on ``inner``.

    Attributes:
        dimension: d, coordinates of one encoded record.
        columns: modes of the chosen numbers, in order.
        inner: the map of the split rows; a map of pairs sees both records of a pair split.
    """

    name: ClassVar[str] = "modal"
    dimension: int
    columns: tuple[Modes, ...]
    inner: FeatureMap

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", modes_of(self.columns, "modal"))
        if self.columns[-1].place + int(self.columns[-1].missing) >= self.dimension:
            raise ReleaseError(f"modal: column {self.columns[-1].place} does not lie within {self.dimension}")

    @cached_property
    def bounded_parts(self) -> tuple[Part, ...]:
        """Those of the inner map: a map of a map is bounded as the outer one is."""
        return tuple(self.inner.bounded_parts)

    def split(self, x: "Tensor") -> "Tensor":
        """m: encoded rows (n, d) to split rows (n, d + ΣK)."""
        pieces, position = [], 0
        for column in self.columns:
            values = x[:, column.place]
            modes = column.log_joint(values).argmax(dim=1)
            positions = column.windows(values).gather(1, modes[:, None])
            pieces += [
                x[:, position : column.place],
                torch.nn.functional.one_hot(modes, column.size).to(x),
                torch.round(positions * 2.0**INPUT_BITS) * 2.0**-INPUT_BITS,
            ]
            position = column.place + 1
        return torch.cat([*pieces, x[:, position:]], dim=1)

    def __call__(self, x: "Tensor") -> "Tensor":
        """Map records (n, d), or pairs (n, 2d), to the features of the inner map."""
        records = x.shape[1] // self.dimension
        rows = self.split(x.reshape(len(x) * records, self.dimension))
        features: Tensor = self.inner(rows.reshape(len(x), records * rows.shape[1]))
        return features
