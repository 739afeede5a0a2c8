"""Figures: what is drawn, what is padded with fresh text, and that public ones are the same every time."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.report import style
from likeness.report.curves import loss_curve, rdp_curve
from likeness.report.histograms import _shares, histograms
from likeness.report.score_figures import correlations, query_chart, score_chart

Tables = Callable[..., pd.DataFrame]


def open_png(data: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(data))
    assert picture.format == "PNG" and len(picture.convert("RGB").getcolors(1 << 24)) > 20  # something is drawn
    return picture


@pytest.fixture
def scores() -> pd.DataFrame:
    names = ["lda", "mlp", "xgboost"]
    return pd.DataFrame(
        [(t, n, 0.5 + 0.1 * i, 0.4) for i, t in enumerate(("shuffled", "synthetic", "real")) for n in names],
        columns=["table", "classifier", "roc_auc_hard", "f1"],
    )


@pytest.mark.long
def test_correlations_are_drawn(schema: Schema, table_of: Tables) -> None:
    assert open_png(correlations(table_of(200, 1), table_of(100, 2), schema)).width > 1000


@pytest.mark.long
def test_scores_are_drawn(scores: pd.DataFrame) -> None:
    assert open_png(score_chart(scores, ["roc_auc_hard", "f1"])).height > 100
    assert open_png(score_chart(pd.DataFrame(), [])).height < 200  # no label: a sentence instead


@pytest.mark.long
def test_figures_from_real_rows_carry_fresh_random_text(scores: pd.DataFrame) -> None:
    first, second = (score_chart(scores, ["f1"]) for _ in range(2))
    salts = [open_png(data).info["Salt"] for data in (first, second)]
    assert salts[0] != salts[1] and all(len(salt) >= 64 for salt in salts)
    assert len(first) == len(second) == 1 << (len(first).bit_length() - 1) >= 1 << 16
    assert open_png(first).tobytes() == open_png(second).tobytes()  # only the text differs


@pytest.mark.long
def test_answers_to_queries_are_drawn() -> None:
    draw = np.random.default_rng(0)
    real = draw.uniform(size=50)
    tables = {name: real + draw.normal(0, 0.02, 50) for name in ("synthetic", "real", "shuffled")}
    assert open_png(query_chart(real, tables)).width > 1000
    assert open_png(query_chart(np.zeros(3), {name: np.zeros(3) for name in tables}))  # nothing is ever counted


@pytest.mark.long
def test_public_figures_have_the_same_bytes_every_time(losses: dict[str, list[float]], privacy: dict[str, Any]) -> None:
    curve = privacy["rdp_curve"]
    more = {**losses, "loss": [1.5, 0.5, 0.4, 0.3]}, {**curve, "total": [2 * value for value in curve["total"]]}
    for picture, values, other in ((loss_curve, losses, more[0]), (rdp_curve, curve, more[1])):
        data = picture(values)
        assert picture(values) == data != picture(other)
        info = Image.open(io.BytesIO(data)).info
        assert not {"Salt", "Software", "Creation Time", "date"} & set(info)


def test_each_column_has_a_panel(losses: dict[str, list[float]]) -> None:
    one = {"iteration": losses["iteration"], "loss": losses["loss"]}
    heights = [Image.open(io.BytesIO(loss_curve(columns))).height for columns in (one, losses)]
    assert heights[1] > 1.5 * heights[0]


def test_values_that_cannot_be_drawn_are_left_out(privacy: dict[str, Any]) -> None:
    nan, inf = float("nan"), float("inf")
    assert loss_curve({"iteration": [0.0, 1.0, 2.0], "loss": [nan, -1.0, inf]})
    assert loss_curve({"iteration": [0.0, 1.0], "loss": [nan, nan]})
    assert rdp_curve({"orders": [1.0, 2.0, "inf"], "total": [0.0, 0.1, "inf"], "stages": {}})


@pytest.mark.long
def test_every_column_is_drawn(schema: Schema, table_of: Tables) -> None:
    picture = Image.open(io.BytesIO(histograms(table_of(200, 1), table_of(100, 2), schema)))
    assert picture.width > 1000 and picture.height > 400
    seen = {color[:3] for _, color in picture.convert("RGB").getcolors(1 << 24)}
    assert tuple(int(style.SYNTHETIC[i : i + 2], 16) for i in (1, 3, 5)) in seen


def test_shares_by_hand() -> None:
    number = Column("x", "numeric", 0.0, 1.0, nullable=True)
    assert _shares(np.array([0.0, 0.49, 1.0, np.nan]), number, 2).tolist() == [0.5, 0.25, 0.25]
    category = Column("c", "categorical", categories=("a", "b"), nullable=True)
    assert _shares(np.array([0, 0, 2, 1]), category, 9).tolist() == [0.5, 0.25, 0.25]


def test_bins_of_integers_hold_equally_many() -> None:
    column = Column("k", "integer", 1.0, 16.0)
    values = (np.arange(1, 17) - 1) / 15
    assert _shares(values, column, 24).tolist() == pytest.approx([1 / 16] * 16)
    assert _shares(values, column, 8).tolist() == pytest.approx([1 / 8] * 8)


@pytest.mark.long
def test_wide_tables_are_cut(monkeypatch: pytest.MonkeyPatch, schema: Schema, table_of: Tables) -> None:
    whole = Image.open(io.BytesIO(histograms(table_of(20, 1), table_of(20, 2), schema)))
    monkeypatch.setattr("likeness.report.histograms.MOST_COLUMNS", 2)
    part = Image.open(io.BytesIO(histograms(table_of(20, 1), table_of(20, 2), schema)))
    assert part.height < whole.height
