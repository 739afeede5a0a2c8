"""What a stage may reach in our sources: modules it imports, also inside functions, and names that it uses.

A function's imports count if some function that the stage reaches uses it. A class counts with all its methods, but for
:data:`BY_MEMBER`: a project counts with what the stage asks of it, and so do its paths and its data model. For that,
whatever is annotated ``Project`` is one, and :data:`GIVEN_BY` names attributes that give such an object. What a method
gives to training counts only for stages that train or sample (:data:`TRAINS`).
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from likeness.data.source.formats import SOURCE_FORMATS
from likeness.methods import METHODS
from likeness.pipeline.counts import COUNTS
from likeness.pipeline.datasets import MODELS as DATASETS
from likeness.pipeline.datasets.model import DataModel
from likeness.pipeline.tracking import TRACKING

ROOT = Path(__file__).parents[2]
Name = tuple[str, str]
"""A module, and a name at its top level."""
# They refuse files that the ledger does not have, or a ledger that the files do not have. They write nothing, so no
# output hangs on how they ask.
ONLY_REFUSES = {
    ("likeness.pipeline.project", "Project.check_known"),
    *(("likeness.pipeline.other_ledgers", name) for name in ("other_ledger", "refuse_other_ledger", "rows_elsewhere")),
}

# What a method gives to training and sampling alone; stages that do neither never call it.
TRAINS = {"blueprint", "build_generator", "build_objective", "fit_generator", "generators", "start"}
TRAINERS = {"likeness.methods.fit", "likeness.methods.saved_generator"}
"""The only modules that call these, so whoever does not reach one of them does not train."""

MODELS = {kind.__name__: kind.__module__ for kind in (DataModel, *DATASETS.values())}
BY_MEMBER = {"Project": "likeness.pipeline.project", "ProjectPaths": "likeness.core.paths", **MODELS}
"""Classes that count member by member, and where they are defined. A data model may be any of its classes."""
GIVEN_BY = {"paths": "ProjectPaths", **dict.fromkeys(("model", "written_model", "with_records"), "DataModel")}
"""What an attribute of one of these names gives."""
OFFERED = {
    "likeness.data.source.formats": SOURCE_FORMATS,
    "likeness.methods": METHODS,
    "likeness.pipeline.counts": COUNTS,
    "likeness.pipeline.datasets": DATASETS,
    "likeness.pipeline.tracking": TRACKING,
}
"""What a module with a registry of wings may load."""


def file_of(module: str) -> Path | None:
    """The source of a module of ours, of a compiled one its stub; None for any other."""
    base = (ROOT if module.split(".")[0] == "stages" else ROOT / "src").joinpath(*module.split("."))
    paths = base.with_suffix(".py"), base / "__init__.py", base.with_suffix(".pyi")
    return next((path for path in paths if path.exists()), None)


class Source:
    """One module: what it imports when it is loaded, which names it binds, and where each is defined."""

    def __init__(self, module: str) -> None:
        """Parse it."""
        path = file_of(module)
        assert path is not None, module
        self.module = module
        self.imports: dict[str, tuple[str, str | None]] = {
            kind.__name__: (kind.__module__, None) for kind in OFFERED.get(module, {}).values()
        }
        self.nodes: dict[str, ast.stmt] = {}
        for statement in ast.parse(path.read_text()).body:
            if isinstance(statement, ast.ClassDef) and BY_MEMBER.get(statement.name) == module:
                self.nodes.update(members(statement))
            elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
                self.nodes[statement.name] = statement
            elif not (isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"):
                self.imports.update(imported(statement))
                parts = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
                self.nodes.update((part.id, statement) for part in parts if isinstance(part.ctx, ast.Store))

    @cache  # noqa: B019  (sources are as many as files)
    def used(self, name: str, trains: bool) -> frozenset[tuple[str, str | None]]:
        """Modules, and names in them, that the definition of a name uses; a module itself has None."""
        return frozenset(self._used(name, trains))

    def _used(self, name: str, trains: bool) -> "Iterator[tuple[str, str | None]]":
        node = self.nodes[name] if trains else without_training(self.nodes[name])
        inside = imported(node)
        known = {**self.imports, **inside}
        yield from inside.values()
        instances = instances_in(node, name)
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and (owner := class_of(part.value, instances)):
                for name in MODELS if owner in MODELS else [owner]:
                    yield BY_MEMBER[name], f"{name}.{part.attr}"
            elif isinstance(part, ast.Name) and part.id in known:
                yield known[part.id]
            elif isinstance(part, ast.Name) and part.id in self.nodes:
                yield self.module, part.id
            elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                module, attribute = known.get(part.value.id, ("", ""))
                if attribute is None:
                    yield module, part.attr


def without_training(node: ast.stmt) -> ast.stmt:
    """A class without what it gives to training, and without methods that only these call; anything else as it is."""
    if not isinstance(node, ast.ClassDef) or not any(_member(item) in TRAINS for item in node.body):
        return node
    methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
    calls = {
        name: {part.attr for part in ast.walk(item) if isinstance(part, ast.Attribute)}
        for name, item in methods.items()
    }
    dropped = TRAINS & {_member(item) for item in node.body}
    while more := {
        name
        for name in methods.keys() - dropped
        if any(name in calls.get(by, ()) for by in dropped)
        and not any(name in calls[by] for by in methods.keys() - dropped)
    }:
        dropped = dropped | more
    body = [item for item in node.body if _member(item) not in dropped]
    return ast.ClassDef(node.name, node.bases, node.keywords, body, node.decorator_list, type_params=[])


def _member(item: ast.stmt) -> str:
    """The name of a method, or of an annotated attribute of a class."""
    return ast.unparse(item.target) if isinstance(item, ast.AnnAssign) else getattr(item, "name", "")


def members(definition: ast.ClassDef) -> dict[str, ast.stmt]:
    """The members of a class as definitions of their own, and the rest of it under its name."""
    parts: dict[str, ast.stmt] = {}
    for item in definition.body:
        if isinstance(item, ast.FunctionDef):
            parts[f"{definition.name}.{item.name}"] = item
        elif isinstance(item, ast.Assign):
            parts.update({f"{definition.name}.{ast.unparse(target)}": item for target in item.targets})
    return {**parts, definition.name: ast.Expr(ast.Constant(definition.name))}


def instances_in(node: ast.AST, name: str) -> dict[str, str]:
    """Names in a definition that stand for such classes or for objects of them."""
    instances = {**{owner: owner for owner in BY_MEMBER}, "paths": "ProjectPaths", "self": name.partition(".")[0]}
    for part in ast.walk(node):
        if isinstance(part, ast.arg) and part.annotation is not None:
            instances[part.arg] = ast.unparse(part.annotation).strip("'\"")
    return instances


def class_of(value: ast.expr, instances: dict[str, str]) -> str | None:
    """Which of the classes an expression is, or is an object of."""
    value = value.func if isinstance(value, ast.Call) else value
    if isinstance(value, ast.Attribute):
        return GIVEN_BY.get(value.attr)
    owner = instances.get(value.id) if isinstance(value, ast.Name) else None
    return owner if owner in BY_MEMBER else None


def imported(node: ast.AST) -> dict[str, tuple[str, str | None]]:
    """What the imports anywhere in a node bind, of our modules."""
    bound: dict[str, tuple[str, str | None]] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Import):
            bound.update(
                {alias.asname or alias.name: (alias.name, None) for alias in part.names if file_of(alias.name)}
            )
        elif isinstance(part, ast.ImportFrom) and part.module and file_of(part.module):
            for alias in part.names:
                inner = f"{part.module}.{alias.name}"
                bound[alias.asname or alias.name] = (inner, None) if file_of(inner) else (part.module, alias.name)
    return bound


source = cache(Source)


@cache
def reached(stage: str) -> tuple[set[str], set[Name]]:
    """Modules that a stage may load, and names that it may use."""
    without = _reached(stage, trains=False)
    return _reached(stage, trains=True) if without[0] & TRAINERS else without


def _reached(stage: str, trains: bool) -> tuple[set[str], set[Name]]:
    modules: set[str] = set()
    names: set[Name] = set()
    waiting: list[tuple[str, str | None]] = [(f"stages.{stage}", "main")]
    while waiting:
        module, name = waiting.pop()
        if module not in modules:
            modules.add(module)
            parent = module.rpartition(".")[0]
            waiting += [
                (loaded, None) for loaded in (parent, *(m for m, _ in source(module).imports.values())) if loaded
            ]
        if name is None or (module, name) in names or (module, name) in ONLY_REFUSES:
            continue
        names.add((module, name))
        if name == "TRACKING":  # whoever asks for a function by its name may get it
            waiting += [(track.__module__, track.__name__) for track in TRACKING.values()]
        if name in source(module).imports:
            waiting.append(source(module).imports[name])
        elif name in source(module).nodes:
            waiting += source(module).used(name, trains)
    return modules, names
