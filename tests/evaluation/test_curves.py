import io
from typing import Any

import pytest
from PIL import Image

from likeness.report.curves import loss_curve, rdp_curve


@pytest.mark.long
def test_public_figures_have_the_same_bytes_every_time(losses: dict[str, list[float]], privacy: dict[str, Any]) -> None:
    assert loss_curve(losses) == loss_curve(losses)
    assert rdp_curve(privacy["rdp_curve"]) == rdp_curve(privacy["rdp_curve"])
    for data in (loss_curve(losses), rdp_curve(privacy["rdp_curve"])):
        info = Image.open(io.BytesIO(data)).info
        assert not {"Salt", "Software", "Creation Time", "date"} & set(info)


@pytest.mark.long
def test_other_values_give_another_picture(losses: dict[str, list[float]], privacy: dict[str, Any]) -> None:
    other = {**losses, "loss": [1.5, 0.5, 0.4, 0.3]}
    assert loss_curve(other) != loss_curve(losses)
    curve = privacy["rdp_curve"]
    assert rdp_curve({**curve, "total": [2 * value for value in curve["total"]]}) != rdp_curve(curve)


def test_each_column_has_a_panel(losses: dict[str, list[float]]) -> None:
    one = {"iteration": losses["iteration"], "loss": losses["loss"]}
    heights = [Image.open(io.BytesIO(loss_curve(columns))).height for columns in (one, losses)]
    assert heights[1] > 1.5 * heights[0]


def test_values_that_cannot_be_drawn_are_left_out(privacy: dict[str, Any]) -> None:
    nan, inf = float("nan"), float("inf")
    assert loss_curve({"iteration": [0.0, 1.0, 2.0], "loss": [nan, -1.0, inf]})
    assert loss_curve({"iteration": [0.0, 1.0], "loss": [nan, nan]})
    assert rdp_curve({"orders": [1.0, 2.0, "inf"], "total": [0.0, 0.1, "inf"], "stages": {}})
