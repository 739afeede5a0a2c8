"""Images through the real stages: the bundled digits, a public encoder, a short training, bundle and verification."""

import json
import runpy
import shutil
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import yaml
from safetensors.torch import load_file
from small_project import ROOT, Clone
from verdicts import verify

from likeness.bundle import contents as bundle
from likeness.bundle.files import sums
from likeness.core.rng import public
from likeness.methods.merf_ae.encoded_map import ENCODER
from likeness.methods.merf_ae.encoder import save_encoder


def public_encoder(folder: Path) -> tuple[Path, str]:
    """An encoder trained on made-up bars, and its SHA-256 as the script prints it."""
    draws = public(1, "tests.bars")
    bars = np.zeros((500, 8, 8), dtype=np.uint8)
    for image in bars:
        place, across = draws.integers(0, 7, size=3), draws.random(3) < 0.5
        for at, flat in zip(place, across, strict=True):
            image[(slice(at, at + 2), slice(None)) if flat else (slice(None), slice(at, at + 2))] = 200
    np.savez(folder / "bars.npz", x_train=bars)
    path, script = folder / "bars.safetensors", str(ROOT / "scripts/train_encoder.py")
    words = ["--shape", "8", "8", "--hidden", "64", "--code", "32", "--iterations", "60", "--out", str(path)]
    with (
        patch.object(sys, "argv", [script, str(folder / "bars.npz"), "bars", *words]),
        redirect_stdout(StringIO()) as said,
    ):
        runpy.run_path(script, run_name="__main__")
    return path, said.getvalue().split()[-1]


@pytest.mark.slow
def test_the_bundled_digits_become_synthetic_digits(alone: Clone) -> None:
    (alone.root / "data/raw").mkdir(exist_ok=True)
    shutil.copy(ROOT / "data/raw/digits.npz", alone.root / "data/raw")
    settings = yaml.safe_load((ROOT / "examples/digits/params.yaml").read_text())
    encoder, sha256 = public_encoder(alone.root / "data/raw")
    settings["method"] = "merf_ae"
    settings.setdefault("train", {})["threads"] = 1
    settings.setdefault("sample", {})["rows"] = 400
    settings.setdefault("evaluate", {})["classifiers"] = ["logistic_regression"]
    settings["merf_ae"] = {
        "train": {"iterations": 100},
        "privatize": {"num_frequencies": 400, "encoder": str(encoder), "encoder_sha256": sha256},
    }
    settings["privacy"]["epsilon"] = 5.0
    (alone.root / "params.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    alone.stages("report")
    synthetic = pd.read_parquet(alone.root / "data/synthetic/synthetic.parquet")
    assert synthetic.shape == (400, 65) and synthetic["digit"].nunique() == 10
    pixels = synthetic.iloc[:, :64].to_numpy()
    assert pixels.dtype == np.int64 and pixels.min() >= 0 and pixels.max() <= 255
    metrics = json.loads(alone.bytes("reports/internal/evaluation/metrics.json"))
    assert metrics["image"] == [8, 8] and "fid" in metrics["distances"]["synthetic"]
    # Chance is a tenth; a full training at epsilon 1 gives .8.
    assert metrics["scores"]["synthetic"]["accuracy"] > 0.3
    alone.run("likeness", "bundle", "digits.zip")
    assert {check.passed for check in verify(alone.root / "digits.zip", retrain=True)} == {True}
    alone.run("likeness", "bundle", "digits")
    folder = alone.root / "digits"
    assert (folder / ENCODER).read_bytes() == encoder.read_bytes()
    tensors = load_file(encoder)
    save_encoder(folder / ENCODER, None, [tensors[name] for name in sorted(tensors)], (8, 8), 2.0, "bars")
    (folder / bundle.CHECKSUMS).write_text(sums(folder))
    failed = {check.name: check.text for check in verify(folder) if check.passed is False}
    assert failed["sensitivity"] == "released/embedding.safetensors: encoder.safetensors is another encoder"
    assert "merf_ae.privatize.encoder_sha256 is" in failed["plan"]
    (folder / ENCODER).unlink()
    assert any("encoder.safetensors is missing" in check.text for check in verify(folder))
