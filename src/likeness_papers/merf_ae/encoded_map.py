"""Random Fourier features of an image's code by a public encoder."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.frequencies import INPUT_BITS, FrequencyMap

if TYPE_CHECKING:
    from torch import Tensor

    from likeness_papers.merf_ae.encoder import Encoder


@dataclass(frozen=True)
class EncodedFourier(FrequencyMap):
    r"""Paired cosines and sines at public frequencies of the code e(x) that a fixed public encoder gives an image.

    .. math:: \phi(x) = m^{-1/2} [\cos(W e(x)),\; \sin(W e(x))], \qquad W_{jk} \sim N(0, \ell^{-2})

    Norm: exactly 1, since each of the m frequencies adds (cos² + sin²)/m, for any code; signed, so two lie within 2 of
    each other.

    This bounds what one record adds to the sum ONLY because e is one function for every table: it is drawn from a seed.
    If e were trained on the rows, replacing one of them would change e and so every other row's feature; the preprint's
    2/n does not hold.

    Codes are bounded by a public power of two, divided by it, and rounded to the grid of the door's inputs. So sums of
    their products are exact in float64 (:func:`likeness.features.frequencies.draw_frequencies`).
    Sources: Harder, Adamczewski and Park (2020), section 3.3; Rahimi and Recht (2007).

    Attributes:
        num_frequencies: m.
        lengthscale: ℓ, a distance between codes.
        seed: public, of the frequencies.
        shape: height and width, and 3 in color.
        code: dimension of the code.
        reach: no coordinate of a code exceeds ``2**reach``.
        channels, encoder_seed: of the encoder.
        encoder_digest: of the encoder's weights; empty to compute it.
        digest: of the frequencies; empty to compute it.

    Raises:
        ReleaseError: the codes of the encoder reach farther, or this version of numpy draws other numbers.
    """

    name: ClassVar[str] = "encoded_fourier"
    num_frequencies: int
    lengthscale: float
    seed: int
    shape: tuple[int, ...]
    code: int
    reach: int
    channels: int
    encoder_seed: int
    encoder_digest: str = ""
    digest: str = ""

    def __post_init__(self) -> None:
        """Draw encoder and frequencies once, and check that they are those of the release."""
        from likeness_papers.merf_ae.encoder import Encoder

        encoder = Encoder.draw(self.shape, self.channels, self.code, self.encoder_seed)
        if self.encoder_digest not in ("", encoder.digest):
            raise ReleaseError(
                f"{self.name}: the encoder is not that of the release. Install the numpy version of the release, see "
                "constraints.txt."
            )
        if encoder.reach > self.reach:
            raise ReleaseError(f"{self.name}: codes of the encoder reach farther")
        object.__setattr__(self, "encoder_digest", encoder.digest)
        object.__setattr__(self, "_encoder", encoder)
        self._draw(self.num_frequencies, self.code, 2.0**self.reach / self.lengthscale)

    @property
    def encoder(self) -> "Encoder":
        """The network e."""
        return self._encoder  # type: ignore[attr-defined, no-any-return]

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        """One signed part of norm 1, by the identity in the class docstring."""
        return (Part(2 * self.num_frequencies, Fraction(1)),)

    def codes(self, x: "Tensor") -> "Tensor":
        """Codes of images (n, values), divided by ``2**reach`` and rounded to the door's grid, (n, code)."""
        from likeness_papers.networks.numerics import round_to_grid

        return round_to_grid(self.encoder(x) * 2.0**-self.reach, INPUT_BITS)

    def __call__(self, x: "Tensor") -> "Tensor":
        """Map images (n, values) to features (n, 2m)."""
        from likeness_papers.networks.trigonometric import cosine_sine

        return cosine_sine(self.angles(self.codes(x))) / math.sqrt(self.num_frequencies)
