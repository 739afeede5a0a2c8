"""Distance between a released mean embedding and that of a generator."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from likeness.core.rng import public_seed
from likeness_papers.networks.means import class_distances, class_means, target_squares


class Critic(Protocol):
    """Weights of the coordinates, learned against the generator."""

    def weights(self) -> Tensor:
        """Non-negative weights with mean 1, shape (width,), differentiable in the critic's parameters."""
        ...

    def scatter(self, means: Tensor, counts: list[int]) -> Tensor:
        """Variance of a batch's mean features around their expectation, shape (num_classes, width)."""
        ...

    def step(self, residuals: Tensor) -> None:
        """Ascend once on squared residuals beyond chance, shape (width,)."""
        ...


@dataclass
class EmbeddingObjective:
    r"""Squared distance of joint embeddings, class by class.

    .. math:: L(\theta) = \sum_c v_c \sum_j w_j \left( \tilde S_{cj} / n - \pi_c\, m_{cj}(\theta) \right)^2

    Here S̃ is the released sum, and n the number of records, public or a noisy count. The released class weights are π,
    the generator's mean feature in class c is m_c, and the critic's weights are w (1 without a critic). ``class_scale``
    holds :math:`v_c`: 1 compares joint embeddings, whose noise has one size in every class.
    :math:`1/\max(π_c, floor)^2` compares class means, as DP-MERF does; the floor keeps the noise of small classes
    bounded.

    Attributes:
        feature: public map, applied to generated rows.
        target: S̃/n, shape (num_classes, width).
        class_weights: π, shape (num_classes,), sums to 1.
        class_scale: v, shape (num_classes,).
        critic: optional.
        coordinate_weights: w without a critic, shape (width,); None: 1.
    """

    feature: Callable[[Tensor], Tensor]
    target: Tensor
    class_weights: Tensor
    class_scale: Tensor
    critic: Critic | None = None
    coordinate_weights: Tensor | None = None
    _squares: Tensor | None = field(default=None, init=False, repr=False)  # of the target, computed once

    def to(self, device: torch.device) -> "EmbeddingObjective":
        """Move all tensors to a device, in single precision."""
        self._squares = None
        for name in ("target", "class_weights", "class_scale"):
            setattr(self, name, getattr(self, name).to(device=device, dtype=torch.float32))
        if self.coordinate_weights is not None:
            self.coordinate_weights = self.coordinate_weights.to(device=device, dtype=torch.float32)
        return self

    def loss(self, x: Tensor, counts: list[int]) -> Tensor:
        """Loss of generated rows; with a critic, also moves the critic one step up.

        Args:
            x: relaxed rows in order of class, shape (n, d).
            counts: rows of each class.
        """
        if self.critic is None and self.coordinate_weights is None:
            if self._squares is None:
                self._squares = target_squares(self.feature, self.target)
            distances = class_distances(self.feature, x, counts, self.target, self.class_weights, self._squares)
            return (self.class_scale * distances).sum()
        means = class_means(self.feature, x, counts)
        residuals = self.target - self.class_weights[:, None] * means
        squares = (self.class_scale[:, None] * residuals.square()).sum(dim=0)
        if self.coordinate_weights is not None:
            squares = self.coordinate_weights * squares
        if self.critic is None:
            return squares.sum()
        loss = (self.critic.weights().detach() * squares).sum()
        # The batch's scatter adds to the squares. Without subtracting it the critic would look where rows scatter, not
        # where they differ. (Privacy noise adds equally everywhere, which weights of mean 1 ignore.)
        chance = self.class_weights[:, None].square() * self.critic.scatter(means, counts)
        self.critic.step((squares - (self.class_scale[:, None] * chance).sum(dim=0)).detach())
        return loss


def guarded_class_scale(class_weights: Tensor, weighting: str, floor: float) -> Tensor:
    """``v_c`` of :class:`EmbeddingObjective`.

    Args:
        class_weights: π, shape (num_classes,).
        weighting: ``"joint"`` (1) or ``"per_class"`` (``1/max(π_c, floor)²``, scaled to mean 1).
        floor: smallest class weight that is divided by; public.
    """
    if weighting == "joint":
        return torch.ones_like(class_weights)
    scale = class_weights.clamp(min=floor).pow(-2)
    return scale / scale.mean()


class LatentBatches:
    """Rows that a generator makes of fresh latent noise, for an :class:`EmbeddingObjective`."""

    def __init__(
        self, objective: EmbeddingObjective, latent_dim: int, counts: list[int], seed: int, device: torch.device
    ) -> None:
        """Start the public stream of latent noise for batches of ``counts`` rows by class."""
        self._objective = objective
        self._counts = counts
        self._labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts)).to(device)
        self._shape = (sum(counts), latent_dim)
        self._device = device
        self._draws = torch.Generator().manual_seed(public_seed(seed, "train.latent"))  # every device has these numbers

    def loss(self, generator: nn.Module) -> Tensor:
        """Loss of one batch."""
        z = torch.randn(self._shape, generator=self._draws).to(self._device)
        return self._objective.loss(generator(z, self._labels), self._counts)


def rows_per_class(class_weights: Tensor, batch_size: int) -> list[int]:
    """Rows of each class in a batch, by weight. Each class has at least a quarter of an equal share."""
    least = max(2, batch_size // (4 * len(class_weights)))
    return [max(least, round(float(weight) * batch_size)) for weight in class_weights]
