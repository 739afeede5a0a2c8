"""The package takes nothing from Linux and macOS that Windows lacks, unless it asks with ``hasattr`` first.

typeshed, which mypy brings, says what Windows lacks. What a package of another author does there is not tested.
Workflows of GitHub may read, run what a digest names, and try each Python that the package claims.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import mypy
import pytest
import yaml

SOURCES = Path(__file__).parents[2] / "src/likeness"
STUBS = Path(mypy.__file__).parent / "typeshed/stdlib"
ABSENT = {"curses", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
"""Modules that Windows lacks."""
_WINDOWS = {"sys.platform == 'win32'": 1, "sys.platform != 'win32'": -1}


@cache
def lacking(module: str) -> frozenset[str]:
    """The names of a module of the standard library that Windows lacks."""
    stub = next((path for path in (STUBS / f"{module}.pyi", STUBS / module / "__init__.pyi") if path.exists()), None)
    there, elsewhere = set[str](), set[str]()
    for node in ast.parse(stub.read_text(encoding="utf-8")).body if stub else []:
        posix, windows = [], [node]
        if isinstance(node, ast.If) and ast.unparse(node.test) in _WINDOWS:
            posix, windows = (node.orelse, node.body)[:: _WINDOWS[ast.unparse(node.test)]]
        there |= {name for part in posix for name in stored(part)}
        elsewhere |= {name for part in windows for name in stored(part)}
    return frozenset(there - elsewhere)


def stored(node: ast.AST) -> Iterator[str]:
    """The names that a statement of a module defines; those within a class are not the module's."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    else:
        for part in ast.iter_child_nodes(node):
            yield from stored(part)


def offenses(source: str) -> list[str]:
    """Where a source takes what Windows lacks."""
    tree = ast.parse(source)
    branches = [
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.If | ast.IfExp) and "hasattr(" in ast.unparse(node.test)
        for part in (node.body if isinstance(node, ast.If) else [node.body])
    ]
    asked = {part for branch in branches for part in ast.walk(branch)}
    taken: list[tuple[ast.Import | ast.ImportFrom | ast.Attribute | ast.keyword, str, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            taken += [(node, alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            taken += [(node, node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node not in asked:
            taken.append((node, node.value.id, node.attr))
        elif isinstance(node, ast.keyword) and node.arg == "preexec_fn":
            taken.append((node, "posix", node.arg))
    return [
        f"line {node.lineno}: {module}.{name}"
        for node, module, name in taken
        if module in ABSENT or _is_lacking(module, name)
    ]


def _is_lacking(module: str, name: str) -> bool:
    return module in sys.stdlib_module_names and name in lacking(module)


@pytest.mark.parametrize(
    "source",
    [
        *("import os; os.killpg(1, 9)", "import signal; signal.SIGKILL", "import fcntl", "from os import fork"),
        *("import time; time.tzset()", "Popen([], preexec_fn=print)"),
        "import os\nif hasattr(os, 'fork'):\n    pass\nelse:\n    os.fork()",
    ],
)
def test_what_windows_lacks_is_seen(source: str) -> None:
    assert offenses(source)


@pytest.mark.parametrize(
    "source",
    ["import os\nif hasattr(os, 'fork'):\n    os.fork()", "import os; os.getuid() if hasattr(os, 'getuid') else 0"],
)
def test_a_question_before_is_seen_too(source: str) -> None:
    assert not offenses(source)


@pytest.mark.long
def test_the_package_runs_on_every_system_as_far_as_its_names_say() -> None:
    files = {path.relative_to(SOURCES).as_posix(): offenses(path.read_text()) for path in SOURCES.rglob("*.py")}
    assert len(files) > 200 and not {name: lines for name, lines in files.items() if lines}


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", sorted((ROOT / ".github/workflows").iterdir()), ids=lambda path: path.name)
def test_workflows_may_read_and_name_actions_by_digest(path: Path) -> None:
    content = yaml.safe_load(path.read_text())
    assert content["permissions"] == {"contents": "read"} and "pull_request_target" not in content[True]  # `on`
    assert not [job for job in content["jobs"].values() if "permissions" in job]
    used = [step["uses"] for job in content["jobs"].values() for step in job["steps"] if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name) for name in used)
    versions = [line for line in path.read_text().splitlines() if "uses:" in line]
    assert all(re.search(r" # v\d+\.\d+\.\d+$", line) for line in versions)


def test_tests_run_on_every_python_that_the_package_claims() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    claimed = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == claimed
    assert f">={claimed[0]}" == project["requires-python"]
