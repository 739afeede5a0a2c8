"""Seconds of each command from an empty folder to a verified bundle, on a table of Adult's size.

Run: ``python -m benchmarks.first_run``. It clones this checkout into a new folder and writes Adult as a CSV beside it.
At a pseudo-terminal it answers ``likeness init --ask`` from the public codebook in data/schema/adult.yaml. Then it runs
the other commands. It prints the table Minutes of docs/evidence/WALK.md, and the number of questions.
"""

import os
import pty
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema

INIT = "init ../people.csv --label income --ask"
COMMANDS = ("check --rows 39000", "ledger init", "run", "bundle people.zip", "verify people.zip")
LIKENESS = [sys.executable, "-m", "likeness"]
_NOT_RETRAINED = 3  # exit code of verify: nothing is wrong, and the training was not repeated
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_COLUMN = re.compile(r"\d+ (.+), \w+: ?$")


def answer(question: str, schema: Schema) -> str:
    """What the codebook says to a question of the interview."""
    about = _COLUMN.match(question)
    if about:
        return of_column(schema.column(about[1]))
    nullable = [column for column in schema.columns if column.nullable]
    answers = {
        "Source": "adult.names, UCI 1996",
        "Columns that": ", ".join(column.name for column in nullable),
        "Words": ", ".join(sorted({word for column in nullable for word in column.missing_values})),
        "Name for": "us-census-1994",
        "Run now": "n",
    }
    return next(text for beginning, text in answers.items() if question.startswith(beginning))


def of_column(column: Column) -> str:
    """A column of the codebook as a person types it."""
    if column.is_categorical:
        return ("ordinal: " if column.kind == "ordinal" else "") + ", ".join(column.categories)
    log = " log" if column.transform == "log1p" else ""
    spikes = f" spikes {' '.join(f'{spike:g}' for spike in column.spikes)}" if column.spikes else ""
    return f"{column.bounds[0]:g}..{column.bounds[1]:g}{log}{spikes}"


def interview(command: Sequence[str], folder: Path, schema: Schema) -> int:
    """Play the person until the command ends.

    Returns:
        The number of questions.

    Raises:
        SystemExit: the command fails or refuses an answer.
    """
    child, terminal = pty.fork()
    if child == 0:  # the command's own process
        os.chdir(folder)
        os.execvp(command[0], list(command))
    shown, questions = "", []
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # so Linux says that the other side is closed
            break
        shown += _ESCAPES.sub("", data.decode(errors="replace")).replace("\r", "")
        question = shown.rpartition("\n")[2]
        if question.rstrip().endswith(":") and "  " not in question:
            if question in questions:
                raise SystemExit(f"an answer is refused:\n{shown}")
            questions.append(question)
            os.write(terminal, f"{answer(question, schema)}\n".encode())
            shown = ""
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        raise SystemExit(f"init failed:\n{shown}")
    return len(questions)


def main() -> None:
    """All commands, in a folder that is deleted."""
    schema = Schema.load("data/schema/adult.yaml")
    with tempfile.TemporaryDirectory() as place:
        clone = Path(place) / "clone"
        subprocess.run(["git", "clone", "-q", ".", str(clone)], check=True)
        people = pd.read_csv("data/raw/adult.csv.gz", dtype=str, keep_default_na=False).drop(columns="split")
        people.to_csv(Path(place) / "people.csv", index=False)
        os.environ.update({f"LIKENESS_{name}": f"{place}/{name}" for name in ("HOME", "ANCHOR")})
        os.environ.update({"HOME": place, "PYTHONPATH": f"{clone / 'src'}:{clone}", "COLUMNS": "200"})
        print("| command | seconds | CPU seconds |\n| --- | ---: | ---: |")
        for command in (INIT, *COMMANDS):
            used, started = _cpu_seconds(), time.perf_counter()
            if command == INIT:
                count = interview([*LIKENESS, *INIT.split()], clone, schema)
            else:
                ended = subprocess.run([*LIKENESS, *command.split()], cwd=clone, stdout=subprocess.DEVNULL)
                if ended.returncode not in (0, _NOT_RETRAINED):
                    raise SystemExit(f"likeness {command} failed")
            seconds = time.perf_counter() - started
            print(f"| `likeness {command}` | {seconds:.1f} | {_cpu_seconds() - used:.1f} |", flush=True)
        print(f"init asked {count} questions about {len(people.columns)} columns.")


def _cpu_seconds() -> float:
    """Of all commands that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
