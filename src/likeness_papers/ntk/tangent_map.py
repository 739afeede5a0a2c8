"""Normalized gradient of a random network with respect to its weights: an empirical neural tangent kernel."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.core.extras import torch
from likeness.features.base import Map

if TYPE_CHECKING:
    from torch import Tensor

    from likeness_papers.networks.random_network import RandomNetwork

ARCHITECTURES = {"fc_1l": 1, "fc_2l": 2, "cnn_2l": 2}
"""Names and number of widths. ``cnn_2l``: a convolution with that many channels, then a dense layer."""

_MOST = 10**9  # coordinates: the whole network is drawn, also by a verifier of a stranger's file
_LEAST = 1e-12  # smallest squared norm that is divided by: a row without an active unit has the feature 0


def block_sizes(architecture: str, widths: tuple[int, ...], shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Widths of both factors of each block of the gradient, convolution, dense layers, output, without the network."""
    from likeness_papers.networks.random_network import window

    seen, blocks = math.prod(shape), []
    if architecture.startswith("cnn"):
        positions = math.prod(shape[:2])
        blocks, seen, widths = [(1, widths[0] * (window(shape) + 1))], positions * widths[0], widths[1:]
    for width in widths:
        blocks.append((width, seen + 1))
        seen = width
    return (*blocks, (1, seen))


@dataclass(frozen=True)
class NetworkTangent(Map):
    r"""Gradient of a public random network g at initialization in all its weights, scaled to norm 1.

    .. math:: \phi(x) = \nabla_w g_w(x) / \|\nabla_w g_w(x)\|,
              \qquad g_w(x) = a^\top h_k,\; h_l = relu(W_l [h_{l-1}, 1])

    The gradient in a dense layer is an outer product, of the signal that comes back to it and of its inputs:
    :math:`\partial g / \partial W_l = \delta_l [h_{l-1}, 1]^\top`, with :math:`\delta_k = a \odot 1[h_k > 0]` and
    :math:`\delta_l = (W_{l+1}^\top \delta_{l+1}) \odot 1[h_l > 0]`; that in a is :math:`h_k`. So its squared norm is
    :math:`\sum_l \|\delta_l\|^2 \|[h_{l-1}, 1]\|^2 + \|h_k\|^2`, and neither norms nor sums over records need the
    vector. A convolution adds the sum of such products over its places, which is small. The ReLU has slope 0 at 0.

    Bound: every vector is divided by its norm, so the norm is 1 (or 0, where no unit is active). Signed, so two lie
    within 2 of each other. A network with several summed outputs has this kernel too, in distribution: the gradients in
    the rows of the output layer are copies of each other. Sources: Yang, Adamczewski, Sutherland, Li and Park (2024),
    DP-NTK; Jacot, Gabriel and Hongler (2018).

    All sums are exact in float64 for inputs that the door has rounded
    (:mod:`likeness_papers.networks.random_network`), so a row's features do not depend on its place. The outputs of a
    layer are rounded for that, by less than 1e-8.

    Attributes:
        architecture: one of ``ARCHITECTURES``.
        widths: of its layers, the convolution's channels first.
        shape: of the input: (d,), or (height, width) of an image, whose pixels come row by row, and 3 in color.
        seed: public.
        digest: of the weights; empty to compute it.

    Raises:
        ReleaseError: no such network, or this version of numpy draws other weights.
    """

    name: ClassVar[str] = "tangent"
    architecture: str
    widths: tuple[int, ...]
    shape: tuple[int, ...]
    seed: int
    digest: str = ""

    def __post_init__(self) -> None:
        """Draw the network once."""
        if self.architecture not in ARCHITECTURES or len(self.widths) != ARCHITECTURES[self.architecture]:
            networks = ", ".join(f"{name} with {count}" for name, count in ARCHITECTURES.items())
            named = f"'{self.architecture}' with widths {self.widths}"
            raise ReleaseError(f"tangent: there is no network {named}. Networks: {networks}")
        if min((*self.widths, *self.shape), default=0) < 1 or not (len(self.shape) in (1, 2) or self.shape[2:] == (3,)):
            raise ReleaseError(
                "tangent: widths and sizes must be positive, and the shape (d,), (height, width) or (height, width, 3)"
            )
        if sum(left * right for left, right in self.sizes) > _MOST:
            raise ReleaseError(f"tangent: widths {self.widths} make more than {_MOST:,} coordinates. Lower them.")
        from likeness_papers.networks.random_network import RandomNetwork

        channels, widths = (self.widths[0], self.widths[1:]) if self._convolves else (None, self.widths)
        network = RandomNetwork.draw(channels, widths, self.shape, self.seed, self.name)
        digest = network.digest()
        if self.digest and digest != self.digest:
            raise ReleaseError(
                "tangent: the public weights drawn here are not those of the release. "
                "Install the numpy version of the release, see constraints.txt."
            )
        object.__setattr__(self, "digest", digest)
        object.__setattr__(self, "_network", network)

    @property
    def network(self) -> "RandomNetwork":
        """g, public."""
        network: RandomNetwork = self._network  # type: ignore[attr-defined]
        return network

    @property
    def _convolves(self) -> bool:
        return self.architecture.startswith("cnn")

    @cached_property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Widths of both factors of each block: convolution, dense layers, output."""
        return block_sizes(self.architecture, self.widths, self.shape)

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        """One signed part of norm 1, by the normalization in the class docstring."""
        return (Part(sum(left * right for left, right in self.sizes), Fraction(1)),)

    def factors(self, x: "Tensor") -> "tuple[tuple[Tensor, Tensor], ...]":
        """Factors of each block's outer product, shapes (n, a) and (n, b), from records (n, d).

        Left factors have norm 1 and no gradient in x. The squared norms of the right ones sum to 1.
        """
        from likeness_papers.networks.numerics import sum_of_squares

        network = self.network
        gradients = network.gradients(x)
        layers = list(zip(network.dense, gradients.signals, network.signal_bounds, gradients.seen, strict=True))
        strengths = [sum_of_squares(signal, bounds).clamp(min=_LEAST) for _, signal, bounds, _ in layers]
        total = sum_of_squares(gradients.last, network.dense[-1].output_bounds)
        for (layer, _, _, values), strength in zip(layers, strengths, strict=True):
            total = total + strength * sum_of_squares(values, layer.input_bounds)
        if gradients.kernel is not None:
            total = total + sum_of_squares(gradients.kernel, network.kernel_bounds)
        inverse = 1 / total.clamp(min=_LEAST).sqrt()
        unit = torch.ones_like(inverse)
        blocks = [] if gradients.kernel is None else [(unit, gradients.kernel * inverse)]
        for (_, signal, _, values), strength in zip(layers, strengths, strict=True):
            blocks.append((signal * (1 / strength.sqrt()), values * (strength.sqrt() * inverse)))
        return (*blocks, (unit, gradients.last * inverse))

    def products(self, x: "Tensor") -> "tuple[tuple[Tensor, Tensor], ...]":
        """Factors of each block of the gradient, which :meth:`factors` divides by its norm."""
        gradients = self.network.gradients(x)
        unit = gradients.last.new_ones(len(x), 1)
        blocks = [] if gradients.kernel is None else [(unit, gradients.kernel)]
        return (*blocks, *zip(gradients.signals, gradients.seen, strict=True), (unit, gradients.last))

    def __call__(self, x: "Tensor") -> "Tensor":
        """Map records (n, d) to features (n, width): block by block, each row by row of the layer's weights."""
        from likeness_papers.networks.means import outer_features

        return outer_features(self.factors(x))
