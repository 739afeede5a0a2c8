r"""The door. Private rows pass it once, as a noisy sum.

Guarantee. Let f be the integer sum of :func:`likeness.release.lattice_sum.lattice_sum`, and Δ its L2 sensitivity under
the plan's adjacency, computed from nothing but the bounds that the sum enforces on integers
(:func:`likeness.privacy.adjacency.lattice_sensitivity_squared`). The released value f(table) + N_ℤ(0, σ²)^dimension
satisfies :math:`\rho = \Delta^2 / (2 \sigma^2)` zero-concentrated differential privacy (Canonne, Kamath and Steinke
2020, Theorem 14), and its cost is in the ledger before a row is read.

A request that was answered before is answered with the same bytes and costs nothing: no re-run is a second release.
"""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from likeness.canonical import sha256_bytes, sha256_json
from likeness.errors import DataError, LedgerError, PlanError
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.anchor import sync_folder, write_durably
from likeness.privacy.chain import file_lock
from likeness.privacy.ledger import Ledger, Reservation
from likeness.privacy.noise import add_discrete_gaussian, sampler_name
from likeness.privacy.plan import Plan
from likeness.privacy.receipt import Receipt
from likeness.release.lattice_sum import lattice_sum
from likeness.release.query import Query
from likeness.release.released import Released, to_bytes
from likeness.release.request import Dataset, request_of
from likeness.release.terms import Records

_ROUND_UP = 1 + 2.0**-48  # the scale is never rounded below what the plan asks


def release(
    query: Query,
    plan: Plan,
    dataset: Dataset,
    ledger: Ledger,
    read: Callable[[], Iterable[Records]],
    provenance: dict[str, Any] | None = None,
) -> bytes:
    """Answer a query, once and for all.

    Args:
        query: what is asked. plan: its noise. dataset: whose rows.
        ledger: an open ledger in which the identity has a cap.
        read: opens the private rows; called only after the cost is on record.
        provenance: public facts for the ledger: who asked, from which commit.

    Returns:
        the bytes of the released file, receipt inside; see :func:`likeness.release.released.from_bytes`.

    Raises:
        PlanError: the plan belongs to other people.
        BudgetError: over the lifetime cap; nothing was read.
        LedgerError: the ledger is damaged, or released bytes were lost.
    """
    if plan.identity != dataset.identity:
        raise PlanError(
            f"the plan is for '{plan.identity}', the rows belong to '{dataset.identity}'. Run: dvc repro plan"
        )
    planned = plan.query(query.name)
    sensitivity_squared = query.sensitivity_squared(plan.adjacency)
    scale = math.sqrt(sensitivity_squared) * planned.noise_multiplier * _ROUND_UP
    if plan.private is not (scale > 0):
        raise PlanError("plan.json contradicts itself: noise and target do not agree. Run: dvc repro plan")
    request = request_of(query, str(plan.adjacency), scale, dataset)
    key = sha256_json(request)
    with file_lock(ledger.home.locks / f"{key}.lock"):
        _, commit = ledger.find(key)
        if commit is not None:
            return _stored(ledger, key, str(commit.body["sha256"]))
        _discard_uncommitted(ledger, key)
        rho = sensitivity_squared / (2 * scale**2) if scale else math.inf
        details = {**request, **(provenance or {}), "stage": query.stage, "method": plan.method}
        details.update({"dimension": query.dimension, "noise_multiplier": planned.noise_multiplier})
        reserved = ledger.reserve(
            Reservation(
                key=key,
                identity=dataset.identity,
                adjacency=plan.adjacency,
                rho=rho,
                plan=plan.digest,
                others={own.query: own.rho for own in plan.queries if own.query != query.name},
                digest=dataset.digest,
                slot=dataset.slot,
                encoding=dataset.encoding,
                details=details,
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
            dimension=query.dimension,
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
        )
        data = to_bytes(_draw(query, plan, scale, read, receipt))
        write_durably(ledger.home.staging / key, data)
        ledger.commit(key, sha256_bytes(data))
        return _publish(ledger, key)


def _draw(query: Query, plan: Plan, scale: float, read: Callable[[], Iterable[Records]], receipt: Receipt) -> Released:
    """Read the rows, sum, add noise. Nothing between the sum and the noise leaves this function."""
    exact = lattice_sum(query, _counted(read(), plan))
    noisy = add_discrete_gaussian(exact.ravel(), scale).reshape(exact.shape) if plan.private else exact
    return Released(noisy, receipt)


def _counted(records: Iterable[Records], plan: Plan) -> Iterable[Records]:
    """Pass rows on; where their number is public, insist on it."""
    count = 0
    for chunk in records:
        count += len(chunk.x)
        yield chunk
    if plan.adjacency is Adjacency.REPLACE_ONE and count != plan.num_records:
        raise DataError(
            f"privacy.num_records is {plan.num_records}, the training table has {count} rows. Under replace_one the "
            "number of records is public and must be right; correct params.yaml."
        )


def _discard_uncommitted(ledger: Ledger, key: str) -> None:
    """Delete what a killed process drew for this key: nobody saw it, and what is not committed is never used."""
    for leftover in (ledger.home.staging / key, *ledger.home.staging.glob(f".{key}.*")):
        leftover.unlink(missing_ok=True)


def _publish(ledger: Ledger, key: str) -> bytes:
    """Move committed bytes from staging into the store."""
    staged, stored = ledger.home.staging / key, ledger.home.releases / f"{key}.safetensors"
    staged.chmod(0o444)
    staged.replace(stored)
    sync_folder(stored.parent)
    return stored.read_bytes()


def _stored(ledger: Ledger, key: str, sha256: str) -> bytes:
    """The bytes of an earlier release; finishes a publication that a crash cut off."""
    stored = ledger.home.releases / f"{key}.safetensors"
    if not stored.exists() and _has_digest(ledger.home.staging / key, sha256):
        return _publish(ledger, key)
    if not _has_digest(stored, sha256):
        raise LedgerError(
            f"release {key[:12]} is in the ledger, but its bytes are lost or altered in {ledger.home.releases}. "
            "Restore that folder from a backup, or the file from the DVC remote; drawing again would be a second "
            "release. A deliberate second one: a new ledger.slot in params.yaml, at the full cost."
        )
    return stored.read_bytes()


def _has_digest(path: Path, sha256: str) -> bool:
    return path.exists() and sha256_bytes(path.read_bytes()) == sha256
