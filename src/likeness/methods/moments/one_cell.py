"""What maps share that put an image into one cell of a histogram."""

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ReleaseError
from likeness.features.frequencies import INPUT_BITS

if TYPE_CHECKING:
    from torch import Tensor


class OneCell:
    """A map of one part: the one-hot cell that ``places`` names.

    Bound: a record lies in exactly one cell, so the norm is 1; nothing is negative. Reached by every record.
    """

    cells: int

    @property
    def parts(self) -> tuple[Part, ...]:
        """One part, of one 1."""
        return (Part(self.cells, Fraction(1), nonnegative=True),)

    def places(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each record, shape (n, 1)."""
        raise NotImplementedError

    def __call__(self, x: "Tensor") -> "Tensor":
        """Dense features, shape (n, cells): for tests of the sparse path."""
        import torch

        places = torch.from_numpy(self.places(x.detach().cpu().double().numpy()))
        return torch.nn.functional.one_hot(places[:, 0], self.cells).to(x.dtype)


def check_cells(name: str, cells: int) -> None:
    """Refuse a number of cells that makes no sense.

    Raises:
        ReleaseError: naming the map.
    """
    if type(cells) is not int or cells < 1:
        raise ReleaseError(f"{name} needs a cell at least")


def rounded(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inputs on the door's grid, to which it rounds them for other maps than those of cells."""
    values: NDArray[np.float64] = np.rint(np.clip(x, 0, 1) * 2.0**INPUT_BITS) * 2.0**-INPUT_BITS
    return values
