"""Where the ledger lives: outside each workspace, so that clones and branches share it; for a team, in PostgreSQL."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from likeness.core.errors import LedgerError
from likeness.core.files import expand_home, user_folders
from likeness.core.remote import split_url


@dataclass(frozen=True)
class Home:
    """Folders of one ledger.

    Attributes:
        path: folder of ledger, key, lock files, staging and store of released bytes; mode 0700.
        anchor: folder in another place, for the anchor. It shows that ``path`` was lost or restored.
        url: a team's database; None: the SQLite file in ``path``. Key, lock files and anchor stay on each machine.
    """

    path: Path
    anchor: Path
    url: str | None = None

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / "ledger.sqlite"

    @property
    def location(self) -> str:
        """Name of the ledger's place in messages and in its anchor, without user and password."""
        if self.url is None:
            return str(self.path)
        parts = urlsplit(self.url)
        host = dict(parse_qsl(parts.query)).get("host") or parts.netloc.rpartition("@")[2] or "localhost"
        return f"postgresql://{host}{parts.path}"

    @property
    def key_file(self) -> Path:
        """File of 32 secret bytes, the key of each digest of private data."""
        return self.path / "hmac.key"

    @property
    def releases(self) -> Path:
        """Folder of released bytes, one read-only file a key."""
        return self.path / "releases"

    @property
    def staging(self) -> Path:
        """Folder of draws that are not committed: as secret as the raw data."""
        return self.path / "staging"

    @property
    def locks(self) -> Path:
        """Folder of lock files."""
        return self.path / "locks"


def locate(configured: str | None = None, url: str | None = None) -> Home:
    """Find the ledger's folders and, for a team, its database.

    Environment variables win over params.yaml, and both over the user's data and state folders.

    Args:
        configured: ``ledger.home`` of params.yaml; ``LIKENESS_HOME`` wins over it.
        url: ``ledger.url`` of params.yaml; ``LIKENESS_LEDGER_URL`` wins over it.

    Raises:
        LedgerError: the anchor would lie inside the ledger's folder and be lost with it; or the URL is not one of
            PostgreSQL, or holds a password.
    """
    path = os.environ.get("LIKENESS_HOME") or configured or _default_folders()[0]
    anchor = os.environ.get("LIKENESS_ANCHOR") or _default_folders()[1]
    url = os.environ.get("LIKENESS_LEDGER_URL") or url
    if url is not None:
        _check_url(url)
    home = Home(expand_home(path).resolve(), expand_home(anchor).resolve(), url)
    if home.anchor.is_relative_to(home.path) or home.path.is_relative_to(home.anchor):
        raise LedgerError(
            f"the ledger ({home.path}) and its anchor ({home.anchor}) must not lie inside each other: both would be "
            "lost together. Set LIKENESS_HOME or LIKENESS_ANCHOR to another folder."
        )
    return home


def _default_folders() -> tuple[Path, Path]:
    """Folders of ledger and anchor: the user's data and state folders, or two folders in the one folder of macOS."""
    data, state = user_folders()
    return (data, state) if data != state else (data / "ledger", data / "anchor")


def _check_url(url: str) -> None:
    """Refuse a URL that is not one of PostgreSQL or holds a password. The message never repeats it."""
    parts, has_password = split_url(url)
    database = parts.path.strip("/")
    if not url.startswith("postgresql+psycopg://") or not database or "/" in database:
        raise LedgerError(
            "ledger.url must be postgresql+psycopg://user@host:port/database, or null for SQLite in the ledger's "
            "folder. Correct it in params.yaml or in LIKENESS_LEDGER_URL."
        )
    if has_password:
        raise LedgerError(
            "ledger.url must not hold a password: params.yaml, dvc.lock and logs would keep it. Remove it and use "
            "PGPASSWORD, PGPASSFILE (~/.pgpass) or a service file (PGSERVICE), as for psql."
        )
