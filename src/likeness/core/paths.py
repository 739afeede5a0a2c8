"""Where every file of a run lies: written once."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.core.errors import ArtifactError

if TYPE_CHECKING:
    pass


SOURCE = Path("data/private/source.json")
TABLE = Path("data/private/table.parquet")
SETTINGS = Path("data/plan/settings.yaml")
PLAN = Path("data/plan/plan.json")
ENCODED = Path("data/private/encoded.parquet")
WORKERS = Path("data/private/workers")
CATEGORIES = Path("data/released/categories")
AUXILIARY = Path("data/released/auxiliary")
EMBEDDING = Path("data/released/embedding.safetensors")
GENERATOR = Path("data/models/generator")
LOSS = Path("data/models/loss.csv")
SYNTHETIC = Path("data/synthetic/synthetic")
INTERNAL = Path("reports/internal")
PRIVACY = Path("reports/privacy.json")
STATEMENT = Path("reports/PRIVACY_STATEMENT.md")
REPORT = Path("reports/index.html")
FIGURES = Path("reports/figures")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON artifact.

    Raises:
        ArtifactError: it is missing or not JSON.
    """
    try:
        value: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing. Run: dvc repro") from None
    except ValueError:
        raise ArtifactError(f"{path} is not valid JSON. Run: dvc repro") from None
    return value


def write_json(path: Path, value: Any) -> None:
    """Write a JSON artifact."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json_text(value))


def json_text(value: Any) -> str:
    """A JSON artifact as text. The same value gives the same bytes."""
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n"
