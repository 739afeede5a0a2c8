"""The core where no extra is installed: what it does, and the one sentence where it needs more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from likeness.core.extras import EXTRAS
from likeness.methods import METHODS

ROOT = Path(__file__).parents[1]

# A finder hides every package of an extra, as if it were not installed. Distributions stay visible.
HIDE = f"""
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {sorted(EXTRAS)} else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)
sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""

# Modules that may import a package of an extra when they are imported: nobody in the core imports these ones then.
NETWORKS = ("features.", "generators.", "methods.")

IMPORT_ALL = f"""
import importlib, pkgutil, likeness
for module in pkgutil.walk_packages(likeness.__path__, "likeness."):
    name = module.name.removeprefix("likeness.")
    if name != "__main__" and not name.startswith({NETWORKS}):
        importlib.import_module(module.name)
"""

PROJECT = {
    "params.yaml": "method: marginals\nprivacy: {population: staff, epsilon: 3, delta: 1.0e-5}\n"
    "ingest: {source: rows.csv, schema: schema.yaml}\n"
    "marginals: {train: {iterations: 20, num_components: 10}}\nsample: {rows: 50}\n",
    "schema.yaml": "name: staff\nsource: made up\ntask: classification\nlabel: job\ncolumns:\n"
    "  age: {kind: integer, lower: 0, upper: 99}\n  x: {kind: numeric, lower: 0, upper: 1}\n"
    "  job: {kind: categorical, categories: [clerk, nurse]}\n",
    "rows.csv": "age,x,job\n" + "30,0.5,clerk\n60,0.25,nurse\n" * 300,
    "dvc.yaml": "stages: {}\n",
}

RUN = """
from importlib import import_module
from pathlib import Path
from likeness.core.errors import MissingPackageError
from likeness.pipeline.project import Project
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
Ledger.create(locate())
def stage(name):
    import_module(f"likeness.stages.{name}").main(Project.load(Path()))
for name in "settings fingerprint ingest plan categories preprocess auxiliary privatize train sample account".split():
    stage(name)
from likeness.preflight.downstream_checks import check_estimators
try:
    check_estimators(Project.load(Path()))
except MissingPackageError as error:
    assert "estimator logistic_regression needs sklearn" in str(error) and "likeness-dp[evaluate]" in str(error)
else:
    raise SystemExit("the evaluation may start")
from likeness.pipeline.tracking import TRACKING
tracks = "likeness-dp[pipeline]" if "track" in TRACKING else "is not installed here. Run: pip install"
for name, words in (("evaluate", "likeness-dp[evaluate]"), ("track", tracks)):
    try:
        stage(name)
    except ImportError as error:
        from likeness.core.extras import missing
        assert words in (missing(error, name) or str(error)), error
    else:
        raise SystemExit(f"{name} ran")
"""

IMAGES = """
import numpy as np, pandas as pd
from likeness import Synthesizer
from likeness.core.errors import MissingPackageError
draws = np.random.default_rng(1)
frame = pd.DataFrame(draws.integers(0, 256, (200, 16)), columns=[f"pixel_{i}" for i in range(1, 17)])
frame["digit"] = draws.choice(["0", "1"], 200)
schema = {"name": "d", "source": "made up", "task": "classification", "label": "digit", "image": {"shape": [4, 4]},
          "columns": {"digit": {"kind": "categorical", "categories": ["0", "1"]}}}
settings = {"privatize": {"num_coefficients": 8}}
images = Synthesizer(method="moments", schema=schema, population="digits", settings=settings, device="cuda").fit(frame)
images.save("saved")
assert Synthesizer.load("saved").sample(5).equals(images.sample(5)) and images.sample(5).shape == (5, 17)
from likeness.methods import METHODS
if "merf" not in METHODS:
    raise SystemExit(0)
try:
    Synthesizer(method="merf", schema=schema, population="digits").fit(frame)
except MissingPackageError as error:
    assert str(error) == "method merf needs torch, which is not installed. Run: pip install 'likeness-dp[torch]'", error
else:
    raise SystemExit("merf ran")
"""

BUNDLE_AND_VERDICT = """
import sys
from likeness.cli.app import main
from likeness.verify.checks import checks_of
sys.argv = ["likeness", "bundle", "b"]
try:
    main()
except SystemExit as end:
    assert not end.code
checks = list(checks_of(Path("b"), retrain=True))  # the command starts a process, which hides no package
assert all(check.passed is not False for check in checks), checks
print(*(check.text for check in checks))
"""

COMMAND = "from likeness.cli.app import main; main()"


def python(folder: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", HIDE + code, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.process
@pytest.mark.long
def test_the_core_imports_no_package_of_an_extra(tmp_path: Path) -> None:
    run = python(tmp_path, IMPORT_ALL)
    assert run.returncode == 0, run.stderr


@pytest.mark.process
@pytest.mark.long
def test_a_run_a_bundle_and_its_verdict_need_no_extra(tmp_path: Path) -> None:
    for name, text in PROJECT.items():
        (tmp_path / name).write_text(text)
    run = python(tmp_path, RUN + BUNDLE_AND_VERDICT)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "autodp:" in run.stdout and "likeness-dp[verify]" in run.stdout
    run = python(tmp_path, COMMAND, "run")
    assert run.returncode == 2 and "Traceback" not in run.stderr
    assert "likeness run needs dvc, which is not installed. Run: pip install 'likeness-dp[pipeline]'" in run.stderr


@pytest.mark.process
@pytest.mark.long
@pytest.mark.skipif("moments" not in METHODS, reason="no method that is here makes images")
def test_images_need_no_network_and_a_network_says_what_it_needs(tmp_path: Path) -> None:
    ledger = (
        "from likeness.ledger.home import locate\nfrom likeness.ledger.ledger import Ledger\nLedger.create(locate())"
    )
    run = python(tmp_path, ledger + IMAGES)
    assert (run.returncode, run.stderr) == (0, "train.device is cuda, but moments trains on the CPU only.\n")


@pytest.mark.process
def test_a_flow_without_prefect_ends_with_one_sentence(tmp_path: Path) -> None:
    run = python(tmp_path, "import runpy; runpy.run_module('flows.deploy', run_name='__main__')")
    assert (run.returncode, run.stderr.strip()) == (
        1,
        "a flow needs prefect, which is not installed. Run: pip install 'likeness-dp[pipeline]'",
    )
