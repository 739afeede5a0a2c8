"""Cosines and sines side by side, with a gradient that computes neither again."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class _CosineSine(torch.autograd.Function):
    """``[cos a, sin a]``. Each gives the other's derivative, which takes half the time."""

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


class _MeanCosineSine(torch.autograd.Function):
    """Means by group; the gradient reads the rows once."""

    @staticmethod
    def forward(ctx: Any, angles: Tensor, counts: list[int]) -> Tensor:
        cosines, sines = angles.cos(), angles.sin()
        ctx.save_for_backward(cosines, sines)
        ctx.counts = counts
        pairs = zip(torch.split(cosines, counts), torch.split(sines, counts), strict=True)
        return torch.stack([torch.cat([group.mean(dim=0) for group in pair]) for pair in pairs])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        cosines, sines = (torch.split(part, ctx.counts) for part in ctx.saved_tensors)
        slope = torch.empty_like(ctx.saved_tensors[0])
        for part, cosine, sine, gradient in zip(
            torch.split(slope, ctx.counts), cosines, sines, gradients[0], strict=True
        ):
            of_cosine, of_sine = (gradient / max(1, len(part))).chunk(2)
            torch.mul(cosine, of_sine, out=part).addcmul_(sine, of_cosine, value=-1.0)
        return slope, None


def mean_cosine_sine(angles: Tensor, counts: Sequence[int]) -> Tensor:
    """Mean of :func:`cosine_sine` over consecutive groups of ``counts`` rows of angles (n, k): shape (groups, 2k)."""
    result: Tensor = _MeanCosineSine.apply(angles, list(counts))  # type: ignore[no-untyped-call]
    return result
