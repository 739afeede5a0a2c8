"""A run with another method or ε: in a folder of its own, checked, and never without noise by a parameter."""

import math
import shutil
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import yaml

from flows.sweep_folders import cell_of
from likeness.core.errors import ParamsError
from likeness.methods import METHODS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("params.yaml", "dvc.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_what_is_as_in_params_runs_in_the_project(project: Path) -> None:
    assert cell_of(project, None, None) == project == cell_of(project, "marginals", 1.0)
    assert not (project / "sweeps").exists()


def test_anything_else_has_a_folder_and_params_of_its_own(project: Path) -> None:
    before = (project / "params.yaml").read_bytes()
    content = yaml.safe_load(before)
    content["ledger"]["home"] = "mine"
    (project / "params.yaml").write_text(yaml.safe_dump(content))
    cell = cell_of(project, "merf", 0.5)
    assert cell == project / "sweeps/merf-epsilon-0.5"
    written = yaml.safe_load((cell / "params.yaml").read_text())
    assert (written["method"], written["privacy"]["epsilon"]) == ("merf", 0.5)
    assert written["ingest"]["source"] == str(project / "data/raw/adult.csv.gz")
    assert written["ledger"]["home"] == str(project / "mine")  # the project's ledger, not one of its own
    assert yaml.safe_load((project / "params.yaml").read_text()) == content


@pytest.mark.parametrize(("encoder", "file"), [("e.safetensors", True), ("random", False), ("private", False)])
def test_the_file_of_an_encoder_stays_in_the_project(project: Path, encoder: str, file: bool) -> None:
    content = yaml.safe_load((project / "params.yaml").read_text())
    content["merf_ae"] = {"privatize": {"encoder": encoder}}
    (project / "params.yaml").write_text(yaml.safe_dump(content))
    written = yaml.safe_load((cell_of(project, "merf_ae", 0.5) / "params.yaml").read_text())
    assert written["merf_ae"]["privatize"]["encoder"] == (str(project / encoder) if file else encoder)


@pytest.mark.parametrize(("method", "epsilon"), [(None, math.inf), (None, 0.0), (None, math.nan), ("magic", None)])
def test_what_cannot_be_is_refused_before_a_folder_is_made(
    project: Path, method: str | None, epsilon: float | None
) -> None:
    with pytest.raises(ParamsError, match=r"epsilon must be|method must be one of"):
        cell_of(project, method, epsilon)
    assert not (project / "sweeps").exists()


def test_the_flows_form_offers_every_method() -> None:
    from flows.synthesize import synthesize

    (literal, _) = get_args(get_type_hints(synthesize.fn)["method"])
    assert set(get_args(literal)) == set(METHODS)
