"""The bound of a feature vector, in the words that feature maps, sensitivities and the door share."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Part:
    """Consecutive coordinates of a feature vector with a declared norm bound, which the door enforces.

    Attributes:
        width: number of coordinates, at least 1.
        norm_bound_squared: square of the bound on the Euclidean norm, exact as a fraction.
        nonnegative: whether every coordinate is at least 0.
    """

    width: int
    norm_bound_squared: Fraction
    nonnegative: bool = False

    def lattice_bound_squared(self, lattice_bits: int) -> int:
        """Largest squared norm of an integer vector that the door lets pass, ``floor(B² · 4^bits)``."""
        return int(self.norm_bound_squared * 4**lattice_bits)  # floor: the value is positive

    @property
    def replacement_factor(self) -> int:
        """The squared distance of two vectors in this part is at most this factor times the squared bound.

        Signed: ``‖a − b‖ ≤ 2B``, factor 4. Non-negative: ``‖a − b‖² = ‖a‖² + ‖b‖² − 2⟨a, b⟩ ≤ 2B²``, factor 2.
        Non-negative of width 1: both lie in ``[0, B]``, factor 1.
        """
        if not self.nonnegative:
            return 4
        return 1 if self.width == 1 else 2
