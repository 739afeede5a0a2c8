"""One way to write a JSON value as bytes, so that digests and keys agree on every machine."""

import hashlib
import hmac
import json
import math
from pathlib import Path
from typing import Any


def canonical_json(value: Any) -> str:
    """Sorted keys, no blanks, shortest round-trip floats; infinities as the strings ``"inf"`` and ``"-inf"``."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256_json(value: Any) -> str:
    """Hexadecimal SHA-256 of :func:`canonical_json`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def sha256_bytes(data: bytes) -> str:
    """Hexadecimal SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def keyed_digest(path: Path, key: bytes) -> str:
    """Keyed hash of a file, so that DVC can notice a change without publishing a hash of private bytes.

    Of a folder: of its files' names and hashes.
    """
    digest = hmac.new(key, digestmod="sha256")
    if path.is_dir():
        files = {file.name: keyed_digest(file, key) for file in sorted(path.iterdir()) if file.is_file()}
        digest.update(json.dumps(files, sort_keys=True).encode())
        return digest.hexdigest()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
