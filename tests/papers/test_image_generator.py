"""The image generator: shapes, range, classes, and its way to disk and back."""

import math

import numpy as np
import pytest
import torch

from likeness_papers.networks import images
from likeness_papers.networks.images import ImageGenerator, ResidualImages


@pytest.mark.parametrize("shape", [(28, 28), (8, 8), (5, 7), (1, 3), (5, 7, 3)])
def test_pixels_of_any_size_lie_in_the_unit_interval(shape: tuple[int, ...]) -> None:
    network = ImageGenerator(shape, 3, latent_dim=4, hidden=16, channels=(6, 4))
    x = network(torch.randn(10, 4), torch.arange(10) % 3)
    assert x.shape == (10, math.prod(shape))
    assert float(x.detach().min()) > 0 and float(x.detach().max()) < 1
    x.sum().backward()
    assert all(p.grad is not None for p in network.parameters())


@pytest.mark.parametrize("shape", [(28, 28), (5, 7, 3)])
def test_a_residual_network_has_eighteen_layers_and_draws_in_parts_what_it_draws_at_once(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    network = ResidualImages(shape, 3, latent_dim=4, channels=6)
    assert sum(isinstance(part, (torch.nn.Linear, torch.nn.Conv2d)) for part in network.modules()) == 18
    z, labels = torch.randn(10, 4), torch.arange(10) % 3
    x = network(z, labels)
    assert x.shape == (10, math.prod(shape)) and float(x.detach().min()) > 0 and float(x.detach().max()) < 1
    x.sum().backward()
    assert all(p.grad is not None for p in network.parameters())
    again = ResidualImages.from_spec(network.spec())
    again.load({name: array.copy() for name, array in network.arrays().items()})
    whole = again(z, labels)
    monkeypatch.setattr(images, "_DRAWN", 3)
    pixels, sizes = ResidualImages._pixels, []
    monkeypatch.setattr(ResidualImages, "_pixels", lambda own, part: sizes.append(len(part)) or pixels(own, part))
    torch.testing.assert_close(again(z, labels), whole)
    assert sizes == [3, 3, 3, 1]
    torch.testing.assert_close(network.eval()(z, labels), whole)
    assert not torch.allclose(again(z[:1], labels[:1]), again(z[:1], labels[1:2]))


def test_neighboring_pixels_belong_together_and_rows_come_first() -> None:
    """An untrained network is smooth in both directions only if pixels are laid out row by row."""
    torch.manual_seed(0)
    network = ImageGenerator((12, 20), 1, latent_dim=4, hidden=16, channels=(6, 4)).eval()
    x = network(torch.randn(50, 4), torch.zeros(50, dtype=torch.int64)).detach().view(50, 12, 20)
    inner = x[:, 3:-3, 3:-3]
    steps = (inner.diff(dim=1).square().mean(), inner.diff(dim=2).square().mean())
    shuffled = inner.flatten(1)[:, torch.randperm(inner[0].numel())]
    assert max(steps) < 0.5 * shuffled.diff(dim=1).square().mean()


def test_the_class_is_heard_and_the_seed_decides_the_rest() -> None:
    network = ImageGenerator((8, 8), 2, latent_dim=4, hidden=16, channels=(6, 4)).eval()
    labels = torch.tensor([0, 1])
    z = torch.randn(1, 4).expand(2, 4)
    x = network(z, labels)
    assert not torch.equal(x[0], x[1])
    drawn = [network.draw(labels.numpy(), np.random.default_rng(1)) for _ in range(2)]
    assert np.array_equal(drawn[0], drawn[1])


@pytest.mark.parametrize("shape", [(28, 28), (8, 8), (5, 7), (1, 3), (5, 7, 3)])
def test_training_takes_another_way_to_the_same_pixels_and_slopes(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    network = ImageGenerator(shape, 3, latent_dim=4, hidden=16, channels=(6, 4)).double()
    x = torch.randn(5, 4, *network._half, dtype=torch.float64, requires_grad=True)
    colors = math.prod(shape[2:])
    mixing = torch.randn(5, colors, *shape[:2], dtype=torch.float64)
    given = [x, *network.last.parameters()]
    own = network._stretched_last(x).view(5, colors, *shape[:2])
    stretched = torch.nn.functional.interpolate(x, size=shape[:2], mode="bilinear", align_corners=True)
    plain = network.last(stretched)
    # The weights of stretching were computed in single precision.
    torch.testing.assert_close(own, plain, rtol=0, atol=1e-5)
    slopes = [torch.autograd.grad((mixing * pixels).sum(), given) for pixels in (own, plain)]
    for ours, theirs in zip(*slopes, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    z, labels = torch.randn(5, 4, dtype=torch.float64), torch.arange(5) % 3
    network.body.eval()  # batch norm alone: the rest still trains
    torch.testing.assert_close(network(z, labels), network.eval()(z, labels), rtol=0, atol=1e-5)


def test_the_three_colors_of_a_pixel_stand_side_by_side() -> None:
    network = ImageGenerator((5, 7, 3), 2, latent_dim=4, hidden=16, channels=(6, 4))
    with torch.no_grad():
        network.last.weight.zero_()
        network.last.bias.copy_(torch.tensor([-5.0, 0.0, 5.0]))
    for training in (True, False):
        x = network.train(training)(torch.randn(6, 4), torch.arange(6) % 2).detach().reshape(6, 35, 3)
        assert torch.allclose(x, torch.sigmoid(torch.tensor([-5.0, 0.0, 5.0])), atol=1e-6)
