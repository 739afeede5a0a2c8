"""A released histogram of numbers: edges of bins at its quantiles, and how values lie within a bin."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likeness.config.typed import Section, require, setting
from likeness.core.errors import PlanError, ReleaseError
from likeness.core.text import in_code
from likeness.data.encoding.bins import Grid, grid_of, spike_bins
from likeness.data.encoding.quantile_bins import quantile_bins
from likeness.data.encoding.round_grid import WIDE, coarse_grid, cut_cells, decades_grid, fine_grid, is_wide, prior_of
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals
from likeness.methods.base import Context, Measured, together
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.released import Released

QUANTILES = "quantiles"
_KEY = "marginals.auxiliary.quantiles"
MOST_CELLS = 1024
_FEWEST = 4  # bins between quantiles
_CLEAR = 9  # variances of the noise beyond which a difference is none


@dataclass(frozen=True)
class Quantiles(Section):
    """Section ``marginals.auxiliary.quantiles``. ``all`` is refused where no number has more cells than bins."""

    NAMES: ClassVar[tuple[str, ...]] = ("none", "auto", "all")
    columns: str | tuple[str, ...] = setting(
        "auto", "auto: numbers with more cells than bins; all; a list; none: shares.quantiles 0"
    )
    cells: int = setting(
        256, "of equal width on each column's public scale, beside those of its spikes", least=2, most=MOST_CELLS
    )
    edges: str = setting(
        "auto",
        "equal_width | learned: between quantiles | auto: learned where bounds are wide",
        options=("learned", "equal_width", "auto"),
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

    def moves_bins(self, context: Context, bins: int) -> bool:
        """Whether the bins of a column depend on the noisy histogram."""
        chosen = [column for column, _ in self._chosen(context, bins)]
        return (self.edges == "learned" and bool(chosen)) or (self.edges == "auto" and any(map(is_wide, chosen)))

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

    def hints(self, schema: Schema) -> list[str]:
        """Columns whose values wide bounds would press into one bin."""
        wide = [column.name for column in schema.feature_columns if is_wide(column)]
        if not wide or (self.edges == "auto" and self.columns in ("auto", "all")):
            return []
        return [
            f"bounds span more than {WIDE:,} steps, so that most values may share one bin: {', '.join(wide)}. If their "
            f"sizes differ by factors, set {_KEY}.edges: auto, or transform: log1p in the schema; both are new releases"
        ]

    def shares(self, context: Context, bins: int, share: float) -> list[QueryShare]:
        """The one release, or none."""
        return [QueryShare(QUANTILES, "auxiliary", share)] if self._chosen(context, bins) else []

    def measure(self, query: Query, sigma: float, bins: int) -> Measured:
        """How well the histogram gives learned edges or, without them, how values lie within bins."""
        cells = max(part.width for part in query.parts)
        if self.edges != "learned":
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
            if self.edges == "auto":
                grids[column.name], _ = auto_bins(column, fine, counts[: fine.size], scale, bins)
                continue
            size = grid_of(column, bins).size
            firsts = learned_bins(column, cells, counts, scale, size)
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
            if firsts is not None and self.edges == "auto" and is_wide(column):
                noisy = counts[: fine.size].copy()
                start, end = seen_cells(noisy, scale)
                noisy[:start], noisy[end:] = 0, 0
                prior = prior_of(column, fine, firsts)
                pieces[column.name] = fine, firsts, shares_on_trees(firsts, noisy.tolist(), prior, scale)
            elif firsts is not None:
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
        if self.edges == "auto":
            grids = {
                in_code(column.name): auto_bins(column, fine, counts[: fine.size], scale, bins)[1]
                for column, fine, _, counts, scale in self._histograms(context, released, bins)
            }
            within = f"Values of {', '.join(grids)} lie within their bins as the noisy histogram `{QUANTILES}` says."
            wide = [f"Bins of {name}: {words}." for name, words in grids.items() if words]
            return [within, *wide] if grids else []
        if self.edges == "equal_width":
            names = [in_code(column.name) for column, _ in self._chosen(context, bins)]
            note = f"Values of {', '.join(names)} lie within their bins as the noisy histogram `{QUANTILES}` says."
            return [note] if names else []
        learned: list[str] = []
        hidden: list[str] = []
        for name, grid in self.grids(context, released, bins).items():
            (hidden if grid is None else learned).append(in_code(name))
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
        if self.edges == "auto":
            fine = {column.name: (column, fine_grid(column, cells, bins)) for column in numbers}
        else:
            fine = {column.name: (column, grid_of(column, cells)) for column in numbers}
        return {name: pair for name, pair in fine.items() if pair[1].size > grid_of(pair[0], bins).size}


def cells_of_number(column: Column, start: int, grid: Grid) -> Cells:
    """Cells of a number's bins, and one for missing; ``start``: its place in the dense row."""
    return Cells(start, grid.size + int(column.nullable), grid.inner, column.nullable)


def learned_bins(
    column: Column, fine: Cells, counts: NDArray[np.int64], noise_scale: float, size: int
) -> tuple[int, ...] | None:
    """The first fine cell of each of ``size`` bins; None where noise hides their quantiles.

    ``counts`` are the noisy sums of the fine cells, with σ ``noise_scale``; the last may be for missing.
    """
    assert fine.edges is not None
    alone = spike_bins(column, fine.edges)
    seen = counts[: fine.size - int(fine.missing)]
    return quantile_bins(seen, noise_scale, alone, size)


