"""Figures: public ones are the same every time."""

import io

import pytest
from PIL import Image

from likeness.report.charts import loss_curve


@pytest.mark.long
def test_public_figures_have_the_same_bytes_every_time(losses: dict[str, list[float]]) -> None:
    data = loss_curve(losses)
    assert loss_curve(losses) == data != loss_curve({**losses, "loss": [1.5, 0.5, 0.4, 0.3]})
    info = Image.open(io.BytesIO(data)).info
    assert not {"Software", "Creation Time", "date"} & set(info)


@pytest.mark.long
def test_each_column_has_a_panel(losses: dict[str, list[float]]) -> None:
    one = {"iteration": losses["iteration"], "loss": losses["loss"]}
    heights = [Image.open(io.BytesIO(loss_curve(columns))).height for columns in (one, losses)]
    assert heights[1] > 1.5 * heights[0]


@pytest.mark.long
def test_values_that_cannot_be_drawn_are_left_out() -> None:
    nan, inf = float("nan"), float("inf")
    assert loss_curve({"iteration": [0.0, 1.0, 2.0], "loss": [nan, -1.0, inf]})
    assert loss_curve({"iteration": [0.0, 1.0], "loss": [nan, nan]})
