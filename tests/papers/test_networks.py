"""Generators of tables draw with the network's probabilities; generators of images: shapes, range, classes, colors.

The public encoder: as torch computes it, exact, bounded, and never another one than the named.
"""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import conv2d

from likeness.core.errors import DataError, ParamsError, PlanError, ReleaseError
from likeness.data.encoding.layout import Block, Condition, Layout
from likeness.features.frequencies import INPUT_BITS
from likeness.methods import METHODS
from likeness.methods.maps import from_spec
from likeness.methods.saved_generator import SavedGenerator
from likeness.privacy.adjacency import Adjacency
from likeness.testing.methods import toy_context
from likeness_papers.merf_ae.encoded_map import EncodedFourier
from likeness_papers.merf_ae.encoder import Encoder
from likeness_papers.networks import images
from likeness_papers.networks.images import ImageGenerator, ResidualImages
from likeness_papers.networks.numerics import round_to_grid
from likeness_papers.networks.random_network import windows_of, with_one
from likeness_papers.networks.tabular import TabularGenerator

LAYOUT = Layout(
    (Block("a", "unit", 0, 1), Block("a", "indicator", 1, 2), Block("b", "onehot", 2, 5), Block("c", "onehot", 5, 7)), 2
)
ROWS = 40_000
SIX = 6.0  # standard errors: a false alarm once in 500 million comparisons


def network(**options: object) -> TabularGenerator:
    torch.manual_seed(0)
    return TabularGenerator(LAYOUT, 4, [8], **options).eval()  # type: ignore[arg-type]


