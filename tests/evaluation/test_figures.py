"""Figures: public ones are the same every time. The statement as HTML, and names that attack."""

import io

import pytest
from PIL import Image

from likeness.report.charts import loss_curve
from likeness.report.formats import to_html


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


HOSTILE = (
    '<script src="https://evil.example/x.js"></script> [a](https://evil.example) ![b](c.png) <https://evil.example>'
)


def test_everything_is_escaped_and_links_stay_text() -> None:
    page = to_html(f"{HOSTILE} & more\n\n<div onclick=x>\n\n| {HOSTILE} |\n| --- |\n| {HOSTILE} |\n\n[a]: /x\n\n[a]")
    assert not [tag for tag in ("<script", "<a", "<img", "<div onclick") if tag in page]
    assert page.count("&lt;script") == 3 and "&amp; more" in page


def test_headings_keep_the_outline_of_the_page() -> None:
    assert to_html("## Top\n\n### Below", top=3) == "<h3>Top</h3>\n<h4>Below</h4>\n"
    assert to_html("# A\n## B\n### C\n#### D\n##### E", top=3).count("<h6>") == 2


def test_tables_scroll_and_name_their_columns() -> None:
    page = to_html("| a | b |\n| --- | ---: |\n| 1 | **2** |")
    assert page.startswith('<div class="scroll"><table>') and page.endswith("</table></div>\n")
    assert '<th scope="col">a</th>' in page and '<td class="n"><strong>2</strong></td>' in page
