"""A conditional generator of encoded rows: one head a column."""

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from likeness.core.typed import build
from likeness.data.encoding.layout import Layout
from likeness.methods.settings import SAMPLING
from likeness_papers.networks.latent import LatentGenerator


class TabularGenerator(LatentGenerator):
    """fc → bn → relu → fc → bn → relu → fc → one head a column, conditioned on the class (Liew et al. 2022, App. H).

    Unit and indicator columns pass a logistic sigmoid, the paper's tanh rescaled to [0, 1]; one-hot blocks a softmax.
    """

    name: ClassVar[str] = "tabular"
    readers: ClassVar = {"layout": lambda layout: build(Layout, layout, "layout")}

    def __init__(
        self,
        layout: Layout,
        latent_dim: int,
        hidden: Sequence[int],
        sampling: str = "categorical",
    ) -> None:
        """Build the network.

        Args:
            layout: columns of an encoded row and the number of classes.
            latent_dim: dimension of z ~ N(0, I).
            hidden: widths of the hidden layers.
            sampling: how a category is chosen when rows are written: ``categorical`` draws it from the softmax, and
                whether a number is missing from its indicator; ``argmax`` takes the most probable one.

        Raises:
            ValueError: another kind of sampling.
        """
        if sampling not in SAMPLING:
            raise ValueError(f"tabular: sampling must be one of {', '.join(SAMPLING)}")
        super().__init__(latent_dim, layout.num_classes)
        self.layout = layout
        self.hidden = tuple(hidden)
        self.sampling = sampling
        widths = [latent_dim + layout.num_classes, *hidden]
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU()]
        self.body = nn.Sequential(*layers, nn.Linear(widths[-1], layout.width))
        self._onehot = [(block.start, block.stop) for block in layout.blocks if block.kind == "onehot"]
        self._missing = [block.start for block in layout.blocks if block.kind == "indicator"]

    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        """Relaxed rows (n, width) in the unit cube, differentiable, from z (n, latent_dim) and classes (n,)."""
        raw = self.body(self.inputs(z, labels))
        outputs = []
        position = 0
        for start, stop in self._onehot:
            outputs += [torch.sigmoid(raw[:, position:start]), torch.softmax(raw[:, start:stop], dim=1)]
            position = stop
        outputs.append(torch.sigmoid(raw[:, position:]))
        return torch.cat(outputs, dim=1)

    def settle(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """One category a block, shape (n, width), from public randomness.

        Training matches the mean of relaxed rows. Where a feature is linear in a block, rows drawn from the softmax
        have that mean. Rows of the most probable category have another mean.
        """
        for start, stop in self._onehot:
            block = x[:, start:stop]
            if self.sampling == "categorical":
                chosen = torch.multinomial(block, 1, generator=generator).squeeze(1)
            else:
                chosen = block.argmax(dim=1)
            x[:, start:stop] = nn.functional.one_hot(chosen, stop - start).to(x)
        if self.sampling == "categorical" and self._missing:
            x[:, self._missing] = torch.bernoulli(x[:, self._missing], generator=generator)
        return x
