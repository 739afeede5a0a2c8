"""Statistical tests of released integers against the noise of their receipts."""

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import chdtr, chdtrc

from likeness.bundle import contents as names
from likeness.bundle.files import Bundle
from likeness.bundle.verdict import Untestable, require
from likeness.core.bounds import rows_per_unit
from likeness.data.schema.row_sets import prefix_of
from likeness.data.schema.schema import Schema
from likeness.features.base import CellMap, Map, TablesMap, blocks_of
from likeness.features.cells import Cells
from likeness.inference.measurements import first_fine_cells, tables_of
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import BucketPairs
from likeness.release.released import Released
from likeness.verify.receipts import query_again

_FALSE_ALARM = 1e-9  # of each statistical test
_LOW_BITS = 6
_EQUAL = 0.4  # two values are equal with at most this probability, over the scale of their noise
_FAR = 8.0  # standard deviations: beyond them a comparison with a false alarm of 1e-15
_MANY = 0.1  # equal pairs: from here on they tell nothing


def noise(bundle: Bundle) -> str:
    """Test that released integers have the noise of their receipts.

    - With wide noise the lowest bits of a sum are uniform. Without noise they are zeros, or they repeat.
    - The cells of some maps add up to one number of records in each part. Totals differ by noise only.
      Contrasts have no means, so that these are noise.
    - Some maps give a value twice, which differs by its noise. This tests from below: truncation to the lattice adds a
      difference that grows with the number of records.
    - No two values of wide noise are equal, and not all of them are multiples of one step.
    - What several releases count is one number of records, also where that number is public.
    - No cell counts fewer than no records, and no sum is longer than so many records can make it.
    - Tables of one column in equal cells, or in finer ones, add up to the same counts of it. So do private categories.
      Equal tables of several columns count the same.

    A few tests a release, each with false alarm 1e-9. Choices hold no noise. No test sees a smaller noise in a map
    without such redundancy.
    """
    tested, has_tables = [], False
    released = {name: answer for name, answer in bundle.released_files.items() if not answer.receipt.is_choice}
    receipts = {name: answer.receipt for name, answer in released.items()}
    queries = {name: query_again(receipt) for name, receipt in receipts.items() if receipt.threshold is None}
    for name, answer in released.items():
        if answer.receipt.noise_scale < 2 ** (_LOW_BITS + 2):
            continue
        low = np.bincount((answer.lattice & (2**_LOW_BITS - 1)).ravel(), minlength=2**_LOW_BITS)
        expected = answer.lattice.size / 2**_LOW_BITS
        if expected >= 5:
            statistic = float(((low - expected) ** 2).sum() / expected)
            require(chdtrc(2**_LOW_BITS - 1, statistic) > _FALSE_ALARM, f"{name}: the low bits are not those of noise")
            tested.append(f"{answer.receipt.query} (bits)")
        if answer.receipt.threshold is not None:
            continue  # keys have no common total
        feature = queries[name].feature
        has_tables |= isinstance(feature, TablesMap)
        if isinstance(feature, CellMap) and len(feature.bounded_parts) > 1:
            statistic, freedom = _block_sums(feature, answer)
            tails = chdtr(freedom, statistic), chdtrc(freedom, statistic)
            require(min(tails) > _FALSE_ALARM, f"{name}: the noise is not of the scale that the receipt claims")
            tested.append(f"{answer.receipt.query} (scale)")
        if isinstance(feature, Map) and (differences := feature.differences(answer.values)).size:
            statistic = float(np.square(differences).sum() / (2 * answer.noise_std**2))
            enough = chdtr(differences.size, statistic) > _FALSE_ALARM
            require(bool(enough), f"{name}: the noise is smaller than the receipt claims")
            tested.append(f"{answer.receipt.query} (scale, from below)")
    _check_steps(released)
    _check_ranges(bundle, queries, _check_totals(bundle, queries))
    if has_tables and (compared := _check_columns(bundle)):
        tested.append(f"{compared} columns (equal counts)")
    if not tested:
        raise Untestable("no release is large enough for a test of its noise")
    return "as the receipts state, where a test exists: " + ", ".join(tested)


def _check_steps(released: Mapping[str, Released]) -> None:
    """Refuse values that repeat, or that all lie on a coarser lattice, where the noise is too wide for that."""
    for name, answer in released.items():
        values, scale = answer.lattice.ravel(), answer.receipt.noise_scale
        widest = max(0, math.floor(math.log2(scale)) - 2) if scale > 1 else 0
        for shifted, free in ((values, len(values)), (values - values[:1], len(values) - 1)):
            joined = int(np.bitwise_or.reduce(shifted, initial=0)) & ((1 << min(62, widest)) - 1)
            zeros = (joined & -joined).bit_length() - 1 if joined else min(62, widest)
            require(2.0 ** -(zeros * max(0, free)) > _FALSE_ALARM, f"{name}: all values are multiples of one step")
        expected = _EQUAL * len(values) ** 2 / 2 / max(scale, 1.0)
        likely = expected > _MANY or _may_be(len(values) - len(np.unique(values)), expected)
        require(likely, f"{name}: values repeat, which those with noise do not")
    for (name, first), (other, second) in combinations(released.items(), 2):
        scale = max(first.receipt.noise_scale, second.receipt.noise_scale, 1.0)
        expected = _EQUAL * first.lattice.size * second.lattice.size / scale
        likely = expected > _MANY or _may_be(np.intersect1d(first.lattice, second.lattice).size, expected)
        require(likely, f"{name} repeats values of {other}")


