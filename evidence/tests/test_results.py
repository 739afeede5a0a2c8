"""Every line of the results says which code made it, and when."""

import csv
import re
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"


def test_every_line_has_a_commit_and_a_day() -> None:
    files = sorted(RESULTS.glob("*.csv"))
    assert len(files) > 20
    for path in files:
        with path.open() as file:
            for row in csv.DictReader(file):
                assert re.fullmatch(r"[0-9a-f]{7,}(-dirty|-lost)?|unknown", row["commit"]), (path.name, row["commit"])
                assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"]), (path.name, row["date"])
