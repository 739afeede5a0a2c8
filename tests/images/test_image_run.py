"""Images through the real stages: the bundled digits, a short training, bundle and verification."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from small_project import ROOT, Clone
from verdicts import verify


@pytest.mark.slow
@pytest.mark.process
def test_the_bundled_digits_become_synthetic_digits(alone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likeness_images.convnet.STEPS", 100)  # of the network whose features measure distances
    (alone.root / "data/raw").mkdir(exist_ok=True)
    shutil.copy(ROOT / "data/raw/digits.npz", alone.root / "data/raw")
    settings = yaml.safe_load((ROOT / "examples/digits/params.yaml").read_text())
    settings["method"] = "merf_ae"
    settings.setdefault("train", {})["threads"] = 1
    settings.setdefault("sample", {})["rows"] = 400
    settings.setdefault("evaluate", {})["classifiers"] = ["logistic_regression"]
    settings["merf_ae"] = {
        "train": {"iterations": 100},
        "privatize": {"num_frequencies": 400},
        "expert": {"privatize": {"code": 32}},
    }
    settings["privacy"]["epsilon"] = 5.0
    (alone.root / "params.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    alone.stages("report")
    synthetic = pd.read_parquet(alone.root / "data/synthetic/synthetic.parquet")
    assert synthetic.shape == (400, 65) and synthetic["digit"].nunique() == 10
    pixels = synthetic.iloc[:, :64].to_numpy()
    assert pixels.dtype == np.int64 and pixels.min() >= 0 and pixels.max() <= 255
    metrics = json.loads(alone.bytes("reports/internal/evaluation/metrics.json"))
    assert metrics["image"] is True and "fid" in metrics["distances"]["synthetic"]
    # Chance is a tenth; a full training at epsilon 1 gives .8.
    assert metrics["scores"]["synthetic"]["accuracy"] > 0.3
    alone.run("likeness", "bundle", "digits.zip")
    assert {check.passed for check in verify(alone.root / "digits.zip")} == {True, None}  # not trained again
    alone.run("likeness", "sample", "digits.zip", "--out", "copies", "--rows", "30")
    assert len(list((alone.root / "copies").glob("[0-9]/*.png"))) == 30
