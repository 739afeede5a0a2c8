"""Wings: packages of this distribution beside the core. Entry points name what they offer, and the core names none.

A wing may be deleted. What it offers is then refused by name, and all else works.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from likeness.core.errors import MissingPackageError

DISTRIBUTION = "likeness-dp"
T = TypeVar("T")


def _package(point: EntryPoint) -> str:
    return point.module.partition(".")[0]


def _entry_points(group: str) -> dict[str, EntryPoint]:
    """Those of wings by name: the metadata of another distribution of our name offers no package of another name."""
    try:
        points = distribution(DISTRIBUTION).entry_points
    except PackageNotFoundError:  # a source tree that nobody installed has the core alone
        return {}
    return {point.name: point for point in points.select(group=group) if point.module.startswith("likeness_")}


def _folder(package: str) -> Path | None:
    """The folder of a wing that lies beside this package; None where there is none.

    Elsewhere a package of its name is anybody's, and a folder without its ``__init__.py`` is what a deleted wing left.
    """
    spec = find_spec(package)
    folder = None if spec is None or spec.origin is None else Path(spec.origin).resolve().parent
    return folder if folder is not None and folder.parent == Path(__file__).resolve().parents[2] else None


def wing_folders(groups: Iterable[str]) -> list[Path]:
    """Folders of the installed wings that offer something under one of the groups of entry points."""
    packages = {_package(point) for group in groups for point in _entry_points(group).values()}
    return [folder for folder in map(_folder, sorted(packages)) if folder is not None]


class Wings(Mapping[str, T]):
    """The offers of core and wings in one group of entry points, by name. A wing is imported when its name is asked."""

    def __init__(self, group: str, core: Mapping[str, T]) -> None:
        """Read no entry point of the group yet; ``core`` has what the core itself offers, by name."""
        self._group, self._core = group, dict(core)

    @cached_property
    def _entry_points(self) -> dict[str, EntryPoint]:
        return _entry_points(self._group)

    @cached_property
    def _names(self) -> list[str]:
        installed = [name for name, point in self._entry_points.items() if _folder(_package(point)) is not None]
        return sorted({*self._core, *installed})

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> T:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._core:
            self._core[name] = self._entry_points[name].load()
        return self._core[name]

    def need(self, name: str, subject: str) -> T:
        """Give what a name offers.

        Args:
            name: that the core asks for.
            subject: of the message, as a whole sentence.

        Raises:
            MissingPackageError: its wing is not installed.
        """
        if name not in self:
            raise MissingPackageError(f"{subject} {self.remedy}")
        return self[name]

    @property
    def are_declared(self) -> bool:
        """Tell whether the metadata names wings at all: that of an earlier install, or of none, does not."""
        return bool(self._entry_points)

    def is_ours(self, name: str) -> bool:
        """Tell whether core or a wing offers a name, and be it a wing that is not installed."""
        return name in self._core or name in self._entry_points

    def check_installed(self, name: str, subject: str) -> None:
        """Refuse a name whose wing is not installed.

        Args:
            name: that settings or a file ask for.
            subject: of the message, as its beginning.

        Raises:
            MissingPackageError: its wing is not installed.
        """
        if self.is_ours(name) and name not in self:
            raise MissingPackageError(f"{subject} is that of a part of Likeness. {self.remedy}")

    @property
    def absent(self) -> list[str]:
        """The packages that are not installed."""
        return sorted({_package(point) for name, point in self._entry_points.items() if name not in self})

    @property
    def remedy(self) -> str:
        """The sentences that say which parts of Likeness are not installed, and how to have them."""
        return _remedy(", ".join(self.absent) or "It")


def need_wing_to_start(package: str, user: str) -> None:
    """Refuse a script of ``user`` that needs a wing which is not installed: its end is the message, not an error."""
    if _folder(package) is None:
        sys.exit(f"{user} needs a part of Likeness. {_remedy(package)}")


def _remedy(packages: str) -> str:
    return f"{packages} is not installed here. Run: pip install --force-reinstall --no-deps {DISTRIBUTION}"
