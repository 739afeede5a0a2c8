"""Public encoders: as torch computes them, exact, bounded, and never another one than the named."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import conv2d

from likeness.core.errors import ArtifactError, ReleaseError
from likeness.core.hashing import sha256_bytes
from likeness.features.frequencies import INPUT_BITS
from likeness.features.numerics import on_grid
from likeness.features.random_network import windows_of, with_one
from likeness.methods.maps import from_spec
from likeness.methods.merf_ae.encoded_map import ENCODER, EncodedFourier
from likeness.methods.merf_ae.encoder import FORMAT, Encoder, save_encoder
from likeness.testing.maps import check_bits_alone

SHAPE = (4, 5)
HEADER = b'{"__metadata__":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
NESTED = len(HEADER).to_bytes(8, "little") + HEADER
TOLD = {"format": FORMAT, "shape": "[4, 5]", "unit": "2", "trained_on": "shapes"}


def rows(count: int, seed: int) -> torch.Tensor:
    """Images on the door's grid, black and white ones among them."""
    x = torch.rand(count, 20, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x[:2] = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    return torch.round(x * 2.0**INPUT_BITS) * 2.0**-INPUT_BITS


def layers(seed: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """A convolution of 3 channels, and dense layers to 12 and 7."""
    draws = torch.Generator().manual_seed(seed)
    return torch.randn(3, 10, generator=draws), [
        torch.randn(12, 61, generator=draws) / 8,
        torch.randn(7, 13, generator=draws),
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    convolution, dense = layers(1)
    save_encoder(tmp_path / "e.safetensors", convolution, dense, SHAPE, 2.0, "shapes")
    return tmp_path / "e.safetensors"


def of_file(path: Path, **other: object) -> EncodedFourier:
    encoder = Encoder.load(path)
    settings = {"encoder": encoder.sha256, "network": encoder, **other}
    return EncodedFourier(200, 2.0, 1, SHAPE, encoder.width, encoder.reach, **settings)  # type: ignore[arg-type]


def test_the_file_is_the_network_in_the_words_of_torch(path: Path) -> None:
    found, told, x = Encoder.load(path), load_file(path), rows(9, 2)
    kernel = told["convolution"].double()
    h = conv2d(x.view(-1, 1, *SHAPE), kernel[:, :9].view(3, 1, 3, 3), kernel[:, 9], padding=1).relu()
    h = h.permute(0, 2, 3, 1).flatten(1)  # place by place, channels together
    first, last = told["dense_00"].double(), told["dense_01"].double()
    expected = (h @ first[:, :-1].T + first[:, -1]).relu() @ last[:, :-1].T + last[:, -1]
    torch.testing.assert_close(found(x), expected, rtol=0, atol=1e-9)
    assert (found.width, found.unit, found.trained_on) == (7, 2.0, "shapes")
    assert found.sha256 == sha256_bytes(path.read_bytes())
    assert float(found(rows(500, 3)).abs().max()) <= 2.0**found.reach
    assert bool((told["dense_00"] * 1024 % 1 == 0).all())


def test_a_random_encoder_is_a_function_of_its_seed_and_knows_its_unit() -> None:
    one, other = Encoder.random(SHAPE, 3, 30, 1), Encoder.random(SHAPE, 3, 30, 2)
    assert one.sha256 == Encoder.random(SHAPE, 3, 30, 1).sha256 != other.sha256
    assert one.trained_on == ""
    noise = torch.rand(4000, 20, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    codes = one(noise)
    apart = float((codes[:2000] - codes[2000:]).square().sum(dim=1).mean()) ** 0.5
    assert apart == pytest.approx(one.unit, rel=0.1)  # from 256 pairs: a standard error is 2 %


def test_the_kernel_is_gaussian_in_distances_of_codes() -> None:
    """4,000 frequencies: a standard error of .016 at most, five of them allowed; seeds are fixed."""
    encoder = Encoder.random(SHAPE, 3, 30, 1)
    feature = EncodedFourier(4000, encoder.unit, 1, SHAPE, 30, encoder.reach, "random", 3, 1)
    x = rows(12, 7)
    expected = torch.exp(-torch.cdist(encoder(x), encoder(x)).square() / (2 * encoder.unit**2))
    assert 0.2 < float(expected.median()) < 0.9
    torch.testing.assert_close(feature(x) @ feature(x).T, expected, rtol=0, atol=0.08)


def test_in_the_block_of_the_door_an_encoder_gives_a_row_the_same_bits_anywhere(path: Path) -> None:
    check_bits_alone(of_file(path), 20)


@pytest.mark.parametrize("kind", ["random", "file"])
def test_codes_and_angles_are_the_same_bits_in_every_order_of_addition(kind: str, path: Path) -> None:
    """What the door's exactness rests on: codes within the unit cube's size and on its grid, frequencies that fit."""
    drawn = Encoder.random(SHAPE, 8, 64, 1)
    feature = EncodedFourier(200, drawn.unit, 1, SHAPE, 64, drawn.reach, "random", 8, 1)
    feature = of_file(path) if kind == "file" else feature
    codes, frequencies = feature.codes(rows(50, 6)), feature.frequencies
    assert float(codes.abs().max()) <= 1 and bool((codes * 2.0**INPUT_BITS % 1 == 0).all())
    products = codes[:, None] * frequencies
    assert torch.equal(products.cumsum(2)[..., -1], products.flip(2).cumsum(2)[..., -1])
    assert torch.equal(products.cumsum(2)[..., -1], codes @ frequencies.T)
    assert feature.network is not None
    inputs = rows(50, 6)
    for place, layer in enumerate(feature.network.dense):  # every layer's own sums, one order and the other
        if place == 0:
            assert feature.network.convolution is not None
            seen = windows_of(inputs, SHAPE)
            inputs = (seen @ feature.network.convolution.weights.T).relu().flatten(1)
        inputs = with_one(on_grid(inputs, layer.input_bits))
        products = inputs[:, None] * layer.weights
        assert torch.equal(products.cumsum(2)[..., -1], products.flip(2).cumsum(2)[..., -1])
        inputs = products.cumsum(2)[..., -1].relu()


def test_only_the_named_encoder_is_taken(path: Path, tmp_path: Path) -> None:
    feature = of_file(path)
    again = from_spec(feature.spec())  # all that a verifier without the file needs
    assert again.parts == feature.parts and again.spec() == feature.spec()
    with pytest.raises(ReleaseError, match="is not here"):
        again(rows(3, 1))
    assert isinstance(again, EncodedFourier)
    assert torch.equal(replace(again, network=Encoder.load(path))(rows(3, 1)), feature(rows(3, 1)))
    save_encoder(tmp_path / ENCODER, *layers(2), SHAPE, 2.0, "shapes")
    with pytest.raises(ReleaseError, match="not that of the release"):
        again.with_files(tmp_path)
    with pytest.raises(ReleaseError, match="reach farther"):
        replace(feature, reach=feature.reach - 1, digest="")
    with pytest.raises(ReleaseError, match="other images"):
        replace(feature, shape=(5, 4), digest="")
    drawn = EncodedFourier(20, 2.0, 1, SHAPE, 6, 9, "random", channels=2, encoder_seed=1)
    with pytest.raises(ReleaseError, match="not that of the release"):
        from_spec({**drawn.spec(), "encoder_seed": 2})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_bytes(b"PK\3\4 not safetensors"), "is no encoder"),
        (lambda path: path.write_bytes(b""), "is no encoder"),
        (lambda path: path.write_bytes(NESTED), "is no encoder"),
        (lambda path: save_file(load_file(path), path), "is no encoder"),
        (lambda path: save_file({"x": torch.full((2, 21), 0.3)}, path, TOLD), "is no encoder"),
        (lambda path: save_file({"x": torch.ones(2, 20)}, path, TOLD), "is no encoder"),
        (lambda path: save_file({"convolution": torch.ones(2, 10)}, path, TOLD), "is no encoder"),
        (lambda path: save_file({"x": torch.full((2, 21), 2.0**15)}, path, TOLD), "weights are too large"),
        (lambda path: save_file({"x": torch.ones(2, 21)}, path, {**TOLD, "unit": "0"}), "unit or trained_on"),
        (lambda path: save_file({"x": torch.ones(2, 21)}, path, {**TOLD, "trained_on": ""}), "unit or trained_on"),
    ],
    ids=[
        "missing",
        "zip",
        "empty",
        "nested",
        "untold",
        "off-grid",
        "narrow",
        "no-dense",
        "large",
        "no-unit",
        "no-name",
    ],
)
def test_files_that_are_no_encoders_are_refused(path: Path, spoil, message: str) -> None:  # type: ignore[no-untyped-def]
    spoil(path)
    with pytest.raises(ArtifactError, match=message):
        Encoder.load(path)
