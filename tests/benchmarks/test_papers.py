"""The papers' benchmark shows what it has, and runs what it lacks or what it is told to run again."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from benchmarks import papers
from benchmarks.common import ONLY_IMAGES, Table, settings

ROWS = """data,method,epsilon,adjacency,draw,commit,seconds,peak_mb,nll,modes,mlp
mixture,real,0,-,0,abc,0,0,2.5,25,
mixture,shuffled,0,-,0,abc,0,0,9.5,0,
mixture,merf,1,add_remove_one,1,abc,100,500,4.25,24,
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Draws that are run, in a folder with a CSV of three rows."""
    draws: list[int] = []

    def in_a_process(module: str, *options: Any) -> tuple[pd.DataFrame, dict[str, float]]:
        draws.append(options[-1])
        return pd.DataFrame(), {"seconds": 7.0, "peak_mb": 300.0}

    def load(name: str) -> Any:
        if name != "mixture":
            raise SystemExit(f"data/raw/{name}.parquet is missing. Put it there.")
        params = SimpleNamespace(sections={"merf": {}, **{key: {} for key in ONLY_IMAGES}})
        return SimpleNamespace(params=params, schema=SimpleNamespace(image=None))

    monkeypatch.setattr(papers, "RESULTS", tmp_path / "papers.csv")
    monkeypatch.setattr(papers, "in_a_process", in_a_process)
    monkeypatch.setattr(papers, "load", load)
    monkeypatch.setattr(papers, "score", lambda *_: {"nll": 4.375, "modes": 23.0})
    monkeypatch.setattr(papers, "picture", lambda *_: None)
    monkeypatch.setattr(papers, "write_page", lambda _: None)
    monkeypatch.setattr(papers, "commit", lambda: "new")
    (tmp_path / "papers.csv").write_text(ROWS)
    return draws


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr(sys, "argv", ["papers", *options])
    papers.main()


def test_a_row_of_the_csv_is_shown_and_said_to_be_skipped(
    runs: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "--data", "mixture", "--method", "merf", "--draws", "1")
    shown = capsys.readouterr().out
    assert runs == [] and shown.count("--again runs it") == 3 and "4.25" in shown
    assert papers.RESULTS.read_text() == ROWS


def test_again_shows_the_new_row_beside_the_row_of_the_csv(
    runs: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "--data", "mixture", "--method", "merf", "--draws", "1", "--again")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert runs == [1] and ["nll", "4.25", "4.375"] in lines and ["seconds", "100", "7"] in lines
    assert ["commit", "abc", "new"] in lines and papers.RESULTS.read_text() == ROWS


def test_what_the_csv_lacks_is_run_and_added(runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, "--data", "mixture", "--method", "merf", "--draws", "2")
    rows = pd.read_csv(papers.RESULTS)
    assert runs == [2] and len(rows) == 4 and rows.iloc[3]["nll"] == 4.375 and rows.iloc[3]["commit"] == "new"


def test_what_cannot_run_is_named(
    runs: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "--method", "moments")
    shown = capsys.readouterr().out
    assert runs == [] and "census is skipped: data/raw/census.parquet is missing." in shown
    assert "mixture, moments is skipped: the method is not meant for this table." in shown


def test_the_list_counts_draws(
    runs: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "--list")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert runs == [] and ["mixture", "merf", "1", "add_remove_one", "1"] in lines


def test_other_judges_replace_those_of_the_settings() -> None:
    table: Any = Table(settings("cifar10"), None, None, None)  # type: ignore[arg-type]
    assert papers.judged(table, None) is table and table.params.evaluate.classifiers == ("cnn",)
    assert papers.judged(table, ["cnn", "resnet"]).params.evaluate.classifiers == ("cnn", "resnet")
