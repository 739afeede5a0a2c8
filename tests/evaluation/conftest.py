"""Small synthetic tables: no real data set is needed here."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tiny_tables import make_schema, make_table

from likeness.core.format import FORMAT
from likeness.data.schema.schema import Schema


@pytest.fixture
def schema() -> Schema:
    return make_schema()


@pytest.fixture(scope="session")
def schema_of() -> Callable[[str], Schema]:
    """Schema by task."""
    return make_schema


@pytest.fixture(scope="session")
def table_of() -> Callable[..., pd.DataFrame]:
    """Typed table by number of rows, seed and task."""
    return make_table


@pytest.fixture(scope="session")
def privacy() -> dict[str, Any]:
    """A plausible reports/privacy.json. Copy it before changing it."""
    orders = [1.5, 2.0, 4.0, 8.0, 64.0]

    def query(name: str, stage: str, rho: float, sequence: int) -> dict[str, Any]:
        return {
            "query": name, "stage": stage, "map": {"map": "characteristic", "num_frequencies": 8}, "sensitivity": 1.0,
            "noise_multiplier": (2 * rho) ** -0.5, "noise_scale": (2 * rho) ** -0.5, "rho": rho, "share": rho / 0.02,
            "dimension": 16, "mechanism": "discrete_gaussian", "sampler": "opendp 0.16.0 discrete gaussian",
            "ledger_seq": sequence, "sha256": "ab" * 32,
        }  # fmt: skip

    stages = {"auxiliary": [0.002 * order for order in orders], "privatize": [0.018 * order for order in orders]}
    lifetime = {"spent_rho": 0.04, "spent_epsilon": 1.5, "cap_epsilon": 3.0, "cap_delta": 1e-5, "uncommitted": 0}
    return {
        "format": FORMAT, "private": True, "method": "pearl", "identity": "village-1900",
        "unit": "one row is one person", "adjacency": "add_remove_one", "num_records": None,
        "target": {"epsilon": 1.0, "delta": 1e-5},
        "total": {"rho": 0.02, "epsilon": 0.98765, "epsilon_rdp": 1.07654, "epsilon_gaussian": 0.98755, "delta": 1e-5},
        "rdp_curve": {"orders": orders, "total": [0.02 * order for order in orders], "stages": stages},
        "queries": [query("class_counts", "auxiliary", 0.002, 3), query("embedding", "privatize", 0.018, 4)],
        "ledger": {"id": "f00d", "lifetime": lifetime},
        "software": {"likeness": "0.1.0", "torch": "2.13.0"},
    }  # fmt: skip


@pytest.fixture(scope="session")
def losses() -> dict[str, list[float]]:
    return {"iteration": [0.0, 10.0, 20.0, 30.0], "loss": [1.5, 0.5, 0.05, 0.04], "critic": [1.0, 1.1, 1.2, 1.2]}


@pytest.fixture
def project(tmp_path: Path, privacy: dict[str, Any]) -> Path:
    """A project root with the public artifacts that a report reads."""
    (tmp_path / "reports").mkdir()
    (tmp_path / "data/models").mkdir(parents=True)
    (tmp_path / "reports/privacy.json").write_text(json.dumps(privacy))
    (tmp_path / "reports/PRIVACY_STATEMENT.md").write_text("# Privacy statement\n\nA **promise** to `villagers`.\n")
    (tmp_path / "data/models/loss.csv").write_text("iteration,loss\n0,1.5\n10,0.5\n20,0.25\n")
    return tmp_path
