"""Released files as noisy tables: what each coordinate counts, and the variance of its noise, from the receipts alone.

A coordinate counts the records of one cell, times the unit of its part. The noise of a coordinate is independent of all
others, with the σ of the receipt. Products of pairs are no counts: they stand apart. Releases of other kinds are left
out. Three things keep a count from the rows as they were written, and none of them is noise:

- A value beyond the public bounds counts in the first or last cell.
- A person's rows beyond ``ingest.unit.max_rows`` count nowhere.
- The door cuts a contribution off to its lattice, at most one part in 2^20 of a count; m parts where m rows share one.

*People with histories.* The rows of a person share one contribution: each of m rows counts 1/m. All released tables of
these rows count the same weighted rows, so each is a sum over cells of one joint table x. That is all that estimates
and intervals suppose (:mod:`likeness.inference.terms`). A share is then a mean over the people who have such rows.

Released categories of a column (partition selection) say which cells there are. Their counts passed a threshold, so
they are not used.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import ParamsError, ReleaseError
from likeness.core.typed import check_allowed
from likeness.data.encoding.layout import Layout
from likeness.data.schema.row_sets import PublicSchema, prefix_of, prefix_with
from likeness.data.schema.schema import Schema
from likeness.features.base import ProductsMap, TablesMap, blocks_of, width
from likeness.features.cells import Cells
from likeness.inference.axes import Axis
from likeness.inference.terms import Histogram, Table, Terms
from likeness.methods.maps import from_spec
from likeness.privacy.receipt import Receipt
from likeness.release.partition_selection import STAGE
from likeness.release.released import Released

_SAME = 1e-12  # two edges of equal width, computed from different numbers of bins


@dataclass(frozen=True)
class Measurements:
    """All that a release says about counts.

    Attributes:
        terms: the best estimates of all tables.
        axes: the cells of each column that has some, label first.
        fine: finer cells of numbers.
        tables: the released tables behind the terms, but for finer histograms.
        cells: of the columns in the dense row, but for a label that only groups have.
        products: of pairs of columns, in the order of the axes.
    """

    terms: Terms
    axes: Mapping[str, Axis]
    fine: Mapping[str, Axis]
    tables: tuple[Table, ...]
    cells: Mapping[str, Cells]
    products: Mapping[tuple[str, str], "Products"]


@dataclass(frozen=True)
class Products:
    """Noisy sums of products of two columns' features.

    Attributes:
        features: of each cell of either column, shapes (cells, slots).
        sums: shape (slots of the first, slots of the second).
        variance: of the noise of each sum.
    """

    features: tuple[NDArray[np.float64], NDArray[np.float64]]
    sums: NDArray[np.float64]
    variance: float


@dataclass(frozen=True)
class ReleasedTable:
    """One released table: its columns with their cells, counts with an axis of classes where there are classes."""

    columns: Mapping[str, Cells]
    counts: NDArray[np.float64]
    variance: float


def measurements_about(
    schema: PublicSchema, released: Iterable[Released], names: Sequence[str], total: float | None, sampling: bool
) -> tuple[Schema, list[Released], float | None]:
    """The schema of the rows that a question is about, their releases, and their number where it is public.

    Args:
        schema: public. Of people with histories these are people, or pairs of events if people lack one of the names.
        released: all files of a run.
        names: of columns.
        total: the public number of records, or of people.
        sampling: whether the rows are taken for a random sample of a population.

    Raises:
        ParamsError: a name is no column, or the rows are no random sample.
    """
    releases = sorted(released, key=lambda release: release.receipt.query)  # a sum's last digit depends on its order
    row_sets = schema.row_sets
    allowed = tuple(dict.fromkeys(name for rows in row_sets.values() for name in rows.model_schema.names))
    for name in names:
        check_allowed("columns", name, allowed)
    prefix = prefix_with(row_sets, names)
    # Of several row sets the first one has one row a person.
    rows_of_each = (release.receipt.unit.max_rows for release in releases if release.receipt.unit is not None)
    several = bool(prefix) if len(row_sets) > 1 else any(most > 1 for most in rows_of_each)
    releases = [release for release in releases if prefix_of(row_sets, release.receipt.query) == prefix]
    if sampling and several:
        fault = "rows of one person depend on each other, so they are no random sample"
        raise ParamsError(f"sampling: {fault}. Leave it out.")
    # Computed columns stand in no release.
    return row_sets[prefix].model_schema, releases, None if prefix else total


def measurements(schema: Schema, released: Iterable[Released], total: float | None = None) -> Measurements:
    """Read released files.

    Args:
        schema: public, with released categories.
        released: all files of a run. Those that hold no tables are left out.
        total: the number of records where it is public.

    Raises:
        ReleaseError: a file does not fit its receipt or the schema, or none of them counts records.
    """
    label = schema.label if len(schema.classes) > 1 else None
    starts = {start: name for name, start in Layout.from_schema(schema).starts.items()}
    # Cells of the embedding come first: those of earlier releases of single columns may be finer.
    released = sorted(released, key=lambda release: release.receipt.stage != "privatize")
    maps = [(release, _feature(release, schema)) for release in released]
    parts = [part for release, feature in maps for part in _release_tables(release, feature, schema, starts)]
    if not parts:
        remedy = "Release with method marginals" if released else "Run: likeness run"
        raise ReleaseError(f"no released file counts records, so nothing can be estimated. {remedy}.")
    cells = _cells(parts)
    tables, finer = [], {}
    for part in parts:
        with_classes = part.counts.ndim > len(part.columns)
        if all(cells[name] == column for name, column in part.columns.items()):
            names = (*((label,) if with_classes and label else ()), *part.columns)
            tables.append(Table(names, part.counts, part.variance))
        elif len(part.columns) == 1:
            ((name, column),) = part.columns.items()
            firsts = first_fine_cells(column, cells[name])
            counts = part.counts.sum(axis=0) if with_classes else part.counts
            if firsts is not None and name not in finer:
                histogram = Histogram(firsts, counts, part.variance * (len(part.counts) if with_classes else 1))
                finer[name] = histogram, Axis.from_column(schema.column(name), column)
    axes = {name: Axis.from_column(schema.column(name), cells[name]) for name in schema.names if name in cells}
    if label is not None and any(label in table.columns for table in tables):
        axes = {label: Axis.from_column(schema.column(label)), **axes}
    sizes = {name: axis.size for name, axis in axes.items()}
    histograms = {name: histogram for name, (histogram, _) in finer.items()}
    fine = {name: axis for name, (_, axis) in finer.items()}
    terms = Terms(sizes, tables, histograms, total)
    return Measurements(terms, axes, fine, tuple(tables), cells, _products(maps, schema, starts, cells))


def tables_of(release: Released, schema: Schema) -> list[ReleasedTable]:
    """The tables of cells of one release; none where it is no sum of cells over all records.

    Args:
        release: with its receipt.
        schema: of its rows, with released categories.

    Raises:
        ReleaseError: it does not fit its receipt or the schema.
    """
    starts = {start: name for name, start in Layout.from_schema(schema).starts.items()}
    return list(_release_tables(release, _feature(release, schema), schema, starts))


def _feature(release: Released, schema: Schema) -> Any:
    """The map of a release that is a sum over all records; None of another."""
    receipt, spec = release.receipt, dict(release.receipt.feature)
    terms = spec.pop("terms", None)
    by_class = terms == "each_record" and receipt.num_groups == len(schema.classes)
    together = terms in ("all_records", "each_person") and receipt.num_groups == 1
    if receipt.stage == STAGE or receipt.is_choice or not (by_class or together):
        return None
    feature = _map(spec, receipt)
    if isinstance(feature, TablesMap | ProductsMap) and width(feature) != release.values.shape[1]:
        raise ReleaseError(f"{receipt.query}.safetensors has another width than its map. Restore the file.")
    return feature


def _release_tables(
    release: Released, feature: Any, schema: Schema, starts: Mapping[int, str]
) -> Iterator[ReleasedTable]:
    """The tables of one release; none where it is no sum of cells over all records."""
    classes = release.receipt.num_groups
    if not isinstance(feature, TablesMap):
        return
    blocks = blocks_of(tuple(feature.bounded_parts), release.values)
    for columns, (part, block) in zip(feature.axes, blocks, strict=True):
        named = {_name(cells, schema, starts, release.receipt.query): cells for cells in columns}
        unit = np.sqrt(float(part.norm_bound_squared))
        groups = (classes,) if classes > 1 else ()
        counts = (block / unit).reshape((*groups, *(cells.size for cells in columns)))
        yield ReleasedTable(named, counts, (release.noise_std / unit) ** 2)


def _products(
    maps: Iterable[tuple[Released, Any]], schema: Schema, starts: Mapping[int, str], cells: Mapping[str, Cells]
) -> dict[tuple[str, str], Products]:
    """Products of pairs of columns in the cells of the tables: the mean of all releases by inverse variance."""
    products: dict[tuple[str, str], Products] = {}
    for release, feature in maps:
        if not isinstance(feature, ProductsMap) or release.receipt.num_groups > 1:
            continue
        names = [_name(column, schema, starts, release.receipt.query) for column in feature.columns]
        contents = feature.contents()
        fit = [cells.get(name) == column for name, column in zip(names, feature.columns, strict=True)]
        for (i, j), sums in zip(feature.pairs, feature.blocks(release.values), strict=True):
            pair, variance = (names[i], names[j]), release.noise_std**2
            before = products.get(pair)
            if before is not None and variance:
                weight = variance / (before.variance + variance)
                sums, variance = weight * before.sums + (1 - weight) * sums, weight * before.variance
            if fit[i] and fit[j]:
                products[pair] = Products((contents[i], contents[j]), sums, variance)
    return products


def _map(spec: dict[str, Any], receipt: Receipt) -> Any:
    try:
        return from_spec(spec, receipt.method)
    except (TypeError, ValueError, AttributeError):
        where = f"{receipt.query}.safetensors"
        raise ReleaseError(f"{where}: its receipt describes no feature map. Restore the file.") from None


def _name(cells: Cells, schema: Schema, starts: Mapping[int, str], query: str) -> str:
    """The column that cells belong to."""
    name = starts.get(cells.start)
    column = None if name is None else schema.column(name)
    fits = column is not None and (
        cells.size == column.width
        if column.is_categorical
        else cells.edges is not None and cells.missing == column.nullable
    )
    if name is None or not fits:
        raise ReleaseError(f"{query}.safetensors is about another schema. Give the schema of its run.")
    return name


def _cells(parts: list[ReleasedTable]) -> dict[str, Cells]:
    """The cells of each column in tables: those of the table with most axes that comes first."""
    cells: dict[str, Cells] = {}
    for part in sorted(parts, key=lambda part: -part.counts.ndim):
        for name, column in part.columns.items():
            cells.setdefault(name, column)
    return cells


def first_fine_cells(fine: Cells, coarse: Cells) -> NDArray[np.int64] | None:
    """The first fine cell of each coarse one; None where a coarse edge cuts a fine cell."""
    if fine.edges is None or coarse.edges is None or len(fine.edges) < len(coarse.edges):
        return None
    edges, wanted = np.array(fine.edges), np.array(coarse.edges)
    matches = np.abs(edges[None, :] - wanted[:, None]).argmin(axis=1)
    if (np.abs(edges[matches] - wanted) > _SAME).any():
        return None
    last = [fine.size - 1] if fine.missing else []
    return np.array([0, *(matches + 1), *last], dtype=np.int64)
