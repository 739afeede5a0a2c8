"""What the releases so far say, and the next question that follows: from public facts and released values alone."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import ReleaseError
from likeness.data.encoding.bins import Grid, grid_of
from likeness.data.schema.column import Column
from likeness.features.base import FeatureMap, Map, blocks_of
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals
from likeness.methods.base import CLASS_COUNTS, Context, number_of_records, together
from likeness.methods.marginals.column_steps import ColumnSteps, Steps
from likeness.methods.marginals.columns import (
    MOST_CELLS,
    Single,
    bins_of,
    cells_of_number,
    even_cells,
    first_grid,
    is_fine,
    learned_step,
    next_grid,
    project_on_total,
    public_steps,
    step_of,
)
from likeness.methods.marginals.frequent_values import NEXT_NOISE, Seen, seen_of
from likeness.methods.marginals.pair_products import PairProducts
from likeness.methods.marginals.relations.acceptance import RelationState
from likeness.release.query import Query
from likeness.release.released import Released

STEPS, HISTOGRAMS, FINER, COLUMNS = "steps", "histograms", "finer_histograms", "columns"
PRODUCTS, SECOND = "products", "second"
_CLIPPED = 1.5  # slope of a rank, from which the outer sixths are cut off at 1
_RARE, _HIDDEN = 0.004, 3.0  # share and standard deviations below which a category has no product of its own
_LAST = 0.5  # noise of the third release of a number over that of the second
_MORE_BINS = (24, 32)  # of a number in a pair, where noise allows them
_HALF_OF_NOISE, _MOVED = 0.4, 0.1  # half of the mean absolute value of a Gaussian; share of records that noise may move
_DIGITS = 6  # of a score and a logarithm
TOO_NOISY = 0.06  # noise of a mean product from which on cells of pairs show nothing
Floats = NDArray[np.float64]


class ColumnState:
    """The answers so far about single columns, and the next question about them.

    Without an answer the largest question stands in, for forecasts.

    Attributes:
        released: answers about rows, by the names of their queries.
    """

    def __init__(self, context: Context, released: Mapping[str, Released], bins: int) -> None:
        """Take the answers, which may come later, in the order of the questions.

        Args:
            context: public facts.
            released: answers about rows, by the names of their queries.
            bins: most bins of a number in a pair.
        """
        # An answer counts where all before it are there: without the number of records, counts say nothing.
        self.released = released if CLASS_COUNTS in released else {}
        self._context, self._bins = context, bins
        self._columns = context.schema.feature_columns

    @cached_property
    def records(self) -> float:
        """Their number, public or noisy."""
        answer = self.released.get(CLASS_COUNTS)
        return math.inf if answer is None else number_of_records(self._context, answer)

    @cached_property
    def fine(self) -> list[Column]:
        """Numbers with more values than bins."""
        return [column for column in self._columns if not column.is_categorical and is_fine(column, self._bins)]

    @cached_property
    def step_questions(self) -> dict[str, Steps]:
        """Numbers whose step is not public, with the steps that their values may have."""
        every = ((column, public_steps(column)) for column in self.fine)
        return {
            column.name: Steps(self._context.layout.starts[column.name], *column.bounds, steps, column.nullable)
            for column, steps in every
            if steps
        }

    def queries(self) -> Iterator[Query]:
        """Releases of steps, of numbers twice, and of all columns. Each follows from the answers to those before it."""
        if self.step_questions:
            yield self._query(STEPS, ColumnSteps(tuple(self.step_questions.values())))
        if self.fine:
            yield self._query(HISTOGRAMS, ColumnMarginals(self._cells_of_numbers(self._first_grids)))
            yield self._query(FINER, ColumnMarginals(self._cells_of_numbers(self._second_grids)))
        yield self._query(COLUMNS, ColumnMarginals(_cells(self._context, self._columns, self._third_grids)))

    def _query(self, name: str, feature: FeatureMap) -> Query:
        return Query(name, "auxiliary", feature, contributions=together(self._context))

    def _cells_of_numbers(self, grids: Mapping[str, Grid]) -> tuple[Cells, ...]:
        return _cells(self._context, self.fine, [grids[column.name] for column in self.fine])

    @cached_property
    def _steps(self) -> dict[str, float | None]:
        """The step of each number: learned, declared, or None."""
        steps = {column.name: step_of(column) for column in self._columns if not column.is_categorical}
        if STEPS in self.released:
            feature = ColumnSteps(tuple(self.step_questions.values()))
            answer = _answer(self.released, STEPS, feature)
            for name, question, (_, counts) in zip(
                self.step_questions, feature.columns, blocks_of(feature.bounded_parts, answer.values), strict=True
            ):
                steps[name] = (
                    learned_step(question.steps, counts[0].tolist(), answer.noise_std, self.records) or steps[name]
                )
        return steps

    @cached_property
    def _first_grids(self) -> dict[str, Grid]:
        """Cells of the first release, of each number with more values than bins."""
        answer, even = self.released.get(CLASS_COUNTS), MOST_CELLS
        if answer is not None:
            even = even_cells(self.records, answer.noise_std * math.sqrt(len(self.fine)) / 2)
        return {column.name: first_grid(column, even, self._steps[column.name]) for column in self.fine}

    def _counts(self, name: str, cells: tuple[Cells, ...]) -> tuple[list[list[float]], float]:
        """Counts of each column in a release about all records together, and their standard deviation.

        Raises:
            ReleaseError: the release is about other cells.
        """
        answer = _answer(self.released, name, ColumnMarginals(cells))
        ends = np.cumsum([column.size for column in cells])[:-1]
        return [block.tolist() for block in np.split(answer.values[0], ends)], answer.noise_std

    @cached_property
    def _seen_first(self) -> dict[str, Seen]:
        """The summary of each number after the first release."""
        return self._summaries(HISTOGRAMS, self._first_grids, {})

    @cached_property
    def _second_grids(self) -> dict[str, Grid]:
        """Cells of the second release, of each number in the first."""
        return self._next_grids(self._first_grids, self._seen_first, NEXT_NOISE)

    @cached_property
    def _seen_second(self) -> dict[str, Seen]:
        """The summary of each number after the first two releases."""
        return self._summaries(FINER, self._second_grids, self._seen_first)

    @cached_property
    def _third_grids(self) -> list[Grid | None]:
        """Cells of the third release, of each column; None for categories."""
        later = _LAST * math.sqrt(len(self._columns) / max(1, len(self.fine)))
        grids = self._next_grids(self._second_grids, self._seen_second, later)
        return [
            None
            if column.is_categorical
            else grids.get(column.name) or first_grid(column, MOST_CELLS, self._steps[column.name])
            for column in self._columns
        ]

    def _next_grids(self, grids: Mapping[str, Grid], seen: Mapping[str, Seen], ratio: float) -> dict[str, Grid]:
        """Cells of the next release, whose noise is that of the last one times a ratio."""
        return {
            column.name: next_grid(
                column,
                self._steps[column.name],
                seen[column.name].grid,
                seen[column.name].cleaned,
                self.records,
                ratio * seen[column.name].noise,
                seen[column.name].split,
            )
            if column.name in seen
            else grids[column.name]
            for column in self.fine
        }

    def _summaries(self, name: str, grids: Mapping[str, Grid], before: Mapping[str, Seen]) -> dict[str, Seen]:
        """Summarize each number in a release: counts with those of the release before, cleaned ones, and noise."""
        if name not in self.released:
            return {}
        counts, noise = self._counts(name, self._cells_of_numbers(grids))
        return {
            column.name: seen_of(grids[column.name], noisy, noise, self.records, before.get(column.name))
            for column, noisy in zip(self.fine, counts, strict=True)
        }

    @cached_property
    def singles(self) -> list[Single]:
        """The summary of each column after all releases."""
        cells = _cells(self._context, self._columns, self._third_grids)
        every, noise = self._counts(COLUMNS, cells)
        singles = []
        for column, grid, column_cells, counts in zip(self._columns, self._third_grids, cells, every, strict=True):
            if grid is None:
                singles.append(Single(None, None, column_cells, tuple(project_on_total(counts, self.records)), noise))
            else:
                seen = seen_of(grid, counts, noise, self.records, self._seen_second.get(column.name))
                step, column_cells = self._steps[column.name], cells_of_number(column, column_cells.start, seen.grid)
                counts, frequent = [*seen.cleaned, *seen.missing], seen.frequent or ()
                singles.append(Single(seen.grid, step, column_cells, tuple(counts), noise, frequent))
        return singles


class ReleaseState:
    """The answers so far about columns in pairs and about pairs, and the next question about these.

    Attributes:
        columns: what they say about single columns.
        embedding: the query of the embedding, once the products are there and somebody asked.
    """

    embedding: Query | None = None

    def __init__(self, context: Context, released: Mapping[str, Released], bins: int, cells: float = 0.0) -> None:
        """Take the answers, see :class:`ColumnState`.

        Args:
            context: public facts.
            released: answers about rows, by the names of their queries.
            bins: most bins of a number in a pair, unless the budget allows more.
            cells: budget of all cells of pairs, over that of the class counts; 0: the budget decides nothing.
        """
        self.columns = ColumnState(context, released, bins)
        self._context, self._columns = context, context.schema.feature_columns
        self._least_bins, self._cells = bins, cells

    @cached_property
    def _bins(self) -> int:
        """The number of bins that noise allows: that of all cells of a pair moves at most a tenth of the records.

        It follows from the number of records, as released, and from the noise of that release. Noise moves half of the
        mean absolute value of a Gaussian in each cell.
        """
        if not self._cells or not self.has(CLASS_COUNTS):
            return self._least_bins
        tables = math.comb(len(self._columns) + 1, 2)  # pairs, and single columns by class
        noise = self.columns.released[CLASS_COUNTS].noise_std * math.sqrt(tables / self._cells)
        moved = _HALF_OF_NOISE * self._context.layout.num_classes * noise / self.columns.records
        return max([bins for bins in _MORE_BINS if bins**2 * moved <= _MOVED], default=self._least_bins)

    def has(self, name: str) -> bool:
        """Tell whether the answer to a query is there, and those before it."""
        return name in self.columns.released

    @cached_property
    def bin_starts(self) -> list[tuple[int, ...]]:
        """The first cell of each bin of a number; empty for categories."""
        pairs = zip(self._columns, self.columns.singles, strict=True)
        return [bins_of(column, single, self._bins) if single.grid else () for column, single in pairs]

    @cached_property
    def bins(self) -> list[tuple[Cells, Grid | None]]:
        """Cells of each column in pairs, with the grid of a number."""
        if not self.has(COLUMNS):
            grids = [None if column.is_categorical else grid_of(column, self._bins) for column in self._columns]
        else:
            joined = zip(self.columns.singles, self.bin_starts, strict=True)
            grids = [single.grid.join_bins(firsts) if single.grid else None for single, firsts in joined]
        return list(zip(_cells(self._context, self._columns, grids), grids, strict=True))

    @cached_property
    def relations(self) -> RelationState:
        """The answers about relations."""
        columns = self.columns
        return RelationState(self._context, columns.released, columns.records, columns.singles)

    @cached_property
    def shares(self) -> list[list[float]]:
        """The shares of the bins of each column, sum 1: those of missing and of rare cells too."""
        joined = [self._join_counts(index, single.counts) for index, single in enumerate(self.columns.singles)]
        return [[count / math.fsum(counts) for count in counts] for counts in joined]

    @property
    def share_noises(self) -> list[Floats]:
        """The standard deviation of each of these shares: a bin has the noise of all its cells."""
        singles = enumerate(self.columns.singles)
        cells = [(single.noise, self._join_counts(index, [1.0] * len(single.counts))) for index, single in singles]
        return [max(noise, 1.0) * np.sqrt(np.array(sizes)) / self.columns.records for noise, sizes in cells]

    def _join_counts(self, index: int, values: Sequence[float]) -> list[float]:
        """Sums of values of a column's cells in each of its bins, and of missing cells."""
        firsts, (cells, grid), joined = self.bin_starts[index], self.bins[index], list(values)
        if grid is None:
            return joined
        ends = [*firsts[1:], len(joined) - int(cells.missing)]
        return [math.fsum(joined[a:b]) for a, b in zip(firsts, ends, strict=True)] + joined[ends[-1] :]

    def _feature(self, index: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Slots and scores of a column: its rank, or its frequent categories, and missing."""
        column, (cells, _) = self._columns[index], self.bins[index]
        measured = self.has(COLUMNS)
        shares = self.shares[index] if measured else [1 / cells.size] * cells.size
        values = cells.size - int(column.nullable)
        missing = ([1], [1.0]) if column.nullable else ([], [])
        if values <= 2 or not column.is_categorical or column.ordered:
            whole, below, scores = math.fsum(shares[:values]) or 1.0, 0.0, []
            for share in shares[:values]:
                rank = (2 * below + share) / whole - 1
                scores.append(round(min(max(_CLIPPED * rank, -1.0), 1.0), _DIGITS))
                below += share
            if values == 2:
                scores = [-1.0, 1.0]
            return (*([0] * values), *missing[0]), (*scores, *missing[1])
        least = max(_RARE, _HIDDEN * self.columns.singles[index].noise / self.columns.records) if measured else 0.0
        # Before it is measured, a column has as many as can be frequent: all shares sum to 1.
        frequent = [cell for cell, share in enumerate(shares) if share >= least][: int(1 / _RARE)] or [0]
        slots = [frequent.index(cell) if cell in frequent else 0 for cell in range(cells.size)]
        return tuple(slots), tuple(1.0 if cell in frequent else 0.0 for cell in range(cells.size))

    @cached_property
    def feature(self) -> PairProducts:
        """The map of products."""
        features = [self._feature(index) for index in range(len(self._columns))]
        slots, scores = zip(*features, strict=True)
        return PairProducts(tuple(cells for cells, _ in self.bins), slots, scores)

    def products_query(self) -> Query:
        """Products of pairs of columns, of all records together."""
        return Query(PRODUCTS, "auxiliary", self.feature, contributions=together(self._context))

    @property
    def hides_cells(self) -> bool:
        """True if the noise of products is so large that cells of pairs would show nothing."""
        return self.has(PRODUCTS) and self.dependence(PRODUCTS)[1] > TOO_NOISY

    @cached_property
    def means(self) -> list[Floats]:
        """Mean of each column's feature, by its single column."""
        return [
            np.array([math.fsum((content[:, slot] * np.array(shares)).tolist()) for slot in range(content.shape[1])])
            for content, shares in zip(self.feature.contents(), self.shares, strict=True)
        ]

    def dependence(self, *names: str) -> tuple[list[Floats], float]:
        """Mean products of each pair without those of independent columns, and the noise of one number.

        Args:
            names: of releases of products, whose mean by inverse variance counts.
        """
        values, noise = mean_of([_answer(self.columns.released, name, self.feature) for name in names])
        blocks = self.feature.blocks(values)
        centred = [
            block / self.columns.records - self.means[i][:, None] * self.means[j][None, :]
            for (i, j), block in zip(self.feature.pairs, blocks, strict=True)
        ]
        return centred, noise / self.columns.records

    def strengths(self) -> list[float]:
        """Measure how far each pair is from independence, as a sum without noise; 0 where all may be noise.

        A block of f numbers whose squares are s in units of the noise stands out where s is above f + 2√(fl) + 2l, with
        l the logarithm of the number of pairs: then no pair of independent columns stands out, with probability about
        1 − 1/e for all pairs together (Laurent and Massart 2000).
        """
        blocks, noise = self.dependence(PRODUCTS)
        log = round(math.log(max(len(blocks), 2)), _DIGITS)  # machines differ in its last digit
        strengths = []
        for block in blocks:
            free = block.size
            squares = math.fsum(np.square(block).ravel().tolist())
            least = (free + 2 * math.sqrt(free * log) + 2 * log) * noise * noise
            strengths.append(math.sqrt(free * (squares - free * noise * noise)) if squares > least else 0.0)
        return strengths


def _cells(context: Context, columns: Sequence[Column], grids: Sequence[Grid | None]) -> tuple[Cells, ...]:
    """Cells of columns in the dense row, those of a number by its grid."""
    starts = context.layout.starts
    return tuple(
        Cells(starts[column.name], column.width) if grid is None else cells_of_number(column, starts[column.name], grid)
        for column, grid in zip(columns, grids, strict=True)
    )


def _answer(released: Mapping[str, Released], name: str, feature: Map) -> Released:
    """The answer to a question.

    Raises:
        ReleaseError: it answers another question.
    """
    answer = released[name]
    if {key: value for key, value in answer.receipt.feature.items() if key != "terms"} != feature.spec():
        raise ReleaseError(f"{name}.safetensors answers another question than params.yaml. Run: likeness run")
    return answer


def mean_of(releases: Sequence[Released]) -> tuple[Floats, float]:
    """The mean of releases of one map by inverse variance, and the standard deviation of its noise."""
    if min(release.noise_std for release in releases) == 0:
        return releases[0].values, 0.0
    precisions = [1 / release.noise_std**2 for release in releases]
    whole = sum(precisions)
    values = sum(release.values * (precision / whole) for release, precision in zip(releases, precisions, strict=True))
    return np.asarray(values), 1 / math.sqrt(whole)
