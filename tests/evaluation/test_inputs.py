import math
from pathlib import Path

import pytest

from likeness.core.errors import ArtifactError
from likeness.report.files import read_internal, read_json, read_losses


def test_losses_are_columns_of_numbers(tmp_path: Path) -> None:
    (tmp_path / "loss.csv").write_text("iteration,loss,critic\n0,1.5,\n10,inf,2\n")
    losses = read_losses(tmp_path / "loss.csv")
    assert losses["iteration"] == [0, 10] and losses["loss"] == [1.5, math.inf]
    assert math.isnan(losses["critic"][0])
    (tmp_path / "loss.csv").write_text("iteration,loss\n")
    assert read_losses(tmp_path / "loss.csv") == {}


@pytest.mark.parametrize(
    ("text", "rule"), [("step,loss\n0,1\n", "'iteration' is missing"), ("iteration\nx\n", "number")]
)
def test_bad_losses_are_refused_by_name(tmp_path: Path, text: str, rule: str) -> None:
    (tmp_path / "loss.csv").write_text(text)
    with pytest.raises(ArtifactError, match=f"data/models/loss.csv: .*{rule}.*dvc repro train"):
        read_losses(tmp_path / "loss.csv")


def test_missing_and_malformed_files_name_their_stage(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"reports/internal/metrics.json is missing.*dvc repro evaluate"):
        read_internal(tmp_path)
    (tmp_path / "privacy.json").write_text("[1]")
    with pytest.raises(ArtifactError, match=r"reports/privacy\.json is not a JSON object"):
        read_json(tmp_path / "privacy.json", "reports/privacy.json", "account")
