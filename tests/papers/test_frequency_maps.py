"""Maps of PEARL and DP-MERF against their definitions, and cosine and sine against finite differences."""

import pytest
import torch

from likeness.core.errors import ReleaseError
from likeness.methods.maps import from_spec
from likeness_papers.merf.fourier_map import MixedFourierFeatures
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


ONE = MixedFourierFeatures(4_000, 0.5, 0, numeric=(0, 1), categorical=(2, 3), num_categorical=1)
SEVERAL = MixedFourierFeatures(9_000, (0.1, 0.5, 3.0, 3.0), 0, (0, 1), (2, 3), 1)


@pytest.mark.parametrize(
    ("feature", "weights"), [(ONE, {0.5: 1.0}), (SEVERAL, {0.1: 0.25, 0.5: 0.25, 3.0: 0.5})], ids=["one", "several"]
)
def test_inner_products_are_the_weighted_sum_of_kernels(
    feature: MixedFourierFeatures, weights: dict[float, float]
) -> None:
    x = torch.rand(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[:, 2:] = torch.nn.functional.one_hot((x[:, 2] < 0.5).long(), 2)
    squares = torch.cdist(x[:, :2], x[:, :2]).square()
    gaussian = sum(weight * torch.exp(-squares / (2 * own**2)) for own, weight in weights.items())
    linear = x[:, 2:] @ x[:, 2:].T / 2
    # 6 standard errors of so many frequencies.
    assert float((feature(x) @ feature(x).T - gaussian - linear).abs().max()) < 6 / feature.num_frequencies**0.5
    norms = feature(x)[:, : 2 * feature.num_frequencies].norm(dim=1)
    assert float((norms - 1).abs().max()) < 1e-12  # one bound for all of them, and it is reached


def test_tables_of_one_kind_only() -> None:
    numeric = MixedFourierFeatures(10, 0.5, 0, numeric=(0,), categorical=(), num_categorical=0)
    assert numeric(torch.zeros(2, 1)).shape == (2, 20) and len(numeric.bounded_parts) == 1
    categorical = MixedFourierFeatures(10, 0.5, 0, numeric=(), categorical=(0, 1), num_categorical=1)
    assert categorical(torch.zeros(2, 2)).shape == (2, 2) and categorical.bounded_parts[0].nonnegative


@pytest.mark.parametrize("lengthscale", [(0.1,) * 6, ()])
def test_length_scales_that_do_not_fit_are_refused(lengthscale: tuple[float, ...]) -> None:
    with pytest.raises(ReleaseError, match="at least one frequency for each"):
        MixedFourierFeatures(5, lengthscale, 0, (0, 1), (), 0)
