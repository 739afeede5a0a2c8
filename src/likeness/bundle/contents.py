"""Every name of a file that a bundle may hold."""

from pathlib import Path

from likeness.methods import METHODS

PRIVACY, STATEMENT, CARD, SCHEMA = "privacy.json", "PRIVACY_STATEMENT.md", "README.md", "schema.yaml"
SETTINGS, PLAN_FILE, LEDGER, CHECKSUMS = "settings.json", "plan.json", "ledger.jsonl", "SHA256SUMS"
TABLE, TABLE_CSV = "synthetic.parquet", "synthetic.csv"
SPEC, WEIGHTS = "generator/spec.json", "generator/weights.safetensors"
RELEASED = "released"
PUBLISHED = (SCHEMA, SETTINGS, PLAN_FILE, SPEC, WEIGHTS, TABLE, TABLE_CSV)
"""The files whose SHA-256 the ledger records. They, the releases and the ledger determine all others."""
ALWAYS = (PRIVACY, STATEMENT, CARD, LEDGER, CHECKSUMS, *PUBLISHED)
"""The other names of a bundle are ``released/QUERY.safetensors`` and the public files of its method."""
PUBLIC_FILES = tuple(name for method in METHODS.values() for name in method.public_names)


def allowed_name(name: str) -> bool:
    """Whether a bundle may hold a file of this name."""
    path = Path(name)
    return name in (*ALWAYS, *PUBLIC_FILES) or (
        path.parent == Path(RELEASED) and path.suffix == ".safetensors" and path.stem.isidentifier()
    )
