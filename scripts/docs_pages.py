"""Hooks of mkdocs: pages from the project's root, the notebook as a page, and no page forgotten.

README.md and its neighbors stay where readers of the repository look for them. A link to a file that the site does not
hold (a schema, a script) becomes its text: the project has no address of its own to point to.
"""

import json
import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FROM_ROOT = {"index.md": "README.md", "PRIVACY.md": "PRIVACY.md", "CONTRIBUTING.md": "CONTRIBUTING.md"}
FROM_ROOT |= {"CHANGELOG.md": "CHANGELOG.md"}
"""Page of the site, and the file in the root that it is."""
NOTEBOOKS = {"tutorial.md": "docs/tutorial.ipynb"}
BACKGROUND = "Background"
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


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

    for page, source in FROM_ROOT.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    for page, source in NOTEBOOKS.items():
        files.append(File.generated(config, page, content=notebook_page(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links and images at files of the site."""
    here = page.file.src_uri
    source = FROM_ROOT.get(here, f"docs/{here}")
    known = {file.src_uri for file in files}

    def to_page(found: re.Match[str]) -> str:
        text, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        path, hash_, anchor = target.partition("#")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        name = next((page for page, root in FROM_ROOT.items() if root == place), place.removeprefix("docs/"))
        if name not in known or (name == place and name not in FROM_ROOT):
            return text
        return f"[{text}]({posixpath.relpath(name, posixpath.dirname(here) or '.')}{hash_}{anchor})"

    return _LINK.sub(to_page, markdown)


def notebook_page(path: Path) -> str:
    """A notebook as Markdown: its texts, and its code as blocks. Outputs are not kept in the repository."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def pages(nav: Any) -> list[str]:
    """All files that nav names, in order."""
    if isinstance(nav, str):
        return [nav]
    items = nav.values() if isinstance(nav, dict) else nav
    return [name for item in items for name in pages(item)]
