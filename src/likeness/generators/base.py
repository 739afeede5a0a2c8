"""Generators: what draws encoded rows. Their weights leave and enter as arrays of numpy."""

import inspect
import json
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from likeness.core.errors import ArtifactError, ParamsError
from likeness.core.format import FORMAT
from likeness.core.hashing import json_value, sha256_bytes
from likeness.data.encoding.layout import NONE, Conditions
from likeness.features.cells import Cells

Arrays = dict[str, NDArray[Any]]
"""Weights by name, as a file of safetensors holds them."""


class Compute(NamedTuple):
    """The settings of how and where a generator is trained: section ``train`` of params.yaml."""

    device: str = "auto"
    threads: int = 1
    precision: str = "float32"


class Trained(NamedTuple):
    """The result of a training.

    Attributes:
        generator: ready to draw.
        environment: what the bits of its weights depend on, beside settings, seeds and the processor's vendor. Other
            machines round otherwise, and after hundreds of steps their weights differ. They are as good. On CUDA also
            the model of the GPU, and the versions of CUDA and cuDNN.
        losses: (iteration, loss) a hundred times.
    """

    generator: "Generator"
    environment: dict[str, Any]
    losses: list[tuple[int, float]]


def environment() -> dict[str, Any]:
    """The environment of a training on arrays, see :class:`Trained`: numpy, and the kernels of its matrix products."""
    kernels = [str(pool["architecture"]) for pool in threadpool_info() if "architecture" in pool]
    return {
        "numpy": np.__version__,
        "device": "cpu",
        "processor": f"{platform.machine()} {kernels[0] if kernels else 'unknown'}",
    }


