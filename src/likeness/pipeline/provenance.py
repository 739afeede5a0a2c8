"""User, commit, settings and software: public facts for the ledger."""

import getpass
import os
import platform
import subprocess
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from likeness import __version__
from likeness.config.params import Params

SOFTWARE = ("numpy", "opendp", "pandas", "python", "sqlalchemy")
"""What a reservation names the versions of."""


def provenance(root: Path = Path()) -> dict[str, Any]:
    """User, software and commit of the repository in a folder."""
    try:
        user = getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container without a passwd entry; Windows without a name
        user = f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
    software = {name: version(name) for name in SOFTWARE if name != "python"}
    return {
        "asked_by": user,
        "git_commit": git(root, "rev-parse", "--verify", "--quiet", "HEAD") or "none",
        "git_changed": bool(git(root, "status", "--porcelain", "--untracked-files=no")),
        "likeness": __version__,
        "software": {"python": platform.python_version(), **software},
    }


def public_settings(params: Params) -> dict[str, Any]:
    """params.yaml without places, which differ between machines and may hold a password."""
    value = asdict(params)
    for section, key in (
        ("ingest", "source"),
        ("ingest", "people"),
        ("ledger", "home"),
        ("ledger", "url"),
        ("tracking", "uri"),
    ):
        del value[section][key]
    return value


def git(folder: Path, *arguments: str) -> str:
    """The output of git in a folder; empty without git or a repository."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, encoding="utf-8", errors="replace", check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip()
