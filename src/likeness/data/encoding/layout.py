"""The place of each feature column in the dense encoded vector. It is public and needs the schema and numpy only.

Blocks follow the feature columns of the schema:

- ``unit``: one coordinate in [0, 1], a scaled number;
- ``indicator``: one coordinate in {0, 1} right after the unit of a nullable number, 1 where the number is missing;
- ``onehot``: one coordinate a category, exactly one of them 1; a nullable column has a last place for missing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import SchemaError
from likeness.core.hashing import sha256_json
from likeness.data.schema.rules import rules_section
from likeness.data.schema.schema import Schema

BLOCK_KINDS = ("unit", "indicator", "onehot")


@dataclass(frozen=True)
class Block:
    """Coordinates ``start`` (included) to ``stop`` (excluded) of one column."""

    column: str
    kind: str
    start: int
    stop: int

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return self.stop - self.start


@dataclass(frozen=True)
class Layout:
    """Blocks of the encoded vector, and the number of classes (1 unless the task is classification)."""

    blocks: tuple[Block, ...]
    num_classes: int

    def __post_init__(self) -> None:
        start = 0
        for block in self.blocks:
            valid = block.kind in BLOCK_KINDS
            if not valid or block.start != start or block.width < 1 or (block.kind != "onehot" and block.width != 1):
                raise SchemaError(
                    f"layout: the block of column '{block.column}' does not follow the one before it. Run: likeness run"
                )
            start = block.stop
        if not self.blocks or self.num_classes < 1:
            raise SchemaError("layout: needs at least one block and one class. Run: likeness run")

    @classmethod
    def from_schema(cls, schema: Schema) -> "Layout":
        """Blocks of the feature columns, in schema order."""
        blocks: list[Block] = []
        for column in schema.feature_columns:
            start = blocks[-1].stop if blocks else 0
            if column.is_categorical:
                blocks.append(Block(column.name, "onehot", start, start + column.width))
                continue
            blocks.append(Block(column.name, "unit", start, start + column.width - column.nullable))
            if column.nullable:
                blocks.append(Block(column.name, "indicator", start + 1, start + 2))
        return cls(tuple(blocks), len(schema.classes))

    def with_modes(self, sizes: Mapping[int, int]) -> "Layout":
        """The layout with a one-hot block of modes before some units: how many, by the coordinate of the unit."""
        blocks: list[Block] = []
        for block in self.blocks:
            start = blocks[-1].stop if blocks else 0
            if block.start in sizes:
                blocks.append(Block(block.column, "onehot", start, start + sizes[block.start]))
                start = blocks[-1].stop
            blocks.append(Block(block.column, block.kind, start, start + block.width))
        return Layout(tuple(blocks), self.num_classes)

    @property
    def width(self) -> int:
        """d, the number of encoded coordinates."""
        return self.blocks[-1].stop

    @property
    def starts(self) -> dict[str, int]:
        """First coordinate of each column, by its name."""
        starts: dict[str, int] = {}
        for block in self.blocks:
            starts.setdefault(block.column, block.start)
        return starts

    @property
    def diameter(self) -> float:
        r"""Bound on the distance of two encoded records: :math:`\sqrt{\#unit + \#indicator + 2\,\#onehot}`.

        Two units differ by at most 1, two indicators by at most 1, and two one-hot blocks by 0 or :math:`\sqrt 2`.
        The bound is reached if no number is nullable and each one-hot block has two places or more. A missing number
        stands at 0.5, so a nullable number moves by at most :math:`\sqrt{1.25}` and not :math:`\sqrt 2`.
        """
        return math.sqrt(sum(2 if block.kind == "onehot" else 1 for block in self.blocks))

    @property
    def numeric_columns(self) -> NDArray[np.int64]:
        """Indices of unit and indicator coordinates, ascending. All others are one-hot."""
        return self._indices("unit", "indicator")

    @property
    def onehot_columns(self) -> NDArray[np.int64]:
        """Indices of one-hot coordinates, ascending."""
        return self._indices("onehot")

    def _indices(self, *kinds: str) -> NDArray[np.int64]:
        indices = [i for block in self.blocks if block.kind in kinds for i in range(block.start, block.stop)]
        return np.array(indices, dtype=np.int64)


def encoding_digest(schema: Schema) -> str:
    """Digest of all facts that shape encoded rows. Another bound, label or rule gives another release."""
    columns = [{"name": column.name, **column.encoding()} for column in schema.columns]
    label = schema.label if schema.task == "classification" else None
    return sha256_json({"columns": columns, "label": label, **rules_section(schema.rules)})


@dataclass(frozen=True)
class Condition:
    """The values that a feature column of every drawn row may hold; anything else has probability 0.

    Attributes:
        categories: indices of the allowed ones, for a column with categories. A missing category is the last index.
        intervals: allowed parts of a number's unit scale, ascending and apart; both ends belong to them.
        missing: whether a number may be missing.
    """

    categories: tuple[int, ...] = ()
    intervals: tuple[tuple[float, float], ...] = ()
    missing: bool = False


Conditions = Mapping[int, Condition]
"""By the place of the feature column in the schema."""
NONE: Conditions = MappingProxyType({})
