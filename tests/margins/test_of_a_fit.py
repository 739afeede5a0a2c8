"""A fit and what it saved give the same; where this package is not installed, the core refuses it by name."""

from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from test_synthesizer import ledger, rows, small  # noqa: F401
from typer.testing import CliRunner

import likeness
from likeness import Synthesizer
from likeness.cli.app import app
from likeness.core.errors import LikenessError, MissingPackageError
from likeness.synthesizer.published import MARGINS, Published

PACKAGE = "likeness_margins"
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("ledger")]


def test_a_saved_fit_gives_the_same(tmp_path: Path) -> None:
    fitted = small().fit(rows())
    fitted.save(tmp_path / "saved")
    loaded = Synthesizer.load(tmp_path / "saved")
    assert loaded.model_.marginal(["c", "y"]).equals(fitted.model_.marginal(["c", "y"]))
    line = fitted.regression("y", ["c"], "Yes", sampling=True)
    assert loaded.regression("y", "c", "Yes", sampling=True).equals(line) and (line.noise_error > 0).all()
    tables, again = fitted.sample(99, replicates=2), loaded.sample(99, replicates=2)
    assert all(one.equals(other) for one, other in zip(tables, again, strict=True)) and not tables[0].equals(tables[1])
    written = list(Published.read(tmp_path / "saved").replicates(99, 0, {}, 2))  # as `likeness sample` does
    assert all(one.equals(other["synthetic"]) for one, other in zip(tables, written, strict=True))
    words = ["sample", str(tmp_path / "saved"), "--rows", "99", "--replicates", "2", "--out", str(tmp_path / "r.csv")]
    assert CliRunner().invoke(app, words).stdout.count("99 rows") == 3
    drawn = [pd.read_csv(tmp_path / f"r_{place}.csv") for place in (0, 1, 2)]
    assert [one.a.tolist() for one in drawn] == [pytest.approx(one.a.tolist()) for one in tables]
    with pytest.raises(LikenessError, match="needs more memory than there is"):
        fitted.sample(10**12, where={"c": "u"}, replicates=2)


def test_without_the_package_each_use_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = small().fit(rows())
    fitted.save(tmp_path / "saved")
    monkeypatch.setattr("likeness.core.wings.find_spec", lambda name: find_spec(name) if name != PACKAGE else None)
    monkeypatch.setitem(vars(MARGINS), "_names", [])
    words = ["sample", str(tmp_path / "saved"), "--replicates", "2", "--out", str(tmp_path / "r.csv")]
    uses = {
        "Synthesizer.regression": lambda: fitted.regression("y", "c", "Yes"),
        "Synthesizer.model_": lambda: fitted.model_,
        "A sample with replicates": lambda: fitted.sample(9, replicates=2),
        "A sample with replicates ": lambda: CliRunner().invoke(app, words, catch_exceptions=False),
        "likeness.combine": lambda: likeness.combine([1, 2]),
    }
    remedy = "is that of a part of Likeness. likeness_margins is not installed here. Run: pip install"
    for subject, use in uses.items():
        with pytest.raises(MissingPackageError, match=f"^{subject.strip()} {remedy}"):
            use()
    assert len(fitted.sample(9)) == 9 and not list(tmp_path.glob("r_*"))
