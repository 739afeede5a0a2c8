r"""The door. Private rows pass it once, as a noisy sum.

Guarantee. Let f be the integer sum of :func:`likeness.release.sums.lattice_sum.lattice_sum`, and Δ its L2 sensitivity
under the plan's adjacency (:func:`likeness.privacy.adjacency.lattice_sensitivity_squared`). Δ follows from the bounds
that the sum enforces on integers. Where a person may have several rows, it grows with the most of them, which the door
counts (:func:`_check_rows_per_person`), unless they share one contribution
(:class:`likeness.release.records.EachPerson`). Nothing else enters. The released value is f(table) + N_ℤ(0,
σ²)^dimension. It satisfies :math:`\rho = \Delta^2 / (2 \sigma^2)` zero-concentrated differential privacy (Canonne,
Kamath and Steinke 2020, Theorem 14). It is a Gaussian mechanism up to what :mod:`likeness.privacy.lattice_error` proves
of its lattice. Its cost is in the ledger before a row is read; where a database counts, before a count leaves memory.

Choices among public candidates (:mod:`likeness.release.choices`) are drawn by the exponential mechanism, and charged as
the Gaussian that dominates them (:mod:`likeness.privacy.choices`).

Categories that nobody knows publicly (:class:`~likeness.release.partition_selection.PartitionQuery`) are counted and
made noisy in the same way. They are released above a threshold, which costs δ too (:mod:`likeness.privacy.thresholds`).

A request that has an answer gets the same bytes again and costs nothing: no re-run is a second release.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from likeness.core.bounds import PrivacyUnit
from likeness.core.engine import LOCAL, threads
from likeness.core.errors import DataError, LikenessError, PlanError, ReleaseError
from likeness.core.format import HERE
from likeness.core.hashing import sha256_bytes, sha256_json
from likeness.core.retry import retry_on_disconnect
from likeness.features.base import CellMap, ProductsMap
from likeness.ledger.database import holding
from likeness.ledger.ledger import Ledger
from likeness.ledger.records import REDRAW
from likeness.ledger.reservation import Dataset, Reservation
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.choices import CHOICE_BITS
from likeness.privacy.lattice_error import check_discretization
from likeness.privacy.noise import add_discrete_gaussian, choose, sampler_name
from likeness.privacy.plan import Plan
from likeness.privacy.receipt import Receipt
from likeness.release.choices import ChoiceQuery, draw_choices, scores_of
from likeness.release.partition_selection import (
    PartitionQuery,
    Partitions,
    ReadPartitions,
    count_hashes,
    count_partitions,
    select_keys,
)
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released
from likeness.release.request import AnyQuery, noise_scale, request_of
from likeness.release.store import _drawn_once, _publish_staged
from likeness.release.sums.backends import CountReader, counted_tables
from likeness.release.sums.over_parts import Read, exact_sum


@dataclass(frozen=True)
class Door:
    """The door to one data set, with everything that stays fixed from query to query.

    Attributes:
        plan: noise of every query.
        ledger: an open ledger in which the population has a cap.
        dataset: whose rows.
        read: opens the private rows, or the partitions of a column, after the cost is on record. Or it counts rows
            where they are: then before, and the counts wait in memory.
        provenance: public facts for the ledger, such as user and commit.
    """

    plan: Plan
    ledger: Ledger
    dataset: Dataset
    read: Read | ReadPartitions | CountReader
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def release(self, query: AnyQuery) -> bytes:
        """Answer a query once: fetch the stored answer, or reserve its cost, draw it and store it.

        Returns:
            the bytes of the released file, receipt inside; see :func:`likeness.release.released.from_bytes`.

        Raises:
            PlanError: the plan is for another population, unit or δ of the threshold, or its noise is too coarse on
                the lattice.
            DataError: a person has more rows than the sensitivity counts, or the public number of records is wrong.
            BudgetError: over the lifetime cap; nothing was read.
            LedgerError: the ledger is damaged, or released bytes were lost.
        """
        plan, ledger = self.plan, self.ledger
        _check_plan(plan, query, self.dataset)
        if plan.private:
            check_discretization(query.name, _coordinates(query, plan), noise_scale(query, plan))
        dataset, request = self.request(query)
        key = sha256_json(request)
        with holding(ledger.home, key):  # on all machines that share the ledger
            _, commit = ledger.find(key)
            if commit is not None:
                return _publish_staged(ledger, key, str(commit.body["sha256"]))
            sampler = sampler_name() if plan.private else "none"  # a library that does not load costs nothing
            provenance = {**self.provenance, "backend": self._backend(query)}
            reservation = _reservation(query, plan, dataset, key, request, provenance)
            if isinstance(self.read, CountReader):
                ledger.check(reservation)  # a cost without room asks nothing
                self.read.check(query)  # rows that changed meanwhile cost nothing
            reserved = ledger.reserve(reservation)
            # A plan that died may have reserved it: then the receipt names that plan.
            receipt = Receipt.from_reservation(reserved.body, ledger.id, reserved.seq, sampler)
            data = _drawn_once(ledger, receipt, partial(self._draw, query))
            digest = sha256_bytes(data)
            ledger.commit(key, digest, data if ledger.keeps_bytes else None)
            return _publish_staged(ledger, key, digest)

    def _backend(self, query: AnyQuery) -> str:
        """Name the backend that counts the rows of a query."""
        if not isinstance(self.read, CountReader):
            return HERE
        unit = self.plan.unit
        if self.read.max_rows != (0 if unit is None else unit.max_rows):
            raise ReleaseError(f"{query.name}: the database bounds the rows of people otherwise than plan.json does")
        if isinstance(query, PartitionQuery):
            return self.read.backend_of_texts(query.column)
        return self.read.backend(*counted_tables(query))

    def request(self, query: AnyQuery) -> tuple[Dataset, dict[str, Any]]:
        """The rows with the attempt of the newest draw, and the request whose digest is the key. It reads no row."""
        plan = self.plan
        dataset = current_draw(query, plan, self.dataset, self.ledger.lost_keys())
        return dataset, request_of(query, str(plan.adjacency), noise_scale(query, plan), dataset)

    def _draw(self, query: AnyQuery, receipt: Receipt) -> Released:
        """Draw once, at the noise of the receipt."""
        plan, scale = self.plan, receipt.noise_scale
        if isinstance(query, PartitionQuery):
            return _draw_partitions(query, plan, scale, cast(ReadPartitions | CountReader, self.read), receipt)
        return _draw(query, plan, scale, cast(Read | CountReader, self.read), receipt)


def _check_plan(plan: Plan, query: AnyQuery, dataset: Dataset) -> None:
    """Refuse a plan that is for another population, unit or threshold."""
    if plan.identity != dataset.population:
        raise PlanError(
            f"plan.json is for '{plan.identity}', the rows belong to '{dataset.population}'. Run: likeness run"
        )
    if plan.unit != dataset.unit:
        planned, prepared = _protected_unit(plan.unit), _protected_unit(dataset.unit)
        raise PlanError(f"plan.json protects {planned}, the rows were prepared for {prepared}. Run: likeness run")
    if isinstance(query, PartitionQuery) and plan.query(query.name).delta_keys != query.delta_keys:
        raise PlanError(f"{query.name}: plan.json has another delta for its threshold. Run: likeness run")


def _coordinates(query: AnyQuery, plan: Plan) -> int:
    """Coordinates for η. With a threshold they are those that one person changes."""
    return query.changed_counts(plan.adjacency, plan.unit) if isinstance(query, PartitionQuery) else query.dimension


def _reservation(
    query: AnyQuery, plan: Plan, dataset: Dataset, key: str, request: Mapping[str, Any], provenance: Mapping[str, Any]
) -> Reservation:
    """The charge to the ledger, with the rest of the plan: a plan begins only if all of it fits."""
    squared, scale = query.sensitivity_squared(plan.adjacency, plan.unit), request["noise_scale"]
    facts = {
        "stage": query.stage,
        "method": plan.method,
        "plugin": plan.plugin,
        "change": str(query.contributions.change(plan.adjacency)),
        "dimension": _coordinates(query, plan),
        "sensitivity": math.sqrt(squared) * 2.0**-query.lattice_bits,
        "noise_multiplier": scale / math.sqrt(squared),
    }
    return Reservation(
        **vars(dataset),
        key=key,
        adjacency=plan.adjacency,
        rho=squared / (2 * scale**2) if scale else math.inf,
        plan=plan.digest,
        others={other.query: other.rho for other in plan.queries if other.query != query.name},
        others_delta={other.query: other.delta_keys for other in plan.queries if other.delta_keys},
        delta=request["delta_keys"],
        details={**provenance, **request, **facts},
    )


def current_draw(query: AnyQuery, plan: Plan, dataset: Dataset, lost: Collection[str]) -> Dataset:
    """The data set with the attempt of the newest draw: each draw that a person declared lost has a new attempt.

    Args:
        query: the query.
        plan: its noise.
        dataset: whose rows, with the attempt of the settings.
        lost: keys of releases that a person gave up, see :meth:`likeness.ledger.ledger.Ledger.redraw`.
    """
    attempt, draw = dataset.attempt, 1
    while lost and sha256_json(request_of(query, str(plan.adjacency), noise_scale(query, plan), dataset)) in lost:
        draw += 1
        dataset = replace(dataset, attempt=f"{attempt}{REDRAW}{draw}")
    return dataset


def _draw(query: Query, plan: Plan, scale: float, read: Read | CountReader, receipt: Receipt) -> Released:
    """Read the rows, sum, add noise. Nothing between the sum and the noise leaves this function."""
    unit = plan.unit
    if query.is_per_person and unit is None:
        raise ReleaseError(f"{query.name}: counts people with several rows, plan.json protects single rows")
    # Only one process can count the rows of each person as they pass. A database bounds and counts them itself.
    if unit is not None and not query.is_per_person and not isinstance(read, CountReader):
        opened = read  # known to open rows
        read = lambda: _check_rows_per_person(opened(), unit)  # noqa: E731
    if isinstance(query, ChoiceQuery):
        scores, rows = scores_of(query, cast(Read, read)())
        _check_number(plan, rows)
        steps = scale * 2.0**-CHOICE_BITS
        pick = partial(choose, scale=steps) if plan.private else lambda among: among.index(max(among))
        return Released(draw_choices(query, scores, pick), receipt)
    counts = isinstance(query.feature, CellMap | ProductsMap)  # networks have threads of their own
    exact = exact_sum(query, read, threads() if counts else LOCAL)
    _check_number(plan, exact.records)
    total = exact.total
    noisy = add_discrete_gaussian(total.ravel(), scale).reshape(total.shape) if plan.private else total
    return Released(noisy, receipt)


def _draw_partitions(
    query: PartitionQuery, plan: Plan, scale: float, read: ReadPartitions | CountReader, receipt: Receipt
) -> Released:
    """Read the rows, count, add noise, cut at the threshold. What is below it never leaves this function.

    A database counts hashes of texts. They are keys as texts are: each row has at most one, by that row alone. So the
    theorem of :mod:`likeness.privacy.thresholds` holds for them, with equal counts, σ and threshold. The text of a
    released hash follows from the hash, so to ask for it is post-processing. Of equal noisy counts at the limit of
    ``most`` the order of hashes decides.
    """
    assert receipt.threshold is not None
    if isinstance(read, CountReader):
        counts, rows = count_hashes(query, *read.texts(query.column))
    else:
        counts, rows = count_partitions(query, _partitions_counted(read(), plan.unit))
    _check_number(plan, rows)
    keys = list(counts)
    noisy = np.array([counts[key] << query.lattice_bits for key in keys], dtype=np.int64)
    if plan.private and keys:
        noisy = add_discrete_gaussian(noisy, scale)
    indices = select_keys(keys, noisy, receipt.threshold, query.most)
    texts = [keys[index] for index in indices]
    if isinstance(read, CountReader):
        by_hash = _texts_of(read, query, texts)
        indices = sorted(indices, key=lambda index: by_hash[keys[index]])
        texts = sorted(by_hash.values())
    return Released(noisy[indices].reshape(1, len(indices)), receipt, tuple(texts))


def _texts_of(read: CountReader, query: PartitionQuery, hashes: Sequence[str]) -> dict[str, str]:
    """The texts of released hashes. A broken connection repeats this question, and not the draw that it names.

    Raises:
        LikenessError: the database refuses, or the connection broke each time. The stage does not begin again by
            itself, because it would draw again.
    """
    try:
        return retry_on_disconnect(lambda: read.texts_of(query.column, hashes))
    except LikenessError as error:
        error.transient = False
        raise


def _partitions_counted(chunks: Iterable[Partitions], unit: PrivacyUnit | None) -> Iterator[Partitions]:
    """Pass partitions on, and insist that nobody has more rows than the plan says."""
    rows = np.zeros(0, dtype=np.int64)
    for chunk in chunks:
        if unit is not None:
            rows = _rows_of_each(rows, chunk.persons, len(chunk.texts), unit)
        elif chunk.persons is not None:
            raise ReleaseError(
                "the rows belong to people with several rows, plan.json protects single rows. Run: likeness run"
            )
        yield Partitions(chunk.texts)


def _check_rows_per_person(records: Iterable[Records], unit: PrivacyUnit) -> Iterator[Records]:
    """Pass rows on without their people, and insist that nobody has more rows than the plan says.

    The count refuses a table that was prepared under another bound before anything of it is released. Memory: eight
    bytes a person.
    """
    rows = np.zeros(0, dtype=np.int64)
    for chunk in records:
        rows = _rows_of_each(rows, chunk.persons, len(chunk.x), unit)
        yield Records(chunk.x, chunk.labels)


def _check_number(plan: Plan, count: int) -> None:
    """Insist on the number of rows where it is public."""
    if plan.adjacency is Adjacency.REPLACE_ONE and count != plan.num_records:
        raise DataError(
            f"params.yaml: privacy.num_records is {plan.num_records}, the training table has {count} rows. Under "
            "replace_one the number of records is public and must be right. Correct it."
        )


def _rows_of_each(rows: np.ndarray, persons: np.ndarray | None, count: int, unit: PrivacyUnit) -> np.ndarray:
    """Add a chunk of ``count`` rows to the rows of each person.

    Raises:
        ReleaseError: a row has no person.
        DataError: somebody has too many rows.
    """
    if persons is None or persons.shape != (count,) or persons.dtype != np.int64 or (persons < 0).any():
        raise ReleaseError("each row must have the number of its person, an int64 from 0 on. Run: likeness run")
    totals = np.bincount(persons, minlength=len(rows))
    totals[: len(rows)] += rows
    if (totals > unit.max_rows).any():
        raise DataError(
            f"a person has more training rows than ingest.unit.max_rows, {unit.max_rows}. Nothing was released. Run: "
            "dvc repro --force ingest"
        )
    return totals


def _protected_unit(unit: PrivacyUnit | None) -> str:
    return "single rows" if unit is None else f"people by '{unit.column}' with at most {unit.max_rows} rows"
