"""The part of Markdown that the privacy statement uses, as HTML.

Headings, paragraphs, lists, tables, quotes, code and emphasis; links stay text. Everything is escaped first, and there
is no other construct, so nothing in a statement can reach the network.
"""

import html
import re
from collections.abc import Iterator

_INLINE = (
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])"), r"<em>\1</em>"),
)
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_BULLET = re.compile(r"\s*[-*]\s+(.*)")
_NUMBER = re.compile(r"\s*\d+[.)]\s+(.*)")
_RULE = re.compile(r"\|?[\s:|-]+\|[\s:|-]*")


def to_html(text: str, top: int = 3) -> str:
    """HTML of a Markdown text whose highest heading becomes ``<h{top}>``.

    Args:
        text: Markdown. A line that continues a list item or a paragraph is joined to it.
        top: level of the highest heading, so that the page keeps one outline.
    """
    levels = [len(match[1]) for match in map(_HEADING.fullmatch, text.splitlines()) if match]
    shift = top - min(levels, default=1)
    blocks = re.split(r"(?m)^(```.*?^```)\s*$", text.replace("\r\n", "\n"), flags=re.DOTALL)
    return "\n".join(piece for block in blocks for piece in _block(block, shift))


def _block(block: str, shift: int) -> Iterator[str]:
    if block.startswith("```"):
        body = block.split("\n", 1)[1].rsplit("```", 1)[0]
        yield f"<pre><code>{html.escape(body)}</code></pre>"
        return
    for paragraph in re.split(r"\n\s*\n", block):
        yield from _paragraph([line for line in paragraph.splitlines() if line.strip()], shift)


def _paragraph(lines: list[str], shift: int) -> Iterator[str]:
    """One run of lines without a blank one; a heading, list or table may follow text within it."""
    while lines:
        first = lines[0]
        if heading := _HEADING.fullmatch(first):
            level = min(6, len(heading[1]) + shift)
            yield f"<h{level}>{_inline(heading[2])}</h{level}>"
            lines = lines[1:]
        elif first.lstrip().startswith("|") and len(lines) > 1 and _RULE.fullmatch(lines[1].strip()):
            end = next((at for at, line in enumerate(lines) if not line.lstrip().startswith("|")), len(lines))
            yield _table([lines[0], *lines[2:end]], lines[1])
            lines = lines[end:]
        elif re.fullmatch(r"\s*(-{3,}|\*{3,})\s*", first):
            yield "<hr>"
            lines = lines[1:]
        elif _BULLET.match(first) or _NUMBER.match(first):
            mark, tag = (_BULLET, "ul") if _BULLET.match(first) else (_NUMBER, "ol")
            items: list[str] = []
            while lines:
                item = mark.match(lines[0])
                if not item and _starts_block(lines[0]):
                    break
                if item:
                    items.append(item[1])
                else:
                    items[-1] += " " + lines[0].strip()
                lines = lines[1:]
            yield f"<{tag}>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + f"</{tag}>"
        else:
            end = next((at for at, line in enumerate(lines) if at and _starts_block(line)), len(lines))
            quote = first.startswith(">")
            body = _inline(" ".join(line.lstrip("> ").strip() if quote else line.strip() for line in lines[:end]))
            yield f"<blockquote><p>{body}</p></blockquote>" if quote else f"<p>{body}</p>"
            lines = lines[end:]


def _starts_block(line: str) -> bool:
    return bool(_HEADING.fullmatch(line) or _BULLET.match(line) or _NUMBER.match(line)) or line.lstrip().startswith("|")


def _table(lines: list[str], rule: str) -> str:
    """A table whose columns are numbers, to the right, where the rule says ``---:``."""
    rows = [[_inline(cell.strip()) for cell in line.strip().strip("|").split("|")] for line in lines]
    right = [cell.strip().endswith("-:") for cell in rule.strip().strip("|").split("|")]
    kinds = [' class="n"' if number else "" for number in right] + [""] * max(map(len, rows))
    head = "".join(f'<th scope="col"{kind}>{cell}</th>' for cell, kind in zip(rows[0], kinds, strict=False))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, kinds, strict=False)) + "</tr>"
        for row in rows[1:]
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _inline(text: str) -> str:
    escaped = html.escape(text)
    for pattern, replacement in _INLINE:
        escaped = pattern.sub(replacement, escaped)
    return escaped