def _may_be(equal: int, expected: float) -> bool:
    """Tell whether so many pairs of values may be equal by chance, where fewer than one is expected."""
    return equal == 0 or expected**equal > _FALSE_ALARM


def _check_totals(bundle: Bundle, queries: Mapping[str, Query]) -> dict[tuple[str, int], np.ndarray]:
    """Refuse numbers of records, by class and in all, that differ by more than the noise of their releases.

    Returns:
        the most records that there may be, by rows and number of classes, shape (classes,).
    """
    counted: dict[tuple[str, int], list[tuple[str, np.ndarray, float]]] = {}
    for name, query in queries.items():
        answer, terms = bundle.released_files[name], query.contributions.terms
        receipt, feature = answer.receipt, query.feature
        if terms in ("each_record", "all_records", "each_person") and (total := _totals(feature, answer)) is not None:
            rows = prefix_of(bundle.project.public_schema.row_sets, receipt.query) if terms == "each_person" else ""
            counted.setdefault((rows, receipt.num_groups), []).append((name, *total))
            if receipt.num_groups > 1:
                in_all = total[0].sum(keepdims=True), total[1] * receipt.num_groups
                counted.setdefault((rows, 1), []).append((name, *in_all))
    is_public = any(answer.receipt.adjacency == Adjacency.REPLACE_ONE for answer in bundle.released_files.values())
    public = bundle.project.written_plan.num_records if is_public else None
    for (_, groups), totals in counted.items():
        if public is not None and groups == 1:
            totals.append((names.PLAN_FILE, np.array([float(public)]), 0.0))
        for (name, one_total, variance), (other, other_total, more) in combinations(totals, 2):
            statistic = float(np.square(one_total - other_total).sum()) / (variance + more)
            likely = chdtrc(groups, statistic) > _FALSE_ALARM
            require(bool(likely), f"{name}: counts another number of records than {other}")
    return {
        rows: np.min([total + _FAR * math.sqrt(variance) for _, total, variance in totals], axis=0)
        for rows, totals in counted.items()
    }


def _check_ranges(bundle: Bundle, queries: Mapping[str, Query], limits: Mapping[tuple[str, int], np.ndarray]) -> None:
    """Refuse what no records give: cells below 0, and vectors that are longer than so many contributions can be."""
    for name, answer in bundle.released_files.items():
        if answer.receipt.is_choice:
            continue
        receipt, noise, terms = answer.receipt, answer.noise_std, answer.receipt.feature.get("terms")
        rows = prefix_of(bundle.project.public_schema.row_sets, receipt.query) if terms == "each_person" else ""
        groups = receipt.num_groups if terms in ("each_record", "each_person") else 1
        records = limits.get((rows, groups), limits.get((rows, 1), np.array(math.inf)))
        if name not in queries:  # a record has one key; people share a row of each set
            several = rows_per_unit(receipt.unit) if len(bundle.project.row_sets) > 1 else 1
            within = answer.values.sum() <= several * records.sum() + _FAR * noise * len(answer.keys)
        else:
            query = queries[name]
            norm = math.sqrt(sum(part.norm_bound_squared for part in query.bounded_parts))
            pairs = query.contributions.num_buckets if isinstance(query.contributions, BucketPairs) else math.inf
            longest = np.minimum(records, pairs) * norm + noise * (math.sqrt(query.width) + _FAR)
            within = (np.linalg.norm(answer.values, axis=1) <= longest).all()
            within &= not isinstance(query.feature, CellMap) or (answer.values >= -_FAR * noise).all()
        require(bool(within), f"{name}: so many records do not give such sums")


