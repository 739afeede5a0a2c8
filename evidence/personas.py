"""Eight kinds of new user, each from an empty machine to success: minutes, commands, refusals, megabytes.

Run: ``python -m evidence.personas [--persona operator]``. Each persona has an empty home and an empty environment with
the wheel, or a clone where the persona is a researcher. Auditor and colleague take what the office made: name it before
them. The clock runs from ``pip install`` on: it counts what the machine does, and no time to think. The minutes of a
core beside it leave out whoever else works. A line that begins with ! is refused once, as it should be. It prints a
table and writes evidence/results/personas.csv.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from evidence.install import Machine, cpu_seconds, megabytes

RESULTS = Path("evidence/results/personas.csv")
_COLUMNS = ["persona", "minutes", "core_minutes", "limit", "commands", "refusals", "mb", "success"]
OWN = {
    "data/raw/digits.npz": "digits.npz",
    "examples/histories/make_tables.py": "make_tables.py",
    "examples/histories/params.yaml": "params.yaml",
    "examples/histories/schema.yaml": "histories.yaml",
}
_ROW = "python -m evidence.papers --data adult --method merf --epsilon 1 --adjacency add_remove_one --draws 1"

LACKING = """
import likeness, pandas as pd
from likeness import Synthesizer
frame = pd.read_csv("people.csv.gz").query("split == 'train'").drop(columns="split")
Synthesizer(schema=likeness.draft(frame), epsilon=1).fit(frame)
"""
NOTEBOOK = """
import likeness, pandas as pd, yaml
from likeness import Synthesizer
frame = pd.read_csv("people.csv.gz").query("split == 'train'").drop(columns="split")
likeness.Ledger.start(if_absent=True)
codebook = yaml.safe_load(open("codebook.yaml"))
schema = likeness.draft(frame)
schema.source, schema.label, schema.nullable = codebook["source"], codebook["label"], "none"
for name, column in codebook["columns"].items():
    for key, value in column.items():
        setattr(schema[name], key, value)
