"""Half of the images from each model, each with its own latent numbers."""

import pytest
import torch

from likeness.generators.images import ImageGenerator
from likeness.methods.moments.ensemble import ImageEnsemble
from likeness.methods.moments.estimates import Moments
from likeness.methods.moments.gaussian_images import GaussianImages


def made() -> ImageEnsemble:
    copula = GaussianImages((4, 6), 2, 10, 2.0, levels=1, texture=1.0)
    shares = torch.full((2, 1, 24), 0.5).double()
    copula.start_from(Moments(torch.zeros(2, 10), torch.eye(10).double().expand(2, 10, 10)), shares)
    torch.manual_seed(0)
    return ImageEnsemble(copula, ImageGenerator((4, 6), 2, 3, 8, (4, 2))).eval()  # type: ignore[return-value]


def test_rows_are_those_of_the_two_models_by_a_coin() -> None:
    """A thousand coins: six deviations are 95."""
    both, labels = made(), torch.tensor([0, 1]).repeat(500)
    z = torch.randn(1_000, both.latent_dim, generator=torch.Generator().manual_seed(1))
    assert both.latent_dim == 1 + (10 + 24) + 3
    x, heads = both(z, labels), z[:, 0] > 0
    assert 405 < int(heads.sum()) < 595
    assert torch.equal(x[heads], both.copula(z[heads, 1:35], labels[heads]))
    assert torch.allclose(x[~heads], both.network(z[~heads, 35:], labels[~heads]))
    one_sided = both(z[heads][:3], labels[heads][:3])  # none for the network
    assert bool(one_sided.isfinite().all())


def test_it_is_read_as_it_was_written_and_refuses_parts_of_two_sizes() -> None:
    both = made()
    again = ImageEnsemble.from_spec(both.spec())
    assert again.spec() == both.spec() and list(again.state_dict()) == list(both.state_dict())
    other = {**both.spec(), "network": {**both.spec()["network"], "shape": [4, 4]}}
    with pytest.raises(ValueError, match="two sizes"):
        ImageEnsemble.from_spec(other)
    other = {**both.spec(), "network": {**both.spec()["network"], "num_classes": 3}}
    with pytest.raises(ValueError, match="two numbers of classes"):
        ImageEnsemble.from_spec(other)
