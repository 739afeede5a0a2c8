"""The list of planted faults fits the code: it cannot rot without a word."""

from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.campaigns.mutants import ROOT, Mutant, Result, judge, mutants, rate, table

ALL = mutants()
GROUPS = "verifier bundle evaluation dvc door histories pilot moments sources records"


def test_every_fault_can_be_planted_and_its_tests_are_there() -> None:
    """But for those of wings that are not here."""
    wings = ("papers", "images", "histories", "postgres", "orchestration", "margins")
    absent = [wing for wing in wings if not find_spec(f"likeness_{wing}")]
    gone = tuple(f"{folder}{wing}/" for wing in absent for folder in ("src/likeness_", "tests/"))
    faults = []
    for mutant in ALL:
        if mutant.file.startswith(gone):
            continue
        try:
            assert mutant.planted((ROOT / mutant.file).read_text()) and mutant.old != mutant.new
        except ValueError as error:
            faults.append(f"{mutant.id}: {error}")
        faults += [
            f"{mutant.id}: no {name}"
            for name in mutant.test_files
            if not (name.startswith(gone) or (ROOT / name).exists())
        ]
        faults += [] if mutant.test_files else [f"{mutant.id}: no file of tests"]
    assert not faults


def test_there_are_three_hundred_faults_in_ten_groups_and_none_twice() -> None:
    assert len(ALL) >= 300 and {mutant.group for mutant in ALL} == set(GROUPS.split())
    assert max(Counter((mutant.file, mutant.old, mutant.new) for mutant in ALL).values()) == 1


@pytest.mark.process
def test_a_fault_is_found_survives_or_is_broken(tmp_path: Path) -> None:
    """On a project of one file and one test."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "src/half.py").write_text("def half(x):\n    return x / 2\n")
    (tmp_path / "tests/test_half.py").write_text("from half import half\n\ndef test_it():\n    assert half(4) == 2\n")

    def outcome(old: str, new: str, tests: str = "tests/test_half.py") -> str:
        return judge(tmp_path, Mutant("g", "n", "src/half.py", old, new, tests)).outcome

    assert outcome("x / 2", "x / 3") == "found" and outcome("x / 2", "0.5 * x") == "survived"
    assert outcome("x / 9", "x") == outcome("x", "y") == outcome("x / 2", "x /") == "broken"
    assert outcome("def half", "def third") == outcome("x / 2", "x", "tests/test_half.py -k nothing") == "broken"
    assert (tmp_path / "src/half.py").read_text() == "def half(x):\n    return x / 2\n"


def test_what_is_broken_is_not_counted_as_found() -> None:
    made = [
        Result(Mutant("g", str(n), "f", "a", "b", ""), outcome, 1.0) for n, outcome in enumerate(["found", "broken"])
    ]
    assert rate(made, "g") == pytest.approx(0.5) and "| g | 2 | 1 | 0 | 1 | 50.0% |" in table(made)
