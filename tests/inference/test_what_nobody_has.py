"""A date or number that nobody has, at all or in a group, has no mean: it is missing in every form of an answer."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from toy_release import sums_of
from toys import schema_with
from typer.testing import CliRunner

from likeness.bundle.contents import CHECKSUMS
from likeness.bundle.files import sums
from likeness.cli.app import app
from likeness.core.format import FORMAT
from likeness.data.schema.yaml import schema_text
from likeness.data.source.files import read_frame
from likeness.inference.estimates import Answers, Question, estimate
from likeness.inference.measurements import measurements
from likeness.release.released import Released, to_bytes
from likeness.report.released_numbers import print_numbers
from likeness.synthesizer.published import SAVED

DAYS = {"lower": "2000-01-01", "upper": "2009-12-31", "nullable": True}
SCHEMA = schema_with(
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
    return sums_of(SCHEMA, read_frame(pd.DataFrame(rows), SCHEMA))


@pytest.mark.parametrize("statistic", ["mean", "quantile"])
def test_its_mean_and_quantiles_are_missing(released: tuple[Released, ...], statistic: str) -> None:
    answer = estimate(SCHEMA, released, Question(("died", "moved", "paid"), (), statistic))
    assert answer.estimate.isna().tolist() == [True, False, True]
    assert (answer.low["died"], answer.high["died"]) == ("2000-01-01", "2009-12-31")
    by_class = estimate(SCHEMA, released, Question(DATES, ("y",), statistic))
    assert by_class.estimate.isna().tolist() == [True, True, False, True]


def test_noise_moves_no_date_out_of_its_bounds(released: tuple[Released, ...]) -> None:
    few = [one.lattice * 0 + (np.arange(one.lattice.size).reshape(one.lattice.shape) % 7 - 3) for one in released]
    noisy = [replace(one, lattice=lattice) for one, lattice in zip(released, few, strict=True)]
    answer = estimate(SCHEMA, noisy, Question(DATES, ("y",), "mean"))
    present = [one for one in answer.estimate if one is not None]
    assert all("2000-01-01" <= one <= "2009-12-31 23:59:59" for one in present)


def test_a_report_shows_a_dash(released: tuple[Released, ...]) -> None:
    fewer = [replace(one, lattice=-one.lattice - 1) for one in released]
    numbers = print_numbers(SCHEMA, Answers(measurements(SCHEMA, fewer)), None)
    assert "–" in str(numbers) and "nan" not in str(numbers).lower()


def test_the_command_says_it_in_all_forms(released: tuple[Released, ...], tmp_path: Path) -> None:
    (tmp_path / "released").mkdir()
    for one in released:
        (tmp_path / f"released/{one.receipt.query}.safetensors").write_bytes(to_bytes(one))
    (tmp_path / "schema.yaml").write_text(schema_text(SCHEMA), encoding="utf-8")
    (tmp_path / "privacy.json").write_text(
        json.dumps({"format": FORMAT, "adjacency": "add_remove_one", "num_records": None})
    )
    (tmp_path / SAVED).write_text("{}")
    (tmp_path / CHECKSUMS).write_text(sums(tmp_path))

    def said(*words: str) -> str:
        done = CliRunner().invoke(
            app, ["estimate", str(tmp_path), "--columns", "died,paid", "--statistic", "mean", *words]
        )
        assert done.exit_code == 0, done.exception
        return str(done.stdout)

    assert [line.split()[:2] for line in said().splitlines()[1:]] == [["died", "-"], ["paid", "-"]]
    assert said("--csv").splitlines()[1].startswith("died,,")
    assert [row["estimate"] for row in json.loads(said("--json"))["rows"]] == [None, None]
