"""The stages of a run: what each reads, writes and spends. ``dvc.yaml`` is rendered from this list.

A project's `stages/` only start the modules of this folder, so an upgrade of the package upgrades every project. Stage
``settings`` writes a file of digests for every other stage, and DVC runs a stage again when its file changes.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from likeness.core.paths import ProjectPaths as Paths
from likeness.core.wings import wing_folders

if TYPE_CHECKING:
    from likeness.pipeline.project import Project

_PACKAGE = Path(__file__).parents[1]
_ALL = "core config pipeline"
_SCHEMA = "${ingest.schema}"
_QUESTION = "${method}.plan ${method}.auxiliary ${method}.privatize"
_HEADER = """\
# The one DAG. `dvc repro` runs what is out of date; Prefect (flows/) and cron only decide when.
# `likeness.stages.STAGES` is the list from which this file is rendered.
# data/plan/code/STAGE holds digests of the installed code that a stage loads, so an upgrade runs only what it may change.
# Stages watch keys of data/plan/settings.yaml: a key that params.yaml leaves out has its default there.
# Tables, row sets and generators lie in folders, so the stages are those of every kind of data set.
# A file of random bytes stands for private files, which DVC never reads. The ledger is no file of DVC: see PRIVACY.md.
"""  # noqa: E501


@dataclass(frozen=True)
class Stage:
    """A stage of a run. Every one but ``settings`` also reads its settings, its code, its script and the schema.

    Attributes:
        name: of the stage, of its module and of its script.
        description: what it makes, for progress and people.
        settings: keys that it watches, with spaces between them.
        reads: files and folders of the project.
        writes: files and folders of the project.
        folders: of the package that its code loads, beside those that all stages load, with spaces between them.
        spends: the part of the budget.
        shared: whether DVC keeps what it writes in its cache, and pushes it.
        always: whether it runs every time, because it reads what is no file of the project.
        keeps: whether DVC leaves what it wrote before a run, and never takes it from an earlier run in its cache.
        metrics: files of numbers that it writes, too.
        plots: files and folders that it writes for plots, with their options.
    """

    name: str
    description: str
    settings: str = ""
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    folders: str = ""
    spends: str = "nothing"
    shared: bool = True
    always: bool = False
    keeps: bool = False
    metrics: tuple[Path, ...] = ()
    plots: tuple[tuple[Path, Mapping[str, str]], ...] = ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """All that it may see of a project: what it reads and what it writes."""
        return (*self.reads, *self.writes, *self.metrics, *(path for path, _ in self.plots))

    @property
    def run(self) -> "Callable[[Project], None]":
        """The function of its module, which does its work for a project."""
        main: Callable[[Project], None] = import_module(f"likeness.stages.{self.name}").main
        return main

    def to_dvc(self) -> dict[str, Any]:
        """The stage as ``dvc.yaml`` has it."""
        script, watched = f"stages/{self.name}.py", self.settings.split()
        code = [f"{Paths.code.as_posix()}/{self.name}", script] if watched else [script]
        options = {**({} if self.shared else {"cache": False}), **({"persist": True} if self.keeps else {})}
        outs = [{path: {**options}} if options else path for path in map(_path_for_dvc, self.writes)]
        plots = [{path.as_posix(): dict(options)} if options else path.as_posix() for path, options in self.plots]
        entries = {
            "desc": self.description,
            "cmd": f"python -m stages.{self.name}",
            "always_changed": self.always,
            "params": [{Paths.settings.as_posix(): watched}] if watched else [],
            "deps": [*code, *map(_path_for_dvc, self.reads), *([_SCHEMA] if watched else [])],
            "outs": outs,
            "metrics": [path.as_posix() for path in self.metrics],
            "plots": plots,
        }
        return {key: value for key, value in entries.items() if value}


def _path_for_dvc(path: Path) -> str:
    """The path that DVC follows: a file of random bytes stands for private rows, because dvc.lock is public."""
    return {_TYPED: Paths.typed_done, _ENCODED: Paths.encoded_done}.get(path, path).as_posix()


_TYPED, _ENCODED = Paths.table.parent, Paths.encoded.parent
_EMBEDDING, _TABLES = Paths.embedding.parent, Paths.synthetic.parent
_RELEASES = (Paths.categories, Paths.auxiliary, _EMBEDDING)
_REPORTS = (Paths.report, Paths.figures, Paths.privacy, Paths.statement)
STAGES = [
    Stage(
        "settings",
        "params.yaml with every default written out, and digests of the installed code",
        reads=(Paths.params,),
        writes=(Paths.settings, Paths.code),
        shared=False,
        always=True,
    ),
    Stage(
        "fingerprint",
        "a keyed hash of the source, and whether the ledger still says what the account states",
        "ingest.source ingest.people ingest.query ingest.rows ledger.home ledger.url privacy.series",
        writes=(Paths.source, Paths.unstated),
        folders="data privacy ledger",
        shared=False,
        always=True,
        keeps=True,
    ),
    Stage(
        "ingest",
        "the source against the public schema, row by row",
        "ingest privacy.population privacy.adjacency privacy.num_records privacy.series ledger.attempt",
        reads=(Paths.source,),
        writes=(_TYPED,),
        folders="data privacy ledger",
        shared=False,
    ),
    Stage(
        "plan",
        "every noise multiplier, from public settings alone",
        # What sample, train (its device) and evaluate would stop at is refused here, before anything is spent.
        f"method privacy ingest.unit sample train evaluate categories ingest.rows "
        f"tracking.internal_metrics {_QUESTION}",
        writes=(Paths.plan,),
        folders="data features privacy ledger release evaluation methods preflight",
    ),
    Stage(
        "categories",
        "categories that the schema calls private, above a threshold",
        "method privacy ingest.unit ledger.attempt categories",
        reads=(Paths.plan, _TYPED),
        writes=(Paths.categories,),
        folders="data features privacy ledger release",
        spends="categories.share of rho and categories.delta_share of delta; nothing without private categories",
    ),
    Stage(
        "preprocess",
        "unit cube and codes, row by row",
        "ingest.schema",
        reads=(_TYPED, Paths.categories),
        writes=(_ENCODED,),
        folders="data features privacy release",
        shared=False,
    ),
    Stage(
        "auxiliary",
        "private statistics that the method needs first",
        f"method privacy ingest.unit ledger.attempt {_QUESTION}",
        reads=(Paths.plan, Paths.categories, _ENCODED),
        writes=(Paths.auxiliary,),
        folders="data features privacy ledger release methods",
        spends="the plan's auxiliary shares",
    ),
    Stage(
        "privatize",
        "the embedding, released once",
        f"method privacy ingest.unit ledger.attempt {_QUESTION}",
        reads=(Paths.plan, Paths.categories, _ENCODED, Paths.auxiliary),
        writes=(_EMBEDDING,),
        folders="data features privacy ledger release methods",
        spends="the plan's shares of the embedding",
    ),
    Stage(
        "train",
        "the generator, against released values only",
        f"method privacy.adjacency privacy.num_records train {_QUESTION} ${{method}}.train",
        reads=_RELEASES,
        writes=(Paths.generator,),
        folders="data features privacy release generators methods",
        plots=((Paths.loss, {"x": "iteration", "title": "training loss"}),),
    ),
    Stage(
        "sample",
        "the synthetic table",
        # The format is that of the CSV; sample.rows: auto needs the next two, and the noisy count.
        "sample ingest.format privacy.adjacency privacy.num_records train.seed",
        reads=(Paths.categories, Paths.auxiliary, Paths.generator),
        writes=(_TABLES,),
        folders="data features privacy release generators methods",
    ),
    Stage(
        "evaluate",
        "against real rows; internal, NOT private",
        "evaluate ingest.split privacy.population",  # the population is in the title of its page
        reads=(Paths.categories, _TYPED, _TABLES),
        writes=(Paths.compared,),  # random bytes: dvc.lock shows neither hash nor size of what lies beside it
        folders="data features privacy release evaluation report",
        shared=False,
    ),
    Stage(
        "account",
        "composition of what was really released, checked against the ledger",
        "method privacy ingest.format ingest.unit categories ledger sample ${method}",
        reads=(Paths.unstated, Paths.plan, *_RELEASES, Paths.generator, _TABLES),
        writes=(Paths.statement, Paths.privacy),  # in the cache: experiments and clones get them
        folders="data features privacy ledger release generators methods inference report",
        keeps=True,  # the ledger may have grown since an earlier run with equal files
    ),
    Stage(
        "report",
        "one page for the public",
        "privacy.num_records sample",
        reads=(Paths.privacy, Paths.statement, Paths.loss, *_RELEASES, _TABLES),
        writes=(Paths.report,),
        folders="data features privacy ledger release methods inference report",
        metrics=(Paths.headline,),
        plots=((Paths.figures, {}),),
    ),
    Stage(
        "track",
        "one MLflow run, logged from files",
        "tracking.experiment tracking.internal_metrics",
        reads=(Paths.categories, *_REPORTS, Paths.compared, Paths.generator, Paths.loss),
        writes=(Paths.tracking,),
        folders="data features privacy ledger release methods report",
        shared=False,
    ),
]
"""In the order of a run."""
FOLDERS = {stage.name: stage.folders for stage in STAGES if stage.folders}
"""Folders of the package that a stage loads. ``settings`` runs every time."""


def dvc_yaml() -> str:
    """The text of ``dvc.yaml``: ``make dvc.yaml`` writes it."""
    stages = {stage.name: stage.to_dvc() for stage in STAGES}
    text = yaml.safe_dump({"stages": stages}, sort_keys=False, width=1_000)
    return _HEADER + re.sub(r"(?m)^  (?=\w)", "\n  ", f"\n{text}")


def code_digests(package: Path = _PACKAGE, plugin: Iterable[Path] = ()) -> dict[str, str]:
    """Give each stage a text that changes when a file of the package that it loads changes.

    Stages with methods also load the wings that offer methods, ``track`` those that offer tracking, and every stage
    those that offer anything else.
    ``plugin`` holds files and folders of the method, where it is none of Likeness.
    """
    names = {name for folders in FOLDERS.values() for name in f"{_ALL} {folders}".split()}
    folders = {name: _digest(package, sorted((package / name).rglob("*"))) for name in names}
    outside = {
        "plugin": list(plugin),
        "methods of wings": wing_folders(["likeness.methods"]),
        "wings": wing_folders(["likeness.counts", "likeness.datasets", "likeness.sources"]),
        "tracking": wing_folders(["likeness.tracking"]),
    }
    others = {
        name: " ".join(_digest(path.parent, sorted([path, *path.rglob("*")])) for path in paths)
        for name, paths in outside.items()
    }
    texts = {}
    for stage, packages in FOLDERS.items():
        digests = {name: folders[name] for name in f"{_ALL} {packages}".split()}
        digests["stage"] = _digest(package, [package / "stages" / f"{stage}.py"])
        offers = {"wings", *(("plugin", "methods of wings") if "methods" in packages.split() else ())}
        offers |= {"tracking"} if stage == "track" else set()
        digests |= {name: digest for name, digest in others.items() if name in offers}
        texts[stage] = "".join(f"{name} {digest}\n" for name, digest in digests.items())
    return texts


def _digest(package: Path, paths: list[Path]) -> str:
    """SHA-256 of the names and bytes of files, without what was compiled from them."""
    digest = hashlib.sha256()
    for path in paths:
        if path.is_file() and path.parent.name != "__pycache__" and path.suffix not in (".so", ".pyd"):
            data = path.read_bytes()
            digest.update(f"{path.relative_to(package).as_posix()} {len(data)}\n".encode() + data)
    return digest.hexdigest()
