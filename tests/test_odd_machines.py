"""Machines of other locales and encodings, without a home folder, and Python without docstrings and asserts."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from likeness.cli.app import app
from likeness.core.errors import LikenessError, SchemaError
from likeness.core.files import expand_home, user_folders
from likeness.data.schema.column_keys import column_from
from likeness.data.schema.schema import Schema
from likeness.ledger.home import locate

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [path for folder in ("src", "stages", "flows") for path in (ROOT / folder).rglob("*.py")]


def python(code: str, *options: str, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    """Run Python code in a process of its own."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("LC_ALL", "LANG", "PYTHONUTF8")}
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, env={**inherited, **environment}, capture_output=True, check=False)


def unsaid(source: str) -> Iterator[str]:
    """Calls that read or write text in the encoding of the machine."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        words = [one.value for one in node.args if isinstance(one, ast.Constant)]
        as_text = name in ("read_text", "write_text") and len(node.args) < 2 + (name == "write_text")
        as_text |= (
            name == "open"
            and not owner.endswith(("Ledger", "archive"))
            and any(one in ("r", "w", "a", "x") for one in words)
        )
        as_text |= name in ("run", "Popen", "check_output") and bool({"text", "universal_newlines"} & set(given))
        as_text |= name in ("fdopen", "TextIOWrapper") and not any("b" in str(one) for one in words) and not words
        if as_text and "encoding" not in given:
            yield f"line {node.lineno}: {name}"


@pytest.mark.long
def test_no_text_has_the_encoding_of_the_machine() -> None:
    assert len(SOURCES) > 200 and list(unsaid("p.read_text(); q.write_text(x); subprocess.run([], text=True)"))
    found = {path.as_posix(): list(unsaid(path.read_text(encoding="utf-8"))) for path in SOURCES}
    assert not {name: lines for name, lines in found.items() if lines}


WORDS = """
from likeness.core.messages import LOG, progress, show_messages
from likeness.cli.console import say, table
from likeness.cli.app import main
show_messages()
say(table(("ort", "n"), [("\\u0130zmir \\u6771\\u4eac", "1")]))
say("\\u0130zmir", err=True)
LOG.info("\\u0130zmir %s", "\\u03b5")
with progress("\\u0130zmir", 2) as step:
    step(1, "\\u03b5"), step(2, "\\u03b5")
import sys
sys.argv = ["likeness", "run", "--help"]
main()
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "environment", [{"PYTHONIOENCODING": "cp1252"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}], ids=["cp1252", "C"]
)
def test_an_output_without_a_sign_gets_its_code(environment: dict[str, str]) -> None:
    done = python(WORDS, **environment)
    assert done.returncode == 0, done.stderr
    assert b"zmir" in done.stdout and b"\\u0130zmir \\u03b5" in done.stderr and b"Run the pipeline" in done.stdout


@pytest.mark.process
def test_files_are_utf8_in_every_locale(tmp_path: Path) -> None:
    schema = tmp_path / "t.yaml"
    column = "{kind: categorical, categories: [İzmir, 東京]}"
    schema.write_text(f"name: t\nsource: s\ntask: none\ncolumns: {{größe: {column}}}\n", encoding="utf-8")
    (tmp_path / "t.csv").write_text("größe\n東京\nİzmir\n", encoding="utf-8")
    code = (
        "import sys; from pathlib import Path; from likeness import Schema; "
        "from likeness.data.source.files import read_source; from likeness.pipeline.provenance import provenance; "
        f"folder = Path({str(tmp_path)!r}); table = read_source(folder / 't.csv', Schema.load(folder / 't.yaml'))[0]; "
        "provenance(folder); print(ascii(table['gr\\xf6\\xdfe'].tolist()), sys.getfilesystemencoding())"
    )
    done = python(code, LC_ALL="C", PYTHONUTF8="0")
    assert done.stdout.split() == [b"['\\u6771\\u4eac',", b"'\\u0130zmir']", b"ascii"], done.stderr


HELPS = """
import typer
from likeness.cli.app import app
def helps(command, name=""):
    for each in getattr(command, "commands", {}):
        yield from helps(command.get_command(None, each), f"{name} {each}")
    yield name, command.help
found = dict(helps(typer.main.get_command(app)))
assert __debug__ or len(found) > 20
print(sorted(name for name, help in found.items() if not help), len(found))
from likeness.config.explain import summary
from likeness.methods import METHODS
print(summary(METHODS["marginals"]))
"""


@pytest.mark.process
def test_help_is_there_without_docstrings() -> None:
    plain, bare = python(HELPS), python(HELPS, "-OO")
    assert plain.stdout == bare.stdout and bare.stdout.startswith(b"[] "), bare.stderr
    assert b"Noisy single columns" in bare.stdout


def test_a_setting_is_no_option_and_a_mistyped_option_gets_the_right_one() -> None:
    def said(*words: str) -> str:
        done = CliRunner().invoke(app, [*words])
        assert done.exit_code == 2
        return " ".join(done.output.replace("│", " ").split())

    assert "It is a setting of params.yaml: privacy.epsilon, ledger.cap.epsilon." in said("run", "--epsilon", "1")
    assert "a setting of params.yaml: marginals.train.num_components." in said("run", "--num-components", "9")
    assert "No such option: --bundel. Did you mean --bundle?" in said("run", "--bundel", "x")
    assert "Possible" not in said("run", "--colour") and "Did you mean" not in said("run", "--colour")


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ({"colums": {}}, "colums is not a key of a schema. Did you mean columns?"),
        ({"columns": {"a": {"kind": "integr"}}}, "Did you mean integer?"),
        ({"columns": {"a": {"kind": "integer", "Lower": 0, "upper": 9}}}, "Did you mean lower?"),
        ({"columns": {"a": {"kind": "categorical", "category": ["x"]}}}, "Did you mean categories?"),
        ({"columns": {"a": {"kind": "integer", "lower": 0, "upper": 9, "missing-values": []}}}, "missing_values?"),
        ({"task": "clasification"}, "Did you mean classification?"),
        ({"task": "classification", "label": "sise"}, "Did you mean size?"),
        ({"rules": [{"order": ["sise", "size"]}]}, "Did you mean size?"),
        ({"rules": [{"if": {"size": "< 3"}, "than": {"size": 1}}]}, "Did you mean then?"),
    ],
)
def test_a_typo_in_a_schema_gets_the_right_word(mapping: dict[str, Any], words: str) -> None:
    size = {"size": {"kind": "integer", "lower": 0, "upper": 9}}
    whole = {"name": "t", "source": "s", "task": "none", "columns": size}
    with pytest.raises(SchemaError) as caught:
        Schema.from_dict(whole | mapping, "t.yaml")
    assert words in str(caught.value)
    assert column_from("size", size["size"])


def test_folders_that_are_given_need_no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import platformdirs

    def unknown(*_: object) -> str:
        raise RuntimeError("could not determine the home directory")

    for name in ("user_data_dir", "user_state_dir"):
        monkeypatch.setattr(platformdirs, name, unknown)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LIKENESS_ANCHOR", str(tmp_path / "anchor"))
    assert locate().path == tmp_path / "home"
    monkeypatch.delenv("LIKENESS_ANCHOR")
    for find in (locate, user_folders, lambda: expand_home("~/ledger")):
        with pytest.raises(LikenessError, match="knows no home folder of this user"):
            find()
