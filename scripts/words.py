"""Plain words: count long sentences, commit hashes, history and past tense on the pages that a newcomer reads.

Run: ``python scripts/words.py [--all]``. It prints a line a page, the worst first. ``--all`` prints each finding too.
The changelog and the pages of evidence and reference are left out: they say what was measured, and when.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "PRIVACY.md", "CONTRIBUTING.md", "docs/*.md", "docs/howto/*.md")
MOST_WORDS = 30
_NO_PROSE = re.compile(r"```.*?```|^\s*(?:[|#<]|!\[).*?$", re.DOTALL | re.MULTILINE)
_ENDS = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s")
_WORDS = {
    "hash": r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b",
    "history": r"\b(?:(?:since|until|on|before) commit|(?:was|were|been) (?:mended|fixed)|had been|until now)\b",
    "past": r"\b(?:was|were|had|did|became|began|came|gave|knew|meant|saw|took|went|wrote)\b",
}
KINDS = ("long", *_WORDS)


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


def main() -> None:
    """Print the pages that have anything."""
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
