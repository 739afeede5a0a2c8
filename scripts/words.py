"""Plain words: count long sentences, commit hashes, history and past tense on the pages that a newcomer reads.

Run: ``python scripts/words.py [--all]``. It prints a line a page, the worst first. ``--all`` prints each finding too.
The changelog and the pages of evidence and reference are left out: they say what was measured, and when.

``--count`` prints how many words each page has, these pages too. Tables count; numbers, blocks of code, formulas and
places of links do not.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "PRIVACY.md", "CONTRIBUTING.md", "docs/*.md", "docs/howto/*.md")
MOST_WORDS = 30
_FORMULA = r"\$\$.*?\$\$|\$[^$\n]*\$"
_NO_PROSE = re.compile(rf"```.*?```|{_FORMULA}|^\s*(?:[|#<]|!\[).*?$", re.DOTALL | re.MULTILINE)
_ENDS = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s")
_WORDS = {
    "hash": r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b",
    "history": r"\b(?:(?:since|until|on|before) commit|(?:was|were|been) (?:mended|fixed)|had been|until now)\b",
    "past": r"\b(?:was|were|had|did|became|began|came|gave|knew|meant|saw|took|went|wrote)\b",
}
KINDS = ("long", *_WORDS)
_NO_WORDS = re.compile(rf"```.*?```|{_FORMULA}|\]\([^)]*\)|<!--.*?-->", re.DOTALL)


def pages(root: Path = ROOT) -> list[Path]:
    """The pages that are looked at."""
    return [path for pattern in PAGES for path in sorted(root.glob(pattern))]


def sentences(text: str) -> list[str]:
    """Sentences and items of lists, without code blocks, tables, headings and pictures."""
    parts = _ENDS.split(_NO_PROSE.sub("\n", text))
    return [" ".join(part.split()) for part in parts if part.strip()]


def findings(text: str) -> dict[str, list[str]]:
    """For each of :data:`KINDS`, what a page has: long sentences; other words with their sentence."""
    every = sentences(text)
    marked = {
        kind: [f"{match[0]}: {sentence}" for sentence in every for match in re.finditer(words, sentence, re.IGNORECASE)]
        for kind, words in _WORDS.items()
    }
    return {"long": [sentence for sentence in every if len(sentence.split()) > MOST_WORDS], **marked}


def counts(root: Path = ROOT) -> dict[str, int]:
    """How many of each kind all pages have together."""
    every = [findings(path.read_text(encoding="utf-8")) for path in pages(root)]
    return {kind: sum(len(page[kind]) for page in every) for kind in KINDS}


def words_of(text: str) -> int:
    """Words of a page: what has a letter."""
    return sum(any(map(str.isalpha, word)) for word in _NO_WORDS.sub(" ", text).split())


def sizes(root: Path = ROOT) -> dict[str, int]:
    """The words of every page that a person writes, by its place."""
    every = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    return {path.relative_to(root).as_posix(): words_of(path.read_text(encoding="utf-8")) for path in every}


def main() -> None:
    """Print the pages that have anything."""
    if "--count" in sys.argv:
        every = sorted(sizes().items(), key=lambda item: -item[1])
        print("\n".join(f"{number:6} {name}" for name, number in [*every, ("in all", sum(sizes().values()))]))
        return
    by_page = {path.relative_to(ROOT): findings(path.read_text(encoding="utf-8")) for path in pages()}
    for name, page in sorted(by_page.items(), key=lambda item: -sum(map(len, item[1].values()))):
        if any(page.values()):
            print(f"{name}: " + ", ".join(f"{len(page[kind])} {kind}" for kind in KINDS))
        for kind in KINDS if "--all" in sys.argv else ():
            for text in page[kind]:
                print(f"  {kind}: {text}")
    print("in all: " + ", ".join(f"{number} {kind}" for kind, number in counts().items()))


if __name__ == "__main__":
    main()
