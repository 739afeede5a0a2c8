"""Noise of another scale than a receipt claims, and bits that are no noise: the check of noise finds both.

The writer that a table's file names: a version that a reader can install, and never a text of its author.
"""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from toys import ledger_of_people, plan_with, schema_with

from likeness.bundle.verdict import Untestable, Wrong, require
from likeness.core.typed import build
from likeness.ledger.reservation import Dataset
from likeness.methods.base import Context
from likeness.methods.marginals.method import Marginals
from likeness.release.door import Door
from likeness.release.records import Records
from likeness.release.released import Released, from_bytes
from likeness.verify.checks import CHECKS, checks_of
from likeness.verify.noise import _check_steps, _check_totals, noise
from likeness.verify.outputs import _trained_again, written_by
from likeness.verify.receipts import query_again

COLUMNS = 12
SCHEMA = schema_with({f"x{place}": {"kind": "numeric", "lower": 0, "upper": 1} for place in range(COLUMNS)})
CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)


@pytest.fixture
def embedding() -> Released:
    """66 pairs and 12 columns of 500 records, as the default method releases them where all pairs show much."""
    method = build(Marginals, {"privatize": {"bins": 4}}, "marginals")
    plan = plan_with(method.shares(CONTEXT), method="marginals")
    ledger = ledger_of_people(plan.adjacency, plan.epsilon, plan.delta)
    query = method.embedding_query(CONTEXT, {})
    rows = Records(np.random.default_rng(0).random((500, COLUMNS)), np.zeros(500, dtype=np.int64))
    return from_bytes(Door(plan, ledger, Dataset("people", "digest"), lambda: [rows]).release(query), "embedding")


def checked(*released: Released) -> str:
    bundle: Any = SimpleNamespace(project=SimpleNamespace(row_sets=()), released_files=dict(enumerate(released)))
    return noise(bundle)


def claiming(released: Released, factor: float) -> Released:
    """The same integers, and a receipt that claims other noise."""
    scale = released.receipt.noise_scale * factor
    return dataclasses.replace(released, receipt=dataclasses.replace(released.receipt, noise_scale=scale))


def test_noise_as_claimed_passes_and_a_third_or_thrice_of_it_does_not(embedding: Released) -> None:
    """The statistic has 65 degrees of freedom or more: false alarm 2e-9, and a factor of three is missed with 1e-9."""
    assert "embedding (bits), embedding (scale)" in checked(embedding)
    for factor in (1 / 3, 3.0):
        with pytest.raises(Wrong, match="not of the scale that the receipt claims"):
            checked(claiming(embedding, factor))


def test_low_bits_that_are_no_noise_are_found(embedding: Released) -> None:
    """Noise that was cut to whole units: its lowest bits are all zero."""
    cut = dataclasses.replace(embedding, lattice=embedding.lattice & ~np.int64(63))
    with pytest.raises(Wrong, match="low bits are not those of noise"):
        checked(cut)
    few = dataclasses.replace(embedding, lattice=7 + (np.arange(8)[None] << 20))
    with pytest.raises(Wrong, match="all values are multiples of one step"):
        _check_steps({"few": few})


def test_every_release_is_looked_at_and_too_small_ones_are_said_not_to_be_tested(embedding: Released) -> None:
    with pytest.raises(Wrong, match="1: the noise is not of the scale"):
        checked(embedding, claiming(embedding, 1 / 3))
    with pytest.raises(Untestable, match="no release is large enough"):
        checked(claiming(dataclasses.replace(embedding, lattice=abs(embedding.lattice)), 1e-12))


def test_counts_are_of_the_public_number_of_records(embedding: Released) -> None:
    receipt = dataclasses.replace(embedding.receipt, adjacency="replace_one")
    plan, released = SimpleNamespace(num_records=500), {"embedding": dataclasses.replace(embedding, receipt=receipt)}
    bundle: Any = SimpleNamespace(released_files=released, project=SimpleNamespace(written_plan=plan))
    queries = {"embedding": query_again(receipt)}
    _check_totals(bundle, queries)
    plan.num_records = 9000
    with pytest.raises(Wrong, match="counts another number of records than"):
        _check_totals(bundle, queries)


@pytest.mark.parametrize("stated", ["Xq7Secret version 1", "parquet-cpp-arrow version 1x"])
def test_the_writer_is_a_version_of_pyarrow_or_nobody(tmp_path: Path, stated: str) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    ours = pq.read_metadata(path).created_by
    assert written_by(path) == f"pyarrow {pa.__version__}"
    data = path.read_bytes()
    assert data.count(ours.encode()) == 1
    path.write_bytes(data.replace(ours.encode(), stated.ljust(len(ours), "!")[: len(ours)].encode()))
    assert written_by(path) == "another writer"


def test_a_weight_of_minus_zero_is_not_zero() -> None:
    """Its sign could carry a message."""

    def trained(weight: float) -> Any:
        where = {"environment": {"device": "cpu", "processor": "Linux x", "numpy": "2.0"}}
        network = SimpleNamespace(arrays=lambda: {"w": np.array([weight])})
        return SimpleNamespace(provenance=where, network=network, draw=lambda _, seed: [np.array([seed])])

    assert _trained_again(trained(0.0), trained(0.0)) == 1
    with pytest.raises(Untestable, match="other weights"):
        _trained_again(trained(-0.0), trained(0.0))


def test_nothing_is_computed_by_settings_whose_plan_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's settings may ask for any amount of work."""
    checks = dict.fromkeys(CHECKS, lambda _: "") | {"plan": lambda _: require(False, "another plan")}
    monkeypatch.setattr("likeness.verify.checks.CHECKS", checks)
    undone = {check.name for check in checks_of(tmp_path) if check.text == "not done: see plan"}
    assert undone >= {"account", "training", "table"}
