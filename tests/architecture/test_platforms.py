"""The package takes nothing from Linux and macOS that Windows lacks, unless it asks with ``hasattr`` first.

typeshed, which mypy brings, says what Windows lacks. What a package of another author does there is not tested.
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import mypy
import pytest

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
        "import os; os.killpg(1, 9)",
        "import signal; signal.SIGKILL",
        "import fcntl",
        "from os import fork",
        "import time; time.tzset()",
        "Popen([], preexec_fn=print)",
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
