"""A method of another distribution: found by its name, named in what it releases, and run by no auditor unasked."""

import json
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from toys import schema_with

from likeness import Synthesizer
from likeness.core import wings
from likeness.core.errors import MissingPackageError, ParamsError, ReleaseError
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods import METHODS, method_named, plugins
from likeness.pipeline.project import Project
from likeness.stages import FOLDERS, settings
from likeness.testing import check_method
from likeness.verify import verify

SOURCE = Path(__file__).with_name("likeness_means.py")
PARAMS = Path(__file__).parents[2] / "params.yaml"
SCHEMA = schema_with(
    {
        "a": {"kind": "numeric", "lower": 0, "upper": 1},
        "c": {"kind": "categorical", "categories": ["u", "v", "w"]},
        "y": {"kind": "categorical", "categories": ["no", "yes"]},
    },
    "y",
)


def rows(count: int = 400) -> pd.DataFrame:
    random = np.random.default_rng(0)
    y = random.choice(["no", "yes"], count)
    return pd.DataFrame({"a": random.random(count), "c": np.where(y == "yes", "u", "w"), "y": y})


def install(site: Path, text: str, points: str = "means = likeness_means:Means", name: str = "likeness-means") -> None:
    """What an installer leaves of a distribution of one module."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "likeness_means.py").write_text(text)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[likeness.methods]\n{points}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of installed distributions, which no other test sees."""
    folder = tmp_path / "site"
    monkeypatch.syspath_prepend(folder)
    yield folder
    plugins._LOADED.clear()
    sys.modules.pop("likeness_means", None)


