"""What is known of one column. Kinds read it, and stand below the column that they check."""

from dataclasses import dataclass

from likeness.core.errors import SchemaError


@dataclass(frozen=True)
class ColumnFacts:
    """Public knowledge of one column, as it is written.

    Attributes:
        name: as in the header of the source, without control characters.
        kind: see :mod:`likeness.data.schema.kinds`.
        lower, upper: public bounds in units of the column: days since 1970-01-01 for dates, seconds for times; None
            for categories. Values beyond are clipped.
        categories: texts, in order.
        ordered: whether the order of the list means something: of a questionnaire, from "never" to "always".
        other: the category that takes unknown values; None refuses them.
        nullable: whether a value may be missing.
        transform: ``log1p`` spreads small values: log(1 + value - lower) is scaled instead of the value.
        missing_values: texts that mean missing, beside the empty cell.
        spikes: values that are known to be frequent (no gain, a full working week), within the bounds; methods with
            bins give each a bin of its own.
        decimals: of a ``numeric`` column, to which synthetic values are rounded: 2 for cents. None: as they are drawn.
            Cells of a release may be whole steps of it. It rounds the rows that are written.
        dtype: of the synthetic column, a word of :mod:`likeness.data.schema.dtypes`: ``int16``. None: that of the kind.
            Read when rows are written and never before.
        format: how the source writes a date or time, see :mod:`likeness.data.schema.layouts`; None for ISO 8601.
        open: the categories are not publicly known and not released yet (see
            :meth:`likeness.data.schema.schema.Schema.completed`); ``other`` takes every value that will not be among
            them.
        cuts: numbers at which a bin begins, because a rule has a threshold there. They follow from the rules.
    """

    name: str
    kind: str
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    ordered: bool = False
    other: str | None = None
    nullable: bool = False
    transform: str = "none"
    missing_values: tuple[str, ...] = ()
    spikes: tuple[float, ...] = ()
    format: str | None = None
    decimals: int | None = None
    dtype: str | None = None
    open: bool = False
    cuts: tuple[float, ...] = ()

    @property
    def bounds(self) -> tuple[float, float]:
        """``(lower, upper)`` of a column that is not categorical."""
        if self.lower is None or self.upper is None:
            raise SchemaError(f"column '{self.name}' has no bounds: it is categorical.")
        return self.lower, self.upper
