"""Every test gets a ledger of its own: the user's is never touched."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point ledger, anchor and tracking at temporary folders."""
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path / "ledger"))
    monkeypatch.setenv("LIKENESS_ANCHOR", str(tmp_path / "anchor"))
    monkeypatch.setenv("LIKENESS_MLFLOW_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.delenv("LIKENESS_LEDGER", raising=False)
    return tmp_path
