"""Every name of a file that a bundle may hold."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from likeness.config.params import Params
from likeness.core.errors import ParamsError
from likeness.core.format import FORMAT, RECIPE, check_known
from likeness.core.hashing import json_value
from likeness.core.paths import Outputs, ProjectPath, ProjectPaths
from likeness.core.typed import build
from likeness.methods import method_from
from likeness.pipeline.datasets import MODELS
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import sample_request
from likeness.release.private_bounds import BOUNDS

PRIVACY, STATEMENT, CARD, SCHEMA = "privacy.json", "PRIVACY_STATEMENT.md", "README.md", "schema.yaml"
SETTINGS, PLAN_FILE, LEDGER, CHECKSUMS = "settings.json", "plan.json", "ledger.jsonl", "SHA256SUMS"
TABLE = "synthetic.parquet"
SPEC, WEIGHTS = "generator/spec.json", "generator/weights.safetensors"
RELEASED = "released"
_EMBEDDING = "embedding.safetensors"
_OF_SCHEMA = ("categories_*", BOUNDS)
_TEXTS = (PRIVACY, STATEMENT, CARD, LEDGER, CHECKSUMS)


@dataclass(frozen=True)
class BundlePaths(ProjectPaths):
    """The places of a bundle: it is a project whose files lie in one folder."""

    plan = ProjectPath(PLAN_FILE)
    privacy = ProjectPath(PRIVACY)
    generator = ProjectPath("generator")
    embedding = ProjectPath(f"{RELEASED}/{_EMBEDDING}")

    @property
    def category_files(self) -> list[Path]:
        """Released files of open columns."""
        return sorted(path for name in _OF_SCHEMA for path in (self.root / RELEASED).glob(f"{name}.safetensors"))

    @property
    def auxiliary_files(self) -> list[Path]:
        """Released answers of the auxiliary stage: all that are neither of another stage."""
        present, others = (self.root / RELEASED).glob("*.safetensors"), set(self.category_files)
        return sorted(path for path in present if path not in others and not path.name.endswith(_EMBEDDING))


class BundleProject(Project):
    """The project that a bundle is, without rows and without a ledger."""

    @cached_property
    def paths(self) -> ProjectPaths:
        """The places of its files."""
        return BundlePaths(self.root)

    def output(self, name: str) -> Path:
        """The path of a file or folder of the bundle by its name."""
        return self.root / name


def recorded_files(outputs: Outputs) -> tuple[str, ...]:
    """The files whose SHA-256 the ledger records. They, the releases and the ledger determine all others."""
    return (SCHEMA, SETTINGS, PLAN_FILE, *outputs.files)


def always(outputs: Outputs) -> tuple[str, ...]:
    """The files of each bundle. Others are ``released/QUERY.safetensors``."""
    return (*_TEXTS, *recorded_files(outputs))


_OUTPUTS = [model.outputs for model in MODELS.values()]
ALWAYS = tuple(dict.fromkeys(name for outputs in _OUTPUTS for name in always(outputs)))
"""These names of bundles of all kinds."""


def outputs_in(present: Collection[str]) -> Outputs:
    """The kind of a bundle with these files."""
    return max(_OUTPUTS, key=lambda outputs: len(set(present) & set(outputs.files)))


def allowed_name(name: str, names: Collection[str] = ALWAYS) -> bool:
    """Tell whether a bundle that always has some names may hold a file of this one."""
    path = Path(name)
    is_release = path.parent == Path(RELEASED) and path.suffix == ".safetensors" and path.stem.isidentifier()
    return name in names or is_release


_NO_CAP = {"epsilon": math.inf, "delta": 0.1}  # the ledger of the bundle says the cap

_OF_CSV = ("separator", "decimal", "quote")  # keys of ingest.format by which a table is written


def settings_of(project: Project) -> dict[str, Any]:
    """The settings of the run as JSON, without places of a machine."""
    params = project.params
    value: dict[str, Any] = json_value(
        {
            "format": FORMAT,
            "recipe": RECIPE,
            "requires": [],
            "method": params.method,
            "privacy": params.privacy,
            "attempt": params.ledger.attempt,
            "unit": project.complete_params.ingest.unit,
            "csv": {key: getattr(params.ingest.format, key) for key in _OF_CSV},
            "categories": params.categories,
            "train": params.train,
            "sample": sample_request(params.sample),
            params.method: method_from(params),
        }
    )
    return value


def params_of(settings: Mapping[str, Any]) -> Params:
    """Inverse of :func:`settings_of`: the settings of a bundle, places relative to its folder.

    Raises:
        ParamsError: a setting is unknown, missing or out of range, or another version wrote them.
        KeyError: a section is missing.
    """
    check_known(settings, ("format", "recipe"), SETTINGS, ParamsError)
    name = settings["method"]
    sections = {
        **{key: settings[key] for key in ("method", "privacy", "train", "sample", "categories")},
        "ledger": {"attempt": settings["attempt"], "cap": _NO_CAP},
        "ingest": {"source": "", "schema": SCHEMA, "unit": settings["unit"], "format": settings["csv"]},
        "sections": {name: settings[name]},
    }
    return build(Params, sections, "")
