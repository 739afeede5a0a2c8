"""What networks of latent noise share: they draw rows in pieces, conditioned on the class."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likeness.core.errors import DataError
from likeness.core.messages import progress
from likeness.data.encoding.layout import NONE, Conditions
from likeness.generators.base import Arrays, Generator

_ROWS = 10_000  # rows made at once


class LatentGenerator(Generator, nn.Module):
    """A network from z ~ N(0, I), of dimension ``latent_dim``, and a class to a relaxed encoded row."""

    def __init__(self, latent_dim: int, num_classes: int) -> None:
        """Remember the sizes of the input."""
        super().__init__()
        self.latent_dim = latent_dim
        self.num_classes = num_classes

    def inputs(self, z: Tensor, labels: Tensor) -> Tensor:
        """Latent numbers beside the one-hot class, shape (n, latent_dim + num_classes)."""
        return torch.cat([z, nn.functional.one_hot(labels, self.num_classes).to(z)], dim=1)

    def settle(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Exact rows from relaxed ones, shape (n, width); nothing to do where no column is categorical."""
        return x

    def arrays(self) -> Arrays:
        """Weights and statistics of normalization."""
        return {name: value.numpy() for name, value in self.state_dict().items()}

    def load(self, arrays: Arrays) -> None:
        """Take over weights and statistics, for drawing."""
        self.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
        self.eval()

    @classmethod
    def shapes(cls, spec: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """Shape of each array; the network is built without memory for them (PyTorch's device ``meta``)."""
        with torch.device("meta"):
            return {name: tuple(value.shape) for name, value in cls.from_spec(spec).state_dict().items()}

    @torch.no_grad()
    def draw(
        self, labels: NDArray[np.int64], random: np.random.Generator, conditions: Conditions = NONE
    ) -> NDArray[np.float64]:
        """Exact rows, shape (n, width), from public randomness; there must be no condition.

        Raises:
            ParamsError: there is a condition. DataError: rows that are not finite.
        """
        self.class_likelihood(conditions)
        generator = torch.Generator().manual_seed(int(random.integers(2**63 - 1)))
        rows, parts = [], torch.split(torch.from_numpy(labels), _ROWS)
        with progress("sample", len(parts) if len(parts) > 1 else 0) as step:
            for done, part in enumerate(parts, start=1):
                rows.append(self._draw(part, generator).double().numpy())
                step(done, "")
        return np.concatenate(rows)

    def _draw(self, labels: Tensor, generator: torch.Generator) -> Tensor:
        z = torch.randn(len(labels), self.latent_dim, generator=generator)
        x = self(z, labels)
        if not torch.isfinite(x).all():  # no category could be drawn from such a row
            raise DataError(
                "the generator makes rows that are not finite. Lower its train.learning_rate and train again."
            )
        return self.settle(x, generator)
