"""Images through the real stages: the bundled digits, a short training, bundle and verification."""

import json
import shutil

import numpy as np
import pandas as pd
import yaml
from small_project import ROOT, Project


def test_the_bundled_digits_become_synthetic_digits(another: Project) -> None:
    for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR"):
        another.environment[name] = str(another.root.parent / name.lower())
    another.run("likeness", "ledger", "init")
    (another.root / "data/raw").mkdir(exist_ok=True)
    shutil.copy(ROOT / "data/raw/digits.npz", another.root / "data/raw")
    settings = yaml.safe_load((ROOT / "examples/digits/params.yaml").read_text())
    settings["train"]["threads"] = 1
    settings["sample"]["rows"] = 400
    settings["evaluate"]["classifiers"] = ["logistic_regression"]
    settings["merf"]["train"]["iterations"] = 200
    settings["merf"]["privatize"]["num_frequencies"] = 400
    settings["privacy"]["epsilon"] = 5.0
    (another.root / "params.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    another.repro("report", "account")
    synthetic = pd.read_parquet(another.root / "data/synthetic/synthetic.parquet")
    assert synthetic.shape == (400, 65) and synthetic["digit"].nunique() == 10
    pixels = synthetic.iloc[:, :64].to_numpy()
    assert pixels.dtype == np.int64 and pixels.min() >= 0 and pixels.max() <= 255
    metrics = json.loads(another.bytes("reports/internal/metrics.json"))
    assert metrics["image"] == [8, 8] and "fid" in metrics["distances"]["synthetic"]
    # Chance is a tenth; a full training at epsilon 1 gives .8.
    assert metrics["scores"]["synthetic"]["accuracy"] > 0.3
    another.run("likeness", "bundle", "digits.zip")
    assert "ok" in another.run("likeness", "verify", "digits.zip")
