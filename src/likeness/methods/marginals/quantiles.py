"""A released histogram of numbers: edges of bins at its quantiles, and how values lie within a bin."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.config.typed import Section, require, setting
from likeness.core.errors import PlanError, ReleaseError
from likeness.data.encoding.bins import Grid, grid_of, spike_bins
from likeness.data.encoding.quantile_bins import quantile_bins
from likeness.data.schema.column import Column
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals
from likeness.methods.base import Context, Measured, together
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.released import Released

QUANTILES = "quantiles"
_KEY = "marginals.auxiliary.quantiles"
MOST_CELLS = 1024


@dataclass(frozen=True)
class Quantiles(Section):
    """Section ``marginals.auxiliary.quantiles``. ``all`` is refused where no number has more cells than bins."""

    NAMES: ClassVar[tuple[str, ...]] = ("none", "auto", "all")
    columns: str | tuple[str, ...] = setting(
        "auto", "auto: every number with more cells than bins; all, or a list of names; none, with shares.quantiles 0"
    )
    cells: int = setting(
        256, "of equal width on each column's public scale, beside those of its spikes", least=2, most=MOST_CELLS
    )
    edges: str = setting(
        "equal_width",
        "equal_width | learned: bins between quantiles; see docs/marginals.md",
        options=("learned", "equal_width"),
    )

    def __post_init__(self) -> None:
        """Check ranges."""
        super().__post_init__()
        columns = self.columns
        listed = isinstance(columns, tuple) and len(set(columns)) == len(columns) >= 1
        rule = "none, auto, all or a list of different names"
        require(listed or columns in self.NAMES, f"{_KEY}.columns", columns, rule)

    @property
    def on(self) -> bool:
        """Whether there may be such a release."""
        return self.columns != "none"

    def check(self, context: Context, bins: int) -> None:
        """Refuse columns that have nothing to learn.

        Raises:
            PlanError: naming them.
        """
        if self.columns in ("none", "auto"):
            return
        possible = self._possible(context, bins)
        if not possible:
            raise PlanError(
                f"{_KEY}.columns is {self.columns}, but no numeric feature column has more cells than bins. Set auto, "
                "or none."
            )
        for name in self.columns if isinstance(self.columns, tuple) else ():
            if name not in possible:
                raise PlanError(
                    f"{_KEY}.columns: '{name}' is no numeric feature column with more cells than bins. There are: "
                    f"{', '.join(possible)}."
                )

    def shares(self, context: Context, bins: int, share: float) -> list[QueryShare]:
        """The one release, or none."""
        return [QueryShare(QUANTILES, "auxiliary", share)] if self._chosen(context, bins) else []

    def measure(self, query: Query, sigma: float, bins: int) -> Measured:
        """How well the histogram gives learned edges or, without them, how values lie within bins."""
        cells = max(part.width for part in query.parts)
        if self.edges == "equal_width":
            return Measured(f"share in one of {cells} cells, where noise alone is evened out", sigma, 1 / cells, False)
        # Half of the cells are below the edge in the middle; an edge may be wrong by a part of a bin.
        of = f"share below an edge among {cells} cells, against that of a bin"
        return Measured(of, sigma * cells**0.5 / 2, 1 / bins, True)

    def queries(self, context: Context, bins: int) -> list[Query]:
        """Fine histograms of all chosen columns, in one release."""
        starts = context.layout.starts
        chosen = self._chosen(context, bins)
        cells = tuple(cells_of_number(column, starts[column.name], grid) for column, grid in chosen)
        if not cells:
            return []
        return [Query(QUANTILES, "auxiliary", ColumnMarginals(cells), contributions=together(context))]

    def grids(self, context: Context, released: Mapping[str, Released], bins: int) -> dict[str, Grid | None]:
        """Bins of the chosen columns by name: post-processing. None: bins of equal width.

        There are as many as :func:`likeness.data.encoding.bins.grid_of` makes of equal width. None are learned where
        the noise hides the quantiles.

        Raises:
            ReleaseError: the released histogram is one of other columns or cells.
        """
        grids: dict[str, Grid | None] = {}
        if self.edges == "equal_width":
            return {column.name: None for column, _ in self._chosen(context, bins)}
        for column, fine, cells, counts, scale in self._histograms(context, released, bins):
            firsts = learned_bins(column, cells, counts, scale, grid_of(column, bins).size)
            grids[column.name] = None if firsts is None else fine.joined(firsts)
        return grids

    def pieces(
        self, context: Context, released: Mapping[str, Released], bins: int
    ) -> dict[str, tuple[Grid, tuple[int, ...], tuple[float, ...]]]:
        """How the values of the chosen columns lie within their bins, by name: post-processing.

        Raises:
            ReleaseError: the released histogram is one of other columns or cells.

        Returns:
            grid of the histogram, the first of its cells in each bin, share of each cell in its bin. A column is left
            out if its bins cut cells.
        """
        grids, pieces = self.grids(context, released, bins), {}
        for column, fine, _, counts, scale in self._histograms(context, released, bins):
            firsts = fine.firsts_of((grids[column.name] or grid_of(column, bins)).inner)
            if firsts is not None:
                pieces[column.name] = fine, firsts, shares_within(firsts, counts[: fine.size], scale)
        return pieces

    def _histograms(
        self, context: Context, released: Mapping[str, Released], bins: int
    ) -> Iterator[tuple[Column, Grid, Cells, NDArray[np.int64], float]]:
        """Column, fine grid, cells, noisy counts in lattice steps, and σ in the same unit."""
        for query in self.queries(context, bins):
            answer = released[QUANTILES]
            feature = asked_columns(answer)
            if feature != query.feature:
                raise ReleaseError(f"{QUANTILES}.safetensors answers another question than params.yaml. Run: dvc repro")
            blocks = feature.blocks(answer.lattice)
            for (column, fine), (cells, counts) in zip(self._chosen(context, bins), blocks, strict=True):
                yield column, fine, cells, counts[0], answer.receipt.noise_scale

    def notes(self, context: Context, released: Mapping[str, Released], bins: int) -> list[str]:
        """Which columns have such bins, for the statement."""
        if self.edges == "equal_width":
            names = [f"`{column.name}`" for column, _ in self._chosen(context, bins)]
            note = f"Values of {', '.join(names)} lie within their bins as the noisy histogram `{QUANTILES}` says."
            return [note] if names else []
        learned: list[str] = []
        hidden: list[str] = []
        for name, grid in self.grids(context, released, bins).items():
            (hidden if grid is None else learned).append(f"`{name}`")
        words_of = [
            (learned, f"between quantiles of the noisy histogram `{QUANTILES}`, and values within them as it says"),
            (hidden, f"of equal width, because the noise of `{QUANTILES}` hides the quantiles"),
        ]
        return [f"Bins of {', '.join(names)}: {words}." for names, words in words_of if names]

    def _chosen(self, context: Context, bins: int) -> list[tuple[Column, Grid]]:
        """Columns with their fine grids, in schema order; from public facts alone."""
        if not self.on:
            return []
        every, possible = self.columns in ("auto", "all"), self._possible(context, bins)
        return [pair for name, pair in possible.items() if every or name in self.columns]

    def _possible(self, context: Context, bins: int) -> dict[str, tuple[Column, Grid]]:
        """Numeric feature columns whose fine grid has more bins than the coarse one."""
        cells = -(-self.cells // bins) * bins if self.edges == "equal_width" else self.cells
        numbers = [column for column in context.schema.feature_columns if not column.is_categorical]
        fine = {column.name: (column, grid_of(column, cells)) for column in numbers}
        return {name: pair for name, pair in fine.items() if pair[1].size > grid_of(pair[0], bins).size}


def cells_of_number(column: Column, start: int, grid: Grid) -> Cells:
    """Cells of a number's bins, and one for missing; ``start``: its place in the dense row."""
    return Cells(start, grid.size + int(column.nullable), grid.inner, column.nullable)


