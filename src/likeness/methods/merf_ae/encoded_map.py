"""Random Fourier features of an image's code by a public encoder."""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.base import Map
from likeness.features.frequencies import INPUT_BITS, FrequencyMap

if TYPE_CHECKING:
    from torch import Tensor

    from likeness.methods.merf_ae.encoder import Encoder

RANDOM = "random"
ENCODER = "encoder.safetensors"
"""Name of the encoder's file in a bundle."""


class EncodedMap(Map):
    """A map of the code that a fixed public encoder e gives an image.

    A bound on the feature of a code bounds what one record adds to the sum ONLY because e is one function for every
    table: it is drawn from a seed, or read from a file that no private row went into. If e were trained on the rows,
    replacing one of them would change e and so every other row's feature; the preprint's 2/n does not hold.

    Codes are bounded by a public power of two, divided by it, and rounded to the grid of the door's inputs. So sums of
    their products are exact in float64 (:func:`likeness.features.frequencies.draw_frequencies`).

    Attributes:
        shape: height and width, and 3 in color.
        code: dimension of the code.
        reach: no coordinate of a code exceeds ``2**reach``.
        encoder: ``random``, or the SHA-256 of the file.
        channels, encoder_seed: of a random encoder, else 0.
        encoder_digest: of a random encoder's weights; empty to compute it.
        network: e; None draws a random one. Without the encoder of a file the map has only its bound, which is enough
            for a verifier.
    """

    shape: tuple[int, ...]
    code: int
    reach: int
    encoder: str
    channels: int
    encoder_seed: int
    encoder_digest: str
    network: "Encoder | None"

    def _check_encoder(self) -> None:
        """Draw a random encoder, and refuse another one than the named.

        Raises:
            ReleaseError: the encoder is not the named one, or this version of numpy draws other numbers.
        """
        network = self.network
        if network is None and self.encoder == RANDOM:
            from likeness.methods.merf_ae.encoder import Encoder

            network = Encoder.random(self.shape, self.channels, self.code, self.encoder_seed)
            object.__setattr__(self, "network", network)
        if network is not None:
            named = self.encoder_digest if self.encoder == RANDOM else self.encoder
            if named and network.sha256 != named:
                raise ReleaseError(
                    f"{self.name}: the encoder is not that of the release. A file must be the same to the byte. "
                    "A random one needs the numpy version of the release, see constraints.txt."
                )
            if (network.shape, network.width) != (self.shape, self.code) or network.reach > self.reach:
                raise ReleaseError(f"{self.name}: the encoder is for other images, or its codes reach farther")
            if self.encoder == RANDOM:
                object.__setattr__(self, "encoder_digest", network.sha256)

    def codes(self, x: "Tensor") -> "Tensor":
        """Codes of images (n, values), divided by ``2**reach`` and rounded to the door's grid, (n, code).

        Raises:
            ReleaseError: the encoder's file is not here.
        """
        from likeness.features.numerics import on_grid

        if self.network is None:
            raise ReleaseError(
                f"{self.name}: the encoder with SHA-256 {self.encoder} is not here, so no image can be encoded"
            )
        return on_grid(self.network(x) * 2.0**-self.reach, INPUT_BITS)

    @property
    def files(self) -> dict[str, str]:
        """The encoder, where it is a file."""
        return {} if self.encoder == RANDOM else {ENCODER: self.encoder}

    def with_files(self, folder: Path) -> Self:
        """The map with the encoder of a folder."""
        from likeness.methods.merf_ae.encoder import Encoder

        return replace(self, network=Encoder.load(folder / ENCODER)) if self.files else self  # type: ignore[type-var]


@dataclass(frozen=True)
class EncodedFourier(EncodedMap, FrequencyMap):
    r"""Paired cosines and sines at public frequencies of a code e(x).

    .. math:: \phi(x) = m^{-1/2} [\cos(W e(x)),\; \sin(W e(x))], \qquad W_{jk} \sim N(0, \ell^{-2})

    Norm: exactly 1, since each of the m frequencies adds (cos² + sin²)/m, for any code; signed, so two lie within 2 of
    each other. Why the encoder must be public: :class:`EncodedMap`.
    Sources: Harder, Adamczewski and Park (2020), section 3.3; Rahimi and Recht (2007).

    Attributes:
        num_frequencies: m.
        lengthscale: ℓ, a distance between codes.
        seed: public, of the frequencies.
        digest: of the frequencies; empty to compute it.

    The others are those of :class:`EncodedMap`.

    Raises:
        ReleaseError: the encoder is not the named one, or this version of numpy draws other numbers.
    """

    name: ClassVar[str] = "encoded_fourier"
    num_frequencies: int
    lengthscale: float
    seed: int
    shape: tuple[int, ...]
    code: int
    reach: int
    encoder: str
    channels: int = 0
    encoder_seed: int = 0
    encoder_digest: str = ""
    digest: str = ""
    network: "Encoder | None" = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Draw the frequencies once, and check that the encoder is the named one."""
        self._check_encoder()
        self._draw(self.num_frequencies, self.code, 2.0**self.reach / self.lengthscale)

    @property
    def parts(self) -> tuple[Part, ...]:
        """One signed part of norm 1, by the identity in the class docstring."""
        return (Part(2 * self.num_frequencies, Fraction(1)),)

    def __call__(self, x: "Tensor") -> "Tensor":
        """Map images (n, values) to features (n, 2m)."""
        from likeness.features.trigonometric import cosine_sine

        return cosine_sine(self.angles(self.codes(x))) / math.sqrt(self.num_frequencies)
