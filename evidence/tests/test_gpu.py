"""The script for a machine with a GPU, on the CPU at a small size: every measurement but those that start processes."""

import sys
from pathlib import Path

import pandas as pd
import pytest
import torch

from evidence import gpu


@pytest.mark.long
def test_it_measures_every_method_and_a_second_call_measures_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "SHAPES", {"28 x 28": (4, 5), "color": (5, 4, 3)})
    monkeypatch.setattr(gpu, "retrained", lambda *_: {"verdict": "equal"})
    results = tmp_path / "gpu.csv"
    monkeypatch.setattr(sys, "argv", ["gpu", "--device", "cpu", "--small", "--results", str(results)])
    gpu.main()
    rows = pd.read_csv(results)
    assert "failed" not in rows.columns
    assert (rows["equal_bits"].dropna() == 1).all() and rows["equal_bits"].count() == 4
    steps = rows[rows["milliseconds"].notna()]
    assert len(steps) == 24 and (steps["milliseconds"] > 0).all()
    assert {what.split(",")[0] for what in steps["what"]} == set(gpu.METHODS)
    gpu.main()
    assert len(pd.read_csv(results)) == len(rows) and "all measured" in capsys.readouterr().out


def test_without_minutes_it_names_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["gpu", "--device", "cpu", "--small", "--minutes", "0", "--results", str(tmp_path / "gpu.csv")]
    monkeypatch.setattr(sys, "argv", words)
    gpu.main()
    assert "verify --retrain, ntk, residual, 8 x 8, cpu, float32, no" in capsys.readouterr().out
    assert not (tmp_path / "gpu.csv").exists()


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu"])
    with pytest.raises(SystemExit, match="this machine has no CUDA"):
        gpu.main()