def _check_columns(bundle: Bundle) -> int:
    """Refuse counts of a column that differ between tables by more than their noise; give the number of columns.

    Two tables are disjoint coordinates, so their noise is independent. Where counts of all tables agree but for it,
    squared distances from their mean, in units of its variance, are chi-square.
    """
    compared = 0
    for rows in bundle.project.row_sets:
        schema, counted = rows.context.schema, dict[str, list[tuple[Cells, np.ndarray, float]]]()
        equal = dict[tuple[Any, ...], list[tuple[np.ndarray, float]]]()
        selected = {answer.receipt.feature["column"]: answer for answer in bundle.answers if answer.keys}
        for answer in bundle.answers:
            if prefix_of(bundle.project.public_schema.row_sets, answer.receipt.query) != rows.prefix:
                continue
            for table in tables_of(answer, schema):
                copies = equal.setdefault((table.counts.shape, *table.columns.items()), [])
                copies.append((table.counts.ravel(), table.variance))
                for axis, (name, cells) in enumerate(table.columns.items(), table.counts.ndim - len(table.columns)):
                    others = tuple(number for number in range(table.counts.ndim) if number != axis)
                    counts, added = table.counts.sum(axis=others), table.counts.size / table.counts.shape[axis]
                    counted.setdefault(name, []).append((cells, counts, table.variance * added))
        for (_, *columns), copies in equal.items():
            counts, variances = (np.array(each) for each in zip(*copies, strict=True))
            title = "' and '".join(name for name, _ in columns)
            _check_alike(title, counts, variances[:, None], _FALSE_ALARM / len(equal))
        for name, tables in counted.items():
            coarse = min((cells for cells, _, _ in tables), key=lambda cells: cells.size)
            merged = [_merge_cells(coarse, *table) for table in tables]
            alike = [(counts, noise) for counts, noise in filter(None, merged)]
            compared += len(alike) > 1
            counts, variances = (np.array(each) for each in zip(*alike, strict=True))  # the coarsest fits itself
            _check_alike(name, counts, variances, _FALSE_ALARM / len(counted))
            if (keys := selected.get(name)) is not None:
                _check_selected(name, keys, schema, *alike[0])
    return compared


def _merge_cells(
    coarse: Cells, cells: Cells, counts: np.ndarray, variance: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Counts in coarser cells and the variance of each; None where a coarse edge cuts a cell."""
    if cells == coarse:
        return counts, np.full(len(counts), variance)
    firsts = first_fine_cells(cells, coarse)
    if firsts is None or not {*(coarse.edges or ())} <= {*(cells.edges or ())}:
        return None  # a value on an edge may lie on either side of one that differs in its last digit
    sizes = np.diff(firsts, append=len(counts))
    return np.add.reduceat(counts, firsts), variance * sizes


def _check_alike(name: str, counts: np.ndarray, variances: np.ndarray, false_alarm: float) -> None:
    """Compare the counts of some tables, shape (tables, cells), with their mean by inverse variance."""
    mean = (counts / variances).sum(axis=0) / (1 / variances).sum(axis=0)
    freedom, distance = (len(counts) - 1) * counts.shape[1], float((np.square(counts - mean) / variances).sum())
    likely = not freedom or chdtrc(freedom, distance) > false_alarm
    require(likely, f"tables of column '{name}' count it differently, by more than their noise")


def _check_selected(name: str, keys: Released, schema: Schema, counts: np.ndarray, variance: np.ndarray) -> None:
    """Compare private categories far above the threshold, of which noise leaves none out, with the column's counts."""
    index = {category: number for number, category in enumerate(schema.column(name).categories)}
    values, noise = keys.lattice.ravel() * 2.0**-keys.receipt.lattice_bits, keys.noise_std
    far = keys.lattice.ravel() > (keys.receipt.threshold or 0) + _FAR * keys.receipt.noise_scale
    for key, value in zip(np.array(keys.keys)[far], values[far], strict=True):
        distance = (value - counts[index[key]]) / math.sqrt(noise**2 + variance[index[key]])
        require(abs(distance) < _FAR, f"'{name}' has another number of a private category than the tables of columns")


def _totals(feature: object, released: Released) -> tuple[np.ndarray, float] | None:
    """The number of records by class that a release counts, and the variance of its noise; None if it counts none."""
    variance = released.noise_std**2
    if not isinstance(feature, CellMap):
        return None
    totals, precisions = [], []
    for part, values in blocks_of(feature.bounded_parts, released.values):
        unit = part.steps(released.receipt.lattice_bits) * 2.0**-released.receipt.lattice_bits
        totals.append(values.sum(axis=1) / unit)
        precisions.append(unit**2 / (part.width * variance))
    weights = np.array(precisions)
    return weights @ np.array(totals) / weights.sum(), float(1 / weights.sum())


def _block_sums(feature: CellMap, released: Released) -> tuple[float, int]:
    """Chi-square of what is noise alone, in units of the claimed noise, and its freedom.

    That is the totals of parts around their mean by class.
    """
    totals, variances = [], []
    for part, values in blocks_of(feature.bounded_parts, released.values):
        norm = float(part.norm_bound_squared)
        totals.append(values.sum(axis=1) / math.sqrt(norm))
        variances.append(part.width * released.noise_std**2 / norm)
    precision = 1 / np.array(variances)[:, None]
    sums = np.array(totals)
    mean = (sums * precision).sum(axis=0) / precision.sum()
    return float(((sums - mean) ** 2 * precision).sum()), (len(totals) - 1) * sums.shape[1]
