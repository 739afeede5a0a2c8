"""Sensitivity of lattice sums: hand-made values, and a search for a counterexample."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeness.core.bounds import Part
from likeness.privacy.adjacency import Stability, lattice_sensitivity_squared

SIGNED, COUNT, ONEHOT = Part(4, Fraction(1)), Part(1, Fraction(1), True), Part(3, Fraction(2, 3), True)


@pytest.mark.parametrize(
    ("parts", "change", "groups", "expected"),
    [
        ([SIGNED], Stability.ONE_APPEARS, 1, 4**8),
        ([SIGNED], Stability.ONE_REPLACED, 1, 4 * 4**8),  # 2B
        ([SIGNED], Stability.ONE_REPLACED, 2, 4 * 4**8),  # max(2B, √2·B)
        ([COUNT], Stability.ONE_REPLACED, 1, 4**8),  # a number in [0, 1]
        ([COUNT], Stability.ONE_REPLACED, 2, 2 * 4**8),  # counts of two classes: √2
        ([COUNT, COUNT], Stability.ONE_APPEARS_OR_REPLACED, 1, 2 * 4**8),
        ([ONEHOT], Stability.ONE_REPLACED, 1, 2 * (2 * 4**8 // 3)),  # √2·B of non-negative features
        ([SIGNED, ONEHOT], Stability.ONE_REPLACED, 2, 4 * 4**8 + 2 * (2 * 4**8 // 3)),
    ],
)
def test_values(parts: list[Part], change: Stability, groups: int, expected: int) -> None:
    assert lattice_sensitivity_squared(parts, 8, change, groups) == expected


@given(st.data())
def test_no_two_admissible_terms_are_farther_apart(data: st.DataObject) -> None:
    """Random integer terms that obey the bounds never move the sum by more than the sensitivity."""
    parts = data.draw(st.lists(st.sampled_from([SIGNED, COUNT, ONEHOT]), min_size=1, max_size=3))
    bits, groups = 4, data.draw(st.integers(1, 3))

    def term() -> np.ndarray:
        coordinates: list[int] = []
        for part in parts:
            low = 0 if part.nonnegative else -(2**bits)
            block = data.draw(st.lists(st.integers(low, 2**bits), min_size=part.width, max_size=part.width))
            while sum(value * value for value in block) > part.lattice_bound_squared(bits):
                block = [int(value * 0.9) for value in block]
            coordinates += block
        table = np.zeros((groups, len(coordinates)), dtype=np.int64)
        table[data.draw(st.integers(0, groups - 1))] = coordinates
        return table

    first, second = term(), term()
    assert (first**2).sum() <= lattice_sensitivity_squared(parts, bits, Stability.ONE_APPEARS, groups)
    assert ((first - second) ** 2).sum() <= lattice_sensitivity_squared(parts, bits, Stability.ONE_REPLACED, groups)
