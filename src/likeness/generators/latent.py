"""Generators, and what those of latent noise share: they draw rows in pieces, conditioned on the class."""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from likeness.core.errors import DataError, ParamsError
from likeness.core.messages import progress
from likeness.features.base import plain

_ROWS = 10_000  # rows made at once


class Generator(nn.Module):
    """What draws encoded rows.

    Attributes:
        name: in the specification, and in the registry of generators.
        readers: functions that make an argument from its JSON form.
        is_network: whether its products may use half precision.
        num_classes: 1 for a table without a class label.
    """

    name: ClassVar[str]
    readers: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    is_network: ClassVar[bool] = False
    num_classes: int

    @abstractmethod
    def class_likelihood(self, cells: Mapping[int, int]) -> Tensor:
        """Probability in each class, shape (num_classes,), float64, of a category for each given feature column.

        Raises:
            ParamsError: the generator cannot condition on them.
        """

    @abstractmethod
    def draw(self, labels: Tensor, generator: torch.Generator, cells: Mapping[int, int] | None = None) -> Tensor:
        """Encoded rows (n, width) of classes (n,), from public randomness; cells as in :meth:`class_likelihood`."""

    def spec(self) -> dict[str, Any]:
        """Everything but the weights, as JSON: the arguments of the constructor."""
        return {"generator": self.name, **{name: plain(self.argument(name)) for name in _arguments(type(self))}}

    def argument(self, name: str) -> Any:
        """An argument of the constructor: the attribute of that name."""
        return getattr(self, name)

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        """Inverse of :meth:`spec`."""
        given = {name: spec[name] for name in _arguments(cls) if name in spec}
        return cls(**{name: cls.readers.get(name, _same)(value) for name, value in given.items()})


def _same(value: Any) -> Any:
    return value


def _arguments(kind: type[Generator]) -> list[str]:
    return list(inspect.signature(kind).parameters)


class LatentGenerator(Generator):
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

    def class_likelihood(self, cells: Mapping[int, int]) -> Tensor:
        """1 for every class, if no cell is given.

        Raises:
            ParamsError: cells are given; the network conditions on the class only.
        """
        if cells:
            raise ParamsError(
                "sample.where may name the label only: this generator takes no other column. "
                "Remove the others, or train another method."
            )
        return torch.ones(self.num_classes, dtype=torch.float64)

    @torch.no_grad()
    def draw(self, labels: Tensor, generator: torch.Generator, cells: Mapping[int, int] | None = None) -> Tensor:
        """Exact rows, shape (n, width), from public randomness; ``cells`` must be empty.

        Raises:
            ParamsError: ``cells`` are given. DataError: rows that are not finite.
        """
        self.class_likelihood(cells or {})
        rows, parts = [], torch.split(labels, _ROWS)
        with progress("sample", len(parts) if len(parts) > 1 else 0) as step:
            for done, part in enumerate(parts, start=1):
                rows.append(self._draw(part, generator))
                step(done, "")
        return torch.cat(rows)

    def _draw(self, labels: Tensor, generator: torch.Generator) -> Tensor:
        z = torch.randn(len(labels), self.latent_dim, generator=generator)
        x = self(z, labels)
        if not torch.isfinite(x).all():  # no category could be drawn from such a row
            raise DataError(
                "the generator makes rows that are not finite. Lower its train.learning_rate and train again."
            )
        return self.settle(x, generator)
