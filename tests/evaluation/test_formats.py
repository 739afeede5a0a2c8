import math

import pytest

from likeness.report.formats import embed, loss_text, number, percent, spec, three


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        ("inf", "∞"),
        (math.inf, "∞"),
        (math.nan, "–"),
        (0, "0"),
        (0.0, "0"),
        (32561, "32,561"),
        (0.98765432, "0.9877"),
        (1e-5, "10⁻⁵"),
        (2.5e-7, "2.5 × 10⁻⁷"),
        (-0.5, "−0.5"),
        (12345.6, "1.235 × 10⁴"),
        ("text", "text"),
    ],
)
def test_numbers_for_people(value: object, text: str) -> None:
    assert number(value) == text


def test_shares_scores_maps_and_images() -> None:
    assert (percent(0.0512), percent(None)) == ("5.1 %", "–")
    assert (three("0.12345"), three(-0.5), three(None), three("")) == ("0.123", "−0.500", "–", "–")
    assert spec({"seed": 7, "map": "x", "parts": [1, 2]}) == "map=x, seed=7, parts=[1, 2]"
    assert spec({"map": "x", "edges": "a" * 500}) == f"map=x, edges={'a' * 120}… (500 characters)"
    assert embed(b"abc") == "data:image/png;base64,YWJj"


def test_the_loss_in_words() -> None:
    assert loss_text({"iteration": [0, 6000], "loss": [0.92, 0.021]}) == (
        "from 0.92 at the first to 0.021 at the last recorded iteration (6,000)"
    )
    assert loss_text({"iteration": [0], "loss": [0.021]}) == "0.021: a closed form, nothing was trained"
    assert loss_text({}) == "no loss was recorded"
