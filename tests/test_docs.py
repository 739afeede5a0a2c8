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
FAULTS = DOCS / "evidence/FAULTS.md"


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


def test_links_between_pages_lead_somewhere(hooks: ModuleType) -> None:
    texts = {
        path: path.read_text() for path in [*DOCS.rglob("*.md"), *(ROOT / name for name in hooks.FROM_ROOT.values())]
    }
    texts[NOTEBOOK] = hooks.notebook_page(NOTEBOOK)
    for path, text in texts.items():
        for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", without_code(text)):
            assert re.match(r"[a-z]+:", target) or (path.parent / target).exists(), f"{path.name} points to {target}"


def test_anchors_of_links_are_headings_and_no_formula_is_a_link(hooks: ModuleType) -> None:
    """A formula such as f[0,1](x) is read as a link. In a code span it is none."""
    root = {ROOT / name for name in hooks.FROM_ROOT.values()} - {ROOT / "CHANGELOG.md"}
    for path in [*DOCS.rglob("*.md"), *root]:
        for target in re.findall(r"\]\(([^)]*)\)", without_code(path.read_text())):
            assert not re.search(r"\s", target), f"{path.name} has a formula that is read as a link: ]({target})"
            name, _, anchor = target.partition("#")
            page = (path.parent / name).resolve() if name else path
            if anchor and page.suffix == ".md" and ":" not in name:
                assert anchor in anchors(page.read_text()), f"{path.name} points to {target}"


def without_code(text: str) -> str:
    """Text without code blocks and code spans."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors that the site gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    ascii_only = (unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode() for heading in headings)
    words = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in ascii_only)
    return {re.sub(r"[-\s]+", "-", heading) for heading in words}


def test_the_schema_that_is_shown_is_one() -> None:
    text = (DOCS / "own-data.md").read_text()
    shown = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    assert Schema.from_dict(yaml.safe_load(shown[1]), "own-data.md").column("ward").other == "other"


@pytest.mark.slow
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


def test_the_tests_that_evidence_names_exist() -> None:
    rows = re.findall(r"^\| .* \| (`test_.*`) \| `python -m pytest (.*)` \|$", FAULTS.read_text(), re.MULTILINE)
    assert len(rows) > 20
    for names, files in rows:
        text = "".join((ROOT / file).read_text() for file in files.split())
        missing = [name for name in re.findall(r"`(\w+)`", names) if f"def {name}(" not in text]
        assert not missing, f"{FAULTS.name} names tests that {files} does not have: {missing}"
