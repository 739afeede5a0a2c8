"""A PostgreSQL server for tests: a fresh cluster in a temporary folder, reached by a Unix socket only."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def programs() -> Path | None:
    """Folder of ``initdb`` and ``postgres``; distributions keep them off the path."""
    found = [path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))]
    on_path = shutil.which("initdb")
    if on_path:
        found.append(Path(on_path).resolve().parent)
    return found[-1] if found else None


def account() -> tuple[list[str], int, int]:
    """Words to put before a command, and ids, of a user who may run the server: it refuses to run as root."""
    if os.getuid() != 0:
        return [], os.getuid(), os.getgid()
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if shutil.which("setpriv"):
            ids = ["--reuid", str(entry.pw_uid), "--regid", str(entry.pw_gid), "--clear-groups"]
            return ["setpriv", *ids], entry.pw_uid, entry.pw_gid
        if shutil.which("runuser"):
            return ["runuser", "-u", name, "--"], entry.pw_uid, entry.pw_gid
    pytest.skip("PostgreSQL refuses to run as root, and there is no other account to run it")


@contextmanager
def server() -> Iterator[Path]:
    """Start a server without durability; yields the folder of its socket."""
    binaries = programs()
    if binaries is None:
        pytest.skip("PostgreSQL's initdb and postgres are not installed")
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'likeness-dp[postgres]'")
    words, uid, gid = account()
    # Not pytest's folder: another user must be able to enter, and a socket's path has at most 107 letters.
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        os.chown(folder, uid, gid)
        folder.chmod(0o755)
        data = folder / "data"
        options = "-c listen_addresses= -c fsync=off -c max_connections=40 -c autovacuum=off -c shared_buffers=8MB"
        options += f" -c unix_socket_directories={folder} -c log_min_messages=panic"
        control = [*words, str(binaries / "pg_ctl"), "-D", str(data), "-w", "-t", "300", "-l", str(folder / "log")]
        initdb = [*words, str(binaries / "initdb"), "-D", str(data), "-U", "owner", "-A", "trust", "-E", "UTF8", "-N"]
        subprocess.run([*initdb, "--locale=C"], check=True, capture_output=True, cwd=folder)
        subprocess.run([*control, "-o", options, "start"], check=True, capture_output=True, cwd=folder, timeout=300)
        try:
            yield folder
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=False, capture_output=True, cwd=folder)
