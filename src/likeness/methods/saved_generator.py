"""A trained generator on disk: weights as safetensors, everything else as JSON. No pickle."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from likeness.core.errors import ArtifactError, ParamsError
from likeness.core.hashing import sha256_bytes
from likeness.core.rng import public_seed
from likeness.generators.latent import Generator
from likeness.generators.sampling import systematic
from likeness.generators.weights import SPEC_DIGEST, check_weights
from likeness.methods import METHODS

GENERATORS: dict[str, type[Generator]] = {kind.name: kind for each in METHODS.values() for kind in each.generators()}
_MOST_PIXELS = 2**14
_DAMAGE = (
    ArithmeticError, AttributeError, IndexError, KeyError, MemoryError, RuntimeError, TypeError, ValueError
)  # fmt: skip


def _check_shapes(spec: Mapping[str, Any]) -> None:
    """Refuse images of no pixels, or of more than any generator makes, before anything is built."""
    for nested in (spec, *(value for value in spec.values() if isinstance(value, Mapping))):
        height, width = nested.get("shape", (1, 1))
        if not (height >= 1 and width >= 1 and height * width <= _MOST_PIXELS):
            raise ValueError(f"shape: height and width of images with 1 to {_MOST_PIXELS} pixels")


def _check_sizes(spec: Mapping[str, Any], weights: Path) -> None:
    """Refuse a specification whose sizes are not those of the weights, before it takes memory.

    The network is first built without memory for its weights (PyTorch's device ``meta``).
    """
    with torch.device("meta"):
        shapes = {
            name: list(value.shape)
            for name, value in GENERATORS[spec["generator"]].from_spec(dict(spec)).state_dict().items()
        }
    with safe_open(weights, "pt") as file:
        if shapes != {name: file.get_slice(name).get_shape() for name in file.keys()}:  # noqa: SIM118 (no mapping)
            raise ValueError("weights of other sizes than the specification's")


@dataclass(frozen=True)
class SavedGenerator:
    """A generator with what sampling needs.

    Attributes:
        network: in evaluation mode.
        class_weights: released class weights, shape (num_classes,).
        provenance: public facts: method, keys of the releases it was trained on, and on which machine.
    """

    network: Generator
    class_weights: tuple[float, ...]
    provenance: dict[str, Any]

    def save(self, folder: Path) -> None:
        """Write spec.json, and weights.safetensors with the digest of it: the two belong together."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.spec(), indent=1, sort_keys=True) + "\n"
        (folder / "spec.json").write_text(text)
        digest = sha256_bytes(text.encode())
        save_file(self.network.state_dict(), folder / "weights.safetensors", metadata={SPEC_DIGEST: digest})

    def spec(self) -> dict[str, Any]:
        """Everything but the weights, as JSON."""
        return {
            "format": 1,
            **self.network.spec(),
            "class_weights": list(self.class_weights),
            "provenance": self.provenance,
        }

    @classmethod
    def load(cls, folder: Path) -> "SavedGenerator":
        """Read what :meth:`save` wrote.

        Raises:
            ArtifactError: files are missing or not ours.
        """
        try:
            check_weights(folder)
            spec = json.loads((folder / "spec.json").read_text())
            _check_shapes(spec)
            _check_sizes(spec, folder / "weights.safetensors")
            network = GENERATORS[spec["generator"]].from_spec(spec)
            network.load_state_dict(load_file(folder / "weights.safetensors"))
            provenance = spec["provenance"]
            class_weights = tuple(float(weight) for weight in spec["class_weights"])
            if len(class_weights) != network.num_classes or not all(0 <= weight < math.inf for weight in class_weights):
                raise ValueError("class_weights: one for each class, none below 0")
        except FileNotFoundError as error:
            raise ArtifactError(f"{folder} holds no generator. Run: dvc repro train") from error
        except (*_DAMAGE, SafetensorError) as error:
            raise ArtifactError(f"{folder}: not a generator of format 1. Run: dvc repro train") from error
        network.eval()
        return cls(network, class_weights, provenance)

    def draw(
        self, rows: int, seed: int, label: int | None = None, cells: Mapping[int, int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw encoded rows; more rows cost no privacy.

        Args:
            rows: how many.
            seed: public; equal seeds give equal rows.
            label: the class of all rows; None: as in the data.
            cells: given categories by the place of their feature column.

        Returns:
            x of shape (rows, width), float64, and classes of shape (rows,), int64.

        Raises:
            ParamsError: the generator cannot condition on them, or they never happen in the model.
        """
        generator = torch.Generator().manual_seed(public_seed(seed, "sample"))
        weights = torch.tensor(self.class_weights, dtype=torch.float64) * self.network.class_likelihood(cells or {})
        if label is not None:
            weights = weights * (torch.arange(len(weights)) == label)
        if not float(weights.sum()) > 0:
            raise ParamsError("sample.where: the model makes no such row. Ask for something less rare.")
        labels = systematic(weights[None] / weights.sum(), torch.zeros(rows, dtype=torch.int64), generator)
        return self.network.draw(labels, generator, cells).double().numpy(), labels.numpy()
