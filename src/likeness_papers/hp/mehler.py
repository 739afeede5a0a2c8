"""Hermite functions that expand the Gaussian kernel (Mehler), by a stable recursion with a fast gradient."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def rho_of(lengthscale: float) -> float:
    r"""ρ in (0, 1) with :math:`1 / (2 \ell^2) = \rho / (1 - \rho^2)`: the root :math:`\sqrt{\ell^4 + 1} - \ell^2`.

    Written so that nothing cancels for long length scales.
    """
    square = lengthscale * lengthscale
    return 1 / (math.hypot(square, 1) + square)


def lengthscale_of(rho: float) -> float:
    """Inverse of :func:`rho_of`."""
    return math.sqrt((1 - rho) * (1 + rho) / (2 * rho))


class _HermiteFunctions(torch.autograd.Function):
    """The recursion forward; backward by the derivative rule, from the values of the forward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rho: Tensor, order: int, steps: Tensor) -> Tensor:
        result = x.new_empty(len(x), order + 1, x.shape[1])
        first = ((1 - rho) * (1 + rho)) ** 0.25
        result[:, 0] = first * torch.exp(-rho / (1 + rho) * (x * x))
        # Products and differences only, each rounded alone. An instruction that rounds once for both would change the
        # last bits of rows in the remainder of a vector loop, which depends on the block's length.
        if order > 0:
            result[:, 1] = (2 * rho).sqrt() * x * result[:, 0]
        for k in range(1, order):
            result[:, k + 1] = x * steps[0, k] * result[:, k] - steps[1, k] * result[:, k - 1]
        ctx.save_for_backward(x, rho, result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        x, rho, result = ctx.saved_tensors
        gradient = gradients[0]
        slope = (-2 * rho / (1 + rho) * x) * (gradient * result).sum(dim=1)
        if result.shape[1] > 1:
            orders = torch.arange(1, result.shape[1], dtype=x.dtype, device=x.device)
            below = (gradient[:, 1:] * result[:, :-1] * orders.sqrt()[:, None]).sum(dim=1)
            slope = slope + (2 * rho).sqrt() * below
        return slope, None, None, None


def recursion_steps(rho: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    r"""Factors of the recursion: :math:`\sqrt{2\rho/(k+1)}` and :math:`\rho \sqrt{k/(k+1)}`, shape (2, K, d)."""
    k = np.arange(order)[:, None]
    return np.stack([np.sqrt(2 * rho / (k + 1)), rho * np.sqrt(k / (k + 1))])


def hermite_functions(x: Tensor, rho: Tensor, order: int, steps: Tensor | None = None) -> Tensor:
    r"""Map inputs (n, d) to :math:`\phi_0, \dots, \phi_K` of each, shape (n, K + 1, d).

    .. math:: \phi_0(x) = ((1-\rho)(1+\rho))^{1/4} e^{-\rho x^2 / (1 + \rho)}, \quad
              \phi_1(x) = \sqrt{2\rho}\, x\, \phi_0(x), \quad
              \phi_{k+1}(x) = \sqrt{\tfrac{2\rho}{k+1}}\, x\, \phi_k(x) - \rho \sqrt{\tfrac{k}{k+1}}\, \phi_{k-1}(x)

    so that :math:`\sum_k \phi_k(x) \phi_k(y) = e^{-\rho (x-y)^2 / (1-\rho^2)}` (Mehler 1866) and
    :math:`\sum_k \phi_k(x)^2 = 1`. It forms neither Hermite polynomials nor factorials: both overflow at high orders.
    Derivative: :math:`\phi_k' = -\frac{2\rho}{1+\rho} x \phi_k + \sqrt{2 \rho k}\, \phi_{k-1}`, since
    :math:`H_k' = 2 k H_{k-1}`. ``rho`` in (0, 1) has shape (d,) and the dtype of x; ``order`` is K; ``steps``
    are those of :func:`recursion_steps`, if they are at hand.
    Source: Vinaroz, Charusaie, Harder, Adamczewski and Park (2022), appendix E.
    """
    if steps is None:
        steps = torch.from_numpy(recursion_steps(rho.double().numpy(), order)).to(x)
    result: Tensor = _HermiteFunctions.apply(x, rho, order, steps)  # type: ignore[no-untyped-call]
    return result


_GRID = 4096


def squared_norm_bound(rho: float, order: int, reach: float) -> float:
    r"""An upper bound on :math:`S(x) = \sum_{k \le K} \phi_k(x)^2` over :math:`|x| \le` ``reach``, at most 1.

    Proof. S ≤ 1, as it is a part of Mehler's series, whose terms at y = x are squares. S is even. Between grid points h
    apart it rises by at most (h/2)·max|S'|, and |S'| = 2|Σ φ_k φ_k'| ≤ 2 √S √(Σ φ_k'²) ≤ 2/ℓ, because the whole series
    of φ_k'(x)² is ∂_x ∂_y exp(−(x−y)²/2ℓ²) at y = x, which is 1/ℓ². So S ≤ max over the grid + h/ℓ. A low order omits
    much of the kernel's norm; noise for a norm of 1 would then be too large.
    """
    grid = torch.linspace(0, reach, _GRID + 1, dtype=torch.float64)[:, None]
    values = hermite_functions(grid, torch.tensor([rho], dtype=torch.float64), order).square().sum(dim=1)
    return min(1.0, float(values.max()) * (1 + 1e-12) + reach / _GRID / lengthscale_of(rho))


def least_norm(rho: float, order: int, reach: float) -> float:
    """The smallest S(x) on a grid of ``|x| <= reach``: the least that a finite order keeps of the kernel."""
    grid = torch.linspace(0, reach, 257, dtype=torch.float64)[:, None]
    values = hermite_functions(grid, torch.tensor([rho], dtype=torch.float64), order).square().sum(dim=1)
    return float(values.min())


SCALES = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0)


def good_scale(lengthscale: float, order: int) -> float:
    """The factor on centered inputs that wastes least of an order K, from public numbers alone.

    A Gaussian kernel has one expansion for every scale of its inputs. Stretching inputs and length scale ℓ alike leaves
    the kernel as it is; it changes ρ, and so how fast the series converges on the unit interval. This takes the
    smallest of :data:`SCALES` whose :func:`least_norm` is within 1/1000 of the best.
    """
    norms = [least_norm(rho_of(lengthscale * scale), order, scale / 2) for scale in SCALES]
    return next(scale for scale, norm in zip(SCALES, norms, strict=True) if norm >= max(norms) - 1e-3)
