"""Whether a generator's two files belong to each other; needs no tensor library."""

import json
from pathlib import Path

from likeness.core.errors import ArtifactError
from likeness.core.format import FORMAT
from likeness.core.hashing import sha256_bytes

SPEC_DIGEST = "spec_sha256"  # key in the metadata of weights.safetensors


def check_weights(folder: Path) -> None:
    """Refuse weights that were not saved with the specification beside them.

    Raises:
        ArtifactError: the files do not belong together, or one is missing or damaged.
    """
    try:
        spec = (folder / "spec.json").read_bytes()
        with (folder / "weights.safetensors").open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(size, 1 << 24)))
        digest = header["__metadata__"][SPEC_DIGEST]
    except FileNotFoundError as error:
        raise ArtifactError(f"{error.filename} is missing. Run: likeness run") from None
    except (KeyError, ValueError, TypeError):
        raise ArtifactError(f"{folder}: not a generator of format {FORMAT}. Run: likeness run") from None
    if digest != sha256_bytes(spec):
        raise ArtifactError(f"{folder}: weights.safetensors was not saved with spec.json. Run: likeness run")
