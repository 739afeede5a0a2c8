"""Small tables that notebooks show of objects."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def small_table(title: str, rows: Iterable[Sequence[Any]], header: Sequence[str] = ()) -> str:
    """Rows as an HTML table; the first value of each row is its name. Texts are escaped."""
    head = f"<thead>{_row(header, 'th')}</thead>" if header else ""
    body = "".join(_row(row, "td") for row in rows)
    return f"<table><caption>{escape(title)}</caption>{head}<tbody>{body}</tbody></table>"


def _row(values: Sequence[Any], tag: str) -> str:
    name, *others = (escape(str(value)) for value in values)
    cells = "".join(f"<{tag}>{other}</{tag}>" for other in others)
    return f"<tr><th>{name}</th>{cells}</tr>"
