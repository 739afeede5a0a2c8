"""The benchmark's mixture: the same file every time, and scores that tell true rows from rows between the Gaussians."""

from pathlib import Path

import pandas as pd
import pytest

from benchmarks import mixture
from benchmarks.gaussian_grid import GaussianGrid


def points(shift: float) -> pd.DataFrame:
    x, labels = GaussianGrid().sample(200, 1)
    return pd.DataFrame({"x": x[:, 0] + shift, "y": x[:, 1], "class": labels.astype(str)})


def test_the_file_is_the_papers_and_always_the_same(tmp_path: Path) -> None:
    for name in ("one.parquet", "other.parquet"):
        mixture.build(tmp_path / name)
    table = pd.read_parquet(tmp_path / "one.parquet")
    assert table.equals(pd.read_parquet(tmp_path / "other.parquet"))
    assert table["split"].value_counts().to_dict() == {"train": 90_000, "test": 10_000}
    assert list(table.columns) == ["x", "y", "class", "split"] and table["class"].nunique() == 5


def test_scores_by_what_is_known() -> None:
    """5,000 true rows: 1.1 % are far (standard error .15 %); half a step aside all are between the Gaussians."""
    true, aside = mixture.score(points(0)), mixture.score(points(0.5))
    assert true["far"] == pytest.approx(0.0111, abs=0.008) and true["modes"] == 25
    assert true["nll_as_published"] == pytest.approx(3.17e5, rel=0.02)  # a standard error is .2 %
    assert aside["far"] > 0.2 and aside["nll"] > 2 * true["nll"]
    half = points(0)[lambda table: table["x"] < 2.5]  # three of five columns of Gaussians
    assert mixture.score(half)["modes"] == 15
