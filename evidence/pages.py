"""What benchmarks write: rows of a CSV file with the commit that made them, and tables of a page."""

import dataclasses
import datetime
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

_WRITTEN = ("evidence/results", "evidence/*.md", "docs/img")  # by benchmarks


@dataclasses.dataclass(frozen=True)
class Results:
    """Rows of a benchmark in a CSV file, each under its keys; a row that is there is not measured again."""

    path: Path
    keys: list[str]

    @property
    def rows(self) -> pd.DataFrame:
        """All so far."""
        return pd.read_csv(self.path) if self.path.exists() else pd.DataFrame(columns=self.keys)

    def of(self, *values: object) -> pd.DataFrame:
        """Those of some keys: one or none."""
        rows = self.rows
        return rows[(rows[self.keys] == [*values]).all(axis=1)]

    def add(self, values: Sequence[object], found: Mapping[str, object]) -> None:
        """One more, with the commit that made it and the day."""
        row = {**dict(zip(self.keys, values, strict=True)), **origin(), **found}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        pd.concat([self.rows, pd.DataFrame([row])]).to_csv(self.path, index=False, float_format="%.6g")
        print(row, flush=True)


def processor() -> str:
    """The model of this machine's processor."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if "model name" in line), platform.machine())


def origin() -> dict[str, str]:
    """The commit and the day of a row that is made now."""
    return {"commit": commit(), "date": datetime.date.today().isoformat()}


def commit() -> str:
    """The code that makes a number; marked where it was changed since, what benchmarks write apart.

    A copy without a history has it from the variable EVIDENCE_COMMIT.
    """
    if "EVIDENCE_COMMIT" in os.environ:
        return os.environ["EVIDENCE_COMMIT"]

    def told(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()

    changed = told("status", "--porcelain", "--untracked-files=no", "--", ".", *(f":!{place}" for place in _WRITTEN))
    return told("describe", "--always", "--exclude", "*") + "-dirty" * bool(changed)


def on_page(page: Path, sections: dict[str, str]) -> None:
    """Put each section between its markers, ``<!-- name -->`` and ``<!-- end of name -->``, if the page has them."""
    text = page.read_text()
    for name, section in sections.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if begin in text:
            before, after = text.split(begin)[0], text.split(end)[1]
            text = f"{before}{begin}\n{section}\n{end}{after}"
    page.write_text(text)


def markdown(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown. A column whose head ends with a colon is set to the right."""
    first = [head.removesuffix(":") for head in heads], ["---:" if head.endswith(":") else "---" for head in heads]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (*first, *rows))


def cell(values: pd.Series, digits: int) -> str:
    """Mean ± standard deviation over draws; nothing where nothing was measured."""
    if values.isna().all():
        return ""
    spread = f" ± {values.std():.{digits}f}" if values.count() > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"
