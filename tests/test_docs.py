"""The site: its hooks, its pages from the code, and a tutorial that runs. mkdocs --strict looks at links and nav."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from likeness import Schema
from likeness.data.schema.schema import KEYS
from scripts import docs_pages as hooks
from scripts import docs_reference, draw_floors

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOTEBOOK = DOCS / "tutorial.ipynb"


def test_links_of_the_root_and_of_docs_become_links_of_the_site() -> None:
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


def test_the_schema_that_is_shown_is_one() -> None:
    text = (DOCS / "own-data.md").read_text()
    shown = re.search(r"```yaml\n(name:.*?)```", text, re.DOTALL)
    assert shown is not None
    assert Schema.from_dict(yaml.safe_load(shown[1]), "own-data.md").column("ward").other == "other"


@pytest.mark.long
def test_every_command_and_every_key_is_in_the_reference() -> None:
    import typer

    from likeness.cli.app import app
    from likeness.config.explain import keys
    from likeness.config.params import Params
    from likeness.methods import METHODS

    text = docs_reference.commands_page()
    group = typer.main.get_command(app)
    shown = [name for name in group.commands if name != "ledger"]
    ledger = group.get_command(None, "ledger").commands
    shown += [f"ledger {name}" for name, child in ledger.items() if not child.hidden]
    assert len(shown) > 15
    assert not [name for name in shown if f"\n## likeness {name}\n" not in text]
    text = docs_reference.params_page()
    every = [key.name for name, section in [("", Params), *METHODS.items()] for key in keys(section, name)]
    assert len(every) > 40 + 10 * len(METHODS)
    assert not [name for name in every if name != "sections" and f"\n| `{name}` |" not in text]
    text = docs_reference.schema_page()
    assert not [
        key for key in (*KEYS, *docs_reference.column_keys()) if not re.search(rf"\n\| `{key}` \|.*[^\s|] \|\n", text)
    ]


def test_commands_of_the_pages_exist_with_their_options() -> None:
    import typer

    from likeness.cli.app import app

    known = {
        name: {word for item in command.params for word in item.opts} | {"--help"}
        for name, command in docs_reference.commands(typer.main.get_command(app))
    }
    seen = 0
    for path in [*DOCS.rglob("*.md"), *(ROOT / name for name in hooks.FROM_ROOT.values())]:
        for line in re.findall(r"(?:^|[`;&]|exec )\s*(likeness [a-z][^`\n#;&]*)", path.read_text(), re.MULTILINE):
            words = line.split()
            name = " ".join(words[: 3 if words[1] == "ledger" else 2])
            if name == "likeness ledger":
                continue
            assert name in known, f"{path.name}: {line}"
            options = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line))
            assert options <= known[name], f"{path.name}: {line}"
            seen += 1
    assert seen > 80


def test_the_picture_of_the_floors_is_that_of_the_imports() -> None:
    drawn = draw_floors.TARGET.read_text(encoding="utf-8")
    assert drawn == draw_floors.drawn(), "docs/img/floors.svg is out of date: python scripts/draw_floors.py"


def test_a_line_that_a_longer_way_replaces_is_not_drawn() -> None:
    assert draw_floors.needed({("a", "b"), ("b", "c"), ("a", "c")}) == {("a", "b"), ("b", "c")}


def test_formulas_become_mathml_and_nothing_else_changes() -> None:
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed: pip install 'likeness-dp[docs]'")
    page = '<p>a <span class="arithmatex">\\(x &lt; y\\)</span> b</p><div class="arithmatex">\\[\nz\n\\]</div>'
    shown = hooks.on_page_content(page, None, None, None)
    assert shown.startswith('<p>a <span class="formula"><math') and "<mo>&#x0003C;</mo>" in shown
    assert 'display="block"' in shown and shown.count("<math") == 2 and "arithmatex" not in shown


def test_a_link_with_code_is_one_and_a_link_in_code_or_in_a_formula_stays() -> None:
    files = [SimpleNamespace(src_uri="marginals.md")]
    page = SimpleNamespace(file=SimpleNamespace(src_uri="index.md"))
    assert hooks.on_page_markdown("[`a`](docs/marginals.md)", page, None, files) == "[`a`](marginals.md)"
    text = "`x[0](y)` $f[0,1](x)$\n```\na[i](b)\n```\n$$\ng[1](z)\n$$\n"
    assert hooks.on_page_markdown(text, page, None, files) == text


def test_the_page_of_the_tutorial_shows_what_every_cell_gives() -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    silent = ("ledger = Ledger.create(locate())", ").fit(train)")
    for cell in cells:
        source = "".join(cell["source"])
        assert cell["outputs"] or source.endswith(silent), f"python scripts/run_tutorial.py: no output of\n{source}"
    text, pictures = hooks.notebook_page(NOTEBOOK)
    assert pictures and all(
        content.startswith(b"\x89PNG") and f"]({name})" in text for name, content in pictures.items()
    )
    assert text.count('class="dataframe"') >= 3 and "<style" not in text


@pytest.mark.slow
def test_the_tutorial_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nbclient", "ipykernel"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install nbclient ipykernel")
    from scripts.run_tutorial import executed

    for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):  # which the run sets: afterwards they are as before
        monkeypatch.setenv(name, "")
    outputs = [output for cell in executed(NOTEBOOK).cells for output in cell.get("outputs", [])]
    printed = "".join(output.get("text", "") for output in outputs)
    assert "epsilon 1 at delta 1e-05 under add_remove_one" in printed and "over budget for 'tutorial people'" in printed
    assert "spent by the second fit: 0.0" in printed and "the same rows: True" in printed
