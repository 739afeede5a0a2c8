"""Where the ledger lives on this machine: outside every workspace, so that clones and branches share it."""

import os
from dataclasses import dataclass
from pathlib import Path

from likeness.errors import LedgerError


@dataclass(frozen=True)
class Home:
    """Folders of one ledger.

    Attributes:
        path: ledger, key, lock files, staging and store of released bytes; mode 0700.
        anchor: folder in another place that holds the anchor, so that losing or restoring ``path`` is noticed.
    """

    path: Path
    anchor: Path

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / "ledger.sqlite"

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


def locate(configured: str | None = None) -> Home:
    """Find the ledger's folders.

    ``LIKENESS_HOME`` wins over ``ledger.home`` in params.yaml, which wins over the user's data folder.
    ``LIKENESS_ANCHOR`` wins over the user's state folder.

    Raises:
        LedgerError: the anchor would lie inside the ledger's folder, where it could not witness anything.
    """
    import platformdirs

    path = os.environ.get("LIKENESS_HOME") or configured or platformdirs.user_data_dir("likeness")
    anchor = os.environ.get("LIKENESS_ANCHOR") or platformdirs.user_state_dir("likeness")
    home = Home(Path(path).expanduser().resolve(), Path(anchor).expanduser().resolve())
    if home.anchor.is_relative_to(home.path) or home.path.is_relative_to(home.anchor):
        raise LedgerError(
            f"the ledger ({home.path}) and its anchor ({home.anchor}) must not lie inside each other: an anchor that "
            "is lost together with the ledger witnesses nothing. Set LIKENESS_HOME or LIKENESS_ANCHOR."
        )
    return home


def make_private_folder(path: Path) -> None:
    """Create a folder that only its owner may enter."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
