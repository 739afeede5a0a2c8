"""The wheel in an environment without the repository: two projects in two folders, and an upgrade of both."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import yaml
from small_project import ROOT, assign

from likeness.core.paths import ProjectPaths, read_json
from likeness.pipeline.new_project import project_files

SETTINGS = {
    ("marginals", "privatize", "bins"): 4,
    ("marginals", "train", "iterations"): 5,
    ("marginals", "train", "num_components"): 5,
    ("sample", "rows"): 100,
    ("evaluate", "classifiers"): ["decision_tree"],
    ("evaluate", "range_queries"): 5,
    ("evaluate", "mmd_rows"): 50,
}
SCHEMA = {
    "name": "rows",
    "source": "made up",
    "task": "classification",
    "label": "ill",
    "columns": {
        "age": {"kind": "integer", "lower": 0, "upper": 110},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "ill": {"kind": "categorical", "categories": ["no", "yes"]},
    },
}


def build(folder: Path, what: str) -> Path:
    """A distribution, built from the sources in a folder without network."""
    code = f"from setuptools.build_meta import *; build_{what}('..')"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)
    return next(folder.parent.glob("*.whl" if what == "wheel" else "*.tar.gz"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A virtual environment with the wheel of the source distribution, and the libraries of this one."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"
    shutil.copytree(ROOT / "src", sources / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in [*project_files(), "pyproject.toml", "setup.py", "README.md", "LICENSE"]:
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, sources / name)
    shutil.unpack_archive(build(sources, "sdist"), folder, filter="data")
    wheel = build(next(folder.glob("likeness-*/")), "wheel")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    site = next(folder.glob("venv/lib/*/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))  # its own .pth files are not read
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    places = {name: str(folder / name.lower()) for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR")}
    path = os.pathsep.join([str(folder / "venv/bin"), ours["PATH"]])
    return {**ours, **places, "PATH": path, "LIKENESS_MLFLOW_URI": f"sqlite:///{folder}/mlflow.db"}


def start(environment: dict[str, str], folder: Path, *words: str) -> str:
    """``python -m WORDS`` of the environment in a folder; its output, both streams."""
    done = subprocess.run(["python", "-m", *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def make(environment: dict[str, str], parent: Path, name: str) -> Path:
    """A project with a table of its own, complete."""
    rows = [f"{20 + place * len(name) % 60},{'fm'[place % 2]},{'no' if place % 3 else 'yes'}" for place in range(600)]
    (parent / f"{name}.csv").write_text("\n".join(["age,sex,ill", *rows]))
    start(environment, parent, "likeness", "new", name, "--table", f"{name}.csv", "--label", "ill")
    project = parent / name
    (project / f"data/schema/{name}.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
    content = yaml.safe_load((project / "params.yaml").read_text())
    for keys, value in {**SETTINGS, ("privacy", "population"): name}.items():
        assign(content, keys, value)
    (project / "params.yaml").write_text(yaml.safe_dump(content))
    return project


def test_the_wheel_makes_projects_of_the_repositorys_files(environment: dict[str, str], tmp_path: Path) -> None:
    where = "import likeness; print(likeness.__file__)"
    python = subprocess.run(["python", "-c", where], cwd=tmp_path, env=environment, capture_output=True, text=True)
    site = Path(python.stdout.strip()).parents[1]
    assert site.name == "site-packages" and ROOT not in site.parents  # nothing comes from the clone
    first, second = (make(environment, tmp_path, name) for name in ("first", "second"))
    for project in (first, second):
        for name, text in project_files().items():
            assert (project / name).read_text() == text, name
        start(environment, project, "stages.settings")
    codes = {path.name: path.read_text() for path in (first / ProjectPaths.code).iterdir()}
    assert codes == {path.name: path.read_text() for path in (second / ProjectPaths.code).iterdir()}


@pytest.mark.slow
def test_projects_run_side_by_side_and_an_upgrade_spends_nothing(environment: dict[str, str], tmp_path: Path) -> None:
    first, second = (make(environment, tmp_path, name) for name in ("first", "second"))
    start(environment, first, "likeness", "ledger", "init")
    output = start(environment, first, "likeness", "run")
    assert "[14/14] track" in output
    start(environment, second, "dvc", "repro", "privatize")
    privacy = read_json(first / ProjectPaths.privacy)
    released = (first / ProjectPaths.embedding).read_bytes()
    assert privacy["identity"] == "first" and released != (second / ProjectPaths.embedding).read_bytes()

    site = Path(environment["PATH"].split(os.pathsep)[0]).parent
    module = next(site.glob("lib/*/site-packages/likeness/ledger/ledger.py"))
    before = module.read_text()
    module.write_text(f"{before}# of the next version\n")
    try:
        ran = [line.split()[1] for line in start(environment, first, "likeness", "run").splitlines() if line[:1] == "["]
    finally:
        module.write_text(before)
    print(ran)
    assert {"ingest:", "privatize:", "account:"} <= {*ran} and not {"plan:", "sample:", "train:"} & {*ran}
    assert (first / ProjectPaths.embedding).read_bytes() == released
    assert read_json(first / ProjectPaths.privacy)["ledger"] == privacy["ledger"]
