"""Every test gets a ledger of its own: the user's is never touched. Property tests repeat unless told to search."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every machine, so that a change is judged by what it changed; `make fuzz` looks for new ones.
settings.register_profile("repeat", derandomize=True)
settings.load_profile("default" if "LIKENESS_FUZZ" in os.environ else "repeat")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point ledger, anchor and tracking at temporary folders."""
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path / "ledger"))
    monkeypatch.setenv("LIKENESS_ANCHOR", str(tmp_path / "anchor"))
    monkeypatch.setenv("LIKENESS_MLFLOW_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.delenv("LIKENESS_LEDGER", raising=False)
    return tmp_path