synthetic = Synthesizer(schema=schema, population="survey 1994", epsilon=1).fit(frame).sample()
assert len(synthetic) > 30_000
"""
IMAGES = """
import numpy as np
from pathlib import Path
from PIL import Image
digits = np.load("digits.npz")
for number, (image, label) in enumerate(zip(digits["x_train"], digits["y_train"])):
    file = Path(f"photos/{label}/{number}.png")
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(file)
"""
SERVER = """export PREFECT_API_URL=http://127.0.0.1:4231/api
prefect server start --port 4231 --background && trap 'prefect server stop' EXIT
until curl --silent --fail $PREFECT_API_URL/health; do sleep 1; done
python -m flows.deploy && prefect deployment run synthesize/likeness && prefect worker start --pool likeness --run-once
test $(likeness ledger show | grep --count census-1994) -gt 8"""


@dataclass(frozen=True)
class Persona:
    """A way to success.

    Attributes:
        limit: minutes that it may take.
        extra: of the wheel; None: a clone.
        lines: commands, after the installation.
    """

    limit: int
    extra: str | None
    lines: tuple[str, ...]


PERSONAS = {
    "data scientist": Persona(4, "", ("!python lacking.py", "python notebook.py")),
    "office": Persona(
        12,
        "pipeline,evaluate",
        (
            "likeness ledger init",
            "likeness new census",
            "cd census && likeness init ../people.csv.gz --answers ../codebook.yaml --label income",
            "cd census && sed -i 's/population: null/population: census-1994/' params.yaml",
            "cd census && likeness check",
            "cd census && likeness run",
            "cd census && likeness bundle ../../people.zip",
            "cd census && dvc remote add --default shared ../../remote && git add --all && git commit --message census",
            "cd census && dvc push --quiet && git clone --quiet --bare . ../../census.git",
        ),
    ),
    "colleague with a clone": Persona(
        6,
        "pipeline",
        (
            "git clone --quiet ../census.git census",
            "cd census && dvc pull --quiet",
            "!cd census && likeness run",  # the rows and the ledger are with the office
            "cd census && likeness sample . --rows 1000 --where 'income=>50K' --out rich.csv",
            "cd census && likeness estimate . --columns education --by income",
            "cd census && python -m stages.account",
            "cd census && python -m stages.report",
        ),
    ),
    "operator": Persona(
        12,
        "pipeline,evaluate",
        (
            "likeness ledger init",
            "zcat people.csv.gz | awk 'NR % 12 == 1' > night.csv",
            "likeness new nights && cd nights && likeness init ../night.csv --answers ../codebook.yaml --label income",
            "cd nights && sed -i 's/population: null/population: census-1994/' params.yaml",
            "!cd nights && likeness ledger afford --every night --years 5",  # it names the epsilon that fits
            "cd nights && sed -i 's/epsilon: 1.0/epsilon: 0.14/' params.yaml",
            "cd nights && likeness ledger afford --every night --years 5",
            "cd nights && python -m flows.synthesize --check-budget",
            "zcat people.csv.gz | awk 'NR % 10 == 1' > night.csv",
            f"cd nights && {SERVER}",
            "cd nights && likeness ledger verify",
            "cd nights && likeness doctor",
        ),
    ),
    "images": Persona(
        8,
        "pipeline",
        (
            "python images.py",
            "likeness ledger init",
            "likeness new digits --table photos",
            "cd digits && sed -i 's/population: null/population: uci-digits/' params.yaml",
            "cd digits && sed -i 's/source: null.*/source: made/' data/schema/photos.yaml",
            "cd digits && sed -i 's/categories: null.*/categories: [0,1,2,3,4,5,6,7,8,9]/' data/schema/photos.yaml",
            "cd digits && likeness check",
            "cd digits && likeness run --without evaluate --bundle ../digits.zip",
            "likeness sample digits.zip --rows 100 --out copies && test $(ls copies/*/*.png | wc -l) = 100",
        ),
    ),
    "histories": Persona(
        8,
        "pipeline",
        (
            "likeness ledger init",
            "likeness new visits",
            "cd visits && python ../make_tables.py",
            "cd visits && cp ../histories.yaml data/schema/visits.yaml && cp ../params.yaml .",
            "cd visits && likeness check",
            "cd visits && likeness run --without evaluate --bundle ../visits.zip",
            "likeness verify --retrain visits.zip",
            "likeness estimate visits.zip --columns 'next state' --by 'last state'",
        ),
    ),
    "auditor": Persona(
        2,
        "",
        (
            "!likeness verify --retrain ../people.zip | tee verdict",  # Parquet's bytes follow the version of pyarrow
            "pip install --quiet $(sed -n 's/.*the bytes of pyarrow \\([0-9.]*\\)\\. .*/pyarrow==\\1/p' verdict)",
            "likeness verify --retrain ../people.zip",
        ),
    ),
    "researcher": Persona(
        5,
        None,
        # uv unpacks the gigabytes of torch on both cores; pip takes minutes.
        ("pip install --quiet uv", "uv pip install --quiet '.[torch,evaluate]'", f"{_ROW} --again"),
    ),
}


def tried(machine: Machine, name: str, persona: Persona) -> dict[str, object]:
    """One persona: the lines in order, up to the first that fails."""
    home = machine.home / name.replace(" ", "_")
    home.mkdir()
    for file, text in (("lacking.py", LACKING), ("notebook.py", NOTEBOOK), ("images.py", IMAGES)):
        (home / file).write_text(text)
    for source, target in OWN.items():
        shutil.copy(machine.clone / source, home / target)
    for source, target in (("data/raw/adult.csv.gz", "people.csv.gz"), ("data/schema/adult.yaml", "codebook.yaml")):
        shutil.copy(machine.clone / source, home / target)
        shutil.copy(machine.clone / source, machine.home / target)
    folder = home
    if persona.extra is None:
        folder = home / "clone"
        subprocess.run(["git", "clone", "--quiet", machine.clone, folder], check=True)
    begun, worked, refusals, success = time.perf_counter(), cpu_seconds(), 0, True
    subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
    environment = {
        "PATH": f"{home / 'venv/bin'}{os.pathsep}{os.defpath}",
        "HOME": str(home),
        "VIRTUAL_ENV": str(home / "venv"),
        "UV_NATIVE_TLS": "1",  # the certificates of the system, as pip takes them
        "LIKENESS_ANCHOR": str(home / "anchor"),
        **{f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    install = () if persona.extra is None else (f"pip install --quiet '{machine.likeness(persona.extra)}'",)
    for line in (*install, *persona.lines):
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line.lstrip("!")],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        refusals += bool(done.returncode)
        print(f"{name}: {line}: {done.returncode}, {time.perf_counter() - begun:.0f} s", flush=True)
        if (done.returncode != 0) is not line.startswith("!"):
            print(done.stdout[-2000:], done.stderr[-2000:])
            success = False
            break
    minutes = [round(seconds / 60, 1) for seconds in (time.perf_counter() - begun, cpu_seconds() - worked)]
    size = megabytes(home / "venv")
    shutil.rmtree(home)
    commands = len(install) + len(persona.lines)
    return dict(zip(_COLUMNS, (name, *minutes, persona.limit, commands, refusals, size, success), strict=True))


def main() -> None:
    """Measure, print and write; rows of other personas stay."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--persona", action="append", choices=PERSONAS)
    chosen = parser.parse_args().persona or PERSONAS
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        table = pd.DataFrame([tried(machine, name, PERSONAS[name]) for name in chosen], columns=_COLUMNS)
    old = pd.read_csv(RESULTS)
    table = pd.concat([table, old[~old["persona"].isin(chosen)]]).sort_values("persona")
    print(table.to_string(index=False))
    table.to_csv(RESULTS, index=False)


if __name__ == "__main__":
    main()
