"""A method is one folder: nobody outside of it names it, and its maps know nothing of privacy."""

import ast
from pathlib import Path

import pytest

from likeness.methods import METHODS
from likeness.methods.maps import MAPS
from likeness.methods.saved_generator import GENERATORS
from tests.architecture.reachability import ROOT, Source, imported

HOMES = {name: kind.__module__.rpartition(".")[0] for name, kind in METHODS.items()}
REGISTRY = ROOT / "src/likeness/methods/__init__.py"
SHARED_NAMES = {"column_marginals", "constant", "tabular", "image", "residual_images"}
SCORES = {"marginals", "moments"}  # words of the evaluation, too
NAMES = {*METHODS, *MAPS, *GENERATORS} - SHARED_NAMES - SCORES
ABOVE = ("likeness.release", "likeness.privacy", "likeness.ledger")


def outside() -> list[Path]:
    """Every source that belongs to no method and is not the registry."""
    files = [path for folder in ("src", "stages", "flows") for path in (ROOT / folder).rglob("*.py")]
    homes = [ROOT / "src" / home.replace(".", "/") for home in HOMES.values()]
    return [path for path in files if path != REGISTRY and not any(path.is_relative_to(home) for home in homes)]


def named(source: str) -> list[str]:
    """Where a source imports from a method's folder, or holds the name of a method, map or generator as a text."""
    tree, found = ast.parse(source), []
    for node in ast.walk(tree):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found += [module for module in modules for home in HOMES.values() if f"{module}.".startswith(f"{home}.")]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in NAMES:
            found.append(node.value)
    return found


@pytest.mark.parametrize(
    "source",
    [line for home in HOMES.values() for line in (f"from {home}.method import X", f"import {home}.method")]
    + [f"x = {name!r}" for name in sorted(NAMES)],
)
def test_every_way_to_name_a_method_is_seen(source: str) -> None:
    assert named(source)


@pytest.mark.long
def test_nobody_outside_names_a_method_a_map_or_a_generator() -> None:
    files = outside()
    assert len(files) > 150 and all(home.rpartition(".")[2] == name for name, home in HOMES.items())
    found = {str(path.relative_to(ROOT)): named(path.read_text()) for path in files}
    assert {name: where for name, where in found.items() if where} == {}


@pytest.mark.long
@pytest.mark.parametrize(
    "module", sorted({kind.__module__ for kind in (*MAPS.values(), *(load() for load in GENERATORS.values()))})
)
def test_maps_and_generators_never_reach_the_ledger_the_noise_or_the_door(module: str) -> None:
    seen, waiting = set[str](), [module]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            source = Source(module)
            inner = [other for node in source.nodes.values() for other, _ in imported(node).values()]
            waiting += [*inner, *(other for other, _ in source.imports.values())]
    assert len(seen) > 2 and [module for module in seen if module.startswith(ABOVE)] == []
