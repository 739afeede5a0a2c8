"""Feature maps: bounded functions of one record, fixed by public numbers before any record is read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.extras import torch
from likeness.core.hashing import json_value

if TYPE_CHECKING:
    from torch import Tensor

    from likeness.features.cells import Cells


class FeatureMap(Protocol):
    """A map from inputs (n, d) to features (n, width).

    The same object is called by the door on private rows (float64) and by the objective on generated rows (float32,
    with gradients). Its ``bounded_parts`` are proved in its docstring and enforced by the door. A map that
    trains a network takes and gives tensors, others arrays (:func:`evaluate`).
    """

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        """Bounds of consecutive coordinates; their widths sum to the feature's width."""

    def __call__(self, x: Any) -> Any:
        """Map inputs, shape (n, d), to features, shape (n, width)."""

    def spec(self) -> dict[str, Any]:
        """Public specification as JSON, enough for :func:`likeness.methods.maps.from_spec` to build the map again."""


@runtime_checkable
class CellMap(FeatureMap, Protocol):
    """A map with one cell in each part: the door counts places, and needs no vectors."""

    def cell_indices(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """Coordinate within each part, shape (n, parts), each within 0 ... width of the part - 1.

        Rows come as they are encoded, not rounded to the door's grid, in blocks of any size. A map that does more than
        compare must round them itself. Otherwise its sums would depend on the block.
        """


@runtime_checkable
class TablesMap(CellMap, Protocol):
    """A map whose parts are tables: a coordinate counts a cell of some columns, times the unit of its part."""

    @property
    def axes(self) -> "tuple[tuple[Cells, ...], ...]":
        """The columns of each part. The cells of the last one are side by side."""


class Candidate(NamedTuple):
    """The score of one candidate: the largest window of each group of a table, summed, minus an offset.

    Attributes:
        table: its number.
        windows: first cell and one past the last, of each window.
        offset: public.
    """

    table: int
    windows: tuple[tuple[int, int], ...]
    offset: int


@runtime_checkable
class CandidatesMap(FeatureMap, Protocol):
    """Public candidates for choices (:mod:`likeness.release.choices`). The map only says where a record lies."""

    @property
    def candidates(self) -> Sequence[Candidate]:
        """The score of each, in the published order."""

    @property
    def tables(self) -> Sequence[tuple[int, int]]:
        """Groups of each table, and cells of each group."""

    def cells_of_rows(self, x: Any) -> Iterable[NDArray[np.int64]]:
        """For each table the cell of each row, shape (n,), those of a group side by side; others count nothing."""

    def remaining(self, chosen: Sequence[int]) -> Sequence[int]:
        """The candidates that do not follow from those that are chosen, ascending."""


@runtime_checkable
class MeanMap(FeatureMap, Protocol):
    """A map with a faster way to its mean over generated rows. The door still maps each row."""

    def means(self, x: "Tensor", counts: list[int]) -> "Tensor":
        """Mean features of consecutive groups of ``counts`` rows of x, shape (groups, width), with gradients."""


@runtime_checkable
class OuterMap(FeatureMap, Protocol):
    """A map of one part, made of outer products: their sums are matrix products and need no vectors."""

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Widths (a, b) of both factors of each block; the sum of a · b is the feature's width."""

    def factors(self, x: "Tensor") -> "tuple[tuple[Tensor, Tensor], ...]":
        """Factors of each block, shapes (n, a) and (n, b), from inputs (n, d).

        Coordinate i · b + j of a block is ``left[i] · right[j]``. Left factors have norm at most 1, and the squared
        norms of the right ones sum to at most the part's bound.
        """


@runtime_checkable
class UnitOuterMap(OuterMap, Protocol):
    """A map that divides each vector by its norm: a sum over rows needs one factor a row."""

    def products(self, x: "Tensor") -> "tuple[tuple[Tensor, Tensor], ...]":
        """Factors of each block before the division, shapes (n, a) and (n, b). Left factors have no gradient in x."""


@runtime_checkable
class PairedMap(FeatureMap, Protocol):
    """A map whose last parts are products of pairs of columns: their sums are one matrix product a class."""

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Places of both columns of each of the last parts, whose bounds are alike; empty: no such products."""

    @property
    def column_sizes(self) -> tuple[int, ...]:
        """Features of each column that :meth:`paired_features` returns."""

    def paired_features(self, x: "Tensor") -> "tuple[Tensor, tuple[Tensor, ...]]":
        """Coordinates of the parts before, shape (n, a), and features of each column, shapes (n, b), of norm at most 1.

        Coordinate i · b + j of a product's part is ``first[i] · second[j]`` times the root of the part's bound.
        """


@runtime_checkable
class ProductsMap(PairedMap, Protocol):
    """A map of products of two columns alone. The feature of a column depends on its cell."""

    @property
    def columns(self) -> "tuple[Cells, ...]":
        """Cells of each column."""

    @property
    def features(self) -> "tuple[NDArray[np.float64], ...]":
        """The feature of each cell of each column, shapes (cells, slots), of norm at most 1."""

    def contents(self) -> list[NDArray[np.float64]]:
        """The feature of each cell of each column as the door sums it, shapes (cells, slots)."""

    def blocks(self, values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """The sums of each pair, shapes (slots of i, slots of j), from released sums (1, width)."""


class Map(FeatureMap):
    """The base of maps that are dataclasses: a specification that lists their fields, and what others may check.

    ``name`` stands in the specification and in the registry of maps. ``takes_tensors`` says what the map computes with.
    """

    name: ClassVar[str]
    takes_tensors: ClassVar[bool] = True

    def spec(self) -> dict[str, Any]:
        """Public specification as JSON, made once. A field that equality ignores is left out."""
        if "_spec" not in vars(self):
            names = [item.name for item in fields(self) if item.compare]  # type: ignore[arg-type]
            vars(self)["_spec"] = {"map": self.name, **{name: json_value(getattr(self, name)) for name in names}}
        return dict(vars(self)["_spec"])

    def differences(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Differences of numbers that the map gives twice, in released sums (num_groups, width): noise only."""
        return values[:, :0]


class OneHotMap(CellMap, Map):
    """A map of cells: each part holds its unit at one place and 0 elsewhere.

    ``takes_codes``: its ``cell_indices`` also take :class:`likeness.features.cells.CodedRows`.
    """

    takes_tensors: ClassVar[bool] = False
    takes_codes: ClassVar[bool] = False

    def __call__(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Dense features, shape (n, width): for small tables, and for tests of the sparse path."""
        features = np.zeros((len(x), width(self)))
        start, rows = 0, np.arange(len(x))
        for part, cells in zip(self.bounded_parts, self.cell_indices(x).T, strict=True):
            features[rows, start + cells] = part.unit
            start += part.width
        return features


def evaluate(feature: FeatureMap, function: Callable[[Any], Any], x: NDArray[np.float64]) -> Any:
    """Apply a function of a map to inputs, and give the results as arrays.

    Args:
        feature: the map.
        function: the map itself, or its ``factors`` or ``paired``.
        x: inputs, shape (n, d).
    """
    if not getattr(feature, "takes_tensors", True):
        return function(x)
    with torch.no_grad():
        return _arrays(function(torch.from_numpy(x)))


def _arrays(result: Any) -> Any:
    return tuple(_arrays(item) for item in result) if isinstance(result, tuple) else result.numpy()


def convert_once(
    holder: object, name: str, x: "Tensor", values: "Callable[[], Tensor | NDArray[np.float64]]"
) -> "Tensor":
    """Public numbers in the type and on the device of x, converted once for each of both.

    Args:
        holder: what the numbers belong to; it keeps them.
        name: of the numbers, one of the holder's.
        x: any tensor of that type and device.
        values: makes them, in float64.
    """
    cache = vars(holder).setdefault("_converted", {})
    key = (name, x.dtype, x.device)
    if key not in cache:
        cache[key] = torch.as_tensor(values()).to(x)
    result: Tensor = cache[key]
    return result


def columns_of(x: "Tensor", indices: tuple[int, ...]) -> "Tensor":
    """Some columns of x (n, d); a view where they stand side by side, as all pixels of an image do."""
    first, count = (indices[0], len(indices)) if indices else (0, 0)
    side_by_side = indices == tuple(range(first, first + count))
    return x[:, first : first + count] if side_by_side else x[:, list(indices)]


def width(feature: FeatureMap) -> int:
    """Number of coordinates of a feature."""
    return sum(part.width for part in feature.bounded_parts)


def blocks_of(parts: tuple[Part, ...], values: NDArray[Any]) -> Iterator[tuple[Part, NDArray[Any]]]:
    """Each part with its columns of released sums, shape (num_groups, width)."""
    start = 0
    for part in parts:
        yield part, values[:, start : start + part.width]
        start += part.width
