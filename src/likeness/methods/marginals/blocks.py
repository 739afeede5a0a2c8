"""Released counts of pairs and of tables of columns by class."""

import numpy as np
from numpy.typing import NDArray

Block = tuple[int, int, NDArray[np.float64]]
"""Places i and j of two columns, and counts of shape (num_classes, cells of i, cells of j)."""
Table = tuple[tuple[int, ...], NDArray[np.float64]]
"""Places of columns, and counts of shape (num_classes, cells of each of them)."""
