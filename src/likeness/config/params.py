"""The sections of params.yaml, and what they may say of each other."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from likeness.config.typed import allowed, require
from likeness.core.bounds import MOST_CATEGORIES, PrivacyUnit
from likeness.core.errors import ParamsError

_DATABASES = ("sqlite", "postgresql+psycopg")
_SQLITE = "sqlite:///"  # before the place of a file
_READS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?|(?i:select|with)\b[^;]*", re.ASCII)

ONE_ROW, ONE_PERSON = "one row is one person", "one person"
"""What ``privacy.unit`` says as shipped, and what it may say with ``ingest.unit``."""
MOST_ROWS = 10_000
"""Of one person: sums of features, and noise so many times wider, are far from the ends of 64 bits."""


@dataclass(frozen=True)
class Privacy:
    """Section ``privacy``: the promise."""

    epsilon: float
    delta: float
    identity: str
    unit: str
    adjacency: str = "add_remove_one"
    num_records: int | None = None

    def __post_init__(self) -> None:
        """Check ranges."""
        require(self.epsilon > 0, "privacy.epsilon", self.epsilon, "greater than 0; inf for no privacy")
        require(0 < self.delta < 1, "privacy.delta", self.delta, "between 0 and 1, well below 1 / records")
        allowed("privacy.adjacency", self.adjacency, ("add_remove_one", "replace_one"))
        require(self.identity.strip() != "", "privacy.identity", self.identity, "a name for the people in the data")


@dataclass(frozen=True)
class Cap:
    """Section ``ledger.cap``: the most that may ever be spent on one identity. Also one of ``ledger.caps``."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        """Check ranges."""
        require(self.epsilon > 0, "epsilon of a cap in section ledger", self.epsilon, "greater than 0")
        require(0 < self.delta < 1, "delta of a cap in section ledger", self.delta, "between 0 and 1")


@dataclass(frozen=True)
class Caps:
    """Section ``ledger.caps``: policy beside the lifetime cap; each holds for one identity."""

    project: Cap | None = None
    user: Cap | None = None
    month: Cap | None = None


@dataclass(frozen=True)
class LedgerSettings:
    """Section ``ledger``."""

    cap: Cap
    home: str | None = None
    url: str | None = None
    slot: str = "1"
    project: str | None = None
    caps: Caps = field(default_factory=Caps)

    def __post_init__(self) -> None:
        """Check what the ledger writes into its own names."""
        require("~" not in self.slot, "ledger.slot", self.slot, "free of '~', which marks a draw that is spent again")
        if self.caps.project is not None:
            require(bool(self.project), "ledger.project", self.project, "a name, as ledger.caps.project counts by it")


@dataclass(frozen=True)
class Split:
    """Section ``ingest.split``: by a public column, or by a fraction."""

    column: str | None = None
    train: str = "train"
    test: str = "test"
    test_fraction: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        """Check ranges."""
        require(0 < self.test_fraction < 1, "ingest.split.test_fraction", self.test_fraction, "between 0 and 1")


@dataclass(frozen=True)
class Ingest:
    """Section ``ingest``."""

    source: str
    schema: str
    split: Split = field(default_factory=Split)
    unit: PrivacyUnit | None = None
    query: str | None = None

    @property
    def from_database(self) -> bool:
        """Whether the source is a database and not a file."""
        return "://" in self.source

    def __post_init__(self) -> None:
        """Check what is said of a database, and of people with several rows."""
        self._check_source()
        if self.unit is None:
            return
        require(self.unit.column.strip() != "", "ingest.unit.column", self.unit.column, "the name of a column")
        most = self.unit.max_rows
        rule = f"1 to {MOST_ROWS:,}; noise is as many times wider"
        require(1 <= most <= MOST_ROWS, "ingest.unit.max_rows", most, rule)
        require(
            self.unit.column != self.split.column,
            "ingest.unit.column",
            self.unit.column,
            "another column than ingest.split.column: the split is public, who somebody is is not",
        )

    def _check_source(self) -> None:
        """A database's URL has no password and is never repeated; its query reads."""
        if not self.from_database:
            if self.query is not None:
                raise ParamsError("ingest.query is for a database: ingest.source is a file. Set ingest.query: null")
            return
        try:
            parts = urlsplit(self.source)
            password, database = parts.password, parts.path.strip("/")
        except ValueError:
            password, database, parts = None, "", urlsplit("")
        secret = {"password", "sslpassword", "passwd"} & {name.lower() for name, _ in parse_qsl(parts.query)}
        if password is not None or secret:
            raise ParamsError(
                "ingest.source must not hold a password: params.yaml, dvc.lock and logs would keep it. Leave it out, "
                "and use PGPASSWORD, PGPASSFILE (~/.pgpass) or a service file (PGSERVICE), as for psql."
            )
        if (
            not database
            or parts.scheme not in _DATABASES
            or (parts.scheme == "sqlite" and (parts.netloc or parts.query))
        ):
            raise ParamsError(
                "ingest.source must be a file, sqlite:///people.db (four slashes before an absolute path), or "
                "postgresql+psycopg://user@host:port/database"
            )
        query = (self.query or "").strip()
        if not _READS.fullmatch(query):
            raise ParamsError(
                "ingest.query must be the name of a table, or one SELECT (or WITH ... SELECT) without a semicolon, "
                "while ingest.source is a database"
            )


