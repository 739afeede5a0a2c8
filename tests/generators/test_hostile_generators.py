"""Files of a generator that somebody else wrote: what cannot be drawn from is refused when read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from likeness.core.errors import ArtifactError
from likeness.core.hashing import sha256_bytes
from likeness.generators.base import SPEC_DIGEST
from likeness.methods.saved_generator import SavedGenerator
from tests.contracts.method_examples import IMAGE_GENERATORS

EVERY = pytest.mark.parametrize("method", IMAGE_GENERATORS)


def saved(folder: Path, method: str, **changed: Any) -> Path:
    """A generator of 4 × 6 pixels and two classes with another spec, whose digest is right."""
    facts = {"method": method, "releases": [], "private": True}
    SavedGenerator(IMAGE_GENERATORS[method](), (0.5, 0.5), facts).save(folder)
    spec = json.loads((folder / "spec.json").read_text())
    text = json.dumps({**spec, **changed})
    (folder / "spec.json").write_text(text)
    weights = load_file(folder / "weights.safetensors")
    save_file(weights, folder / "weights.safetensors", metadata={SPEC_DIGEST: sha256_bytes(text.encode())})
    return folder


@EVERY
def test_as_it_was_it_draws(tmp_path: Path, method: str) -> None:
    x, _ = SavedGenerator.load(saved(tmp_path, method)).draw(10, seed=0)
    assert x.shape == (10, 24) and np.isfinite(x).all()


@pytest.mark.parametrize(
    "changed",
    [
        *({"texture": value} for value in (-1.0, "a", [1], float("nan"), float("inf"), 101.0)),
        *({"bound": value} for value in (0.0, "a", float("nan"))),
        {"levels": 0},
        *({"shape": shape} for shape in ([4], "a", [4, 7])),
        *(
            {"class_weights": weights}
            for weights in ([0.5], [1, 1, 1], None, ["a", "b"], [0.5, -0.5], [float("nan"), 1])
        ),
        {"num_classes": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", IMAGE_GENERATORS.keys() & {"moments"})  # whose generator has all these fields
def test_a_hostile_specification_is_refused(tmp_path: Path, method: str, changed: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match="not a generator of format"):
        SavedGenerator.load(saved(tmp_path, method, **changed))


@pytest.mark.long
@EVERY
def test_weights_that_were_cut_short_are_refused(tmp_path: Path, method: str) -> None:
    path = saved(tmp_path, method) / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ArtifactError, match="not a generator of format"):
        SavedGenerator.load(tmp_path)


@EVERY
@pytest.mark.parametrize("shape", [[0, 6], [-4, -6], [600, 600]], ids=str)
def test_no_pixels_or_too_many_are_refused_before_anything_is_built(
    tmp_path: Path, method: str, shape: list[int]
) -> None:
    with pytest.raises(ArtifactError) as refusal:
        SavedGenerator.load(saved(tmp_path, method, shape=shape))
    assert "1 to 16384 values" in str(refusal.value.__cause__)
