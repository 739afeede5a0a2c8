"""Cosines and sines side by side, with a gradient that computes neither again."""

from typing import Any

import torch
from torch import Tensor


class _CosineSine(torch.autograd.Function):
    """``[cos a, sin a]``. Each is the derivative of the other and is already there: twice as fast."""

    @staticmethod
    def forward(ctx: Any, angles: Tensor) -> Tensor:
        count = angles.shape[1]
        result = angles.new_empty(len(angles), 2 * count)
        torch.cos(angles, out=result[:, :count])
        torch.sin(angles, out=result[:, count:])
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (result,) = ctx.saved_tensors
        count = result.shape[1] // 2
        gradient = gradients[0]
        return torch.addcmul(
            gradient[:, count:] * result[:, :count], gradient[:, :count], result[:, count:], value=-1.0
        )


def cosine_sine(angles: Tensor) -> Tensor:
    """Map angles (n, k) to (n, 2k): all cosines, then all sines."""
    result: Tensor = _CosineSine.apply(angles)  # type: ignore[no-untyped-call]
    return result
