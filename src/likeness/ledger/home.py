"""Where the ledger lives: outside every workspace, so that clones and branches share it; for a team, in PostgreSQL."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from likeness.core.errors import LedgerError


@dataclass(frozen=True)
class Home:
    """Folders of one ledger.

    Attributes:
        path: ledger, key, lock files, staging and store of released bytes; mode 0700.
        anchor: folder in another place that holds the anchor, so that losing or restoring ``path`` is noticed.
        url: a team's database; None: the SQLite file in ``path``. Key, lock files and anchor stay on every machine.
    """

    path: Path
    anchor: Path
    url: str | None = None

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / "ledger.sqlite"

    @property
    def place(self) -> str:
        """Name of the ledger's place in messages and in its anchor. Holds no user and no password."""
        if self.url is None:
            return str(self.path)
        parts = urlsplit(self.url)
        host = dict(parse_qsl(parts.query)).get("host") or parts.netloc.rpartition("@")[2] or "localhost"
        return f"postgresql://{host}{parts.path}"

    @property
    def key_file(self) -> Path:
        """32 secret bytes that key every digest of private data."""
        return self.path / "hmac.key"

    @property
    def releases(self) -> Path:
        """Released bytes, one read-only file a key."""
        return self.path / "releases"

    @property
    def staging(self) -> Path:
        """Drawn but not yet committed: as secret as the raw data."""
        return self.path / "staging"

    @property
    def locks(self) -> Path:
        """Lock files."""
        return self.path / "locks"


def locate(configured: str | None = None, url: str | None = None) -> Home:
    """Find the ledger's folders and, for a team, its database.

    ``LIKENESS_HOME`` wins over ``ledger.home`` in params.yaml, which wins over the user's data folder.
    ``LIKENESS_ANCHOR`` wins over the user's state folder, ``LIKENESS_LEDGER_URL`` over ``ledger.url``.

    Raises:
        LedgerError: the anchor would lie inside the ledger's folder, where it could not witness anything; or the URL is
            not one of PostgreSQL, or holds a password.
    """
    own_path, own_anchor = _default_folders()
    path = os.environ.get("LIKENESS_HOME") or configured or own_path
    anchor = os.environ.get("LIKENESS_ANCHOR") or own_anchor
    url = os.environ.get("LIKENESS_LEDGER_URL") or url
    if url is not None:
        _check_url(url)
    home = Home(Path(path).expanduser().resolve(), Path(anchor).expanduser().resolve(), url)
    if home.anchor.is_relative_to(home.path) or home.path.is_relative_to(home.anchor):
        raise LedgerError(
            f"the ledger ({home.path}) and its anchor ({home.anchor}) must not lie inside each other: an anchor that "
            "is lost together with the ledger witnesses nothing. Set LIKENESS_HOME or LIKENESS_ANCHOR."
        )
    return home


def _default_folders() -> tuple[str, str]:
    """Of ledger and anchor: the user's data and state folders or, where these are one (macOS), two folders in it."""
    import platformdirs

    data, state = platformdirs.user_data_dir("likeness"), platformdirs.user_state_dir("likeness")
    return (data, state) if data != state else (f"{data}/ledger", f"{data}/anchor")


def _check_url(url: str) -> None:
    """Refuse what is no PostgreSQL URL or holds a password, without ever repeating it."""
    try:
        parts = urlsplit(url)
        password, database = parts.password, parts.path.strip("/")
    except ValueError:
        password, database = None, ""
    if not url.startswith("postgresql+psycopg://") or not database or "/" in database:
        raise LedgerError(
            "ledger.url must be postgresql+psycopg://user@host:port/database, or null for SQLite in the ledger's folder"
        )
    secret = {"password", "sslpassword", "passwd"} & {name.lower() for name, _ in parse_qsl(parts.query)}
    if password is not None or secret:
        raise LedgerError(
            "ledger.url must not hold a password: params.yaml, dvc.lock and logs would keep it. Leave it out and use "
            "PGPASSWORD, PGPASSFILE (~/.pgpass) or a service file (PGSERVICE), as for psql."
        )
