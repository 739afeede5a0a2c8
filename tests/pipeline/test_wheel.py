"""The wheel in an environment without the repository: projects of its files, and an upgrade."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import yaml
from small_project import FEW, ROOT, assign

from likeness.core.paths import ProjectPaths, read_json
from likeness.pipeline.new_project import project_files
from likeness.stages import FOLDERS

STAGES, CODE = ["settings", *FOLDERS], "plan/code"
SCHEMA = {
    "name": "rows",
    "source": "made up",
    "task": "classification",
    "label": "ill",
    "columns": {
        "age": {"kind": "integer", "lower": 0, "upper": 110},
        "x": {"kind": "numeric", "lower": 0, "upper": 1},
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
    shutil.unpack_archive(build(sources, "sdist"), folder)
    wheel = build(next(folder.glob("likeness_dp-*/")), "wheel")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    site = next(folder.glob("venv/lib/*/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))  # its own .pth files are not read
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    places = {name: str(folder / name.lower()) for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR")}
    path = os.pathsep.join([str(folder / "venv/bin"), ours["PATH"]])
    places["VIRTUAL_ENV"] = str(folder / "venv")
    return {**ours, **places, "PATH": path, "LIKENESS_MLFLOW_URI": f"sqlite:///{folder}/mlflow.db"}


def start(environment: dict[str, str], folder: Path, *words: str) -> str:
    """``python WORDS`` of the environment in a folder; its output, both streams."""
    done = subprocess.run(["python", *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def tree(project: Path, folder: str) -> dict[str, bytes]:
    """Files below a folder of a project's data, by name."""
    paths = [path for path in (project / "data" / folder).rglob("*") if path.is_file()]
    return {path.relative_to(project).as_posix(): path.read_bytes() for path in paths}


def make(environment: dict[str, str], parent: Path, name: str) -> Path:
    """A project with a table of its own, complete."""
    words = [("f", "no"), ("m", "no"), ("f", "yes")]
    rows = [f"{30 + len(name)},{place / 600},{','.join(words[place % 3])}" for place in range(600)]
    (parent / f"{name}.csv").write_text("\n".join(["age,x,sex,ill", *rows]))
    start(environment, parent, "-m", "likeness", "new", name, "--table", f"{name}.csv", "--label", "ill")
    project = parent / name
    (project / f"data/schema/{name}.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
    content = yaml.safe_load((project / "params.yaml").read_text())
    for keys, value in {**FEW, ("privacy", "population"): name}.items():
        assign(content, keys, value)
    (project / "params.yaml").write_text(yaml.safe_dump(content))
    return project


def test_the_wheel_makes_projects_of_the_repositorys_files(environment: dict[str, str], tmp_path: Path) -> None:
    where = "import likeness; print(likeness.__file__)"
    python = subprocess.run(["python", "-c", where], cwd=tmp_path, env=environment, capture_output=True, text=True)
    site = Path(python.stdout.strip()).parents[1]
    assert site.name == "site-packages" and ROOT not in site.parents  # nothing comes from the clone
    start(environment, tmp_path, "-m", "likeness", "new", "empty")
    start(environment, tmp_path / "empty", "-m", "dvc", "status")  # DVC reads it: a schema has a name
    first, second = (make(environment, tmp_path, name) for name in ("first", "second"))
    for project in (first, second):
        for name, text in project_files().items():
            assert (project / name).read_text() == text, name
    start(environment, first, "-m", "dvc", "repro", "settings")
    start(environment, second, "-m", "stages.settings")
    assert set(tree(first, CODE)) == {f"data/plan/code/{stage}" for stage in FOLDERS}
    assert tree(first, CODE) == tree(second, CODE)


def test_a_strangers_package_of_the_same_name_is_said_in_one_sentence(environment: dict[str, str]) -> None:
    site = next(Path(environment["VIRTUAL_ENV"]).glob("lib/*/site-packages"))
    module, stranger = site / "likeness/__init__.py", site / "likeness-1.0.2.dist-info"
    before, words = module.read_text(), "The package likeness of another project lies in the folder of this one. Run: "
    stranger.mkdir()
    try:
        assert words in start(environment, site.parent, "-c", "import likeness; likeness.Synthesizer")
        module.write_text("")
        command = ["python", "-m", "likeness", "--version"]
        done = subprocess.run(command, cwd=site.parent, env=environment, capture_output=True, text=True)
    finally:
        module.write_text(before)
        stranger.rmdir()
    assert done.returncode == 1 and done.stderr.startswith(f"likeness: {words}") and done.stderr.count("\n") == 1


RUN = """
import sys
from importlib import import_module
from likeness.pipeline.run_stage import run_stage
for name in sys.argv[1:]:
    run_stage(name, import_module(f"stages.{name}").main)
"""


@pytest.mark.slow
def test_an_upgrade_spends_nothing(environment: dict[str, str], tmp_path: Path) -> None:
    """The stages run without DVC, in one process; test_declared.py shows what DVC makes of them."""
    project = make(environment, tmp_path, "first")
    start(environment, tmp_path, "-m", "likeness", "ledger", "init")
    stages = [stage for stage in STAGES[: STAGES.index("account") + 1] if stage != "evaluate"]
    start(environment, project, "-c", RUN, *stages)
    account, released, code = read_json(project / ProjectPaths.privacy), tree(project, "released"), tree(project, CODE)
    assert account["identity"] == "first" and released
    module = next(Path(environment["VIRTUAL_ENV"]).glob("lib/*/site-packages/likeness/ledger/ledger.py"))
    before = module.read_text()
    module.write_text(f"{before}# of the next version\n")
    try:
        start(environment, project, "-c", RUN, *stages)
    finally:
        module.write_text(before)
    changed = {Path(name).name for name, data in tree(project, CODE).items() if data != code[name]}
    assert changed == {stage for stage, folders in FOLDERS.items() if "ledger" in folders}
    assert tree(project, "released") == released and read_json(project / ProjectPaths.privacy) == account
