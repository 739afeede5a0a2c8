"""What an installation costs: packages, megabytes and import times of each extra, and with whom the core installs.

Run: ``python -m evidence.install [--extra '' --extra pipeline,evaluate]``. It builds the wheel, and installs it into
empty environments without any setting of this machine. It asks the resolver for the newest version of other packages
beside it. ``--only`` leaves out one half. It downloads gigabytes for the extra ``torch``, and deletes them. It prints
tables and writes evidence/results/install.csv and beside.csv.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

RESULTS = Path("evidence/results")
EXTRAS = ("", "evaluate", "pipeline,evaluate", "torch", "all")
# NumPy 1 needs an older pyarrow, which newer ones do not say to the resolver.
BESIDE = {
    "prefect": (),
    "sdv": (),
    "synthcity": ("pyarrow<25",),
    "smartnoise-synth": (),
    "dpmm": (),
    "jupyterlab": (),
    "apache-airflow": (),
}
IMPORTS = {"api": "from likeness import Synthesizer", "cli": "import likeness.cli.app"}
_TRIES = 5


class Machine:
    """An empty home with a wheel of this checkout and the installer uv, and environments made there."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {"PATH": os.defpath, "HOME": str(home)}
        self.tools = self.home / "tools"
        subprocess.run([sys.executable, "-m", "venv", self.tools], env=self.environment, check=True)
        pip = [self.tools / "bin/python", "-m", "pip"]
        self.run(*pip, "install", "--quiet", "uv")
        # A copy of what git knows: a build leaves folders behind.
        self.clone = self.home / "clone"
        subprocess.run(["git", "clone", "--quiet", Path().resolve(), self.clone], check=True)
        self.run(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", self.home, self.clone)
        self.wheel = next(self.home.glob("likeness_dp-*.whl"))

    def run(self, *command: object, **options: object) -> subprocess.CompletedProcess[str]:
        """A command in this home; its output is text."""
        options = {"env": self.environment, "cwd": self.home, "text": True, "check": True, **options}
        return subprocess.run([str(word) for word in command], capture_output=True, **options)  # type: ignore[call-overload,no-any-return]

    def uv(self, *command: object, **options: object) -> subprocess.CompletedProcess[str]:
        """uv, with the certificates of the system."""
        return self.run(self.tools / "bin/uv", "--native-tls", *command, **options)

    def likeness(self, extra: str = "") -> str:
        """The requirement that installs the wheel with some extras."""
        return f"likeness-dp{f'[{extra}]' if extra else ''} @ {self.wheel.as_uri()}"

    def installed(self, extra: str, *others: str) -> Path:
        """The interpreter of a new environment. uv installs and compiles the same files as pip, in less time."""
        folder = Path(tempfile.mkdtemp(dir=self.home))
        self.run(sys.executable, "-m", "venv", folder)
        python = folder / "bin/python"
        self.uv("pip", "install", "--quiet", "--compile-bytecode", "--python", python, self.likeness(extra), *others)
        return python


def megabytes(folder: Path) -> int:
    """Size of all files in a folder."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return round(sum(path.stat().st_size for path in files) / 1e6)


def cpu_seconds() -> float:
    """What all ended children of this process used of the cores."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(machine: Machine, extra: str) -> dict[str, object]:
    """One environment: packages (without pip), megabytes, seconds by the clock, and of a core, whoever else works."""
    begun = time.perf_counter()
    python = machine.installed(extra)
    row: dict[str, object] = {"extra": extra or "(core)", "install_s": round(time.perf_counter() - begun)}
    listed = json.loads(machine.run(python, "-m", "pip", "list", "--format", "json").stdout)
    row["packages"] = sum(one["name"] not in ("pip", "setuptools") for one in listed)
    row["mb"] = megabytes(python.parents[1])
    for name, code in IMPORTS.items():
        tries = []
        for _ in range(_TRIES):
            begun, worked = time.perf_counter(), cpu_seconds()
            machine.run(python, "-c", code)
            tries.append((time.perf_counter() - begun, cpu_seconds() - worked))
        for what, seconds in zip(("s", "cpu_s"), zip(*tries, strict=True), strict=True):
            row[f"import_{name}_{what}"] = round(min(seconds), 2)
    machine.run("rm", "-rf", python.parents[1], machine.home / ".cache")
    return row


def beside(machine: Machine, name: str, others: tuple[str, ...]) -> dict[str, object]:
    """Whether the newest version of a package installs beside the core, and with which versions of shared packages."""

    def resolved(*requirements: str) -> dict[str, str] | str:
        (machine.home / "ask.in").write_text("\n".join(requirements))
        done = machine.uv("pip", "compile", "--quiet", "--no-header", "--no-annotate", "ask.in", check=False)
        if done.returncode:
            return done.stderr.strip()
        lines = [line.partition(";")[0].strip() for line in done.stdout.splitlines()]
        return dict(line.split("==") for line in lines if "==" in line)

    alone = resolved(name)
    if isinstance(alone, str):
        return {"package": name, "installs": f"not even alone: {alone}"}
    answer = resolved(machine.likeness(), f"{name}=={alone[name]}", *others)
    row: dict[str, object] = {"package": name, "newest": alone[name], "asked_with": " ".join(others)}
    if isinstance(answer, str):
        return {**row, "installs": "no", "why": " ".join(answer.split())[:300]}
    shared = {other: answer.get(other, "") for other in ("numpy", "pandas", "sqlalchemy", "opendp")}
    return {**row, "installs": "yes", **shared}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extra", action="append", help="extras with commas between; '' is the core")
    parser.add_argument("--only", choices=("install", "beside"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        tables = {}
        if options.only != "beside":
            tables["install"] = [measured(machine, extra) for extra in options.extra or EXTRAS]
        if options.only != "install":
            tables["beside"] = [beside(machine, name, others) for name, others in BESIDE.items()]
    for name, rows in tables.items():
        table = pd.DataFrame(rows).fillna("")
        print(table.to_string(index=False))
        table.to_csv(RESULTS / f"{name}.csv", index=False)


if __name__ == "__main__":
    main()