def auto_bins(column: Column, fine: Grid, counts: NDArray[np.int64], noise_scale: float, bins: int) -> tuple[Grid, str]:
    """Bins of a column under ``edges: auto``, and words for the statement where they are not of equal width.

    A wide column has ``bins`` bins between quantiles. Where noise hides these, bins are of equal width, if no such bin
    holds half of the records beyond doubt of the noise. Else there are as many between quantiles as noise lets see.
    With fewer than four, bins stand at round numbers. All of it is post-processing, equal on all machines.
    """
    even = coarse_grid(column, bins)
    if not is_wide(column):
        return even, ""
    start, end = seen_cells(counts, noise_scale)
    seen, total = counts[start:end], int(counts.sum())
    alone = {place - start for place in spike_bins(column, fine.inner) if start <= place < end}
    cuts = cut_cells(column, fine)
    most = min(even.size - len(cuts), end - start) if 2 * int(seen.sum()) >= total else 0
    sizes = range(most, max(3, 2 * len(alone)), -1)
    found = (quantile_bins(seen, noise_scale, alone, size) for size in sizes)
    firsts = next((firsts for firsts in found if firsts is not None), ())
    why = f"because the noise of `{QUANTILES}` hides the quantiles"
    if len(firsts) < even.size - len(cuts) and _is_spread(fine.firsts_of(even.inner) or (0,), counts, noise_scale):
        return even, f"of equal width, {why}"
    if firsts:
        joined = fine.joined(sorted({0, *cuts, *(start + first for first in firsts[1:])}))
        return joined, f"{len(firsts)} between quantiles of the noisy histogram `{QUANTILES}`"
    return decades_grid(column, even.size), f"at round numbers, {why}"


def _is_spread(firsts: Sequence[int], counts: NDArray[np.int64], noise_scale: float) -> bool:
    """Whether no bin has half of the records, two standard deviations of its noise beside."""
    runs = pairwise([*firsts, len(counts)])
    most = max(int(counts[a:b].sum()) + math.ceil(2 * noise_scale * math.sqrt(b - a)) for a, b in runs)
    return 2 * most < int(counts.sum())


def seen_cells(counts: NDArray[np.int64], noise_scale: float) -> tuple[int, int]:
    r"""First and one past the last cell of those outside of which counts look like noise alone.

    An end is cut off where :math:`\sum (\max(m, 0)^2 - 2 \sigma^2)` over its cells is least: a cell of noise alone adds
    less than nothing on average, and one with two σ of records adds more. The sum is one of integers.
    """
    noise = max(1, 2 * math.ceil(noise_scale) ** 2)
    surplus = [max(count, 0) ** 2 - noise for count in counts.tolist()]
    below, above = [0, *accumulate(surplus)], [0, *accumulate(reversed(surplus))]
    start, end = below.index(min(below)), len(surplus) - above.index(min(above))
    return (start, end) if start < end else (0, len(surplus))


def shares_on_trees(
    firsts: Sequence[int], counts: Sequence[int], prior: Sequence[float], noise_scale: float
) -> tuple[float, ...]:
    r"""Share of each fine cell in its bin: what stands above the noise at any width, and the prior for the rest.

    Each bin is halved until single cells are left (Haar wavelets). A half's part of its parent differs from the
    prior's part by :math:`d`, whose noise has variance :math:`v`. A difference of more than three standard deviations
    keeps :math:`1 - v/d^2` of it. The others of equal depth keep :math:`\max(0, 1 - 1/\mathrm{mean}(d^2/v))`, as in
    :func:`shares_within`. So a trend is seen in wide halves, and a frequent value alone in narrow ones.

    Args:
        firsts: the first cell of each bin, from 0.
        counts: noisy count of each cell.
        prior: weight of each cell, above 0.
        noise_scale: σ in the unit of the counts.
    """
    shares, below = list(prior), [0, *accumulate(counts)]
    parts = [
        (first, end, 1 / max(below[end] - below[first], 1), 1.0) for first, end in pairwise([*firsts, len(counts)])
    ]
    while parts:
        for start, end, _, share in parts:
            if end - start == 1:
                shares[start] = share
        parts = _lower_parts([_halved(*part, below, prior) for part in parts if part[1] - part[0] > 1], noise_scale)
    return tuple(shares)


class _Half(NamedTuple):
    """A run of cells in two halves.

    Attributes:
        start: first cell.
        middle: first cell of the second half.
        end: one past the last cell.
        scale: share of one record in the bin.
        share: of the run in its bin.
        part: of the first half in the run, by the prior.
        off: how many more records than that it has.
        spread: the variance of ``off`` in those of a cell.
    """

    start: int
    middle: int
    end: int
    scale: float
    share: float
    part: float
    off: float
    spread: float


def _halved(start: int, end: int, scale: float, share: float, below: Sequence[int], prior: Sequence[float]) -> _Half:
    middle = (start + end) // 2
    part = math.fsum(prior[start:middle]) / math.fsum(prior[start:end])
    off = below[middle] - below[start] - part * (below[end] - below[start])
    return _Half(
        start, middle, end, scale, share, part, off, (middle - start) * (1 - part) ** 2 + (end - middle) * part**2
    )


def _lower_parts(halves: Sequence[_Half], noise_scale: float) -> list[tuple[int, int, float, float]]:
    """Both halves of each run, with their shares."""
    ratios = [one.off**2 / (noise_scale**2 * one.spread) if noise_scale else math.inf for one in halves]
    small = [ratio for ratio in ratios if ratio <= _CLEAR]
    pooled = max(0.0, 1 - len(small) / sum(small)) if sum(small) > 0 else 0.0
    parts = []
    for one, ratio in zip(halves, ratios, strict=True):
        signal = 1 - 1 / ratio if ratio > _CLEAR else pooled
        left = min(max(one.part * one.share + signal * one.off * one.scale, 0.0), one.share)
        parts += [(one.start, one.middle, one.scale, left), (one.middle, one.end, one.scale, one.share - left)]
    return parts


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
