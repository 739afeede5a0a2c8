"""Releases with a threshold: every rule that a verifier holds them to is broken once."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from toys import plan_with

from likeness.bundle.verdict import Wrong
from likeness.config.params import MOST_ROWS
from likeness.core.bounds import PrivacyUnit
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.privacy.plan import QueryShare
from likeness.release.door import Door
from likeness.release.partition_selection import PartitionQuery, Partitions
from likeness.release.released import Released, from_bytes
from likeness.release.request import Dataset
from likeness.verify.receipts import check_claim, check_keys


@pytest.fixture
def honest() -> Released:
    """Two texts that are in 500 rows each; people of up to three rows."""
    unit = PrivacyUnit("pid", 3)
    plan = plan_with(
        [QueryShare("embedding", "privatize", 1.0)],
        unit=unit,
        selection=[QueryShare("categories_1", "categories", 0.5, 0.1)],
    )
    ledger = Ledger.create(locate())
    ledger.declare_population("people", plan.adjacency, 1.0, plan.delta, "pid", selection_delta=plan.delta_keys)
    query = PartitionQuery("categories_1", "job", "other", 2, plan.query("categories_1").delta_keys)
    rows = Partitions(["clerk"] * 500 + ["nurse"] * 500 + ["rare"], np.arange(1_001))
    dataset = Dataset("people", "digest", encoding="open", unit=unit)
    return from_bytes(Door(plan, ledger, dataset, lambda: [rows]).release(query), "categories_1")


def test_an_honest_release_passes(honest: Released) -> None:
    check(honest)
    assert honest.keys == ("clerk", "nurse")


def check(released: Released) -> None:
    """What the check of sensitivities does with a release that has a threshold."""
    check_claim("categories_1", released.receipt)
    check_keys("categories_1", released)


def times(name: str, factor: float) -> Any:
    """A receipt with one number changed."""
    return lambda receipt: {name: type(getattr(receipt, name))(getattr(receipt, name) * factor)}


CLAIMS: list[tuple[Any, str]] = [
    (lambda r: {"feature": {**r.feature, "map": "constant"}}, "another map"),
    (lambda r: {"feature": {**r.feature, "note": "audited"}}, "another map"),
    (lambda r: {"feature": {**r.feature, "terms": "all_records"}}, "another map"),
    (lambda _: {"mechanism": "discrete_gaussian"}, "mechanism 'discrete_gaussian' is unknown"),
    (lambda _: {"num_groups": 0}, "no number of groups"),
    (lambda _: {"num_groups": 2}, "not one of a partition selection"),
    (lambda _: {"adjacency": "add_remove_two"}, "adjacency is unknown"),
    (lambda _: {"adjacency": "replace_one"}, "people of several rows cannot be replaced"),
    (lambda _: {"noise_scale": 0.0}, "no noise"),
    (lambda _: {"unit": PrivacyUnit("pid", MOST_ROWS + 1)}, "people of too many rows"),
    (times("dimension", 2), "dimension is 6, not 3"),
    (times("sensitivity", 0.5), "sensitivity is 1.5, not 3"),
    (times("noise_multiplier", 2), "noise_scale is"),
    (times("rho", 0.5), "rho is"),
    (lambda _: {"unit": PrivacyUnit("pid", 2)}, "dimension is 3, not 2"),
    (lambda _: {"change": "one_replaced"}, "change is wrong"),
    (lambda _: {"threshold": 1.5}, "no threshold, or no delta for it"),
    (lambda _: {"delta_keys": 0.0}, "no threshold, or no delta for it"),
    (lambda _: {"delta_keys": 1.0}, "no threshold, or no delta for it"),
    (times("threshold", 0.98), "the threshold lets a value of one person pass"),
    (times("delta_keys", 0.5), "more than delta"),
    (lambda r: {"threshold": r.threshold * 9}, "a key below the threshold"),
    (lambda r: {"feature": {**r.feature, "most": 1}}, "more keys than the query allows"),
    (lambda r: {"feature": {**r.feature, "other": "nurse"}}, "'nurse' is not a key"),
]


@pytest.mark.long
@pytest.mark.parametrize(("claim", "reason"), CLAIMS)
def test_a_receipt_that_breaks_one_rule_is_refused(honest: Released, claim: Any, reason: str) -> None:
    changed = dataclasses.replace(honest.receipt, **claim(honest.receipt))
    with pytest.raises(Wrong, match=f"categories_1: .*{reason}"):
        check(dataclasses.replace(honest, receipt=changed))


def test_noise_that_is_coarse_on_its_lattice_is_refused(honest: Released) -> None:
    """As few steps as this are no Gaussian any more; every other number is scaled alike."""
    receipt = honest.receipt
    bits = -int(np.log2(receipt.noise_scale / 2.0**receipt.lattice_bits))
    coarse = dataclasses.replace(
        receipt,
        lattice_bits=bits,
        noise_scale=receipt.noise_scale * 2.0 ** (bits - receipt.lattice_bits),
        threshold=round(receipt.threshold * 2.0 ** (bits - receipt.lattice_bits)),
    )
    with pytest.raises(Wrong, match="too coarse on its lattice"):
        check(dataclasses.replace(honest, receipt=coarse))
