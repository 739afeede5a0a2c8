"""Who asks, from which commit, with which settings: public facts for the ledger."""

import os
import subprocess
from typing import TYPE_CHECKING, Any

from likeness import __version__
from likeness.config.params import Params
from likeness.core.hashing import sha256_json

if TYPE_CHECKING:
    pass


def provenance(params: Params | None = None) -> dict[str, Any]:
    """Who asks, for which project, from which commit, with which settings and software: public facts for the ledger."""
    import getpass
    import platform
    from importlib.metadata import version

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container without a passwd entry
        user = f"uid {os.getuid()}"
    software = {name: version(name) for name in ("numpy", "opendp", "pandas", "sqlalchemy")}
    facts = {
        "asked_by": user,
        "git_commit": _git("rev-parse", "--verify", "--quiet", "HEAD") or "none",
        "git_changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "likeness": __version__,
        "software": {"python": platform.python_version(), **software},
    }
    if params is not None:
        facts |= {"project": params.ledger.project or "", "params_sha256": sha256_json(public_settings(params))}
    return facts


def public_settings(params: Params) -> dict[str, Any]:
    """params.yaml without places, which differ from machine to machine and may hold a password."""
    from dataclasses import asdict

    value = asdict(params)
    del value["engine"]  # nor how work is divided, which changes nothing
    for section, key in (("ingest", "source"), ("ledger", "home"), ("ledger", "url"), ("tracking", "uri")):
        del value[section][key]
    return value


def _git(*words: str) -> str:
    """What git says; nothing where there is no git, or no repository."""
    try:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""