class DrawsRest(Protocol):
    """Draws columns of a row, given the others."""

    def draw(self, x: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
        """Dense encoded rows (n, width) that hold the drawn columns.

        Args:
            x: dense encoded rows (n, width) that hold the given columns.
            random: public.
        """

    def alike(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """A number for each row (n,); rows with equal numbers are drawn from equal distributions."""

    def draw_within(self, drawn: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
        """Other values from the cells of drawn rows."""


class Generator(ABC):
    """A trained generator, which draws encoded rows.

    Attributes:
        name: in the specification, and in the registry of generators.
        readers: functions that make an argument from its JSON form.
        num_classes: 1 for a table without a class label.
    """

    name: ClassVar[str]
    readers: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    num_classes: int

    @abstractmethod
    def arrays(self) -> Arrays:
        """The weights."""

    @abstractmethod
    def load(self, arrays: Arrays) -> None:
        """Take over weights of the generator's :meth:`shapes`."""

    @classmethod
    def shapes(cls, spec: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """Shape of each array that a specification asks for, without memory for them.

        By default those of a new generator, whose arrays must not take memory before they are set.
        """
        return {name: array.shape for name, array in cls.from_spec(spec).arrays().items()}

    def class_likelihood(self, conditions: Conditions) -> NDArray[np.float64]:
        """Probability of the conditions in each class, up to a common factor, shape (num_classes,).

        By default there must be none.

        Raises:
            ParamsError: the generator cannot condition on them.
        """
        if conditions:
            raise ParamsError(
                "sample.where may name the label only: this generator takes no other column. "
                "Remove the others, or train another method."
            )
        return np.ones(self.num_classes)

    @property
    def table_cells(self) -> tuple[Cells, ...]:
        """Cells of each feature column, if :meth:`table` knows their joint probabilities. None by default."""
        return ()

    def table(self, columns: tuple[Cells, ...]) -> NDArray[np.float64]:
        """Probability of each cell of some :attr:`table_cells` columns by class, shape (num_classes, cells of each)."""
        raise NotImplementedError

    @property
    def support(self) -> tuple[tuple[float, float], ...]:
        """The least and the largest value on the unit scale that each tabled column has; (0, 1) of categories."""
        return ()

    def pairs(self, indices: Iterable[tuple[int, int]], records: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Expected counts of pairs of :attr:`table_cells` columns, shapes (num_classes, cells, cells), by class.

        By default one table after the other.
        """
        for i, j in indices:
            yield self.table((self.table_cells[i], self.table_cells[j])) * records[:, None, None]

    @abstractmethod
    def draw(
        self, labels: NDArray[np.int64], random: np.random.Generator, conditions: Conditions = NONE
    ) -> NDArray[np.float64]:
        """Encoded rows (n, width) of classes (n,) that meet the conditions, from public randomness."""

    def conditional(self, indices: Sequence[int]) -> "DrawsRest":
        """Return a sampler that draws the other columns of a row, given some.

        Args:
            indices: of the columns whose cells are given.
        """
        raise NotImplementedError

    def spec(self) -> dict[str, Any]:
        """Everything but the weights, as JSON: the arguments of the constructor."""
        return {"generator": self.name, **{name: json_value(self.argument(name)) for name in _arguments(type(self))}}

    def argument(self, name: str) -> Any:
        """An argument of the constructor: the attribute of that name."""
        return getattr(self, name)

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        """Inverse of :meth:`spec`."""
        arguments = {name: spec[name] for name in _arguments(cls) if name in spec}
        return cls(**{name: cls.readers.get(name, lambda plain: plain)(value) for name, value in arguments.items()})


def _arguments(kind: type[Generator]) -> list[str]:
    return list(inspect.signature(kind).parameters)


SPEC_DIGEST = "spec_sha256"  # key in the metadata of weights.safetensors


def check_weights(folder: Path) -> None:
    """Refuse weights that were not saved with the specification beside them.

    Raises:
        ArtifactError: the files do not belong together, or one is missing or damaged.
    """
    try:
        spec = (folder / "spec.json").read_bytes()
        with (folder / "weights.safetensors").open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(size, 1 << 24)))
        digest = header["__metadata__"][SPEC_DIGEST]
    except FileNotFoundError as error:
        raise ArtifactError(f"{error.filename} is missing. Run: likeness run") from None
    except (KeyError, ValueError, TypeError):
        raise ArtifactError(f"{folder}: not a generator of format {FORMAT}. Run: likeness run") from None
    if digest != sha256_bytes(spec):
        raise ArtifactError(f"{folder}: weights.safetensors was not saved with spec.json. Run: likeness run")


_ROWS = 8192  # rows compared at once
_BELOW_ONE = 1 - 2.0**-53  # a point that rounds to 1 would fall behind the last category of positive probability


def systematic(
    probabilities: NDArray[np.float64], groups: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """One category a row, by systematic sampling within groups of rows that share their probabilities.

    In each row a category has exactly its probability. Together, the rows of a group hold each category as often as
    expected, give or take one (Madow 1949). Synthetic marginals scatter less than by independent draws.

    Args:
        probabilities: of each group, shape (num_groups, categories), rows sum to 1.
        groups: group of each row, shape (n,), int64.
        random: public randomness.

    Returns:
        category of each row, shape (n,), int64.
    """
    points = places_within(len(probabilities), groups, random)
    ends = probabilities.cumsum(axis=1)
    ends /= np.maximum(ends[:, -1:], np.finfo(np.float64).tiny)  # a group without probability has no rows
    chosen = np.empty(len(groups), dtype=np.int64)
    for start in range(0, len(groups), _ROWS):
        block = slice(start, start + _ROWS)
        chosen[block] = (points[block, None] >= ends[groups[block], :-1]).sum(axis=1)
    return chosen


def places_within(num_groups: int, groups: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.float64]:
    """Places of rows in [0, 1): those of a group are evenly spaced from a random start, in random order."""
    order = random.permutation(len(groups))  # who comes first, within a group, is chance
    order = order[np.argsort(groups[order], kind="stable")]
    counts = np.bincount(groups, minlength=num_groups)
    starts = np.cumsum(counts) - counts
    group = groups[order]
    rank = np.arange(len(groups)) - starts[group]
    points = np.empty(len(groups))
    points[order] = np.minimum((rank + random.random(num_groups)[group]) / counts[group], _BELOW_ONE)
    return points
