"""Contract of every registered feature map: its bound holds, its spec rebuilds it, its parts add up."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likeness.features import (
    MAPS,
    CharacteristicFunction,
    Constant,
    FeatureMap,
    MixedFourierFeatures,
    PairDistance,
    from_spec,
    width,
)

# One example a registered map, with the number of inputs that it takes. A new map needs a line here.
EXAMPLES: dict[str, tuple[FeatureMap, int]] = {
    "characteristic": (CharacteristicFunction(30, 5, 0.4, seed=1), 5),
    "constant": (Constant(), 5),
    "mixed_fourier": (MixedFourierFeatures(20, 0.5, 1, numeric=(0, 1), categorical=(2, 3, 4), num_categorical=1), 5),
    "pair_distance": (PairDistance(4), 8),
}


def records(count: int, inputs: int, seed: int, name: str) -> torch.Tensor:
    """Encoded rows: units anywhere in the cube; for the mixed map the last three columns are one-hot."""
    x = torch.rand(count, inputs, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).round(decimals=1)
    if name == "mixed_fourier":
        x[:, 2:] = torch.nn.functional.one_hot((x[:, 2] * 2.9).long(), 3).to(x)
    return x


def test_every_registered_map_has_an_example() -> None:
    assert set(EXAMPLES) == set(MAPS)


@pytest.mark.parametrize("name", sorted(MAPS))
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_bound_and_sign_hold(name: str, seed: int) -> None:
    feature, inputs = EXAMPLES[name]
    features = feature(records(64, inputs, seed, name))
    assert features.shape == (64, width(feature))
    start = 0
    for part in feature.parts:
        block = features[:, start : start + part.width]
        assert float(block.norm(dim=1).max()) <= math.sqrt(part.norm_bound_squared) * (1 + 1e-12)
        if part.nonnegative:
            assert float(block.min()) >= 0
        start += part.width


@pytest.mark.parametrize("name", sorted(MAPS))
def test_spec_rebuilds_the_map(name: str) -> None:
    feature, inputs = EXAMPLES[name]
    rebuilt = from_spec(feature.spec())
    x = records(16, inputs, 3, name)
    assert torch.equal(rebuilt(x), feature(x))
    assert rebuilt.spec() == feature.spec()


@pytest.mark.parametrize("name", sorted(MAPS))
def test_one_map_for_door_and_generator(name: str) -> None:
    """Single precision agrees with double, and gradients flow where the map depends on its input."""
    feature, inputs = EXAMPLES[name]
    x = records(16, inputs, 4, name)
    single = x.float().requires_grad_()
    features = feature(single)
    assert torch.allclose(features.double(), feature(x), atol=1e-5)
    if name != "constant":
        features.sum().backward()
        assert single.grad is not None and bool(torch.isfinite(single.grad).all())
