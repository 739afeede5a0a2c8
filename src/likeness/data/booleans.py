"""The public spellings of true and false, read in any case; what a table gets is the column's own two words."""

from likeness.core.text import folded

FALSE_WORDS = ("false", "no", "f", "n", "0")
TRUE_WORDS = ("true", "yes", "t", "y", "1")
NUMBERS = {"0.0": "0", "1.0": "1"}  # as a CSV of floats writes them
DEFAULT_WORDS = ("false", "true")


def canonical_word(text: str, words: tuple[str, ...]) -> str:
    """The column's own word for a text that spells false or true; any other text as it is."""
    if text in words or len(words) != 2:
        return text
    word = NUMBERS.get(text, folded(text))
    if word in (*FALSE_WORDS, folded(words[0])):
        return words[0]
    return words[1] if word in (*TRUE_WORDS, folded(words[1])) else text
