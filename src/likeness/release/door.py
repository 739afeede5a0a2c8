r"""The door. Private rows pass it once, as a noisy sum.

Guarantee. Let f be the integer sum of :func:`likeness.release.sums.lattice_sum.lattice_sum`, and Δ its L2 sensitivity
under the plan's adjacency, computed from nothing but the bounds that the sum enforces on integers and, where a person
may have several rows, the most of them, which the door counts (:func:`_counted`); see
:func:`likeness.privacy.adjacency.lattice_sensitivity_squared`. The released value f(table) + N_ℤ(0, σ²)^dimension
satisfies :math:`\rho = \Delta^2 / (2 \sigma^2)` zero-concentrated differential privacy (Canonne, Kamath and Steinke
2020, Theorem 14), and it is a Gaussian mechanism up to what :mod:`likeness.privacy.lattice_error` proves of its
lattice. Its cost is in the ledger before a row is read.

Keys that are not publicly known (:class:`~likeness.release.keys.KeyQuery`) are counted, made noisy in the same way and
released above a threshold, at a cost of δ as well; see :mod:`likeness.privacy.thresholds`.

A request that was answered before is answered with the same bytes and costs nothing: no re-run is a second release.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

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


@dataclass(frozen=True)
class Door:
    """The door to one data set, with all that does not change from query to query.

    Attributes:
        plan: noise of every query.
        ledger: an open ledger in which the identity has a cap.
        dataset: whose rows.
        read: opens the private rows, or the keys of a column; called only after the cost is on record.
        provenance: public facts for the ledger: who asks, from which commit.
        engine: where parts of the rows are summed, if ``read`` has parts; they are added up here. It changes no bit.
    """

    plan: Plan
    ledger: Ledger
    dataset: Dataset
    read: Read | ReadKeys
    provenance: Mapping[str, Any] = field(default_factory=dict)
    engine: Engine = LOCAL

    def release(self, query: Query | KeyQuery) -> bytes:
        """Answer a query, once and for all: fetch the answer, or reserve its cost, draw it once, and keep it.

        Returns:
            the bytes of the released file, receipt inside; see :func:`likeness.release.released.from_bytes`.

        Raises:
            PlanError: the plan belongs to other people, or to people with another number of rows; or its noise is too
                coarse on the lattice; or it has another δ for a threshold.
            DataError: a person has more rows than the sensitivity counts, or the public number of records is wrong.
            BudgetError: over the lifetime cap; nothing was read.
            LedgerError: the ledger is damaged, or released bytes were lost.
        """
        plan, ledger = self.plan, self.ledger
        _check_plan(plan, query, self.dataset)
        scale = noise_scale(query, plan)
        dataset = current_draw(query, plan, self.dataset, ledger.lost())
        if plan.private:
            check_discretization(query.name, _coordinates(query, plan), scale)
        request = request_of(query, str(plan.adjacency), scale, dataset)
        key = sha256_json(request)
        with ledger.drawing(key):
            _, commit = ledger.find(key)
            if commit is not None:
                return _stored(ledger, key, str(commit.body["sha256"]))
            details = {**request, **self.provenance, "stage": query.stage, "method": plan.method}
            reserved = ledger.reserve(_reservation(query, plan, dataset, request, details))
            receipt = _receipt(query, plan, dataset, request, ledger.id, reserved.seq)
            data = _drawn_once(ledger, receipt, partial(self._drawn, query))
            digest = sha256_bytes(data)
            ledger.commit(key, digest, data if ledger.keeps_bytes else None)
            return _stored(ledger, key, digest)

    def _drawn(self, query: Query | KeyQuery, receipt: Receipt) -> Released:
        """The one draw, at the noise of its receipt."""
        plan, scale = self.plan, receipt.noise_scale
        if isinstance(query, KeyQuery):
            return _draw_keys(query, plan, scale, cast(ReadKeys, self.read), receipt)
        return _draw(query, plan, scale, cast(Read, self.read), receipt, self.engine)


def _check_plan(plan: Plan, query: Query | KeyQuery, dataset: Dataset) -> None:
    """Refuse a plan that is for other people or for another threshold."""
    if plan.identity != dataset.identity:
        raise PlanError(
            f"the plan is for '{plan.identity}', the rows belong to '{dataset.identity}'. Run: dvc repro plan"
        )
    if plan.unit != dataset.unit:
        raise PlanError(
            f"the plan protects {_who(plan.unit)}, the rows were prepared for {_who(dataset.unit)}. Run: dvc repro"
        )
    if isinstance(query, KeyQuery) and plan.query(query.name).delta_keys != query.delta_keys:
        raise PlanError(f"{query.name}: the plan has another delta for its threshold. Run: dvc repro plan")


def _coordinates(query: Query | KeyQuery, plan: Plan) -> int:
    """Coordinates that η is about: with a threshold those that one person changes, whatever their number."""
    return query.touched(plan.adjacency, plan.unit) if isinstance(query, KeyQuery) else query.dimension


def _rho(query: Query | KeyQuery, plan: Plan, scale: float) -> float:
    """ρ = Δ² / (2 σ²); infinite without noise."""
    return query.sensitivity_squared(plan.adjacency, plan.unit) / (2 * scale**2) if scale else math.inf


def _reservation(
    query: Query | KeyQuery, plan: Plan, dataset: Dataset, request: Mapping[str, Any], details: dict[str, Any]
) -> Reservation:
    """What the ledger is asked to charge, with the rest of the plan, so that a plan is begun only if all of it fits."""
    dimension, multiplier = _coordinates(query, plan), plan.query(query.name).noise_multiplier
    return Reservation(
        key=sha256_json(request),
        population=dataset.identity,
        adjacency=plan.adjacency,
        rho=_rho(query, plan, request["noise_scale"]),
        plan=plan.digest,
        others={other.query: other.rho for other in plan.queries if other.query != query.name},
        others_delta={other.query: other.delta_keys for other in plan.queries if other.delta_keys},
        delta=request.get("delta_keys", 0.0),
        digest=dataset.digest,
        rows_digest=dataset.rows_digest,
        attempt=dataset.slot,
        encoding=dataset.encoding,
        details={**details, "dimension": dimension, "noise_multiplier": multiplier},
        unit=plan.unit,
    )


def _receipt(
    query: Query | KeyQuery, plan: Plan, dataset: Dataset, request: Mapping[str, Any], ledger_id: str, seq: int
) -> Receipt:
    """What the released file says of itself."""
    scale, sensitivity = request["noise_scale"], math.sqrt(query.sensitivity_squared(plan.adjacency, plan.unit))
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
        dimension=_coordinates(query, plan),
        lattice_bits=query.lattice_bits,
        sensitivity=sensitivity * 2.0**-query.lattice_bits,
        noise_multiplier=scale / sensitivity,
        noise_scale=scale,
        rho=_rho(query, plan, scale),
        identity=dataset.identity,
        digest=dataset.digest,
        slot=dataset.slot,
        plan=plan.digest,
        key=sha256_json(request),
        ledger_id=ledger_id,
        ledger_seq=seq,
        unit=plan.unit,
    )
    if isinstance(query, KeyQuery):
        return replace(receipt, format=2, threshold=request["threshold"], delta_keys=request["delta_keys"])
    return receipt


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
