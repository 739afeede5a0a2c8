"""The site: no page missing or forgotten, links that lead somewhere, and a tutorial that runs."""

import importlib.util
import json
import re
import tempfile
import unicodedata
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from likeness import Schema

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOTEBOOK = DOCS / "tutorial.ipynb"


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    """The site's hooks, which need no mkdocs to be imported."""
    spec = importlib.util.spec_from_file_location("docs_pages", ROOT / "scripts/docs_pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def site() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    return content


def sources(hooks: ModuleType, name: str) -> Path:
    generated = {**hooks.FROM_ROOT, **hooks.NOTEBOOKS}
    return ROOT / generated[name] if name in generated else DOCS / name


def test_every_file_of_nav_exists_and_every_page_is_in_nav(hooks: ModuleType, site: dict[str, Any]) -> None:
    named = hooks.pages(site["nav"])
    assert len(set(named)) == len(named)
    missing = [name for name in named if not sources(hooks, name).is_file()]
    assert not missing
    config = SimpleNamespace(nav=site["nav"])
    hooks.on_config(config)
    everything = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert everything <= set(hooks.pages(config.nav))
    for path in [*site["hooks"], site["plugins"][1]["mkdocstrings"]["handlers"]["python"]["options"]["extensions"][0]]:
        assert (ROOT / path).is_file()


def test_objects_of_the_reference_exist() -> None:
    import pydoc

    named = [
        name for path in (DOCS / "reference").glob("*.md") for name in re.findall(r"^::: (\S+)", path.read_text(), re.M)
    ]
    assert len(named) >= 6
    assert not [name for name in named if pydoc.locate(name) is None]


def test_links_of_the_root_and_of_docs_become_links_of_the_site(hooks: ModuleType) -> None:
    uris = ("index.md", "PRIVACY.md", "marginals.md", "howto/python.md", "img/adult.png")
    files = [SimpleNamespace(src_uri=name) for name in uris]

    def page(uri: str, text: str) -> str:
        own = SimpleNamespace(file=SimpleNamespace(src_uri=uri))
        return str(hooks.on_page_markdown(text, own, None, files))

    assert page("index.md", "[a](docs/marginals.md#b) [c](PRIVACY.md)") == "[a](marginals.md#b) [c](PRIVACY.md)"
    assert (
        page("howto/python.md", "[a](../../PRIVACY.md) [b](../../README.md)") == "[a](../PRIVACY.md) [b](../index.md)"
    )
    assert page("marginals.md", "[x](howto/python.md) [y](../data/schema/adult.yaml)") == "[x](howto/python.md) y"
    assert page("index.md", "![x](docs/img/adult.png)") == "![x](img/adult.png)"
    assert page("howto/python.md", "![x](../img/adult.png)") == "![x](../img/adult.png)"
    assert page("index.md", "[x](https://example.org/a.md) [y](#here)") == "[x](https://example.org/a.md) [y](#here)"


def anchors(text: str) -> set[str]:
    """Anchors of the headings of a page, by the rule of Markdown's extension toc."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    plain = [unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode() for heading in headings]
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in plain}


def test_links_between_pages_lead_somewhere(hooks: ModuleType) -> None:
    texts = {
        path: path.read_text() for path in [*DOCS.rglob("*.md"), *(ROOT / name for name in hooks.FROM_ROOT.values())]
    }
    texts[NOTEBOOK] = hooks.notebook_page(NOTEBOOK)
    for path, text in texts.items():
        for target, anchor in re.findall(r"\]\(([^)\s#]*)#?([^)\s]*)[^)]*\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            place = (path.parent / target).resolve() if target else path
            assert place.exists(), f"{path.name} points to {target}"
            assert not anchor or anchor in anchors(texts[place]), f"{path.name} points to {target}#{anchor}"


def test_the_schema_that_is_shown_is_one() -> None:
    text = (DOCS / "own-data.md").read_text()
    shown = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    assert Schema.from_dict(yaml.safe_load(shown[1]), "own-data.md").column("ward").other == "other"


def test_the_tutorial_runs_and_keeps_no_output(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install nbclient ipykernel")
    import nbformat
    from jupyter_client.manager import AsyncKernelManager

    # A short path: the name of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory() as folder:
        for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            monkeypatch.setenv(name, folder)
        notebook, manager = nbformat.read(NOTEBOOK, as_version=4), AsyncKernelManager()
        manager.transport, manager.ip = "ipc", f"{folder}/kernel"
        own = {"metadata": {"path": str(DOCS)}}
        nbclient.NotebookClient(notebook, km=manager, timeout=300, resources=own).execute()
    told = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    assert "epsilon 1 at delta 1e-05 under add_remove_one" in told and "over budget for 'tutorial people'" in told
