"""Images from ``likeness new`` to the verifier: the shape of a folder, the bundled digits, and the forecast."""

import json
import shutil
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image
from small_project import ROOT, Clone
from verdicts import verify

from likeness.pipeline.project import Project
from likeness.preflight.forecast import forecast
from tests.onboarding.test_forecast import settings_of


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


@pytest.mark.process  # git
@pytest.mark.parametrize("levels", ["", "cat", "train/cat"])
def test_a_folder_of_images_gets_its_shape_and_a_method_for_images(
    command: Callable[..., tuple[int, str, str]], levels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("photos") / levels
    folder.mkdir(parents=True)
    Image.new("RGB", (6, 4)).save(folder / "secret.png")
    assert command("new", "project", "--table", "photos")[0] == 0
    params = yaml.safe_load(Path("project/params.yaml").read_text())
    schema = yaml.safe_load(Path("project/data/schema/photos.yaml").read_text())
    assert params["method"] == "moments" and params["privacy"]["unit"] == "one row is one image"
    assert ("split" in params["ingest"]) is (levels == "train/cat")
    assert schema["image"] == {"shape": [4, 6, 3]} and schema["task"] == ("classification" if levels else "none")
    assert (schema["columns"] or {}) == ({"label": {"kind": "categorical", "categories": None}} if levels else {})
    made = [path for path in Path("project").rglob("*") if path.is_file() and ".git" not in path.parts]
    assert made and not [path for path in made if "secret" in path.read_text()]
    with chdir("project"):
        told = command("check")[1]
    assert ("column 'label': categories is an open question" in told) is bool(levels) and "beside an image" not in told


@pytest.mark.long
def test_the_stages_of_images_are_foreseen_within_a_factor_of_two() -> None:
    """Measured on two busy cores: `evaluate` of MNIST has the peak, 1.37 GB, and takes 242 s."""
    expected = forecast(Project(Path(), settings_of("mnist", "moments")), 60_000)
    assert 1.37e9 / 2 < expected.memory_bytes < 1.37e9 * 2
    assert expected.evaluation_seconds is not None and 242 / 2 < expected.evaluation_seconds < 242 * 2
