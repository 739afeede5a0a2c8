"""Hermite functions against their definition in 400 digits, and against the kernel that they expand."""

import math
from decimal import Decimal, localcontext

import pytest
import torch

from likeness_papers.hp.mehler import (
    SCALES,
    good_scale,
    hermite_functions,
    least_norm,
    lengthscale_of,
    rho_of,
    squared_norm_bound,
)


def exact(x: float, rho: float, order: int) -> list[float]:
    """The definition: the square root of λ_k / N_k times the Hermite polynomial times the exponential, in Decimal."""
    with localcontext() as digits:
        digits.prec = 400
        z, r = Decimal(x), Decimal(rho)
        weight = (-r / (1 + r) * z * z).exp()
        root = ((1 - r) / (1 + r)).sqrt()
        before, polynomial, found = Decimal(0), Decimal(1), []
        for k in range(order + 1):
            eigenvalue, norm = (1 - r) * r**k, Decimal(2) ** k * math.factorial(k) * root
            found.append(float((eigenvalue / norm).sqrt() * polynomial * weight))
            before, polynomial = polynomial, 2 * z * polynomial - 2 * k * before
        return found


@pytest.mark.parametrize("rho", [0.05, 0.5, 0.78, 0.99])
def test_the_recursion_is_exact_to_order_150(rho: float) -> None:
    points = [0.0, 0.3, -0.5, 1.0, -2.5, 4.0, 8.0]
    found = hermite_functions(torch.tensor(points, dtype=torch.float64)[:, None], torch.tensor([rho]).double(), 150)
    assert found.shape == (7, 151, 1) and bool(torch.isfinite(found).all())
    for own, x in zip(found[:, :, 0], points, strict=True):
        expected = torch.tensor(exact(x, torch.tensor([rho]).double().item(), 150), dtype=torch.float64)
        assert float((own - expected).abs().max()) < 1e-13


@pytest.mark.parametrize("lengthscale", [0.05, 0.1, 0.5, 2.0, 50.0])
def test_inner_products_are_the_gaussian_kernel(lengthscale: float) -> None:
    """At the scale that is chosen for the order, up to what the order leaves out; whatever the scale is."""
    for scale, tolerance in ((good_scale(lengthscale, 60), 1e-3), (8.0, 1e-4)):
        x = torch.linspace(-0.5, 0.5, 41, dtype=torch.float64)[:, None]
        values = hermite_functions(scale * x, torch.tensor([rho_of(scale * lengthscale)]).double(), 60)[:, :, 0]
        gaussian = torch.exp(-torch.cdist(x, x).square() / (2 * lengthscale**2))
        assert float((values @ values.T - gaussian).abs().max()) < tolerance


def test_rho_and_length_scale_belong_to_each_other() -> None:
    for lengthscale in (1e-3, 0.07, 0.5, 3.0, 100.0, 1600.0):
        rho = rho_of(lengthscale)
        assert 0 < rho < 1
        assert rho / (1 - rho) / (1 + rho) == pytest.approx(1 / (2 * lengthscale**2), rel=1e-8)
        assert lengthscale_of(rho) == pytest.approx(lengthscale, rel=1e-8)


@pytest.mark.parametrize("order", [0, 1, 5, 20])
@pytest.mark.parametrize("rho", [0.2, 0.9, 0.995])
def test_the_norm_bound_holds_and_is_not_far(rho: float, order: int) -> None:
    for reach in (0.5, 2.0, 4.0):
        bound = squared_norm_bound(rho, order, reach)
        x = torch.rand(20_000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2 * reach - reach
        squares = hermite_functions(x, torch.tensor([rho]).double(), order).square().sum(dim=1)
        assert float(squares.max()) - 1e-12 <= bound <= min(1.0, float(squares.max()) + 0.02)


def test_the_chosen_scale_keeps_most_of_the_kernel() -> None:
    for lengthscale in (0.07, 0.1, 0.3, 1.0):
        for order in (5, 10, 20):
            kept = {scale: least_norm(rho_of(scale * lengthscale), order, scale / 2) for scale in SCALES}
            chosen = good_scale(lengthscale, order)
            assert kept[chosen] >= max(kept.values()) - 1e-3 and kept[chosen] >= kept[1.0]
    # The paper's scale with its order of 100 for MNIST's length scale, against order 20 at the chosen scale.
    assert least_norm(rho_of(0.005**0.5), 100, 0.5) < 0.7
    assert least_norm(rho_of(0.005**0.5 * good_scale(0.005**0.5, 20)), 20, good_scale(0.005**0.5, 20) / 2) > 0.98
