"""Measure the house: rooms, loose modules, layers, lines, what each stage reaches, how often a bundle changes rooms.

Run: ``python scripts/house.py [ROOT]``, where ROOT is any checkout, so that two commits can be compared. A room is a
folder of ``src/likeness`` with modules. Nothing of the project is imported or run: all figures come from its text.

The walk follows the first parameter of ``write_bundle``, and what is made of it, in the order of the code, depth first,
each function once: calls of functions, and of methods of a parameter whose class its annotation names. A property is
what an object has, and no call. Whatever raises an error is no part of the walk.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from yaml import safe_load

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT.parents[1] if ROOT.is_file() else ROOT
SOURCE = ROOT / "src"
START = "likeness.bundle.write", "write_bundle"
Place = tuple[str, str]
"""A module, and the name of a definition in it; of a member with its class."""


def file_of(module: str) -> Path | None:
    """The source of a module of the checkout; None for any other."""
    base = (ROOT if module.partition(".")[0] == "stages" else SOURCE).joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()), None)


@cache
def tree(module: str) -> ast.Module:
    """A module, parsed."""
    path = file_of(module)
    assert path is not None, module
    return ast.parse(path.read_text())


@cache
def definitions(module: str) -> dict[str, ast.AST]:
    """Functions and classes of a module by name; members with their class."""
    places: dict[str, ast.AST] = {}
    for item in tree(module).body:
        if isinstance(item, ast.FunctionDef | ast.ClassDef):
            places[item.name] = item
        if isinstance(item, ast.ClassDef):
            places |= {f"{item.name}.{part.name}": part for part in item.body if isinstance(part, ast.FunctionDef)}
    return places


@cache
def imports(module: str) -> dict[str, Place]:
    """What the imports of a module bind, wherever they stand: a module with an empty name, or a name in one."""
    bound: dict[str, Place] = {}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module and file_of(node.module):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                bound[alias.asname or alias.name] = (inner, "") if file_of(inner) else (node.module, alias.name)
    return bound


def defined(module: str, name: str) -> Place | None:
    """Where a name that a module uses is defined; followed through modules that only pass it on."""
    while name not in definitions(module):
        if name not in imports(module):
            return None
        module, name = imports(module)[name]
    return (module, name) if name else None


class Walk:
    """One value's way through the code: the rooms into which it comes, or what is made of it, in order."""

    def __init__(self, start: Place, value: str) -> None:
        """Walk from a definition in which the value has a name."""
        self.seen: set[Place] = set()
        self.rooms = [room_of(start[0])]
        self.follow(start, {value})

    def follow(self, place: Place, carried: set[str]) -> None:
        """Every call in a definition that passes on one of the carried names, or what a call has made of it."""
        module, name = place
        node = definitions(module)[name]
        if place in self.seen or not isinstance(node, ast.FunctionDef):
            return
        if room_of(module) != self.rooms[-1]:
            self.rooms.append(room_of(module))
        self.seen.add(place)
        classes = {"self": (module, name.partition(".")[0])} if "." in name else {}
        for argument in node.args.args:
            text = "" if argument.annotation is None else ast.unparse(argument.annotation).strip("'\"")
            if text.isidentifier() and (place_of := defined(module, text)):
                classes[argument.arg] = place_of
        for part in in_order(node):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
                target = defined(module, part.func.id)
                if target and (passed := passed_on(part, definitions(target[0])[target[1]], carried)):
                    self.follow(target, passed)
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                owner, member = classes.get(ast.unparse(part.func.value)), part.func.attr
                if owner and f"{owner[1]}.{member}" in definitions(owner[0]):
                    self.follow((owner[0], f"{owner[1]}.{member}"), {"self"})
            carried |= made(part, carried)


def passed_on(call: ast.Call, target: ast.AST, carried: set[str]) -> set[str]:
    """The parameters of a function under which it gets something carried."""
    if not isinstance(target, ast.FunctionDef):
        return set()
    names = [argument.arg for argument in target.args.args]
    given = {name for name, value in zip(names, call.args, strict=False) if names_in(value) & carried}
    return given | {str(keyword.arg) for keyword in call.keywords if names_in(keyword.value) & carried}


def made(part: ast.AST, carried: set[str]) -> set[str]:
    """Names that an assignment or a loop gives to something carried."""
    if isinstance(part, ast.Assign) and names_in(part.value) & carried:
        return set().union(*map(names_in, part.targets))
    if isinstance(part, ast.For | ast.comprehension) and names_in(part.iter) & carried:
        return names_in(part.target)
    return set()


def names_in(node: ast.AST) -> set[str]:
    """Every name in an expression."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def in_order(node: ast.AST) -> Iterator[ast.AST]:
    """Every part of a definition but what raises: arguments ahead of their call, loops ahead of what they repeat."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.For | ast.comprehension):
            yield child
        if not isinstance(child, ast.Raise):
            yield from in_order(child)
    yield node


def room_of(module: str) -> str:
    """The folder of a module."""
    path = file_of(module)
    assert path is not None
    return str(path.parent.relative_to(SOURCE))


def lines(*patterns: str) -> int:
    """Lines of all files that match below the root."""
    return sum(len(path.read_text().splitlines()) for pattern in patterns for path in ROOT.glob(pattern))


def reached_by_stages() -> dict[str, int]:
    """How many modules of the library each stage may load, by the checkout's own test of its stages."""
    sys.path.insert(0, str(ROOT / "tests/architecture"))
    from reachability import reached

    stages = safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    return {name: sum(module.startswith("likeness") for module in reached(name)[0]) for name in stages}


def main() -> None:
    """Print every figure."""
    files = sorted((SOURCE / "likeness").rglob("*.py"))
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    loose = [file.stem for file in files if file.parent == SOURCE / "likeness" and "__" not in file.name]
    bundle = definitions(START[0])[START[1]]
    assert isinstance(bundle, ast.FunctionDef)
    rooms = Walk(START, bundle.args.args[0].arg).rooms
    print(f"rooms: {len({file.parent for file in files})}")
    print(f"loose modules: {len(loose)} ({', '.join(loose)})")
    print(f"import layers: {max(len(contract.get('layers', [])) for contract in contracts)}")
    print(f"lines of src: {lines('src/**/*.py')}, stages and flows: {lines('stages/*.py', 'flows/*.py')}")
    print(f"lines of tests: {lines('tests/**/*.py')}, of YAML: {lines('*.yaml', 'examples/**/*.yaml')}")
    print(f"lines of docs: {lines('*.md', 'docs/**/*.md')}")
    print(f"modules reached: {', '.join(f'{name} {count}' for name, count in reached_by_stages().items())}")
    print(f"write_bundle enters {len(set(rooms))} rooms {len(rooms) - 1} times: {' '.join(room[9:] for room in rooms)}")


if __name__ == "__main__":
    main()
