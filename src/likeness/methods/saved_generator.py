"""A trained generator on disk: weights as safetensors, everything else as JSON. No pickle."""

import json
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as tensors

from likeness.core import rng
from likeness.core.errors import ArtifactError, ParamsError
from likeness.core.format import FORMAT, check_known
from likeness.core.hashing import sha256_bytes
from likeness.data.encoding.layout import NONE, Conditions
from likeness.generators.base import SPEC_DIGEST, Generator, check_weights, systematic
from likeness.methods import METHODS, method_named

GENERATORS: dict[str, Callable[[], type[Generator]]] = {
    name: load for method in METHODS.values() for name, load in method.generators.items()
}
_MOST_VALUES = 2**14
_DAMAGE = (
    ArithmeticError, AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError
)  # fmt: skip


def _check_shapes(spec: Mapping[str, Any]) -> None:
    """Refuse images of no pixels, or of more than any generator makes, before anything is built."""
    for nested in (spec, *(value for value in spec.values() if isinstance(value, Mapping))):
        shape = list(nested.get("shape", (1, 1)))
        if len(shape) not in (2, 3) or shape[2:] not in ([], [3]) or min(shape) < 1 or math.prod(shape) > _MOST_VALUES:
            raise ValueError(f"shape: height, width and perhaps 3 of images with 1 to {_MOST_VALUES} values")


def _kind(spec: Mapping[str, Any]) -> type[Generator]:
    """The class of a specification; that of a plug-in is known to the method that trained it."""
    name = spec["generator"]
    return (GENERATORS if name in GENERATORS else method_named(spec["provenance"]["method"]).generators)[name]()


def _check_sizes(spec: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]) -> None:
    """Refuse a specification whose sizes are not those of the weights, before it takes memory."""
    if _kind(spec).shapes(spec) != {name: array.shape for name, array in weights.items()}:
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
        (folder / "spec.json").write_bytes(text.encode())
        metadata = {SPEC_DIGEST: sha256_bytes(text.encode())}
        (folder / "weights.safetensors").write_bytes(tensors.save(self.network.arrays(), metadata=metadata))

    def spec(self) -> dict[str, Any]:
        """Everything but the weights, as JSON."""
        return {
            "format": FORMAT,
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
            spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
            check_known(spec, ("format",), f"{folder.name}/spec.json", ArtifactError)
            _check_shapes(spec)
            weights = tensors.load((folder / "weights.safetensors").read_bytes())
            _check_sizes(spec, weights)
            network = _kind(spec).from_spec(spec)
            network.load(weights)
            provenance = spec["provenance"]
            class_weights = tuple(float(weight) for weight in spec["class_weights"])
            if len(class_weights) != network.num_classes or not all(0 <= weight < math.inf for weight in class_weights):
                raise ValueError("class_weights: one for each class, none below 0")
        except FileNotFoundError as error:
            raise ArtifactError(f"{folder} holds no generator. Run: likeness run") from error
        except (*_DAMAGE, ParamsError, SafetensorError) as error:
            raise ArtifactError(f"{folder}: not a generator of format {FORMAT}. Run: likeness run") from error
        return cls(network, class_weights, provenance)

    def draw(
        self, rows: int, seed: int, classes: Collection[int] = (), conditions: Conditions = NONE
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Draw encoded rows; more rows cost no privacy.

        Args:
            rows: how many.
            seed: public; equal seeds give equal rows.
            classes: the allowed ones; none: all.
            conditions: on feature columns, by their index.

        Returns:
            x of shape (rows, width), float64, and classes of shape (rows,), int64.

        Raises:
            ParamsError: the generator cannot condition on them, or they never happen in the model.
        """
        random = rng.public(seed, "sample")
        weights = np.array(self.class_weights) * self.network.class_likelihood(conditions)
        if classes:
            weights *= np.isin(np.arange(len(weights)), list(classes))
        if not weights.sum() > 0:
            raise ParamsError("sample.where: the model makes no such row. Ask for something less rare.")
        labels = systematic(weights[None] / weights.sum(), np.zeros(rows, dtype=np.int64), random)
        return self.network.draw(labels, random, conditions), labels
