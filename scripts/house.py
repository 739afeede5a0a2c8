"""Measure the house at a commit, from its text alone: nothing of the project is imported or run.

Run: ``python scripts/house.py [COMMIT ...]``; without a commit it measures HEAD. What its words mean:

- *lines*: all lines of all ``.py`` files of a folder, empty ones too.
- *words*: what has a letter in Markdown outside of ``evidence`` (earlier ``docs/evidence``) and CHANGELOG.md, without
  code and formulas.
- *circle*: files that all reach each other by imports, also by those inside functions and below ``if TYPE_CHECKING``.
  An ``__init__.py`` is in no circle.
- *local import*: an import statement inside a function.
- *branch on histories*: a condition (``if``, ``while``, ``assert``, a filter) that names histories, events or people,
  or an ``and`` or ``or`` outside of conditions that names histories; nothing below ``data/histories``.
- *key*: a field of ``Params`` or of a method. A field that holds a section counts with the fields of the section. Where
  a class names its ``everyday`` settings, the others stand under ``METHOD.expert`` of params.yaml. They are *expert
  keys* and count apart.
- *fresh default*: an argument ``fresh=`` in the package.
- *class*: its lines, and the functions in its body.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGE = "src/likeness/"
FOLDERS = {
    "src": "src/",
    "tests": "(tests|evidence/tests|conftest)",
    "benchmarks": "(benchmarks|evidence)/(?!tests/)",
    "scripts": "scripts/",
}
"""Names of files of each part, in this and in earlier commits."""
_NO_WORDS = re.compile(r"```.*?```|\$\$.*?\$\$|\$[^$\n]*\$|\]\([^)]*\)|<!--.*?-->", re.DOTALL)
_NAMED, _HISTORIES = re.compile("(?i)histor|^events$|^people$"), re.compile("(?i)histor")
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Trees = dict[str, ast.Module]
Section = tuple[str, str]  # a file, and the name of a class in it


def git(*words: str, given: str = "") -> bytes:
    """What a command of git prints."""
    words = ("git", "-C", str(Path(__file__).parent), *words)
    return subprocess.run(words, input=given.encode(), stdout=subprocess.PIPE, check=True).stdout


def files_of(commit: str) -> dict[str, str]:
    """The Python and Markdown files of a commit by name."""
    names = git("ls-tree", "-r", "--full-tree", "--name-only", commit).decode().splitlines()
    names = [name for name in names if name.endswith((".py", ".md"))]
    data, files = git("cat-file", "--batch", given="".join(f"{commit}:{name}\n" for name in names)), {}
    for name in names:
        head, _, data = data.partition(b"\n")
        size = int(head.split()[2])
        files[name], data = data[:size].decode(), data[size + 1 :]
    return files


def words(name: str, text: str) -> int:
    """Words of a page; none of evidence and code."""
    counts = name.endswith(".md") and not name.startswith(("docs/evidence", "evidence")) and name != "CHANGELOG.md"
    return counts and sum(any(map(str.isalpha, word)) for word in _NO_WORDS.sub(" ", text).split())


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The file that each import would read, and the name that it takes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((f"src/{(node.module or '').replace('.', '/')}.py", alias.name) for alias in node.names)


def local_imports(tree: ast.AST) -> int:
    """Import statements inside functions."""
    inside = [part for node in ast.walk(tree) if isinstance(node, _FUNCTION) for part in ast.walk(node)]
    return len({part for part in inside if isinstance(part, ast.Import | ast.ImportFrom)})


def circles(trees: Trees) -> set[frozenset[str]]:
    """Sets of files that reach each other."""
    reach = {}
    for name, tree in trees.items():
        places = {place for file, one in imports(tree) for place in (file, f"{file[:-3]}/{one}.py")}
        reach[name] = {place for place in places if place in trees and not name.endswith("__init__.py")}
    for via in reach:  # Warshall's algorithm
        for name in reach:
            reach[name] |= reach[via] if via in reach[name] else set()
    return {frozenset(other for other in reach[name] if name in reach[other]) for name in reach if name in reach[name]}


def forks(tree: ast.Module) -> int:
    """Branches on histories."""

    def named(node: ast.AST, pattern: re.Pattern[str]) -> bool:
        texts = [str(getattr(part, "id", "")) or str(getattr(part, "attr", "")) for part in ast.walk(node)]
        return any(map(pattern.search, texts))

    nodes = list(ast.walk(tree))
    conditions = [node.test for node in nodes if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert)]
    conditions += [test for node in nodes if isinstance(node, ast.comprehension) for test in node.ifs]
    inside = {part for test in conditions for part in ast.walk(test)}
    values = [node for node in nodes if isinstance(node, ast.BoolOp) and node not in inside]
    return sum(named(test, _NAMED) for test in conditions) + sum(named(value, _HISTORIES) for value in values)


def keys(trees: Trees, expert: bool = False) -> dict[str, int]:
    """Keys of the settings by class: those of no method, then those of each method. ``expert``: with expert keys."""
    classes = {(file, item.name): item for file in trees for item in trees[file].body if isinstance(item, ast.ClassDef)}

    def fields(section: Section) -> dict[str, Section | None]:
        """The fields of a class: of a section its class, of a value None."""
        file, _ = section
        here = {name: (there, name) for there, name in imports(trees[file]) if not there.startswith(f"{PACKAGE}data")}
        here |= {name: (there, name) for there, name in classes if there == file}
        found: dict[str, Section | None] = {}
        for base in map(ast.unparse, classes[section].bases):
            found |= fields(here[base]) if here.get(base) in classes else {}
        for item in classes[section].body:
            if isinstance(item, ast.AnnAssign) and not ast.unparse(item.annotation).startswith("ClassVar"):
                parts = [here.get(part, ("", "")) for part in re.findall(r"\w+", ast.unparse(item.annotation))]
                found[ast.unparse(item.target)] = next((part for part in parts if part in classes), None)
        return found

    def everyday(section: Section) -> Sequence[str] | None:
        """The fields that are no expert keys, as the class or its base names them; None: all."""
        bases = [base for base in classes if base[1] in map(ast.unparse, classes[section].bases)]
        named = re.search(r"\n    everyday: ClassVar.* = (\(.*\))\n", ast.unparse(classes[section]))
        return ast.literal_eval(named[1]) if named else next(filter(None, map(everyday, bases)), None)

    def count(section: Section) -> int:
        names = None if expert else everyday(section)
        counted = [inner for name, inner in fields(section).items() if names is None or name in names]
        return sum(1 if inner is None else count(inner) for inner in counted)

    recipes = [one for one in classes if re.fullmatch(rf"{PACKAGE}methods/\w+/method.py", one[0])]
    recipes = [one for one in recipes if "\n    name: ClassVar" in ast.unparse(classes[one])]
    return {section[1]: count(section) for section in [(f"{PACKAGE}config/params.py", "Params"), *recipes]}


def main(commit: str) -> None:
    """Print every figure of a commit."""
    files = files_of(commit)
    trees = {name: ast.parse(text) for name, text in files.items() if name.startswith(PACKAGE) and name.endswith(".py")}
    print(f"{commit}:")
    for folder, whose in FOLDERS.items():
        lines = [text.count("\n") for name, text in files.items() if re.match(whose, name) and ".py" in name]
        print(f"  lines of {folder}: {sum(lines)} in {len(lines)} files")
    print(f"  words outside of evidence: {sum(words(*page) for page in files.items())}")
    found = sorted(map(len, circles(trees)))
    print(f"  circles: {len(found)} of {sum(found)} files: {', '.join(map(str, found))}")
    print(f"  local imports: {sum(map(local_imports, trees.values()))}")
    branches = [forks(tree) for name, tree in trees.items() if "/data/histories/" not in name]
    print(f"  branches on histories: {sum(branches)} in {sum(map(bool, branches))} files")
    sections, every = keys(trees), sum(keys(trees, expert=True).values())
    print(f"  keys: {sum(sections.values())} ({', '.join(f'{name} {number}' for name, number in sections.items())})")
    print(f"  expert keys: {every - sum(sections.values())}")
    print(f"  fresh defaults: {sum(files[name].count(' fresh=') for name in trees)}")
    sizes = []
    for one in (node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        members = sum(isinstance(part, _FUNCTION) for part in one.body)
        sizes.append(((one.end_lineno or 0) - one.lineno + 1, members, one.name))
    print("  largest class: {2}, {0} lines, {1} members".format(*max(sizes)))
    print("  largest file: {1}, {0} lines".format(*max((files[name].count("\n"), name) for name in trees)))


if __name__ == "__main__":
    for one in sys.argv[1:] or ["HEAD"]:
        main(one)
