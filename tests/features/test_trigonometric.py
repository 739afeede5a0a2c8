"""The hand-written gradient against finite differences."""

import torch

from likeness.features.trigonometric import cosine_sine


def test_value_and_gradient() -> None:
    angles = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    assert torch.equal(cosine_sine(angles), torch.cat([angles.cos(), angles.sin()], dim=1))
    assert torch.autograd.gradcheck(cosine_sine, angles)
