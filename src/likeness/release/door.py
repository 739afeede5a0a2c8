r"""The door. Private rows pass it once, as a noisy sum.

Guarantee. Let f be the integer sum of :func:`likeness.release.sums.lattice_sum.lattice_sum`, and Δ its L2 sensitivity
under the plan's adjacency, computed from nothing but the bounds that the sum enforces on integers and, where a person
may have several rows, the most of them, which the door counts (:func:`_counted`); see
:func:`likeness.privacy.adjacency.lattice_sensitivity_squared`. The released value f(table) + N_ℤ(0, σ²)^dimension
satisfies :math:`\rho = \Delta^2 / (2 \sigma^2)` zero-concentrated differential privacy (Canonne, Kamath and Steinke
2020, Theorem 14), and it is a Gaussian mechanism up to what :mod:`likeness.privacy.lattice_error` proves of its
lattice. Its cost is in the ledger before a row is read.

Keys that are not publicly known (:func:`release_keys`) are counted, made noisy in the same way and released above a
threshold, at a cost of δ as well; see :mod:`likeness.privacy.thresholds`.

A request that was answered before is answered with the same bytes and costs nothing: no re-run is a second release.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import DataError, PlanError, ReleaseError
from likeness.core.hashing import sha256_bytes, sha256_json
from likeness.engine import LOCAL, Engine
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import REDRAW, Reservation
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.lattice_error import check_discretization
from likeness.privacy.noise import add_discrete_gaussian, sampler_name
from likeness.privacy.plan import Plan
from likeness.privacy.receipt import Receipt
from likeness.release.keys import KeyQuery, Keys, ReadKeys, counted, kept
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released
from likeness.release.request import Dataset, request_of
from likeness.release.store import _drawn_once, _stored
from likeness.release.sums.over_parts import Read, exact_sum

_ROUND_UP = 1 + 2.0**-48  # the scale is never rounded below what the plan asks


def release(
    query: Query,
    plan: Plan,
    dataset: Dataset,
    ledger: Ledger,
    read: Read,
    provenance: dict[str, Any] | None = None,
    engine: Engine = LOCAL,
) -> bytes:
    """Answer a query, once and for all.

    Args:
        query: what is asked. plan: its noise. dataset: whose rows.
        ledger: an open ledger in which the identity has a cap.
        read: opens the private rows; called only after the cost is on record.
        provenance: public facts for the ledger: who asked, from which commit.
        engine: where parts of the rows are summed, if ``read`` has parts; they are added up here. It changes no bit.

    Returns:
        the bytes of the released file, receipt inside; see :func:`likeness.release.released.from_bytes`.

    Raises:
        PlanError: the plan belongs to other people, or to people with another number of rows; or its noise is too
            coarse on the lattice.
        DataError: a person has more rows than the sensitivity counts, or the public number of records is wrong.
        BudgetError: over the lifetime cap; nothing was read.
        LedgerError: the ledger is damaged, or released bytes were lost.
    """

    def draw(receipt: Receipt) -> Released:
        return _draw(query, plan, receipt.noise_scale, read, receipt, engine)

    return _answered(query, plan, dataset, ledger, draw, provenance)


def release_keys(
    query: KeyQuery,
    plan: Plan,
    dataset: Dataset,
    ledger: Ledger,
    read: ReadKeys,
    provenance: dict[str, Any] | None = None,
) -> bytes:
    """The same for a query about keys, which are counted in this process.

    Raises:
        PlanError: also where the plan has another δ for the threshold.
    """
    if plan.query(query.name).delta_keys != query.delta_keys:
        raise PlanError(f"{query.name}: the plan has another delta for its threshold. Run: dvc repro plan")

    def draw(receipt: Receipt) -> Released:
        return _draw_keys(query, plan, receipt.noise_scale, read, receipt)

    return _answered(query, plan, dataset, ledger, draw, provenance)


def _answered(
    query: Query | KeyQuery,
    plan: Plan,
    dataset: Dataset,
    ledger: Ledger,
    draw: Callable[[Receipt], Released],
    provenance: dict[str, Any] | None,
) -> bytes:
    """Fetch the answer, or reserve its cost, draw it once, and keep it."""
    if plan.identity != dataset.identity:
        raise PlanError(
            f"the plan is for '{plan.identity}', the rows belong to '{dataset.identity}'. Run: dvc repro plan"
        )
    if plan.unit != dataset.unit:
        raise PlanError(
            f"the plan protects {_who(plan.unit)}, the rows were prepared for {_who(dataset.unit)}. Run: dvc repro"
        )
    sensitivity_squared, scale = query.sensitivity_squared(plan.adjacency, plan.unit), noise_scale(query, plan)
    dataset = current_draw(query, plan, dataset, ledger.lost())
    # Of a release with a threshold, η is about the coordinates that one person changes, whatever their number.
    dimension = query.dimension if isinstance(query, Query) else query.touched(plan.adjacency, plan.unit)
    if plan.private:
        check_discretization(query.name, dimension, scale)
    request = request_of(query, str(plan.adjacency), scale, dataset)
    key = sha256_json(request)
    with ledger.drawing(key):
        _, commit = ledger.find(key)
        if commit is not None:
            return _stored(ledger, key, str(commit.body["sha256"]))
        rho = sensitivity_squared / (2 * scale**2) if scale else math.inf
        details = {**request, **(provenance or {}), "stage": query.stage, "method": plan.method}
        details.update({"dimension": dimension, "noise_multiplier": plan.query(query.name).noise_multiplier})
        reserved = ledger.reserve(
            Reservation(
                key=key,
                population=dataset.identity,
                adjacency=plan.adjacency,
                rho=rho,
                plan=plan.digest,
                others={own.query: own.rho for own in plan.queries if own.query != query.name},
                others_delta={own.query: own.delta_keys for own in plan.queries if own.delta_keys},
                delta=request.get("delta_keys", 0.0),
                digest=dataset.digest,
                rows_digest=dataset.rows_digest,
                attempt=dataset.slot,
                encoding=dataset.encoding,
                details=details,
                unit=plan.unit,
            )
        )
        receipt = Receipt(
            query=query.name,
            stage=query.stage,
            method=plan.method,
            feature=query.spec(),
            mechanism=str(request["mechanism"]),
            sampler=sampler_name() if plan.private else "none",
            adjacency=str(plan.adjacency),
            change=str(query.terms.change(plan.adjacency)),
            num_groups=query.num_groups,
            dimension=dimension,
            lattice_bits=query.lattice_bits,
            sensitivity=math.sqrt(sensitivity_squared) * 2.0**-query.lattice_bits,
            noise_multiplier=scale / math.sqrt(sensitivity_squared),
            noise_scale=scale,
            rho=rho,
            identity=dataset.identity,
            digest=dataset.digest,
            slot=dataset.slot,
            plan=plan.digest,
            key=key,
            ledger_id=ledger.id,
            ledger_seq=reserved.seq,
            unit=plan.unit,
        )
        if isinstance(query, KeyQuery):
            receipt = replace(receipt, format=2, threshold=request["threshold"], delta_keys=request["delta_keys"])
        data = _drawn_once(ledger, receipt, draw)
        digest = sha256_bytes(data)
        ledger.commit(key, digest, data if ledger.keeps_bytes else None)
        return _stored(ledger, key, digest)


def noise_scale(query: Query | KeyQuery, plan: Plan) -> float:
    """σ in lattice steps: the plan's noise multiplier times the sensitivity; 0 where the plan is not private.

    Raises:
        PlanError: the plan contradicts itself.
    """
    sensitivity = math.sqrt(query.sensitivity_squared(plan.adjacency, plan.unit))
    scale = sensitivity * plan.query(query.name).noise_multiplier * _ROUND_UP
    if plan.private is not (scale > 0):
        raise PlanError("plan.json contradicts itself: noise and target do not agree. Run: dvc repro plan")
    return scale


def current_draw(query: Query | KeyQuery, plan: Plan, dataset: Dataset, lost: Collection[str]) -> Dataset:
    """The data set with the slot of the newest draw: another one for every draw that was declared lost.

    Args:
        lost: keys of releases that a person gave up, see :meth:`likeness.ledger.ledger.Ledger.redraw`.
    """
    slot, draw = dataset.slot, 1
    while sha256_json(request_of(query, str(plan.adjacency), noise_scale(query, plan), dataset)) in lost:
        draw += 1
        dataset = replace(dataset, slot=f"{slot}{REDRAW}{draw}")
    return dataset


def _draw(query: Query, plan: Plan, scale: float, read: Read, receipt: Receipt, engine: Engine) -> Released:
    """Read the rows, sum, add noise. Nothing between the sum and the noise leaves this function."""
    unit = plan.unit
    # Where a person may have several rows, they are counted on their way, which only one process can.
    exact = exact_sum(query, read, engine) if unit is None else exact_sum(query, lambda: _counted(read(), unit))
    _check_number(plan, exact.records)
    total = exact.total
    noisy = add_discrete_gaussian(total.ravel(), scale).reshape(total.shape) if plan.private else total
    return Released(noisy, receipt)


def _draw_keys(query: KeyQuery, plan: Plan, scale: float, read: ReadKeys, receipt: Receipt) -> Released:
    """Read the rows, count, add noise, cut at the threshold. What is below it never leaves this function."""
    assert receipt.threshold is not None
    counts, rows = counted(query, _keys_counted(read(), plan.unit))
    _check_number(plan, rows)
    keys = list(counts)
    noisy = np.array([counts[key] << query.lattice_bits for key in keys], dtype=np.int64)
    if plan.private and keys:
        noisy = add_discrete_gaussian(noisy, scale)
    places = kept(keys, noisy, receipt.threshold, query.most)
    return Released(noisy[places].reshape(1, len(places)), receipt, tuple(keys[place] for place in places))


def _keys_counted(chunks: Iterable[Keys], unit: PrivacyUnit | None) -> Iterator[Keys]:
    """Pass keys on; insist, as for records, that nobody has more rows than the plan says."""
    rows = np.zeros(0, dtype=np.int64)
    for chunk in chunks:
        if unit is not None:
            rows = _rows_of_each(rows, chunk.people, len(chunk.texts), unit)
        elif chunk.people is not None:
            raise ReleaseError("the rows are of people who may have several, the plan is not. Run: dvc repro")
        yield Keys(chunk.texts)


def _counted(records: Iterable[Records], unit: PrivacyUnit) -> Iterator[Records]:
    """Pass rows on, but not whose they are; insist that nobody has more of them than the plan says.

    Whoever reads the rows tells whose they are, and here they are counted, so that a table that was prepared under
    another bound is refused before anything of it is released. Memory: eight bytes a person.
    """
    rows = np.zeros(0, dtype=np.int64)
    for chunk in records:
        rows = _rows_of_each(rows, chunk.people, len(chunk.x), unit)
        yield Records(chunk.x, chunk.labels)


def _check_number(plan: Plan, count: int) -> None:
    """Where the number of rows is public, insist on it."""
    if plan.adjacency is Adjacency.REPLACE_ONE and count != plan.num_records:
        raise DataError(
            f"privacy.num_records is {plan.num_records}, the training table has {count} rows. Under replace_one the "
            "number of records is public and must be right; correct params.yaml."
        )


def _rows_of_each(rows: np.ndarray, people: np.ndarray | None, count: int, unit: PrivacyUnit) -> np.ndarray:
    """Add a chunk of so many rows to the rows of each person.

    Raises:
        ReleaseError: it does not tell whose rows they are.
        DataError: somebody has too many.
    """
    if people is None or people.shape != (count,) or people.dtype != np.int64 or (people < 0).any():
        raise ReleaseError("the rows do not tell whose they are, one number of int64 a row. Run: dvc repro")
    found = np.bincount(people, minlength=len(rows))
    found[: len(rows)] += rows
    if (found > unit.max_rows).any():
        raise DataError(
            f"somebody has more training rows than ingest.unit.max_rows, {unit.max_rows}: the table was prepared "
            "otherwise. Nothing was released. Run: dvc repro --force ingest"
        )
    return found


def _who(unit: PrivacyUnit | None) -> str:
    return "single rows" if unit is None else f"people by '{unit.column}' with at most {unit.max_rows} rows"
