"""The one normal form of texts, what to say where looks deceive, and what to show of a text of strangers."""

import ast
import html
import inspect
import re
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from html import escape
from typing import Any

from likeness.core.errors import SchemaError

# Space separators of Unicode 15; a test compares them with the category Zs.
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
# Signs without a width. U+200C and U+200D stay: they are parts of letters in Persian and in languages of India.
_UNSEEN = (
    *("\u00ad", "\u034f", "\u061c", "\u180e", "\u200b", "\u200e", "\u200f", "\ufeff"),
    *map(chr, range(0x202A, 0x202F)),  # directions
    *map(chr, range(0x2060, 0x2070)),
)
# Escape sequences and other controls, line ends of Unicode, and signs that turn the direction of a line or hide in it.
HARMFUL = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff\U000e0000-\U000e007f"
_IN_A_PAGE, _IN_A_LINE = re.compile(f"[{HARMFUL}]"), re.compile(f"[\t\n{HARMFUL}]")
_MARKDOWN = re.compile(r"[\\`*_{}\[\]()#|~!$]")
LONGEST = 200
"""Most characters of a text that a person chose and that is published: a name, a category, a word."""
_PLAIN = str.maketrans(dict.fromkeys(_SPACES, " ") | dict.fromkeys(_UNSEEN, ""))


def normal_text(text: str) -> str:
    """The normal form of a name, a category, a word for missing or a key.

    NFC, each Unicode space as a plain one, no signs without a width, and no blanks around it. A normal form is its own.
    """
    if text.isascii():
        return text.strip()
    return unicodedata.normalize("NFC", text.translate(_PLAIN)).strip()


def normal_texts(value: Any) -> Any:
    """A value as YAML has it, with the normal form of every text in it, also of keys.

    Raises:
        SchemaError: two keys of a mapping have one normal form.
    """
    if isinstance(value, str):
        return normal_text(value)
    if isinstance(value, Mapping):
        normal = {normal_texts(key): normal_texts(item) for key, item in value.items()}
        if len(normal) < len(value):
            raise SchemaError(f"{', '.join(map(str, normal))}: two of the keys have one normal form. Keep one.")
        return normal
    return type(value)(map(normal_texts, value)) if isinstance(value, list | tuple) else value


def fold_case(text: str) -> str:
    """A normal text without the difference of case, which has one letter i also for Turkish words."""
    return text.casefold().replace("i\u0307", "i").replace("\u0131", "i")


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """A sentence, with a blank in front, that names the known word most like a mistyped one; empty without one."""
    by_form = {fold_case(normal_text(name)).replace("-", "_"): name for name in names}
    close = get_close_matches(fold_case(normal_text(word)).replace("-", "_"), by_form, n=1, cutoff=0.7)
    return f" Did you mean {by_form[close[0]]}?" if close else ""


def choices(word: object, names: Iterable[str], title: str) -> str:
    """Two sentences, with a blank in front: the known word most like a mistyped one, and all of them."""
    names = list(names)
    return f"{did_you_mean(str(word), names)} {title}: {', '.join(names)}."


def doc_of(thing: Any) -> str:
    """The docstring of a function or class: also of a Python without docstrings (``-OO``), from the source."""
    if sys.flags.optimize > 1:
        node = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
        thing.__doc__ = ast.get_docstring(node)  # type: ignore[arg-type]  # a function or a class
    return inspect.getdoc(thing) or ""


def code_points(text: str) -> str:
    """The signs of a text that others may look like, with a blank in front, as `` (ö U+00F6)``; empty for ASCII."""
    signs = ", ".join(f"{sign} U+{ord(sign):04X}" for sign in dict.fromkeys(text) if not sign.isascii())
    return f" ({signs})" if signs else ""


def escape_controls(text: str) -> str:
    """A text of several lines for a terminal, without signs that could move its cursor or turn its lines."""
    return _IN_A_PAGE.sub(_escape, text)


def excerpt(text: object, most: int = LONGEST) -> str:
    """Whatever a stranger wrote as a part of one line: controls escaped, and no longer than so many characters."""
    line = _IN_A_LINE.sub(_escape, str(text))
    return line if len(line) <= most else f"{line[:most]}... ({len(line):,} characters)"


def _escape(sign: "re.Match[str]") -> str:
    return sign[0].encode("unicode_escape").decode()


def fault_of(text: str, most: int = LONGEST) -> str:
    """Say why a text cannot stand in a line that others read, as the end of a sentence; empty where it can."""
    if control := _IN_A_LINE.search(text):
        return f"has a text with the control character U+{ord(control[0]):04X}. Write the text without it."
    if len(text) > most:
        return f"has a text of {len(text):,} characters. Write at most {most:,}."
    return ""


def texts_in(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """All texts in a JSON value, keys too, each behind its place: the keys that lead to it."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield where, str(key)
            yield from texts_in(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            if not isinstance(item, int | float):
                yield from texts_in(item, where)
    elif isinstance(value, str):
        yield where, value


def escape_markdown(text: object) -> str:
    """A text that Markdown and HTML show as it is."""
    return _MARKDOWN.sub(r"\\\g<0>", html.escape(str(text), quote=False))


def code_span(text: object) -> str:
    """A text as code in Markdown, which shows it as it is. More backquotes stand around it than stand in it."""
    code = str(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", code)), default=0))
    blank = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{fence}{blank}{code}{blank}{fence}"


def small_table(title: str, rows: Iterable[Sequence[Any]], header: Sequence[str] = ()) -> str:
    """Rows as an HTML table; the first value of each row is its name. Texts are escaped."""
    head = f"<thead>{_row(header, 'th')}</thead>" if header else ""
    body = "".join(_row(row, "td") for row in rows)
    return f"<table><caption>{escape(title)}</caption>{head}<tbody>{body}</tbody></table>"


def _row(values: Sequence[Any], tag: str) -> str:
    name, *texts = (escape(str(value)) for value in values)
    cells = "".join(f"<{tag}>{text}</{tag}>" for text in texts)
    return f"<tr><th>{name}</th>{cells}</tr>"
