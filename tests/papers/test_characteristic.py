"""PEARL's map against its definition; the hand-written gradient of cosine and sine against finite differences."""

import pytest
import torch

from likeness.core.errors import ReleaseError
from likeness.methods.maps import from_spec
from likeness_papers.networks.trigonometric import cosine_sine
from likeness_papers.pearl.characteristic_map import CharacteristicFunction


def test_mean_of_gaussian_records_is_the_known_characteristic_function() -> None:
    """For x ~ N(0, I) the characteristic function is exp(-|t|²/2); six standard errors at 40,000 draws."""
    feature = CharacteristicFunction(50, 3, 0.7, seed=0)
    x = torch.randn(40_000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    real, imaginary = feature(x).mean(dim=0).chunk(2)
    expected = torch.exp(-0.5 * feature.frequencies.square().sum(dim=1))
    assert float((real - expected).abs().max()) < 6 / 200
    assert float(imaginary.abs().max()) < 6 / 200


def test_density_ratio_is_that_of_two_gaussians() -> None:
    feature = CharacteristicFunction(20, 4, 0.3, seed=0)
    log_scale = torch.tensor([-1.0, -1.2, -0.8, -1.5], dtype=torch.float64)
    own = torch.distributions.Normal(torch.zeros(4), log_scale.exp()).log_prob(feature.frequencies).sum(dim=1)
    base = torch.distributions.Normal(torch.zeros(4), torch.full((4,), 0.3)).log_prob(feature.frequencies).sum(dim=1)
    assert torch.allclose(feature.log_density_ratio(log_scale), own - base, atol=1e-5)


def test_frequencies_of_another_numpy_are_refused() -> None:
    spec = CharacteristicFunction(5, 2, 1.0, seed=0).spec()
    with pytest.raises(ReleaseError, match="frequencies"):
        from_spec({**spec, "digest": "0" * 64})


def test_value_and_gradient() -> None:
    angles = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    assert torch.equal(cosine_sine(angles), torch.cat([angles.cos(), angles.sin()], dim=1))
    assert torch.autograd.gradcheck(cosine_sine, angles)
