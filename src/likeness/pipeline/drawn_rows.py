"""Rows of a generator as typed rows: under conditions, beside given values, and under the rules of the schema.

Rows that break a rule are rejected, and more are drawn. So rows come from the generator's distribution under the rules.
Classes keep the shares that were released.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from likeness.core import rng
from likeness.core.errors import ParamsError
from likeness.core.files import machine_memory
from likeness.core.text import normal_text
from likeness.core.typed import check_allowed
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.allowed import Allowed
from likeness.data.schema.column import Column
from likeness.data.schema.constrained_tables import inverse_transform, values_of
from likeness.data.schema.schema import Schema
from likeness.pipeline.where import split_conditions, with_exact_ends

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from likeness.methods.saved_generator import SavedGenerator

_PILOT = 1 << 13  # rows that tell which share of each class the rules leave
_ENOUGH = 1 << 14  # rows that must be drawn before rules are said to reject too many
_LEAST = 1e-3  # the smallest share of drawn rows that may remain


class Rejected(NamedTuple):
    """The drawn rows that break a rule or do not meet a condition.

    Attributes:
        by: the rows, by the words for what rejects them.
        rows: number of all drawn rows.
    """

    by: "dict[str, NDArray[np.bool_]]"
    rows: int

    @property
    def mask(self) -> "NDArray[np.bool_]":
        """Rows that something rejects."""
        rejected: NDArray[np.bool_] = np.logical_or.reduce([np.zeros(self.rows, dtype=bool), *self.by.values()])
        return rejected

    def refusal(self) -> ParamsError:
        """It names what rejects most: a fact about synthetic rows."""
        most = max(self.by, key=lambda reason: int(self.by[reason].sum()))
        return ParamsError(
            "sample: less than a thousandth of the drawn rows keep all rules and conditions. Most are rejected by "
            f"{most}. Correct the rule, or ask for something less rare."
        )


@dataclass(frozen=True)
class DrawnRows:
    """Typed rows of a generator.

    Attributes:
        saved: the generator.
        schema: of the table.
    """

    saved: "SavedGenerator"
    schema: Schema

    def draw_where(self, rows: int, seed: int, conditions: Mapping[str, Allowed]) -> pd.DataFrame:
        """Rows that meet conditions and keep all rules of the schema.

        A condition on a computed column becomes one on a modeled column where it can. Else it rejects rows.

        Args:
            rows: number of rows.
            seed: public.
            conditions: what columns may hold.

        Raises:
            ParamsError: less than a thousandth of the drawn rows remain, or the model makes no such row.
            MemoryError: so many rows do not fit in memory.
        """
        if 8 * rows * len(self.schema.columns) > machine_memory():  # else the system may end other programs, too
            raise MemoryError
        exact, rest = self.schema.constrained_table.translate(conditions)
        if any(values.is_nothing for values in exact.values()):
            raise ParamsError("sample.where: the rules of the schema leave no such row. Ask for other values.")
        if not self.schema.rules:
            return self._draw_modeled(self.saved, rows, seed, exact)
        saved, share = self._balanced_generator
        share = 1.0 if conditions else share
        # Three standard deviations more than are expected to remain: one draw is mostly enough.
        batch = math.ceil((rows + 3 * math.sqrt(rows * (1 - share))) / share)
        pieces: list[pd.DataFrame] = []
        drawn, left = 0, rows
        for attempt in count():
            stream = rng.public_seed(seed, f"sample.rules.{attempt}") if attempt else seed
            table, rejected = self._complete(self._draw_modeled(saved, batch, stream, exact), rest)
            pieces.append(table[~rejected.mask].head(left))
            drawn, left = drawn + batch, left - len(pieces[-1])
            if not left:
                break
            share = (rows - left) / drawn
            if drawn >= _ENOUGH and share < _LEAST:
                raise rejected.refusal()
            batch = min(math.ceil(1.1 * left / max(share, _LEAST)), max(rows, _ENOUGH))
        return pd.concat(pieces, ignore_index=True)

    def complete(self, frame: pd.DataFrame, seed: int) -> pd.DataFrame:
        """Rows that have the values of a frame in its columns, row by row; a missing cell stays missing.

        Args:
            frame: some columns of the table. The values become part of the result, typed as the schema says.
            seed: public.

        Raises:
            ParamsError: there is no column, one is not in the schema, the values break a rule, or the model makes no
                such row.
            DataError: a value breaks the schema's rule for its column.
        """
        from likeness.data.source.files import read_frame

        schema = self.schema
        if frame.columns.empty:
            raise ParamsError("sample.where: the frame has no column. Give some columns of the schema.")
        names = [normal_text(str(label)) for label in frame.columns]
        for name in names:
            check_allowed("sample.where", name, schema.names)
        part = schema.select(names)
        typed = read_frame(frame, part, "where", exact=True)
        values = values_of(typed, part.columns)
        for rule in schema.rules:
            if set(rule.columns) <= set(values) and rule.violations(values).any():
                raise ParamsError(f"sample.where: a row of the frame breaks {rule}. Correct its values.")
        cells_of_rows = np.stack([*map(_cells, values.values())])
        different, rows, counts = np.unique(cells_of_rows, axis=1, return_inverse=True, return_counts=True)
        of_each = np.split(np.argsort(rows.reshape(-1), kind="stable"), counts.cumsum()[:-1])
        groups = []
        for index, (cells, alike) in enumerate(zip(different.T, of_each, strict=False)):
            stream = rng.public_seed(seed, f"sample.where.{index}")
            wanted = {
                column.name: _cell_condition(value, column) for column, value in zip(part.columns, cells, strict=True)
            }
            groups.append((alike, stream, wanted))
        if schema.rules:
            pieces = [self.draw_where(len(alike), stream, wanted).set_axis(alike) for alike, stream, wanted in groups]
            table = pd.concat(pieces).sort_index()
        else:  # decoded at once, which is faster
            x, labels = np.empty((len(typed), self._encoder.layout.width)), np.empty(len(typed), dtype=np.int64)
            for alike, stream, wanted in groups:
                x[alike], labels[alike] = self.saved.draw(len(alike), stream, *split_conditions(wanted, schema))
            table = self._encoder.decode(x, labels)
        for name in typed.columns:
            table[name] = typed[name]  # in spite of the last digit
        return table.set_axis(frame.index)

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self.schema.model_schema)

    def _draw_modeled(
        self, saved: "SavedGenerator", rows: int, seed: int, conditions: Mapping[str, Allowed]
    ) -> pd.DataFrame:
        """Drawn rows of the modeled columns."""
        x, labels = saved.draw(rows, seed, *split_conditions(conditions, self.schema.model_schema))
        return with_exact_ends(self._encoder.decode(x, labels), conditions, self.schema.model_schema)

    def _complete(self, modeled: pd.DataFrame, rest: Mapping[str, Allowed]) -> tuple[pd.DataFrame, Rejected]:
        """Rows with all columns of the table, and which of them are rejected."""
        table, rejected = inverse_transform(modeled, self.schema)
        columns = [self.schema.column(name) for name in rest]
        for column, values in zip(columns, values_of(table, columns).values(), strict=True):
            rejected[f"sample.where.{column.name}"] = ~rest[column.name].holds(values, column)
        return table, Rejected(rejected, len(table))

    @cached_property
    def _balanced_generator(self) -> "tuple[SavedGenerator, float]":
        """The generator with class weights that rejection turns into the released ones, and the share that remains.

        The released shares of classes are more accurate than their shares among the rows that the rules leave.
        """
        weights = np.array(self.saved.class_weights)
        even = replace(self.saved, class_weights=(1 / len(weights),) * len(weights))
        table, rejected = self._complete(self._draw_modeled(even, _PILOT, 0, {}), {})
        labels: NDArray[np.int64] = np.zeros(len(table), dtype=np.int64)
        if len(weights) > 1:
            labels = np.asarray(table[str(self.schema.label)].cat.codes, dtype=np.int64)
        drawn, remain = (np.bincount(rows, minlength=len(weights)) for rows in (labels, labels[~rejected.mask]))
        shares = (remain + 1) / (drawn + 1)  # of many classes each has few rows
        if (shares < _LEAST).any():
            raise rejected.refusal()
        balanced = weights / weights.sum() / shares
        # Rounding may lift a share of 1 above it.
        return replace(self.saved, class_weights=tuple(balanced.tolist())), min(1.0, float(1 / balanced.sum()))


def _cells(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Values with -inf for missing, which equals itself."""
    return np.where(np.isnan(values), -math.inf, values)


def _cell_condition(value: float, column: Column) -> Allowed:
    """The condition that a cell of :func:`_cells` is."""
    if value == -math.inf:
        return Allowed(missing=True)
    return Allowed(frozenset([int(value)])) if column.is_categorical else Allowed(ranges=((value, value),))
