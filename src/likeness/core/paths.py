"""The place of every file of a project, written once; and JSON files."""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likeness.core.errors import ArtifactError
from likeness.core.format import json_content


class ProjectPath:
    """A file or folder of a project: below the root of an object, relative to any root on the class."""

    def __init__(self, name: str) -> None:
        self._path = Path(name)

    def __get__(self, paths: "ProjectPaths | None", owner: type["ProjectPaths"]) -> Path:
        """The place in a project, or its name."""
        return self._path if paths is None else paths.root / self._path


@dataclass(frozen=True)
class Outputs:
    """The files that a run publishes beside its releases. Names are those in a bundle.

    Attributes:
        tables: names of the synthetic tables, without a suffix.
        generators: folders of the generators.
        plain: ending of the files beside those of Parquet, which need no library of tables.
    """

    tables: tuple[str, ...]
    generators: tuple[str, ...]
    plain: str = "csv"

    @property
    def generator_files(self) -> tuple[str, ...]:
        """Files of the generators."""
        return tuple(f"{folder}/{file}" for folder in self.generators for file in ("spec.json", "weights.safetensors"))

    @property
    def inner_folders(self) -> tuple[Path, ...]:
        """Folders of the generators, relative to that of all of them."""
        return tuple(Path(folder).relative_to("generator") for folder in self.generators)

    @property
    def files(self) -> tuple[str, ...]:
        """Files of generators and tables, in order of their places in a project."""
        tables = sorted(f"{table}.{suffix}" for table in self.tables for suffix in (self.plain, "parquet"))
        return (*sorted(self.generator_files), *tables)

    @staticmethod
    def project_path(name: str) -> Path:
        """The path of one of these files or folders in a project."""
        return Path("data/models" if name.startswith("generator") else "data/synthetic", name)


@dataclass(frozen=True)
class ProjectPaths:
    """Every place of a project. ``ProjectPaths(root).plan`` is a file, ``ProjectPaths.plan`` its name.

    Attributes:
        root: the project's folder.
    """

    root: Path = Path()

    params = ProjectPath("params.yaml")
    stages = ProjectPath("dvc.yaml")
    lock = ProjectPath("dvc.lock")
    dvc = ProjectPath(".dvc")
    dvc_config = ProjectPath(".dvc/config")
    lock_copy = ProjectPath(".likeness/dvc.lock")
    site_cache = ProjectPath(".dvc/tmp/site")
    lock_of_dvc = ProjectPath(".dvc/tmp/rwlock")
    flow_runs = ProjectPath(".likeness/flow_runs")
    markers = ProjectPath(".likeness/stages")
    tracked = ProjectPath(".likeness/tracked.json")

    schemas = ProjectPath("data/schema")
    settings = ProjectPath("data/plan/settings.yaml")
    code = ProjectPath("data/plan/code")
    plan = ProjectPath("data/plan/plan.json")
    unstated = ProjectPath("data/plan/unstated.json")
    private = ProjectPath("data/private")
    source = ProjectPath("data/private/source.json")
    table = ProjectPath("data/private/typed/table.arrow")
    typed_done = ProjectPath("data/private/typed/done.json")
    encoded = ProjectPath("data/private/encoded/table.arrow")
    encoded_done = ProjectPath("data/private/encoded/done.json")
    failures = ProjectPath("data/private/errors")
    released = ProjectPath("data/released")
    categories = ProjectPath("data/released/categories")
    auxiliary = ProjectPath("data/released/auxiliary")
    embedding = ProjectPath("data/released/embedding/embedding.safetensors")
    generator = ProjectPath("data/models/generator")
    loss = ProjectPath("data/models/loss.csv")
    synthetic = ProjectPath("data/synthetic/synthetic.parquet")

    privacy = ProjectPath("reports/privacy.json")
    statement = ProjectPath("reports/PRIVACY_STATEMENT.md")
    report = ProjectPath("reports/index.html")
    headline = ProjectPath("reports/metrics.json")
    figures = ProjectPath("reports/figures")
    tracking = ProjectPath("reports/tracking.json")
    internal = ProjectPath("reports/internal")
    evaluation = ProjectPath("reports/internal/evaluation")
    compared = ProjectPath("reports/internal/done.json")
    internal_metrics = ProjectPath("reports/internal/evaluation/metrics.json")
    internal_report = ProjectPath("reports/internal/index.html")

    @property
    def category_files(self) -> list[Path]:
        """Released files of open columns."""
        return sorted(self.categories.glob("*.safetensors"))

    @property
    def auxiliary_files(self) -> list[Path]:
        """Released answers of the auxiliary stage."""
        return sorted(self.auxiliary.glob("*.safetensors"))

    @property
    def released_files(self) -> list[Path]:
        """Every released file of a run, in the order of its stages."""
        siblings = sorted(self.embedding.parent.glob(f"*_{self.embedding.name}"))
        return [*self.category_files, *self.auxiliary_files, self.embedding, *siblings]


def row_set_file(path: Path, prefix: str) -> Path:
    """The file of a row set beside that of the first one. ``prefix`` begins the names of its queries."""
    return path.with_name(f"{prefix}{path.name}")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON artifact.

    Raises:
        ArtifactError: it is missing or no mapping in JSON.
    """
    try:
        value: dict[str, Any] = json_content(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing. Run: likeness run") from None
    except ValueError:
        raise ArtifactError(f"{path} is not valid JSON. Run: likeness run") from None
    if not isinstance(value, dict):
        raise ArtifactError(f"{path} does not hold a mapping. Restore it, or run: likeness run")
    return value


def write_json(path: Path, value: Any) -> None:
    """Write a JSON artifact."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(json_text(value).encode())


def write_random(path: Path) -> None:
    """Write a JSON artifact of random bytes, which DVC follows in the place of private files beside it."""
    write_json(path, {"random": secrets.token_hex(32)})


def json_text(value: Any) -> str:
    """A JSON artifact as text. Equal values give equal bytes."""
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n"
