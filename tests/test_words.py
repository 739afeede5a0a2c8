"""The pages that a newcomer reads: no commit hash, no history, few long sentences."""

import pytest

from scripts.words import KINDS, MOST_WORDS, counts, findings, pages, sizes, words_of

MOST = {"long": 0, "past": 0, "hash": 0, "history": 0}
"""How many of each all pages may have together."""
METHODS = ("fourier", "hermite", "marginals", "merf_ae", "moments", "ntk", "pearl")
LONGEST = {"README.md": 700, "docs/architecture.md": 600, **{f"docs/{name}.md": 800 for name in METHODS}}
"""Words of a page."""
IN_ALL = 25_000


@pytest.mark.parametrize("kind", KINDS)
def test_the_pages_have_no_more_of_each_kind_than_allowed(kind: str) -> None:
    number = counts()[kind]
    assert number <= MOST[kind], f"{number} of kind {kind!r}: see `python scripts/words.py --all`"


def test_no_page_and_not_all_of_them_have_more_words_than_a_reader_has_time_for() -> None:
    words = sizes()
    assert not {name: words[name] for name, most in LONGEST.items() if words[name] > most}
    assert sum(words.values()) <= IN_ALL, "see `python scripts/words.py --count`"


def test_tables_are_counted_and_code_formulas_numbers_and_places_of_links_are_not() -> None:
    assert words_of("One [two](three.md) 4 | five |\n$six$ `seven`\n```\neight\n```\n$$\nnine\n$$\n<!-- ten -->") == 4


def test_readme_concepts_and_how_to_are_looked_at_and_evidence_is_not() -> None:
    names = {path.name for path in pages()}
    assert {"README.md", "PRIVACY.md", "CONTRIBUTING.md", "marginals.md", "people.md"} <= names
    assert not names & {"RESULTS.md", "CHANGELOG.md", "synthesizer.md"}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("long", "word " * MOST_WORDS + "word. The next one is short."),
        ("long", "- " + "word " * MOST_WORDS + "\n  word\n- short"),
        ("hash", "It holds at e813c28."),
        ("history", "It was mended here."),
        ("history", "It had been so, and it is so\nsince commit 7."),
        ("past", "It was so."),
    ],
)
def test_each_kind_is_found(kind: str, text: str) -> None:
    assert findings(text)[kind]


def test_what_is_no_prose_is_not_counted() -> None:
    many = "was e813c28 " * MOST_WORDS
    text = f"# {many}\n\nShort.\n\n```\n{many}\n```\n\n| {many} |\n\n![{many}](a.png)\n\n<!-- {many} -->\n"
    assert not any(findings(text).values())


def test_sentences_and_items_are_counted_one_by_one() -> None:
    half = "word " * (MOST_WORDS - 1)
    assert not findings(f"{half}end. {half}end!\n\n{half}\n\n{half}\n\n- {half}\n- {half}\n1. {half}\n")["long"]
