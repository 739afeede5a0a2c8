"""Hooks of mkdocs: pages from the root and from the code, the notebook as a page, formulas, no page forgotten.

README.md and its neighbors stay where readers of the repository look for them. A link to a file that the site does not
hold (a schema, a script) becomes its text: the project has no address of its own to point to. Formulas become MathML,
which browsers show without a script.
"""

import base64
import html
import json
import logging
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FROM_ROOT = {"index.md": "README.md", "PRIVACY.md": "PRIVACY.md", "CONTRIBUTING.md": "CONTRIBUTING.md"}
FROM_ROOT |= {"CHANGELOG.md": "CHANGELOG.md"}
FROM_ROOT |= {f"evidence/{page.name}": f"evidence/{page.name}" for page in sorted((ROOT / "evidence").glob("*.md"))}
"""Page of the site, and the file in the root that it is."""
NOTEBOOKS = {"tutorial.md": "docs/tutorial.ipynb"}
FROM_CODE = ("reference/commands.md", "reference/params.md", "reference/schema-keys.md")
"""Pages that :mod:`scripts.docs_reference` makes."""
BACKGROUND = "Background"
_LOG = logging.getLogger("mkdocs.hooks")
_LINK = re.compile(r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$|\[((?:`[^`\n]*`|[^\]])+)\]\(([^)\s]+)\)", re.DOTALL)
"""Code, a formula, or a link, whose text may hold code."""
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_config(config: Any) -> Any:
    """Add pages of docs/ that nav does not name."""
    listed = set(pages(config.nav))
    others = [path.relative_to(ROOT / "docs").as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
    section = next(item[BACKGROUND] for item in config.nav if BACKGROUND in item)
    section.extend(name for name in others if name not in listed)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages; the notebook itself stays downloadable."""
    from mkdocs.structure.files import File

    sys.path.append(str(ROOT))  # mkdocs starts elsewhere
    from scripts.docs_reference import PAGES

    for page, source in FROM_ROOT.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    for page, source in NOTEBOOKS.items():
        text, pictures = notebook_page(ROOT / source)
        files.append(File.generated(config, page, content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, name, content=content))
    for page in FROM_CODE:
        files.append(File.generated(config, page, content=PAGES[page]()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links and images at files of the site; code and formulas stay as they are."""
    here = page.file.src_uri
    source = FROM_ROOT.get(here, f"docs/{here}")
    known = {file.src_uri for file in files}
    elsewhere = {root: page for page, root in (FROM_ROOT | NOTEBOOKS).items()}

    def to_page(found: re.Match[str]) -> str:
        text, target = found.groups()
        if target is None or re.match(r"[a-z]+:|#", target):
            return found[0]
        path, hash_, anchor = target.partition("#")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        name = elsewhere.get(place, place.removeprefix("docs/"))
        if name not in known or (name == place and name not in FROM_ROOT):
            if not (ROOT / place).exists():
                _LOG.warning("%s points to %s", source, target)
            return text
        return f"[{text}]({posixpath.relpath(name, posixpath.dirname(here) or '.')}{hash_}{anchor})"

    return _LINK.sub(to_page, markdown)


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Formulas as MathML."""
    from latex2mathml.converter import convert

    def mathml(found: re.Match[str]) -> str:
        display = "block" if found[1] == "div" else "inline"
        return f'<{found[1]} class="formula">{convert(html.unescape(found[2]), display=display)}</{found[1]}>'

    return _FORMULA.sub(mathml, content)


def notebook_page(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown: its texts, its code as blocks, and its outputs; and the pictures among these by name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", []):
            data = {kind: "".join(lines) for kind, lines in output.get("data", {}).items()}
            if "image/png" in data:
                name = f"img/{path.stem}_{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![What the cell draws]({name})")
            elif "text/html" in data:
                parts.append(f'<div class="output">{_one_block(data["text/html"])}</div>')
            else:
                shown = data.get("text/plain") or "".join(output.get("text", ""))
                parts.append(f"```text\n{shown.rstrip()}\n```")
    return "\n\n".join(parts) + "\n", pictures


def _one_block(table: str) -> str:
    """HTML of a data frame without its style and without the empty lines that would end it for Markdown."""
    return re.sub(r"<style.*?</style>|\s*\n\s*", "", table, flags=re.DOTALL)


def pages(nav: Any) -> list[str]:
    """All files that nav names, in order."""
    if isinstance(nav, str):
        return [nav]
    items = nav.values() if isinstance(nav, dict) else nav
    return [name for item in items for name in pages(item)]
