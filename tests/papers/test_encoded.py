"""The public encoder: as torch computes it, exact, bounded, and never another one than the named."""

import pytest
import torch
from torch.nn.functional import conv2d

from likeness.core.errors import PlanError, ReleaseError
from likeness.features.frequencies import INPUT_BITS
from likeness.methods import METHODS
from likeness.methods.maps import from_spec
from likeness.privacy.adjacency import Adjacency
from likeness.testing.methods import toy_context
from likeness_papers.merf_ae.encoded_map import EncodedFourier
from likeness_papers.merf_ae.encoder import Encoder
from likeness_papers.networks.numerics import round_to_grid
from likeness_papers.networks.random_network import windows_of, with_one

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
    assert float(encoder(rows(500, 3)).abs().max()) <= 2.0**encoder.reach
    assert bool((last * 1024 % 1 == 0).all())


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
