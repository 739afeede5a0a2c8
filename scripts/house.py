"""Measure the house at a commit, from its text alone: nothing of the project is imported or run.

Run: ``python scripts/house.py [--names] [COMMIT ...]``; without a commit it measures HEAD. ``--names`` lists the vague
names. What its words mean:

- *lines*: all lines of all ``.py`` files of a folder, empty ones too. The *core* is ``src/likeness``; a *wing* is any
  other package of ``src``.
- *words*: what has a letter in Markdown outside of ``evidence`` and CHANGELOG.md, without code and formulas. Words of
  ``evidence`` count in the same way.
- *room*: a folder of the core, or a file beside them; and ``flows`` and ``stages`` at the top. An *arrow* is a room
  that imports another one, also inside functions. A room stands one *floor* above the highest room that it imports.
- *circle*: files that all reach each other by imports, also by those inside functions and below ``if TYPE_CHECKING``.
  An ``__init__.py`` is in no circle.
- *local import*: an import statement inside a function of the core.
- *vague name*: a function of ``src`` whose whole name, without underscores at its ends, is a participle, a
  preposition or a word of :data:`VAGUE`; or whose name begins with a preposition other than from, to, with and as, as
  libraries begin names of converters; or that has one of :data:`NEVER` in it. A verb whose participle is the same word
  is a verb.
- *vague variable*: a variable, a parameter or a field whose whole name is one of :data:`VAGUE_VARIABLES`. ``part`` is
  none: a part of the rows, of a table or of a release is a thing here.
- *fragment*: a docstring whose first word is a preposition or one of :data:`FRAGMENTS`: it begins no whole sentence.
- *key*: a field of ``Params`` or of a method. A field that holds a section counts with the fields of the section. Where
  a class names its ``everyday`` settings, the others stand under ``METHOD.expert`` of params.yaml. They are *expert
  keys* and count apart.
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
    "tests": "(tests|evidence/tests|conftest)",
    "evidence": "(benchmarks|evidence)/(?!tests/)",
    "scripts": "scripts/",
}
"""Names of files of each part, in this and in earlier commits."""
PREPOSITIONS = set(
    re.findall(
        r"\w+",
        """
    about above across after against ahead along among apart around at away before behind beside between beyond
    by down for here in inside near of off on onto out outside over past per since than then through under until
    up upon within without
        """,
    )
)
VAGUE = set(
    re.findall(
        r"\w+",
        """
    again all alone any both each every first last less look more most next once one ones other others part
    parts place places rest same some there thing things tonight what when where which who whole whose word
    words
        """,
    )
)
NEVER = {"tonight", "there", "alone", "mended"}
PARTICIPLES = set(
    re.findall(
        r"\w+",
        """
    bound bought broken brought built chosen done drawn felt found frozen given gone held hidden kept known laid
    led left lost made meant met said seen sent shown sold sought spent spoken taken taught thought told torn
    won written
        """,
    )
)
VAGUE_VARIABLES = set(
    re.findall(
        r"\w+",
        """
    alone asked found given here kept known meant one ones own place places said there told tonight words
        """,
    )
)
FRAGMENTS = {"as", "how", "that", "what", "when", "where", "whether", "which", "who", "whom", "whose", "why"}
_NOUNS = {"bed", "embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"}
_NO_WORDS = re.compile(r"```.*?```|\$\$.*?\$\$|\$[^$\n]*\$|\]\([^)]*\)|<!--.*?-->", re.DOTALL)
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Trees = dict[str, ast.Module]
Section = tuple[str, str]  # a file, and the name of a class in it


def git(*words: str, stdin: str = "") -> bytes:
    """What a command of git prints."""
    words = ("git", "-C", str(Path(__file__).parent), *words)
    return subprocess.run(words, input=stdin.encode(), stdout=subprocess.PIPE, check=True).stdout


def read_files(commit: str) -> dict[str, str]:
    """The Python and Markdown files of a commit by name."""
    names = git("ls-tree", "-r", "--full-tree", "--name-only", commit).decode().splitlines()
    names = [name for name in names if name.endswith((".py", ".md"))]
    data, files = git("cat-file", "--batch", stdin="".join(f"{commit}:{name}\n" for name in names)), {}
    for name in names:
        head, _, data = data.partition(b"\n")
        size = int(head.split()[2])
        files[name], data = data[:size].decode(), data[size + 1 :]
    return files


def count_words(files: dict[str, str], of_evidence: bool) -> int:
    """Words of the pages of evidence, or of all others."""
    pages = [
        text
        for name, text in files.items()
        if name.endswith(".md")
        and name != "CHANGELOG.md"
        and name.startswith(("docs/evidence", "evidence")) is of_evidence
    ]
    return sum(any(map(str.isalpha, word)) for page in pages for word in _NO_WORDS.sub(" ", page).split())


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The file that each import would read, and the name that it takes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((f"src/{(node.module or '').replace('.', '/')}.py", alias.name) for alias in node.names)


def count_local_imports(tree: ast.AST) -> int:
    """Import statements inside functions."""
    inside = [part for node in ast.walk(tree) if isinstance(node, _FUNCTION) for part in ast.walk(node)]
    return len({part for part in inside if isinstance(part, ast.Import | ast.ImportFrom)})


def circles(trees: Trees) -> set[frozenset[str]]:
    """Sets of files that reach each other."""
    reach = {}
    for name, tree in trees.items():
        targets = {target for file, taken in imports(tree) for target in (file, f"{file[:-3]}/{taken}.py")}
        reach[name] = {target for target in targets if target in trees and not name.endswith("__init__.py")}
    for via in reach:  # Warshall's algorithm
        for name in reach:
            reach[name] |= reach[via] if via in reach[name] else set()
    return {frozenset(other for other in reach[name] if name in reach[other]) for name in reach if name in reach[name]}


def room(name: str) -> str:
    """The room of the core in which a file lies; empty for any other file."""
    if name.startswith(PACKAGE):
        return name.removeprefix(PACKAGE).split("/")[0]
    return name.split("/")[0] if name.startswith(("flows/", "stages/")) else ""


def arrows(trees: Trees) -> set[tuple[str, str]]:
    """Pairs of rooms of the core of which the first imports the second."""
    found = set()
    for name, tree in trees.items():
        for file, taken in imports(tree):
            stem = file.removesuffix(".py")
            targets = (f"{stem}/{taken}.py", f"{stem}/{taken}/__init__.py", file, f"{stem}/__init__.py")
            target = next((target for target in targets if target in trees), None)
            if target is not None and room(name) and room(target):
                found.add((room(name), room(target)))
    return {(start, end) for start, end in found if start != end}


def count_floors(lines: set[tuple[str, str]]) -> int:
    """Rooms on the longest way of arrows."""
    below: dict[str, set[str]] = {}
    for start, end in lines:
        below.setdefault(start, set()).add(end)

    def height(name: str) -> int:
        return 1 + max(map(height, below.get(name, ())), default=0)

    return max(map(height, below), default=1)


def is_vague(name: str) -> bool:
    """Whether the name of a function says too little, by the rule above."""
    words = [word for word in name.strip("_").split("_") if word]
    if not words or name.startswith("__"):
        return False
    alone, first = words[0] if len(words) == 1 else "", words[0]
    participle = alone in PARTICIPLES or (alone.endswith("ed") and len(alone) > 3 and alone not in _NOUNS)
    return participle or alone in VAGUE | PREPOSITIONS or first in PREPOSITIONS or bool(NEVER & set(words))


def names_of_variables(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Each name that a file gives to a variable, a parameter or a field, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


def docstrings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Each docstring of a function or a class, with the line where that begins."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
            text := ast.get_docstring(node)
        ):
            yield text, node.lineno


def is_fragment(text: str) -> bool:
    """Whether a docstring begins with no whole sentence, by the rule above."""
    return re.split(r"\W", text.lower(), maxsplit=1)[0] in PREPOSITIONS | FRAGMENTS | {"from", "to", "with"}


def keys(trees: Trees, expert: bool = False) -> dict[str, int]:
    """Keys of the settings by class: those of no method, then those of each method. ``expert``: with expert keys."""
    classes = {(file, item.name): item for file in trees for item in trees[file].body if isinstance(item, ast.ClassDef)}

    def fields(section: Section) -> dict[str, Section | None]:
        """The fields of a class: of a section its class, of a value None."""
        file, _ = section
        here = {
            name: (source, name) for source, name in imports(trees[file]) if not source.startswith(f"{PACKAGE}data")
        }
        here |= {name: (source, name) for source, name in classes if source == file}
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

    recipes = [one for one in classes if re.fullmatch(r"src/(likeness/methods|likeness_\w+)/\w+/method.py", one[0])]
    recipes = [one for one in recipes if "\n    name: ClassVar" in ast.unparse(classes[one])]
    return {section[1]: count(section) for section in [(f"{PACKAGE}config/params.py", "Params"), *recipes]}


def main(commit: str, names: bool) -> None:
    """Print every figure of a commit."""
    files = read_files(commit)
    trees = {name: ast.parse(text) for name, text in files.items() if re.match("(src|flows|stages)/.*py$", name)}
    core = {name: tree for name, tree in trees.items() if name.startswith(PACKAGE)}
    print(f"{commit}:")
    packages = sorted({name.split("/")[1] for name in trees if name.startswith("src/")})
    folders = {
        **{f"src/{package}": f"src/{package}/" for package in packages if package.startswith("likeness")},
        **FOLDERS,
    }
    for folder, pattern in folders.items():
        lines = [text.count("\n") for name, text in files.items() if re.match(pattern, name) and name.endswith(".py")]
        print(f"  lines of {folder}: {sum(lines):,} in {len(lines)} files")
    print(f"  words: {count_words(files, False):,} outside of evidence, {count_words(files, True):,} of evidence")
    lines_of_core = arrows({name: tree for name, tree in trees.items() if room(name)})
    print(f"  core: {count_floors(lines_of_core)} floors, {len(lines_of_core)} arrows")
    found = sorted(map(len, circles({name: tree for name, tree in trees.items() if name.startswith("src/")})))
    print(f"  circles: {len(found)} of {sum(found)} files")
    print(f"  local imports of the core: {sum(map(count_local_imports, core.values()))}")
    functions = [
        (node.name, name, node.lineno)
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    vague = [function for function in functions if is_vague(function[0])]
    of_core = sum(name.startswith(PACKAGE) for _, name, _ in vague)
    print(f"  vague names: {len(vague)} of {len(functions)} functions, {of_core} of them in the core")
    for function, name, line in sorted(vague) if names else ():
        print(f"    {function} {name}:{line}")
    sources = [(name, tree) for name, tree in trees.items() if name.startswith("src/")]
    variables = [(word, name, line) for name, tree in sources for word, line in names_of_variables(tree)]
    vague = [variable for variable in variables if variable[0].strip("_") in VAGUE_VARIABLES]
    print(f"  vague variables: {len(vague)} of {len(variables)}")
    for variable, name, line in sorted(vague) if names else ():
        print(f"    {variable} {name}:{line}")
    texts = [(text, name, line) for name, tree in sources for text, line in docstrings(tree)]
    fragments = [(text, name, line) for text, name, line in texts if is_fragment(text)]
    print(f"  fragments: {len(fragments)} of {len(texts)} docstrings")
    for text, name, line in fragments if names else ():
        print(f"    {text.splitlines()[0][:60]!r} {name}:{line}")
    sections, every = keys(trees), sum(keys(trees, expert=True).values())
    print(f"  keys: {sum(sections.values())} ({', '.join(f'{name} {number}' for name, number in sections.items())})")
    print(f"  expert keys: {every - sum(sections.values())}")
    sizes = []
    for node in (node for tree in core.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        members = sum(isinstance(part, _FUNCTION) for part in node.body)
        sizes.append(((node.end_lineno or 0) - node.lineno + 1, members, node.name))
    print("  largest class of the core: {2}, {0} lines, {1} members".format(*max(sizes)))
    print("  largest file of the core: {1}, {0} lines".format(*max((files[name].count("\n"), name) for name in core)))


if __name__ == "__main__":
    options = [word for word in sys.argv[1:] if word.startswith("--")]
    for revision in [word for word in sys.argv[1:] if not word.startswith("--")] or ["HEAD"]:
        main(revision, "--names" in options)
