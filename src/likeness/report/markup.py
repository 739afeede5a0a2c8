"""Templates and Markdown as HTML. Names in them come from users: tags, links and images stay text."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from likeness.report.formats import number, percent, spec, unbroken

_TEMPLATES = Path(__file__).parent / "templates"

# Without these rules no text of a statement becomes a tag or reaches the network.
_MARKDOWN = (
    MarkdownIt("commonmark", {"html": False})
    .enable("table")
    .disable(["html_block", "html_inline", "link", "image", "autolink", "reference"])
)


def to_html(text: str, top: int = 3) -> str:
    """HTML of a Markdown text; ``top`` is the level of its highest heading, for one outline of the page."""
    tokens = _MARKDOWN.parse(text)
    levels = [int(token.tag[1]) for token in tokens if token.type == "heading_open"]
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + top - min(levels))}"
        elif token.type in ("th_open", "td_open"):
            right = token.attrs.pop("style", "") == "text-align:right"
            token.attrs |= {"scope": "col"} if token.type == "th_open" else {}
            token.attrs |= {"class": "n"} if right else {}
    page = str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))
    # Only the renderer writes these tags: those of the text are escaped.
    return page.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")


def filled(template: str, *folders: Path, **words: Any) -> Markup:
    """A template with its words.

    Args:
        template: name of its file.
        folders: where it is looked for, before the templates of the core.
        words: what it prints.
    """
    environment = Environment(
        loader=FileSystemLoader([*folders, _TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, percent=percent, spec=spec, unbroken=unbroken)
    return Markup(environment.get_template(template).render(words))
