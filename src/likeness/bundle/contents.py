"""Every name of a file that a bundle may hold."""

from collections.abc import Collection
from pathlib import Path

from likeness.core.paths import Outputs
from likeness.pipeline.datasets import MODELS

PRIVACY, STATEMENT, CARD, SCHEMA = "privacy.json", "PRIVACY_STATEMENT.md", "README.md", "schema.yaml"
SETTINGS, PLAN_FILE, LEDGER, CHECKSUMS = "settings.json", "plan.json", "ledger.jsonl", "SHA256SUMS"
TABLE = "synthetic.parquet"
SPEC, WEIGHTS = "generator/spec.json", "generator/weights.safetensors"
RELEASED = "released"
_TEXTS = (PRIVACY, STATEMENT, CARD, LEDGER, CHECKSUMS)


def published(outputs: Outputs) -> tuple[str, ...]:
    """The files whose SHA-256 the ledger records. They, the releases and the ledger determine all others."""
    return (SCHEMA, SETTINGS, PLAN_FILE, *outputs.files)


def always(outputs: Outputs) -> tuple[str, ...]:
    """The files of each bundle. Others are ``released/QUERY.safetensors``."""
    return (*_TEXTS, *published(outputs))


_OUTPUTS = [model.outputs for model in MODELS.values()]
ALWAYS = tuple(dict.fromkeys(name for outputs in _OUTPUTS for name in always(outputs)))
"""These names of bundles of all kinds."""


def outputs_in(present: Collection[str]) -> Outputs:
    """The kind of a bundle with these files."""
    return max(_OUTPUTS, key=lambda outputs: len(set(present) & set(outputs.files)))


def allowed_name(name: str, names: Collection[str] = ALWAYS) -> bool:
    """Whether a bundle that always has some names may hold a file of this one."""
    path = Path(name)
    return name in names or (
        path.parent == Path(RELEASED) and path.suffix == ".safetensors" and path.stem.isidentifier()
    )
