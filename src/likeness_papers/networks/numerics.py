"""Arithmetic on grids: float64 sums whose bits do not depend on the order of additions.

Why this matters to privacy: :func:`likeness.features.frequencies.draw_frequencies`.
"""

from typing import Any

import torch
from torch import Tensor

from likeness.features.frequencies import FLOAT_BITS, fitting_bits


class _Round(torch.autograd.Function):
    """Round to multiples of ``2**-bits``; for gradients the identity, which it is up to half a step."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, bits: int) -> Tensor:
        return (values * 2.0**bits).round_().mul_(2.0**-bits)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


def round_to_grid(values: Tensor, bits: int) -> Tensor:
    """Values in float64, the door's type, rounded to multiples of ``2**-bits``; other types stay as they are."""
    if values.dtype != torch.float64:
        return values
    rounded: Tensor = _Round.apply(values, bits)  # type: ignore[no-untyped-call]
    return rounded


def sum_of_squares(values: Tensor, bounds: Tensor) -> Tensor:
    """Squared norms (n, 1) of rows (n, k); public ``bounds`` (k,) are at least ``|values|`` of each coordinate."""
    if values.dtype != torch.float64:
        dots: Tensor = torch.linalg.vecdot(values, values)
        return dots[..., None]
    bits = fitting_bits(float(bounds.square().sum()), FLOAT_BITS)
    return round_to_grid(values.square(), bits).sum(dim=-1, keepdim=True)
