"""Delete a wing, and see that all else works: a copy of the tree without its package and its tests.

Run: ``python scripts/without.py WING [WING ...] [--whole]``; see ``WINGS``, or ``all``.
The copy uses the packages of this environment. It passes the contract tests that train nothing. The last copy also
passes one run of ``marginals`` on Adult. With ``--whole`` a copy is installed into a new environment, and passes all of
``tests`` but the slow ones; ``evidence`` needs all wings.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WINGS = ("papers", "images", "histories", "postgres", "spark", "orchestration", "margins")
ADULT = """
import pandas as pd
from likeness import Ledger, Synthesizer
Ledger.start("ledger")
train = pd.read_csv("data/raw/adult.csv.gz").query("split == 'train'")
fitted = Synthesizer(schema="data/schema/adult.yaml", population="uci-adult-1994", ledger_home="ledger").fit(train)
assert fitted.sample(1000).shape == (1000, len(fitted.schema_.columns))
"""


def copy_without(wing: str, target: Path) -> None:
    """Copy the files that git knows, or would add, but for the wing's package and its tests."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    gone = [name for one in (WINGS if wing == "all" else [wing]) for name in (f"src/likeness_{one}/", f"tests/{one}/")]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in names:
        if not name.startswith(tuple(gone)) and (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)


def without(wing: str, whole: bool, runs: bool) -> float:
    """Test the tree without a wing, if asked with a run on Adult; return the seconds.

    Raises:
        subprocess.CalledProcessError: something else than the wing fails.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"without-{wing}-") as folder:
        tree = Path(folder) / "tree"
        copy_without(wing, tree)
        # A new Python with the packages of this one on its path: their .pth files, which name this tree, do not count.
        python, paths = f"{folder}/venv/bin/python", [tree / "src", tree]
        subprocess.run(
            [sys.executable, "-m", "venv", *([] if whole else ["--without-pip"]), f"{folder}/venv"], check=True
        )
        paths += [] if whole else [Path(sysconfig.get_path("purelib"))]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1"}
        environment |= {name: f"{folder}/{name.lower()}" for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR")}

        def run(*words: str) -> None:
            subprocess.run([python, *words], cwd=tree, env=environment, check=True)

        if whole:
            install = ["-m", "pip", "install", "--quiet", "--constraint", "constraints.txt", "--editable", ".[dev]"]
            run(*install)
        else:
            # What an installer would write beside the packages: without it no entry point is seen.
            run("-c", "from setuptools import setup; setup()", "--quiet", "egg_info")
        adult = subprocess.Popen([python, "-c", ADULT if runs else ""], cwd=tree, env=environment)
        pytest = ["-m", "pytest"]  # beside the run of Adult, on the other core
        if whole:
            run(*pytest, "--numprocesses", "2", "--dist", "loadgroup", "-m", "not slow", "tests")
        else:
            run(*pytest, "-x", "-m", "not long", "tests/contracts")
        if adult.wait():
            raise subprocess.CalledProcessError(adult.returncode, adult.args)
    return time.monotonic() - started


def main() -> None:
    """Test each wing, and print the seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wings", nargs="+", choices=[*WINGS, "all"])
    parser.add_argument("--whole", action="store_true")
    arguments = parser.parse_args()
    for wing in arguments.wings:
        print(f"without {wing}: {without(wing, arguments.whole, wing == arguments.wings[-1]):.0f} s", flush=True)


if __name__ == "__main__":
    main()
