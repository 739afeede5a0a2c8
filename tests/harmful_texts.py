"""Texts that nobody may publish: long ones, and those that move a terminal."""

from collections.abc import Callable
from typing import Any

import pytest

from likeness.core.errors import ParamsError, SchemaError

PRIVATE = "Anna Muster, 51, HIV; " * 1_900  # 41 kB
HARMFUL = ["\x1b[2J", "\x07", "\x9b2J", "\u202e", "\u2066", "\u200f", "\u061c", "\u2028", "\U000e0041"]


def refuse_harmful_texts(place: Callable[[Any], object]) -> None:
    """Each such text at a place of a schema or of settings is refused, in a short line that prints."""
    for text, words in (
        (PRIVATE, "characters. Write at most"),
        *((f"a{one}b", "control character U+") for one in HARMFUL),
    ):
        with pytest.raises((SchemaError, ParamsError), match=r".") as caught:
            place(text)
        assert words in str(caught.value)
        assert len(str(caught.value)) < 400 and str(caught.value).isprintable()
