"""``likeness estimate`` in three forms, from public files only; what nobody has has no mean in any of them."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from toy_release import SCHEMA, exact, sums_of
from toys import schema_with
from typer.testing import CliRunner

from likeness.bundle.contents import CHECKSUMS
from likeness.bundle.files import sums
from likeness.cli.app import app
from likeness.core.errors import LikenessError
from likeness.core.format import FORMAT
from likeness.data.schema.schema import Schema
from likeness.data.schema.yaml import schema_text
from likeness.data.source.files import read_frame
from likeness.inference.estimates import Answers, Question, estimate
from likeness.inference.measurements import measurements
from likeness.release.released import Released, to_bytes
from likeness.report.released_numbers import print_numbers
from likeness.synthesizer.published import SAVED

DAYS = {"lower": "2000-01-01", "upper": "2009-12-31", "nullable": True}
DATED = schema_with(
    {
        "age": {"kind": "integer", "lower": 0, "upper": 39},
        "died": {"kind": "date", **DAYS},
        "moved": {"kind": "datetime", **DAYS},
        "paid": {"kind": "numeric", "lower": 0, "upper": 9, "nullable": True},
        "y": {"kind": "categorical", "categories": ["No", "Yes"]},
    },
    "y",
)
DATES = ("died", "moved")


@pytest.fixture(scope="module")
def released() -> tuple[Released, ...]:
    """Nobody has died or paid, and of class Yes nobody moved."""
    rows: dict[str, Any] = {"age": np.arange(60) % 40, "died": [None] * 60, "paid": [None] * 60}
    rows |= {"moved": ["2001-02-03 04:05:06"] * 30 + [None] * 30, "y": ["No"] * 30 + ["Yes"] * 30}
    return sums_of(DATED, read_frame(pd.DataFrame(rows), DATED))


@pytest.mark.parametrize("statistic", ["mean", "quantile"])
def test_its_mean_and_quantiles_are_missing(released: tuple[Released, ...], statistic: str) -> None:
    answer = estimate(DATED, released, Question(("died", "moved", "paid"), (), statistic))
    assert answer.estimate.isna().tolist() == [True, False, True]
    assert (answer.low["died"], answer.high["died"]) == ("2000-01-01", "2009-12-31")
    by_class = estimate(DATED, released, Question(DATES, ("y",), statistic))
    assert by_class.estimate.isna().tolist() == [True, True, False, True]


def test_noise_moves_no_date_out_of_its_bounds(released: tuple[Released, ...]) -> None:
    few = [one.lattice * 0 + (np.arange(one.lattice.size).reshape(one.lattice.shape) % 7 - 3) for one in released]
    noisy = [replace(one, lattice=lattice) for one, lattice in zip(released, few, strict=True)]
    answer = estimate(DATED, noisy, Question(DATES, ("y",), "mean"))
    present = [one for one in answer.estimate if one is not None]
    assert all("2000-01-01" <= one <= "2009-12-31 23:59:59" for one in present)


def test_a_report_shows_a_dash(released: tuple[Released, ...]) -> None:
    fewer = [replace(one, lattice=-one.lattice - 1) for one in released]
    numbers = print_numbers(DATED, Answers(measurements(DATED, fewer)), None)
    assert "–" in str(numbers) and "nan" not in str(numbers).lower()


def saved(folder: Path, schema: Schema, released: Sequence[Released]) -> Path:
    """The public files that an estimate needs."""
    (folder / "released").mkdir()
    for one in released:
        (folder / f"released/{one.receipt.query}.safetensors").write_bytes(to_bytes(one))
    (folder / "schema.yaml").write_text(schema_text(schema), encoding="utf-8")
    privacy = {"format": FORMAT, "adjacency": "add_remove_one", "num_records": None}
    (folder / "privacy.json").write_text(json.dumps(privacy))
    (folder / SAVED).write_text(json.dumps({"frames": {}, "params": {"cap": None, "epsilon": 1}}))
    (folder / CHECKSUMS).write_text(sums(folder))
    return folder


def output(folder: Path, *words: str) -> str:
    result = CliRunner().invoke(app, ["estimate", str(folder), *words])
    assert result.exit_code == 0, result.exception
    return str(result.stdout)


def test_the_command_says_it_in_all_forms(released: tuple[Released, ...], tmp_path: Path) -> None:
    words = (saved(tmp_path, DATED, released), "--columns", "died,paid", "--statistic", "mean")
    assert [line.split()[:2] for line in output(*words).splitlines()[1:]] == [["died", "-"], ["paid", "-"]]
    assert output(*words, "--csv").splitlines()[1].startswith("died,,")
    assert [row["estimate"] for row in json.loads(output(*words, "--json"))["rows"]] == [None, None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path, SCHEMA, exact())


def test_all_three_forms_have_the_numbers_of_python(folder: Path) -> None:
    expected = estimate(SCHEMA, exact(), Question(("d",), ("y",), sampling=True))
    words = ("--columns", "d", "--by", "y", "--sampling")
    table = pd.read_csv(io.StringIO(output(folder, *words, "--csv")))
    errors = ["noise_error", "sampling_error", "low", "high", "cv", "unreliable"]
    assert list(table) == ["d", "y", "estimate", "unbiased", *errors]
    assert table.estimate.to_numpy() == pytest.approx(expected.estimate.to_numpy())
    answer = json.loads(output(folder, *words, "--json"))
    assert [row["cell"] for row in answer["rows"]][-1] == {"d": None, "y": "Yes"}
    assert [row["low"] for row in answer["rows"]] == pytest.approx(expected.low.tolist())
    text = output(folder, *words).splitlines()
    assert text[0].split() == list(table) and len(text) == 7 and text[5].split()[:2] == ["-", "No"]


def test_means_of_several_numbers(folder: Path) -> None:
    text = output(folder, "--columns", "age, money", "--statistic", "mean", "--level", "0.9").splitlines()
    assert [line.split()[0] for line in text] == ["column", "age", "money"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--columns", "d", "--csv", "--json"], "--csv and --json"),
        (["--columns", "nothing"], "columns must be one of c, d"),
        (["--columns", "d,c,age"], "no joint counts of d, c, age"),
    ],
)
def test_refusals(folder: Path, words: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["estimate", str(folder), *words])
    assert isinstance(result.exception, LikenessError) and message in str(result.exception)
