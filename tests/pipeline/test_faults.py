"""A short fault campaign, and proof that its rules notice broken promises. evidence/FAULTS.md has the long one."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from postgres_server import programs
from small_project import ROOT

# Other kinds have tests of their own in tests/privacy/test_ledger.py.
KINDS = ["kill -9, stages", "file size limit", "race of 2"]


def python(*words: str) -> str:
    """A process of its own: the campaign forks, which a process with threads should not."""
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600
    )
    return done.stdout


@pytest.mark.slow
def test_a_few_faults_of_each_kind_break_no_promise(tmp_path: Path) -> None:
    results = tmp_path / "faults.csv"
    chosen = [word for kind in KINDS for word in ("--only", kind)]
    output = python("-m", "tests.campaigns.faults", "--results", str(results), "--kills", "2", "--most", "1", *chosen)
    found = pd.read_csv(results)
    assert list(found["kind"]) == ["kill -9, stages", *KINDS], output
    assert found["broken"].isna().all(), found["broken"].dropna().tolist()


@pytest.mark.slow
@pytest.mark.skipif(programs() is None, reason="PostgreSQL's initdb and postgres are not installed")
def test_a_few_nights_break_no_promise(tmp_path: Path) -> None:
    """A clock that runs behind, one years ahead, and a cut connection. evidence/FAULTS.md has the whole year."""
    results = tmp_path / "nights.csv"
    output = python("-m", "tests.campaigns.nights", "--results", str(results), "--nights", "4")
    found = pd.read_csv(results)
    assert len(found) == 8 and found["broken"].isna().all(), output
    assert {"clock back", "clock years ahead", "cut connection"} <= set(found["fault"].dropna())


PLANTED = """
import shutil, sys
from pathlib import Path
from tests.campaigns.fault_field import Field, preload, spend

preload()
from likeness.ledger.ledger import Ledger
from likeness.release import door

field = Field.make(Path(sys.argv[1]), 1.0, 100.0)
assert field.recovered(1.0) == [], field.recovered(1.0)

print("CAP", field.broken_rules(1e-6))

stored = next((field.home / "releases").iterdir())
shutil.copy(stored, stored.with_name("0" * 64 + ".safetensors"))
print("STRAY", field.broken_rules(1.0))
stored.with_name("0" * 64 + ".safetensors").unlink()

path = next(path for path in (field.root / "data/released").rglob("*.safetensors"))
data = path.read_bytes()
path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
print("FOREIGN", field.broken_rules(1.0))
path.write_bytes(data)

honest = door._publish_staged
door._publish_staged = lambda ledger, key, sha256: honest(ledger, key, sha256)[:-8] + b"8 bytes!"
print("OTHER", field.recovered(1.0))
door._publish_staged = honest

field.set(ledger__attempt="again")
find, commit = Ledger.find, Ledger.commit
Ledger.commit = lambda self, key, sha256: None
print("UNCOMMITTED", field.recovered(1.0))
Ledger.commit = commit

def untold(*arguments, **keywords):
    raise RuntimeError("something")
door.exact_sum = untold
field.set(ledger__attempt="untold")
print("UNCLEAR", field.spend().clear)
(field.home / "ledger.sqlite").unlink()
print("LOST", field.broken_rules(1.0))
"""


@pytest.mark.slow
def test_the_rules_notice_broken_promises(tmp_path: Path) -> None:
    output = python("-c", PLANTED, str(tmp_path / "field"))
    told = dict(line.split(" ", 1) for line in output.splitlines() if line.split(" ")[0].isupper())
    expected = {
        "CAP": "the cap is 1e-06",
        "STRAY": "a published file without its entry",
        "FOREIGN": "is a whole release without an entry",
        "OTHER": "not hold the bytes that the ledger committed",
        "UNCOMMITTED": "is a whole release without an entry",
        "UNCLEAR": "False",
        "LOST": "the ledger does not open",
    }
    assert set(told) == set(expected), output
    for name, text in expected.items():
        assert text in told[name], f"{name}: {told[name]}"
