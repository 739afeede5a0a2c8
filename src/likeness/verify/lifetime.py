"""Whether the ledger's extract shows all records about its population: proofs that the others are about others."""

import unicodedata

from likeness.bundle.files import Bundle
from likeness.bundle.verdict import Untestable, require
from likeness.core.hashing import sha256_json
from likeness.ledger.records import SALT

_MOST_NAMES = 9  # of other people in one sentence
_NO_INK = "\u115f\u1160"  # fillers of Hangul, which are letters
_TWINS = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u03b1\u03b9\u03bd\u03bf\u03c1\u03c4\u03c5\u0251\u0131",
    "aeopcyxijshdqwaivoptuai",
)
"""Letters of Cyrillic and Greek, and of IPA and Turkish, that look like a letter of ASCII."""


def lifetime(bundle: Bundle) -> str:
    """All records about this population are shown: each other record proves that it is about others."""
    identity, hidden, others = bundle.params.privacy.population, 0, dict[str, None]()
    for place, record in enumerate(bundle.chain, start=1):
        if "body" in record:
            continue
        if SALT not in record:
            hidden += 1
            continue
        opens = sha256_json([record[SALT], record["identity"]]) == record["population"]
        require(opens, f"record {place} is about another population than it states")
        named = isinstance(record["identity"], str) and record["identity"].strip() != ""
        require(named, f"record {place} is about nobody, and is hidden")
        require(record["identity"] != identity, f"record {place} is about this population, and is hidden")
        others[record["identity"]] = None
    if hidden:
        raise Untestable(
            f"by the word of the bundler, {hidden} records of the ledger are about others. Ask for a bundle that "
            "names them: likeness bundle --open-others"
        )
    alike = [ascii(other) for other in others if _may_be(_plain(other), _plain(identity))]
    if alike:
        raise Untestable(f"records are about {', '.join(alike)}. Nobody can compute whether these are other people")
    head = bundle.chain[-1]["digest"][:16]
    listing = ", ".join(map(ascii, [*others][:_MOST_NAMES])) + (", ..." if len(others) > _MOST_NAMES else "")
    listed = f"; its other records are about {listing}" if others else ""
    return f"all records of this ledger about the population are here{listed}; a witness of head {head} shows that"


def _plain(name: str) -> str:
    """A name without case, marks and blanks: names that agree in the rest may be one."""
    letters = unicodedata.normalize("NFKD", name).casefold().translate(_TWINS)
    return "".join(letter for letter in letters if letter.isalnum() and letter not in _NO_INK)


def _may_be(one: str, other: str) -> bool:
    """Whether two plain names look alike: where they differ, one has a letter beside ASCII, in less than half of it."""
    different = [pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    foreign = all(pair[0].isascii() is not pair[1].isascii() for pair in different)
    return len(one) == len(other) and foreign and 2 * len(different) < max(1, len(one))
