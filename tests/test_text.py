"""One normal form of texts: what looks equal is equal, and a mistyped word gets the right one."""

import sys
import unicodedata

import pytest

from likeness.core.text import code_points, did_you_mean, fold_case, normal_text

EVERY_SPACE = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Zs"]


@pytest.mark.parametrize("space", EVERY_SPACE, ids=ascii)
def test_every_space_is_a_plain_one(space: str) -> None:
    assert normal_text(f"{space}São{space}Paulo{space}") == "São Paulo"


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("gro\u0308ße", "größe"),
        ("o\u200b\u0308", "ö"),
        ("\ufeffage", "age"),
        ("north\u00adeast", "northeast"),
        ("a\u2060b\u200ec", "abc"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क\u094d\u200dष", "क\u094d\u200dष"),
        ("\u212b", "\u00c5"),
        (" plain\t", "plain"),
        ("ﬁ", "ﬁ"),
    ],
)
def test_normal_form(text: str, normal: str) -> None:
    assert normal_text(text) == normal == normal_text(normal)


def test_a_normal_form_is_its_own_for_every_sign() -> None:
    for code in range(0x20000):
        text = f"a{chr(code)}b"
        assert normal_text(normal_text(text)) == normal_text(text)


def test_one_letter_i() -> None:
    assert fold_case("HAYIR") == fold_case("hayır") and fold_case("İYİ") == fold_case("iyi")


def test_a_mistyped_word_gets_the_right_one() -> None:
    known = ("epsilon", "delta", "missing_values", "lower")
    assert did_you_mean("epsilonn", known) == " Did you mean epsilon?"
    assert did_you_mean("Missing-Values", known) == " Did you mean missing_values?"
    assert did_you_mean("colour", known) == ""


def test_signs_that_others_look_like_are_named() -> None:
    assert code_points("age") == "" and code_points("größe") == " (ö U+00F6, ß U+00DF)"