def learned_bins(
    column: Column, fine: Cells, counts: NDArray[np.int64], noise_scale: float, size: int
) -> tuple[int, ...] | None:
    """The first fine cell of each of ``size`` bins; None where the noise hides the quantiles.

    ``counts`` are the noisy sums of the fine cells, with σ ``noise_scale``; the last may be for missing.
    """
    assert fine.edges is not None
    alone = spike_bins(column, fine.edges)
    return quantile_bins(counts[: fine.size - int(fine.missing)], noise_scale, alone, size)


def shares_within(firsts: Sequence[int], counts: NDArray[np.int64], noise_scale: float) -> tuple[float, ...]:
    r"""Share of each fine cell in its bin, from noisy counts: what stands above the noise, and evenly for the rest.

    Within a bin of f cells the counts' deviations from their mean are multiplied by the estimated part of their
    variance that is not noise, :math:`\max(0, 1 - (f - 1) \sigma^2 / \sum_c (m_c - \bar m)^2)`: empirical Bayes by
    moments (Efron and Morris 1973); James and Stein's factor has f - 3 for f - 1. A count below 0 becomes 0.
    ``firsts`` are the first cells of the bins, from 0; σ is ``noise_scale``, in the unit of the counts.
    """
    shares: list[float] = []
    for cells in np.split(counts.astype(np.float64), firsts[1:]):
        apart = cells - cells.mean()
        squares = float(apart @ apart)
        signal = max(0.0, 1 - (len(cells) - 1) * noise_scale**2 / squares) if squares > 0 else 0.0
        content = np.maximum(cells.mean() + signal * apart, 0)
        even = np.full(len(cells), 1 / len(cells))
        shares += (content / content.sum() if content.sum() > 0 else even).tolist()
    return tuple(shares)


def asked_columns(released: Released) -> ColumnMarginals:
    """The map of the histogram, from its receipt."""
    return ColumnMarginals(tuple(released.receipt.feature["columns"]))