def drawn(own: TabularGenerator, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Classes, relaxed rows, and the exact rows that are drawn from them."""
    labels = torch.arange(ROWS) % 2
    x = torch.from_numpy(own.draw(labels.numpy(), np.random.default_rng(seed))).float()
    generator = torch.Generator().manual_seed(int(np.random.default_rng(seed).integers(2**63 - 1)))
    again = []
    for part in torch.split(labels, 10_000):
        with torch.no_grad():
            relaxed = own(torch.randn(len(part), own.latent_dim, generator=generator), part)
        again.append(relaxed.clone())
        own.settle(relaxed, generator)
    return labels, torch.cat(again), x


def test_a_drawn_row_has_the_mean_of_the_relaxed_one() -> None:
    labels, relaxed, x = drawn(network())
    for own in (0, 1):
        probabilities, found = relaxed[labels == own][:, 1:], x[labels == own][:, 1:]
        error = (probabilities * (1 - probabilities)).sum(dim=0).sqrt()
        assert ((found - probabilities).sum(dim=0).abs() < SIX * error).all()
    assert torch.equal(x[:, 2:5].sum(dim=1), torch.ones(ROWS)) and set(x[:, 1:].unique().tolist()) == {0.0, 1.0}
    assert torch.equal(x[:, 0], relaxed[:, 0])


def test_the_most_probable_category_on_request() -> None:
    _, relaxed, x = drawn(network(sampling="argmax"))
    for start, stop in ((2, 5), (5, 7)):
        assert torch.equal(x[:, start:stop].argmax(dim=1), relaxed[:, start:stop].argmax(dim=1))
    assert torch.equal(x[:, 1], relaxed[:, 1])


@pytest.mark.parametrize("changed", [{"sampling": "softmax"}, {"sampling": None}])
def test_another_kind_of_sampling_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="sampling"):
        TabularGenerator.from_spec({**network().spec(), **changed})


def test_rows_that_are_not_finite_are_refused() -> None:
    own = network()
    with torch.no_grad():
        own.body[-1].bias[3] = torch.nan  # type: ignore[index]
    with pytest.raises(DataError, match="not finite"):
        own.draw(np.zeros(10, dtype=np.int64), np.random.default_rng(0))


def test_the_network_can_be_asked_for_a_class_only() -> None:
    saved = SavedGenerator(network(), (0.5, 0.5), {})
    assert (saved.draw(20, seed=0, classes=(1,))[1] == 1).all()
    with pytest.raises(ParamsError, match="the label only"):
        saved.draw(20, seed=0, conditions={0: Condition((0,))})


@pytest.mark.parametrize("shape", [(28, 28), (8, 8), (5, 7), (1, 3), (5, 7, 3)])
def test_pixels_of_any_size_lie_in_the_unit_interval(shape: tuple[int, ...]) -> None:
    network = ImageGenerator(shape, 3, latent_dim=4, hidden=16, channels=(6, 4))
    x = network(torch.randn(10, 4), torch.arange(10) % 3)
    assert x.shape == (10, math.prod(shape)) and float(x.detach().min()) > 0 and float(x.detach().max()) < 1
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


SHAPE = (4, 5)


def rows(count: int, seed: int) -> torch.Tensor:
    """Images on the door's grid, black and white ones among them."""
    x = torch.rand(count, 20, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x[:2] = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    return torch.round(x * 2.0**INPUT_BITS) * 2.0**-INPUT_BITS


def test_it_is_the_network_in_the_words_of_torch() -> None:
    encoder, x = Encoder.draw(SHAPE, 3, 7, 1), rows(9, 2)
    kernel, last = encoder.convolution.weights, encoder.projection.weights
    h = conv2d(x.view(-1, 1, *SHAPE), kernel[:, :9].view(3, 1, 3, 3), kernel[:, 9], padding=1).relu()
    h = h.permute(0, 2, 3, 1).flatten(1)  # place by place, channels together
    torch.testing.assert_close(encoder(x), h @ last[:, :-1].T + last[:, -1], rtol=0, atol=1e-6)
    assert float(encoder(rows(500, 3)).abs().max()) <= 2.0**encoder.reach and bool((last * 1024 % 1 == 0).all())


def test_it_is_a_function_of_its_seed_and_knows_its_unit() -> None:
    one, other = Encoder.draw(SHAPE, 3, 30, 1), Encoder.draw(SHAPE, 3, 30, 2)
    assert one.digest == Encoder.draw(SHAPE, 3, 30, 1).digest != other.digest
    noise = torch.rand(4000, 20, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    codes = one(noise)
    apart = float((codes[:2000] - codes[2000:]).square().sum(dim=1).mean()) ** 0.5
    assert apart == pytest.approx(one.unit, rel=0.1)  # from 256 pairs: a standard error is 2 %


def test_the_kernel_is_gaussian_in_distances_of_codes() -> None:
    """4,000 frequencies: a standard error of .016 at most, five of them allowed; seeds are fixed."""
    encoder = Encoder.draw(SHAPE, 3, 30, 1)
    feature = EncodedFourier(4000, encoder.unit, 1, SHAPE, 30, encoder.reach, 3, 1)
    x = rows(12, 7)
    expected = torch.exp(-torch.cdist(encoder(x), encoder(x)).square() / (2 * encoder.unit**2))
    assert 0.2 < float(expected.median()) < 0.9
    torch.testing.assert_close(feature(x) @ feature(x).T, expected, rtol=0, atol=0.08)


def test_codes_and_angles_are_the_same_bits_in_every_order_of_addition() -> None:
    """What the door's exactness rests on: codes within the unit cube's size and on its grid, frequencies that fit."""
    encoder = Encoder.draw(SHAPE, 8, 64, 1)
    feature = EncodedFourier(200, encoder.unit, 1, SHAPE, 64, encoder.reach, 8, 1)
    codes, frequencies = feature.codes(rows(50, 6)), feature.frequencies
    assert float(codes.abs().max()) <= 1 and bool((codes * 2.0**INPUT_BITS % 1 == 0).all())
    products = codes[:, None] * frequencies
    assert torch.equal(products.cumsum(2)[..., -1], products.flip(2).cumsum(2)[..., -1])
    assert torch.equal(products.cumsum(2)[..., -1], codes @ frequencies.T)
    seen = windows_of(rows(50, 6), SHAPE)[:, :, None] * encoder.convolution.weights
    assert torch.equal(seen.cumsum(3)[..., -1], seen.flip(3).cumsum(3)[..., -1])
    inputs = with_one(round_to_grid(seen.sum(dim=3).relu().flatten(1), encoder.projection.input_bits))
    products = inputs[:, None] * encoder.projection.weights
    assert torch.equal(products.cumsum(2)[..., -1], products.flip(2).cumsum(2)[..., -1])


def test_only_the_named_encoder_is_taken() -> None:
    reach = Encoder.draw(SHAPE, 2, 6, 1).reach
    feature = EncodedFourier(20, 2.0, 1, SHAPE, 6, reach, channels=2, encoder_seed=1)
    again = from_spec(feature.spec())
    assert again.bounded_parts == feature.bounded_parts and again.spec() == feature.spec()
    with pytest.raises(ReleaseError, match="not that of the release"):
        from_spec({**feature.spec(), "encoder_seed": 2})
    with pytest.raises(ReleaseError, match="reach farther"):
        EncodedFourier(20, 2.0, 1, SHAPE, 6, reach - 1, channels=2, encoder_seed=1)


def test_a_table_without_images_is_refused() -> None:
    with pytest.raises(PlanError, match="merf_ae encodes images, and the schema has no image"):
        METHODS["merf_ae"]().check(toy_context(Adjacency.ADD_REMOVE_ONE, False))
