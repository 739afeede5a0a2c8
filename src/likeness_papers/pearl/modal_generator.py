"""A generator of rows whose multi-modal numbers are split into a mode and a place within it."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from likeness.core.typed import build
from likeness.data.encoding.layout import Layout
from likeness_papers.networks.tabular import TabularGenerator
from likeness_papers.pearl.mode import Modes, modes_of


class ModalGenerator(TabularGenerator):
    """The tabular network on split rows; drawn rows are joined and have the columns of the original layout.

    Training sees split rows, relaxed: a softmax over the modes, a sigmoid for the place within (Xu et al. 2019).
    """

    name: ClassVar[str] = "modal"
    readers: ClassVar = {
        "layout": lambda layout: build(Layout, layout, "layout"),
        "columns": lambda columns: modes_of(tuple(columns), "modal"),
    }

    def __init__(
        self,
        layout: Layout,
        columns: Sequence[Modes],
        latent_dim: int,
        hidden: Sequence[int],
        sampling: str = "categorical",
    ) -> None:
        """Build the network from the layout of rows that are not split, and the modes of the numbers to split.

        For the others see :class:`TabularGenerator`.
        """
        split = layout.with_modes({c.place: c.size for c in columns})
        super().__init__(split, latent_dim, hidden, sampling)
        self.original = layout
        self.columns = tuple(columns)

    def settle(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """One category and one mode a block, then the original columns, shape (n, width of the original layout)."""
        return self.join(super().settle(x, generator))

    def join(self, x: Tensor) -> Tensor:
        """Encoded rows (n, d) from split rows (n, d + ΣK): the inverse of ``Modal.split``, up to its clipping."""
        pieces, position, added = [], 0, 0
        for column in self.columns:
            start = column.place + added
            stop = start + column.size
            numbers = column.values(x[:, start:stop].argmax(dim=1), x[:, stop])
            pieces += [x[:, position:start], numbers[:, None]]
            position, added = stop + 1, added + column.size
        return torch.cat([*pieces, x[:, position:]], dim=1)

    def argument(self, name: str) -> Any:
        """The layout of the specification is that of encoded rows."""
        return self.original if name == "layout" else super().argument(name)
