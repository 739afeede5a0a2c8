"""The hand-written gradient against finite differences."""

import torch

from likeness.features.trigonometric import cosine_sine, mean_cosine_sine


def test_value_and_gradient() -> None:
    angles = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    assert torch.equal(cosine_sine(angles), torch.cat([angles.cos(), angles.sin()], dim=1))
    assert torch.autograd.gradcheck(cosine_sine, angles)


def test_means_by_group_and_their_gradient() -> None:
    angles = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    counts = [2, 1, 3]
    expected = torch.stack([part.mean(dim=0) for part in cosine_sine(angles).split(counts)])
    torch.testing.assert_close(mean_cosine_sine(angles, counts), expected, rtol=0, atol=1e-15)
    assert torch.autograd.gradcheck(lambda given: mean_cosine_sine(given, counts), angles)