@pytest.mark.process
def test_a_plugin_releases_samples_and_verifies_where_the_auditor_trusts_it(
    site: Path, tmp_path: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    install(site, SOURCE.read_text(), "means = likeness_means:Means\nlost = nowhere:Lost")
    Ledger.create(locate())
    assert plugins.installed_names() == ["lost", "means"] and "likeness_means" not in sys.modules
    fitted = Synthesizer(method="means", schema=SCHEMA, population="people", epsilon=1.0).fit(rows())
    assert "likeness_means" in sys.modules and "means" not in METHODS
    assert {one.receipt.plugin for one in fitted.releases_.values()} == {"likeness-means 1.0"}
    assert "by the method **means** of likeness-means 1.0 from 2 noisy" in fitted.statement
    fitted.save(tmp_path / "saved")
    plugins._LOADED.clear()
    assert Synthesizer.load(tmp_path / "saved").sample(50).equals(fitted.sample(50))
    plugins._LOADED.clear()
    with pytest.raises(ReleaseError, match=r"counts no cells of .a."):  # the map is known
        fitted.estimate("a")
    bundle = tmp_path / "bundle"
    fitted.bundle(bundle)
    edited = f"{SOURCE.read_text()}import pathlib; pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n"
    (site / "likeness_means.py").write_text(edited)
    code, out, _ = command("verify", str(bundle), "--retrain", "--json")
    checks = {check["name"]: check["passed"] for check in json.loads(out)}
    assert code == 3 and not (tmp_path / "ran").exists() and False not in checks.values()
    ledger = {"ledger chain", "ledger entries", "lifetime"}
    believed = {"files", "checksums", "epsilon", "statement", "rules"} | ledger
    assert {name for name, passed in checks.items() if passed} == believed
    _, out, _ = command("verify", str(bundle), "--retrain", "--trust-plugin", "means")
    assert (tmp_path / "ran").exists()
    assert "nothing is wrong, but not everything was tested (noise)" in out  # so few numbers say nothing about noise
    with pytest.raises(ParamsError, match="trusted must be one of lost, means, got 'mean'"):
        verify(bundle, trusted=["mean"])


OURS = "likeness.methods.marginals.method import Marginals"


@pytest.mark.parametrize(
    ("points", "text", "fault"),
    [
        ("means = lost:Means", "", "cannot be imported: ModuleNotFoundError"),
        ("means = likeness_means:Means", "Means = 5", "must give a subclass of likeness.methods.Method"),
        ("mean = likeness_means:Means", None, "must give the method the name 'mean'"),
        ("means = likeness_means:Marginals", f"from {OURS}", "must give the method the name"),
        (None, f"from {OURS}\nclass Means(Marginals):\n    name = 'means'", ""),
        (None, SOURCE.read_text().replace("means_coordinates", "pair_marginals"), "exists: pair_marginals"),
    ],
)
def test_what_is_no_method_of_its_own_is_refused(site: Path, points: str | None, text: str | None, fault: str) -> None:
    install(site, text or SOURCE.read_text(), points or "means = likeness_means:Means")
    name = (points or "means").split()[0]
    if not fault:
        assert method_named(name).name == name  # with the maps of a method of Likeness
        return
    with pytest.raises(ParamsError, match=f"method '{name}': likeness-means 1.0 .*{fault}.* Repair the plug-in"):
        method_named(name)


@pytest.mark.long
def test_the_contract_holds_for_the_method_and_not_for_one_that_lies_about_its_bound(site: Path) -> None:
    install(site, SOURCE.read_text())
    check_method(method_named("means")())
    plugins._LOADED.clear()
    del sys.modules["likeness_means"]
    (site / "likeness_means.py").write_text(SOURCE.read_text().replace("Fraction(self.size)", "Fraction(1)"))
    with pytest.raises(AssertionError, match="above the declared bound 1"):
        check_method(method_named("means")())


def test_of_two_distributions_neither_is_loaded(site: Path) -> None:
    install(site, SOURCE.read_text())
    install(site, "raise SystemExit", name="other-means")
    with pytest.raises(ParamsError, match=r"offer it: likeness-means 1\.0, other-means 1\.0\. Uninstall all but one"):
        method_named("means")
    with pytest.raises(ParamsError, match=f"{', '.join(METHODS)}, means, got 'mine'"):
        method_named("mine")


def test_stages_with_methods_run_again_when_a_file_of_the_plugin_changes(site: Path, tmp_path: Path) -> None:
    install(site, SOURCE.read_text())
    (tmp_path / "params.yaml").write_text(yaml.safe_dump({**yaml.safe_load(PARAMS.read_text()), "method": "means"}))
    code = Project.load(tmp_path).paths.code
    found = []
    for end in ("", "# edited\n"):
        (site / "likeness_means.py").write_text(SOURCE.read_text() + end)
        settings.main(Project.load(tmp_path))
        found.append({name: (code / name).read_text() for name in FOLDERS})
    changed = {name for name in FOLDERS if found[0][name] != found[1][name]}
    assert changed == {name for name in FOLDERS if "methods" in FOLDERS[name].split()}


@pytest.mark.parametrize("made", ["__init__.py", "__pycache__/module.pyc"])
def test_a_package_elsewhere_and_what_a_deleted_wing_leaves_are_no_wing(
    made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "likeness_evil" / made).parent.mkdir(parents=True)
    (tmp_path / "likeness_evil" / made).write_text("raise SystemExit('a stranger runs')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(wings, "_entry_points", lambda group: {"evil": EntryPoint("evil", "likeness_evil:Evil", group)})
    offered = wings.Wings[Any]("likeness.methods", {})
    assert [*offered] == [] and wings.wing_folders(["likeness.methods"]) == []
    with pytest.raises(MissingPackageError, match="likeness_evil is not installed here"):
        offered.check_installed("evil", "method 'evil'")


def test_metadata_of_our_name_make_no_other_package_ours(site: Path) -> None:
    install(site, SOURCE.read_text(), "means = means:Means", "likeness-dp")
    found = wings.Wings[Any]("likeness.methods", {})
    assert "means" not in found and not found.is_ours("means") and not found.are_declared
