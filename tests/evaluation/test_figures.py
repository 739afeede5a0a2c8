"""Figures: what is padded with fresh text, and that public ones are the same every time."""

import io

import numpy as np
import pytest
from PIL import Image

from likeness.report.curves import loss_curve
from likeness.report.image_figures import sample_grids

IMAGES = np.random.default_rng(0).uniform(size=(4, 4)), np.array([0, 1, 0, 1])


@pytest.mark.long
def test_figures_from_real_rows_carry_fresh_random_text() -> None:
    first, second = (sample_grids(IMAGES, IMAGES, (2, 2), ["a", "b"]) for _ in range(2))
    opened = [Image.open(io.BytesIO(data)) for data in (first, second)]
    salts = [picture.info["Salt"] for picture in opened]
    assert salts[0] != salts[1] and all(len(salt) >= 64 for salt in salts)
    assert len(first) == len(second) == 1 << (len(first).bit_length() - 1) >= 1 << 16
    assert opened[0].tobytes() == opened[1].tobytes()  # only the text differs


@pytest.mark.long
def test_public_figures_have_the_same_bytes_every_time(losses: dict[str, list[float]]) -> None:
    data = loss_curve(losses)
    assert loss_curve(losses) == data != loss_curve({**losses, "loss": [1.5, 0.5, 0.4, 0.3]})
    info = Image.open(io.BytesIO(data)).info
    assert not {"Salt", "Software", "Creation Time", "date"} & set(info)


def test_each_column_has_a_panel(losses: dict[str, list[float]]) -> None:
    one = {"iteration": losses["iteration"], "loss": losses["loss"]}
    heights = [Image.open(io.BytesIO(loss_curve(columns))).height for columns in (one, losses)]
    assert heights[1] > 1.5 * heights[0]


def test_values_that_cannot_be_drawn_are_left_out() -> None:
    nan, inf = float("nan"), float("inf")
    assert loss_curve({"iteration": [0.0, 1.0, 2.0], "loss": [nan, -1.0, inf]})
    assert loss_curve({"iteration": [0.0, 1.0], "loss": [nan, nan]})
