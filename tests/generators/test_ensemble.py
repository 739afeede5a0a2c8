"""Half of the images from each model; and files of somebody else: what cannot be drawn from is refused when read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from likeness.core.errors import ArtifactError
from likeness.core.hashing import sha256_bytes
from likeness.generators.images import ImageGenerator
from likeness.generators.weights import SPEC_DIGEST
from likeness.methods.moments.ensemble import ImageEnsemble
from likeness.methods.moments.estimates import Moments
from likeness.methods.moments.gaussian_images import GaussianImages
from likeness.methods.saved_generator import SavedGenerator


def made() -> ImageEnsemble:
    copula = GaussianImages((4, 6), 2, 10, 2.0, levels=1, texture=1.0)
    copula.start_from(Moments(np.zeros((2, 10)), np.stack([np.eye(10)] * 2)), np.full((2, 1, 24), 0.5))
    torch.manual_seed(0)
    return ImageEnsemble(copula, ImageGenerator((4, 6), 2, 3, 8, (4, 2))).eval()  # type: ignore[return-value]


def saved(folder: Path, **changed: Any) -> Path:
    """An ensemble of 4 × 6 pixels and two classes with another spec, whose digest is right."""
    SavedGenerator(made(), (0.5, 0.5), {"method": "moments", "releases": [], "private": True}).save(folder)
    spec = json.loads((folder / "spec.json").read_text())
    for place, value in changed.items():
        *parents, key = place.split("__")
        own = spec
        for parent in parents:
            own = own[parent]
        own[key] = value
    text = json.dumps(spec)
    (folder / "spec.json").write_text(text)
    weights = load_file(folder / "weights.safetensors")
    save_file(weights, folder / "weights.safetensors", metadata={SPEC_DIGEST: sha256_bytes(text.encode())})
    return folder


@pytest.mark.long
def test_as_it_was_it_draws(tmp_path: Path) -> None:
    x, _ = SavedGenerator.load(saved(tmp_path)).draw(10, seed=0)
    assert x.shape == (10, 24) and np.isfinite(x).all()


@pytest.mark.parametrize(
    "changed",
    [
        *({"copula__texture": value} for value in (-1.0, "a", [1], float("nan"), float("inf"), 101.0)),
        *({"copula__bound": value} for value in (0.0, "a", float("nan"))),
        {"copula__levels": 0},
        *({"copula__shape": shape} for shape in ([4], "a", [4, 7])),
        {"network__num_classes": 3},
        *(
            {"class_weights": weights}
            for weights in ([0.5], [1, 1, 1], None, ["a", "b"], [0.5, -0.5], [float("nan"), 1])
        ),
        {"copula": None},
    ],
    ids=str,
)
def test_a_hostile_specification_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match="not a generator of format 1"):
        SavedGenerator.load(saved(tmp_path, **changed))


def test_weights_that_were_cut_short_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path) / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ArtifactError, match="not a generator of format 1"):
        SavedGenerator.load(tmp_path)


@pytest.mark.parametrize("shape", [[0, 6], [-4, -6], [600, 600]], ids=str)
def test_no_pixels_or_too_many_are_refused_before_anything_is_built(tmp_path: Path, shape: list[int]) -> None:
    with pytest.raises(ArtifactError) as refusal:
        SavedGenerator.load(saved(tmp_path, copula__shape=shape, network__shape=shape))
    assert "1 to 16384 values" in str(refusal.value.__cause__)


def test_rows_are_those_of_the_two_models_by_a_coin() -> None:
    """A thousand coins: six deviations are 95."""
    both, labels = made(), torch.tensor([0, 1]).repeat(500)
    z = torch.randn(1_000, both.latent_dim, generator=torch.Generator().manual_seed(1))
    assert both.latent_dim == 1 + (10 + 24) + 3
    x, heads = both(z, labels), z[:, 0] > 0
    assert 405 < int(heads.sum()) < 595
    expected = both.copula.images(z[heads, 1:35].numpy(), labels[heads].numpy())
    assert np.array_equal(x[heads].detach().numpy(), expected)
    assert torch.allclose(x[~heads], both.network(z[~heads, 35:], labels[~heads]))
    one_sided = both(z[heads][:3], labels[heads][:3])  # none for the network
    assert bool(one_sided.isfinite().all())


def test_it_is_read_as_it_was_written_and_refuses_parts_of_two_sizes() -> None:
    both = made()
    again = ImageEnsemble.from_spec(both.spec())
    assert again.spec() == both.spec() and list(again.arrays()) == list(both.arrays())
    other = {**both.spec(), "network": {**both.spec()["network"], "shape": [4, 4]}}
    with pytest.raises(ValueError, match="different image sizes"):
        ImageEnsemble.from_spec(other)
    other = {**both.spec(), "network": {**both.spec()["network"], "num_classes": 3}}
    with pytest.raises(ValueError, match="or numbers of classes"):
        ImageEnsemble.from_spec(other)
