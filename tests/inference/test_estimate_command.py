"""``likeness estimate``: texts, CSV and JSON from a folder that holds public files only."""

import io
import json
from pathlib import Path

import pandas as pd
import pytest
from toy_release import SCHEMA, exact
from typer.testing import CliRunner

from likeness.bundle.contents import CHECKSUMS
from likeness.bundle.files import sums
from likeness.cli.app import app
from likeness.core.errors import LikenessError
from likeness.core.format import FORMAT
from likeness.data.schema.yaml import schema_text
from likeness.inference.estimates import Question, estimate
from likeness.release.released import to_bytes
from likeness.synthesizer.published import SAVED


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "released").mkdir()
    for one in exact():
        (tmp_path / f"released/{one.receipt.query}.safetensors").write_bytes(to_bytes(one))
    (tmp_path / "schema.yaml").write_text(schema_text(SCHEMA))
    (tmp_path / "privacy.json").write_text(
        json.dumps({"format": FORMAT, "adjacency": "add_remove_one", "num_records": None})
    )
    (tmp_path / SAVED).write_text("{}")
    (tmp_path / CHECKSUMS).write_text(sums(tmp_path))
    return tmp_path


def output(folder: Path, *words: str) -> str:
    result = CliRunner().invoke(app, ["estimate", str(folder), *words])
    assert result.exit_code == 0, result.exception
    return str(result.stdout)


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
