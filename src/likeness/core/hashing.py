"""One way to write a JSON value as bytes, so that digests and keys agree on every machine."""

import hashlib
import hmac
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from likeness.core.remote import SourcePath, files_in, reading

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: Any) -> str:
    """Sorted keys, no blanks, shortest round-trip floats; infinities as the strings ``"inf"`` and ``"-inf"``."""
    return str(value) if type(value) is int else _CANONICAL.encode(json_value(value))


def plain_json(value: Any) -> str:
    """Give :func:`canonical_json` quickly, and only of what JSON itself can hold."""
    return _CANONICAL.encode(value)


def sha256_json(value: Any) -> str:
    """Hexadecimal SHA-256 of :func:`canonical_json`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def sha256_bytes(data: bytes) -> str:
    """Hexadecimal SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def keyed_digest(path: SourcePath, key: bytes) -> str:
    """Keyed hash of a file, or of the names and hashes in a folder: DVC sees changes and no hash of private bytes.

    Raises:
        DataError: it cannot be read, or a folder holds what :func:`likeness.core.remote.files_in` refuses.
    """
    if not path.is_dir():
        return _keyed_digest(path, key, path.name)
    files = {"/".join([*folders, file.name]): _keyed_digest(file, key, path.name) for folders, file in files_in(path)}
    return hmac.new(key, json.dumps(files, sort_keys=True).encode(), "sha256").hexdigest()


def _keyed_digest(path: SourcePath, key: bytes, source: str) -> str:
    digest = hmac.new(key, digestmod="sha256")
    with reading(source), path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def json_value(value: Any) -> Any:
    """A value for JSON and YAML: dataclasses as mappings of their fields, lists, Python's numbers, infinities as text.

    A map of features is its public specification.
    """
    if type(value) in (str, int) or (type(value) is float and math.isfinite(value)):  # most of a ledger, and of edges
        return value
    if hasattr(value, "spec"):
        return value.spec()
    if is_dataclass(value):
        return {item.name: json_value(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        kinds = {*map(type, value)}
        if kinds <= {int, str} or (kinds <= {int, float} and all(map(math.isfinite, value))):  # edges and scores
            return [*value]
        return [json_value(item) for item in value]
    if hasattr(value, "item") and not hasattr(value, "__len__"):  # of numpy
        return json_value(value.item())
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