@dataclass(frozen=True)
class Categories:
    """Section ``categories``: of columns whose categories the schema calls private; without such columns, nothing.

    Attributes:
        share: of the run's ρ, for all such columns. delta_share: of its δ, for their thresholds.
        most: categories of a column that are kept at most, beside its ``other``.
    """

    share: float = 0.1
    delta_share: float = 0.1
    most: int = 100

    def __post_init__(self) -> None:
        """Check ranges."""
        require(0 < self.share < 1, "categories.share", self.share, "between 0 and 1")
        require(0 < self.delta_share < 1, "categories.delta_share", self.delta_share, "between 0 and 1")
        rule = f"from 1 to {MOST_CATEGORIES - 1:,}"
        require(1 <= self.most < MOST_CATEGORIES, "categories.most", self.most, rule)


@dataclass(frozen=True)
class Train:
    """Section ``train``: what holds for every method."""

    device: str = "auto"
    seed: int = 0
    threads: int = 1
    precision: str = "float32"

    def __post_init__(self) -> None:
        """Check ranges."""
        allowed("train.device", self.device, ("auto", "cpu", "cuda", "mps"))
        require(1 <= self.threads <= 1024, "train.threads", self.threads, "from 1 to 1,024")
        allowed("train.precision", self.precision, ("float32", "bfloat16"))


@dataclass(frozen=True)
class Sample:
    """Section ``sample``."""

    rows: int
    seed: int = 0
    where: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check ranges."""
        require(self.rows >= 1, "sample.rows", self.rows, "at least 1")


@dataclass(frozen=True)
class Evaluate:
    """Section ``evaluate``."""

    seed: int = 0
    bins: int = 16
    max_tuples: int = 200
    workers: int = 2
    classifiers: tuple[str, ...] | None = None
    max_rows: int | None = None
    range_queries: int = 1000
    mmd_rows: int = 5000
    row_counts: tuple[int, ...] | None = None
    real_rows: int | None = 1_000_000

    def __post_init__(self) -> None:
        """Check ranges."""
        require(
            self.real_rows is None or self.real_rows >= 2, "evaluate.real_rows", self.real_rows, "null or 2 or more"
        )
        require(self.range_queries >= 1, "evaluate.range_queries", self.range_queries, "at least 1")
        require(self.mmd_rows >= 2, "evaluate.mmd_rows", self.mmd_rows, "at least 2")
        counts = self.row_counts
        require(
            counts is None or (len(counts) > 0 and min(counts) >= 1),
            "evaluate.row_counts",
            counts,
            "null or a list of numbers of rows, each at least 1",
        )
        require(self.bins >= 2, "evaluate.bins", self.bins, "at least 2")
        require(self.max_tuples >= 1, "evaluate.max_tuples", self.max_tuples, "at least 1")
        require(self.workers >= 1, "evaluate.workers", self.workers, "at least 1")


@dataclass(frozen=True)
class Tracking:
    """Section ``tracking``."""

    experiment: str
    uri: str | None = None
    internal_metrics: bool = False


@dataclass(frozen=True)
class Schedule:
    """Section ``schedule``."""

    cron: str
    timezone: str = "UTC"


@dataclass(frozen=True)
class EngineSettings:
    """Section ``engine``: where the passes over rows are worked on. It changes no bit of any result."""

    kind: str = "local"
    workers: int = 2
    scheduler: str | None = None

    def __post_init__(self) -> None:
        """Check ranges."""
        allowed("engine.kind", self.kind, ("local", "dask"))
        require(self.workers >= 1, "engine.workers", self.workers, "at least 1")


@dataclass(frozen=True)
class Params:
    """All of params.yaml. ``sections`` holds the methods' own sections as written."""

    method: str
    privacy: Privacy
    ledger: LedgerSettings
    ingest: Ingest
    train: Train
    sample: Sample
    evaluate: Evaluate
    tracking: Tracking
    schedule: Schedule
    sections: Mapping[str, Any]
    engine: EngineSettings = field(default_factory=EngineSettings)
    categories: Categories = field(default_factory=Categories)

    def __post_init__(self) -> None:
        """Check what sections say of each other."""
        if self.ingest.from_database and self.privacy.adjacency == "replace_one":
            raise ParamsError(
                "privacy.adjacency is replace_one, but ingest.source is a database, whose rows have no places that a "
                "public split or pairing could go by. Set privacy.adjacency: add_remove_one, or export a file."
            )
        if self.ingest.unit is None:
            return
        if self.privacy.adjacency != "add_remove_one":
            raise ParamsError(
                f"privacy.adjacency is {self.privacy.adjacency}, but ingest.unit lets a person have several rows: "
                "another person may have more or fewer of them, so that the number of records cannot be public. Set "
                "privacy.adjacency: add_remove_one, or ingest.unit: null."
            )
        require(
            self.privacy.unit != ONE_ROW,
            "privacy.unit",
            self.privacy.unit,
            f"who is protected with all their rows, as '{ONE_PERSON}' or 'one patient', while ingest.unit is set",
        )
