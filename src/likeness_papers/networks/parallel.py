r"""One training run in several processes, started by ``torchrun``: each makes its share of every batch.

Proof that they take the step of one process with the whole batch. Every process computes one loss L, because mean
features and the statistics of batch normalization are summed over all of them (:func:`summed`). The backward pass of
such a sum sums gradients over processes. So backward in process r gives the derivative of :math:`\sum_s L_s`, W times
L, in the weights of r alone, all other copies held fixed. The sum over r is the derivative in the common weights, W
times that of L, and :func:`average_gradients` divides by W. (An average of the gradients of W losses of small batches
would be another loss: the square of a mean is not the mean of squares.) Gradients are averaged after the backward pass
and not within it, as ``DistributedDataParallel`` does: its sums would run between those above.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from likeness.core.errors import ParamsError


def launched() -> bool:
    """Whether ``torchrun`` started this process, with others."""
    return dist.is_available() and dist.is_torchelastic_launched() and int(os.environ["WORLD_SIZE"]) > 1


def is_first() -> bool:
    """Whether this process reports and writes."""
    return not launched() or os.environ["RANK"] == "0"


@contextmanager
def together(device: torch.device) -> Iterator[torch.device]:
    """Join the other processes while the context lasts, and yield this process's device; alone, nothing happens."""
    if not launched():
        yield device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield device
    finally:
        dist.destroy_process_group()


def size() -> int:
    """How many processes have joined; 1 alone."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = values.contiguous().clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        dist.all_reduce(total)
        return total


def summed(values: Tensor) -> Tensor:
    """The sum over all processes, differentiable in the values of each."""
    total: Tensor = _Sum.apply(values)  # type: ignore[no-untyped-call]
    return total


def average_gradients(module: nn.Module) -> None:
    """Give every process the mean gradient of all."""
    gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    for gradient, part in zip(gradients, torch.split(flat, [gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient) / size())


def share_of_rows(counts: list[int]) -> tuple[Tensor, list[int]]:
    """Places and number by class of the rows that this process makes, of a batch with ``counts`` rows by class.

    Raises:
        ParamsError: a class has fewer rows than there are processes.
    """
    if min(counts) < size():
        raise ParamsError(
            f"train.batch_size of the method is too small for {size()} processes: a class has {min(counts)} rows in a "
            "batch. Raise it, or start fewer processes."
        )
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    within = torch.cat([torch.arange(count) for count in counts])
    places = torch.nonzero(within % size() == dist.get_rank()).flatten()
    return places, torch.bincount(labels[places], minlength=len(counts)).tolist()


class WholeBatchNorm(_BatchNorm):
    """Batch normalization of vectors or images by the statistics of all processes' rows. That of PyTorch needs GPUs."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalize rows, shape (n, channels), or images, shape (n, channels, height, width)."""
        if not self.training:
            return super().forward(x)
        x = x if x.dtype == torch.float64 else x.float()  # products may be in bfloat16: sums and statistics are not
        others = [axis for axis in range(x.dim()) if axis != 1]
        count = summed(torch.tensor(float(x.numel() // x.shape[1]), device=x.device))
        mean = summed(x.sum(dim=others)) / count
        centered = x - _along_channels(mean, x)
        variance = summed(centered.square().sum(dim=others)) / count
        assert self.running_mean is not None and self.running_var is not None and self.momentum is not None
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * count / (count - 1), self.momentum)
            if self.num_batches_tracked is not None:
                self.num_batches_tracked += 1
        scale = (variance + self.eps).rsqrt() * self.weight
        return centered * _along_channels(scale, x) + _along_channels(self.bias, x)

    def _check_input_dim(self, input: Tensor) -> None:
        """Vectors and images are alike: the channels are the second axis."""


def _along_channels(values: Tensor, x: Tensor) -> Tensor:
    """A view of one value a channel that multiplies rows or images x."""
    return values.view(1, -1, *[1] * (x.dim() - 2))


def join(module: nn.Module) -> None:
    """Start from the first process's weights, and normalize over all rows. Saved files have the usual form."""
    for values in module.state_dict().values():
        dist.broadcast(values, 0)
    for each in module.modules():
        if isinstance(each, _BatchNorm):
            each.__class__ = WholeBatchNorm
