"""The sections of params.yaml: every default, every help text, and the rules between sections."""

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from likeness.core.bounds import MOST_CATEGORIES, MOST_DELTA, PrivacyUnit
from likeness.core.errors import ParamsError
from likeness.core.files import expand_home
from likeness.core.remote import split_url
from likeness.core.text import normal_texts
from likeness.core.typed import Section, require, setting

_DATABASES = ("sqlite", "duckdb", "postgresql+psycopg", "spark")
_NOT_PLAIN = re.compile(  # a user, a token, a signature, a copy somewhere, a slash too few
    r"^(?!(abfss?|sftp|ssh|hdfs):)[^/]*://[^/]*@|://[^@]*(:|%3A)[^@]*@|://.*[?#;]|://.*::|^[^/]*::|"
    r"^[a-z0-9+]{2,}:/(?!/)",
    re.IGNORECASE,
)
# At the end of a query: rows that others decide.
_CUT = re.compile(
    r"\b(limit\s+\w+|offset\s+\d+(\s+rows?)?|fetch\s+(first|next)\b[\s\w]*)\s*(--[^\n]*\s*)*$", re.IGNORECASE
)
_READS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?|(?i:select|with)\b[^;]*", re.ASCII)

DATABASES = ("sqlite:", "duckdb:", "postgres", "spark:", "mysql", "mariadb", "oracle", "mssql")
"""How URLs of databases begin. Any other URL is that of a file."""
MOST_PATH = 4096
"""Most characters of a path or a URL."""
ONE_ROW, ONE_PERSON, ONE_IMAGE = "one row is one person", "one person", "one row is one image"
"""The default of ``privacy.unit``, and an example for use with ``ingest.unit``."""
AUTO = "auto"
"""``sample.rows``: as many rows as the noisy count, or the public number, says."""
NONE, GROWING = "none", "growing"
"""``privacy.series``: each run is about everybody; or each night is about the people who came since another one."""
COME, STAY = "come", "stay"
"""``ingest.rows``: the rows of a database are read here; or it counts them, and only counts come."""
MOST_ROWS = 10_000
"""Most rows of one person: sums of features and their wider noise stay far from the ends of 64 bits."""


@dataclass(frozen=True, kw_only=True)
class Privacy(Section):
    """Section ``privacy``: the promise."""

    epsilon: float = setting(
        help="for the whole run; less: more privacy, more noise; inf: no noise, NOT PRIVATE",
        above=0,
        rule="greater than 0; inf for no privacy",
    )
    delta: float = setting(
        help="well below 1 / number of records", above=0, below=1, rule="between 0 and 1, well below 1 / records"
    )
    adjacency: str = setting(
        "add_remove_one",
        "add_remove_one: the number of records is private | replace_one: it is public",
        options=("add_remove_one", "replace_one"),
    )
    num_records: int | None = setting(None, "training rows; only, and then always, with replace_one")
    population: str = setting(
        help="a name for the PEOPLE in the data; new versions of the data keep it, so costs add up"
    )
    unit: str = setting(ONE_ROW, "who is protected, in words")
    series: str = setting(
        NONE, "none: each run is about all | growing: each night about new people, for less", options=(NONE, GROWING)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        named = self.population.strip() != ""
        require(named, "privacy.population", self.population, "a name for the people in the data")


@dataclass(frozen=True)
class Cap(Section):
    """Section ``ledger.cap``: the most that may ever be spent on one population."""

    is_indivisible: ClassVar[bool] = True  # half a cap would be a promise that nobody wrote
    epsilon: float = setting(help="the most epsilon that may be spent", above=0)
    delta: float = setting(help="at this delta", above=0, most=MOST_DELTA)


@dataclass(frozen=True, kw_only=True)
class LedgerSettings(Section):
    """Section ``ledger``."""

    home: str | None = setting(None, "null: the user's data folder; LIKENESS_HOME overrides", longest=MOST_PATH)
    cap: Cap = setting(Cap(10.0, 1e-5), "lifetime limit for these people; recorded at first use, then the ledger rules")
    url: str | None = setting(
        None, "null: SQLite in home; for a team postgresql+psycopg://host/database, no password", longest=MOST_PATH
    )
    attempt: str = setting("1", "another value is a deliberate second release, at the full cost")

    def __post_init__(self) -> None:
        """Check names that the ledger writes."""
        require("~" not in self.attempt, "ledger.attempt", self.attempt, "free of '~', which marks a redraw")

    def location(self, root: Path) -> tuple[str | None, str | None]:
        """Folder and database of the ledger of a project, whose folder is ``root``."""
        return str(root / expand_home(self.home)) if self.home else None, self.url


@dataclass(frozen=True)
class Split(Section):
    """Section ``ingest.split``: by a public column, or by a fraction."""

    column: str | None = setting(None, "a public column that says train or test; null: by test_fraction")
    train: str = setting("train", "value of the column in training rows")
    test: str = setting("test", "value of the column in test rows")
    test_fraction: float = setting(0.0, "share of the rows held out for tests; 0: none", least=0, below=1)
    seed: int = setting(0, "public; draws the test rows")

    @property
    def holds_out(self) -> bool:
        """Tell whether some rows are held out for tests."""
        return self.column is not None or self.test_fraction > 0

    def __post_init__(self) -> None:
        """Check ranges; texts take the normal form that cells and names have."""
        super().__post_init__()
        for key in ("column", "train", "test"):
            object.__setattr__(self, key, normal_texts(getattr(self, key)))


@dataclass(frozen=True)
class FileFormat(Section):
    """Section ``ingest.format``: how a CSV or Excel file is written. A Parquet file says it itself."""

    separator: str | None = setting(
        None, 'of a CSV: one character, "\\t" for a tab; null: , ; tab or | of its first line', longest=None
    )
    decimal: str = setting(".", "mark of decimals in a CSV: '.' or ','", options=(".", ","))
    encoding: str | None = setting(None, "of a CSV, as latin-1; null: UTF-8, or what its byte-order mark says")
    quote: str = setting('"', "around cells of a CSV that hold a separator; '' where there is none")
    sheet: str | None = setting(None, "of an Excel file; only where it has several")

    def __post_init__(self) -> None:
        """Check characters and the name of the encoding; the sheet takes the normal form that names have."""
        super().__post_init__()
        object.__setattr__(self, "sheet", normal_texts(self.sheet))
        mark, rule = self.separator, "null, or one character of ASCII that is no quote, letter, digit or line end"
        single = mark is None or (len(mark) == 1 and mark.isascii() and not mark.isalnum() and mark not in "\r\n")
        require(single and mark != self.quote, "ingest.format.separator", mark, rule)
        rule = "one character of ASCII, or '' for none"
        require(len(self.quote) < 2 and self.quote.isascii(), "ingest.format.quote", self.quote, rule)
        rule = "null or an encoding of Python that keeps no state, as latin-1 or cp1252"  # a row must not move others
        require(_is_plain_encoding(self.encoding or "utf-8"), "ingest.format.encoding", self.encoding, rule)


def _is_plain_encoding(name: str) -> bool:
    try:
        "".encode(name)
    except (LookupError, UnicodeError):
        return False
    stateful = ("utf-7", "hz", "iso2022", "unicode", "raw-unicode", "punycode", "idna")
    return not codecs.lookup(name).name.startswith(stateful)


@dataclass(frozen=True)
class Ingest(Section):
    """Section ``ingest``."""

    source: str = setting(
        help="file, folder, s3://..., https://..., sqlite:///..., duckdb:///..., postgresql+psycopg://, spark://",
        longest=MOST_PATH,
    )
    schema: str = setting(
        help="public: bounds and categories from the codebook, never from the rows", longest=MOST_PATH
    )
    split: Split = setting(Split(), "which rows train, and which are held out for tests")
    format: FileFormat = setting(FileFormat(), "how a CSV or Excel file is written")
    unit: PrivacyUnit | None = setting(
        None, "several rows a person: {column: patient_id, max_rows: 5}; noise is 5 times wider"
    )
    people: str | None = setting(
        None, "of histories: the table of people, as source has events; or its query", longest=None
    )
    query: str | None = setting(
        None, "of a database: SELECT ..., or the name of a table; read only, rows in any order", longest=None
    )
    rows: str = setting(
        COME, "come: the rows of a database are read here | stay: PostgreSQL or Spark counts them", options=(COME, STAY)
    )

    @property
    def from_database(self) -> bool:
        """Tell whether the source is a database and not a file, here or elsewhere."""
        return "://" in self.source and (self.query is not None or self.source.startswith(DATABASES))

    def __post_init__(self) -> None:
        """Check the source, and the column of people with several rows."""
        super().__post_init__()
        self._check_source()
        if self.unit is None:
            return
        require(self.unit.column.strip() != "", "ingest.unit.column", self.unit.column, "the name of a column")
        most = self.unit.max_rows
        rule = f"1 to {MOST_ROWS:,}; noise is as many times wider"
        require(1 <= most <= MOST_ROWS, "ingest.unit.max_rows", most, rule)
        rule = "another column than ingest.split.column: the split is public, a person's name is not"
        require(self.unit.column != self.split.column, "ingest.unit.column", self.unit.column, rule)

    def _check_source(self) -> None:
        """A database's URL has no password, and its query only reads. No error repeats the URL."""
        if not self.from_database:
            if self.rows == STAY:
                raise ParamsError("ingest.rows: stay is for a database: ingest.source is a file. Set ingest.rows: come")
            if self.query is not None:
                raise ParamsError("ingest.query is for a database: ingest.source is a file. Set ingest.query: null")
            key = next((key for key in ("source", "people") if _NOT_PLAIN.search(getattr(self, key) or "")), None)
            if key is not None:
                raise ParamsError(
                    f"ingest.{key} must be a plain URL, without '@', '?', '#', ';' or '::': params.yaml, dvc.lock and "
                    "logs would keep a password. fsspec takes credentials from the environment, as AWS_ACCESS_KEY_ID."
                )
            return
        parts, has_password = split_url(self.source)
        if has_password:
            raise ParamsError(
                "ingest.source must not hold a password: params.yaml, dvc.lock and logs would keep it. Leave it out. "
                "Use PGPASSWORD, PGPASSFILE (~/.pgpass) or a service file (PGSERVICE), as for psql."
            )
        is_spark, can_stay = parts.scheme == "spark", parts.scheme in ("postgresql+psycopg", "spark")
        wrong_path = bool(parts.path.strip("/")) is is_spark  # the query of Spark names the table
        if parts.scheme not in _DATABASES or wrong_path or ((parts.netloc or parts.query) and not can_stay):
            raise ParamsError(
                "ingest.source must be a file, sqlite:///people.db or duckdb:///people.duckdb (four slashes before an "
                "absolute path), postgresql+psycopg://user@host:port/database, or spark://host:port"
            )
        if self.rows == COME and is_spark:
            remedy = "Set it to stay, or take a Parquet file of the table: likeness init drafts from that"
            raise ParamsError(f"ingest.rows is come, but the rows of ingest.source spark:// stay there. {remedy}")
        if self.rows == STAY and not can_stay:
            raise ParamsError(f"ingest.rows: stay is not for {parts.scheme}, whose file lies here. Set it to come")
        queries = {"query": self.query or ""} | ({} if self.people is None else {"people": self.people})
        wrong = next((key for key, query in queries.items() if not _READS.fullmatch(query.strip())), None)
        if wrong is not None:
            rule = "the name of a table, or one SELECT (or WITH ... SELECT) without a semicolon"
            raise ParamsError(f"ingest.{wrong} must be {rule}, while ingest.source is a database")
        cut = next((key for key, query in queries.items() if _CUT.search(query)), None)
        if cut is not None:
            raise ParamsError(
                f"ingest.{cut} must not end with LIMIT, OFFSET or FETCH: other rows then decide whether a row is used. "
                "Choose rows by what is in each, as WHERE year = 2024"
            )


@dataclass(frozen=True)
class Categories(Section):
    """Section ``categories``: partition selection for columns whose categories the schema calls private."""

    share: float = setting(0.1, "of rho, for all such columns together", above=0, below=1)
    delta_share: float = setting(
        0.1, "of delta, for the thresholds below which a category is not released", above=0, below=1
    )
    most: int = setting(
        100, "of a column, those held by most; the others become its category other", least=1, most=MOST_CATEGORIES - 1
    )


@dataclass(frozen=True)
class Train(Section):
    """Section ``train``: what holds for every method."""

    device: str = setting("auto", "auto | cpu | cuda | mps", options=("auto", "cpu", "cuda", "mps"))
    seed: int = setting(0, "public")
    threads: int = setting(
        1, "part of reproducibility: sums in another order differ in the last bit", least=1, most=1024
    )
    precision: str = setting(
        "float32", "float32 | bfloat16: faster networks where the processor has it", options=("float32", "bfloat16")
    )


@dataclass(frozen=True)
class Sample(Section):
    """Section ``sample``."""

    rows: int | str = setting(
        AUTO,
        "auto: as many as the noisy count of training rows; or a number. Rows cost nothing",
        least=1,
        rule="auto or a whole number from 1",
    )
    seed: int = setting(0, "public; the same seed gives the same rows")
    where: Mapping[str, Any] = setting(dict, 'only such rows: {income: ">50K", age: 30..40}; with marginals any column')

    def __post_init__(self) -> None:
        super().__post_init__()
        valid = self.rows == AUTO or not isinstance(self.rows, str)
        require(valid, "sample.rows", self.rows, f"{AUTO} or a whole number from 1")


@dataclass(frozen=True)
class Evaluate(Section):
    """Section ``evaluate``.

    Scores of two runs compare only where they were taken alike, so how they are taken is no setting.

    Attributes:
        seed: draws tuples of columns, and rows where there are too many.
        bins: cells of a numeric column in marginals.
        max_tuples: 3-way marginals drawn by the seed, and as many 4-way ones.
        workers: classifiers that are trained at the same time; each has its own copy of the table.
        neighbor_rows: most rows of a table whose nearest neighbors are looked for.
        max_real_rows: most rows of the private table that are looked at, drawn by the seed.
    """

    seed: ClassVar[int] = 0
    bins: ClassVar[int] = 16
    max_tuples: ClassVar[int] = 200
    workers: ClassVar[int] = 2
    neighbor_rows: ClassVar[int] = 5000
    max_real_rows: ClassVar[int] = 1_000_000
    classifiers: tuple[str, ...] | None = setting(
        None, "null: linear, a forest, boosted trees (images: linear, mlp, cnn); or a list of names"
    )
    max_rows: int | None = setting(None, "most rows of a table that classifiers see; null: 20,000 (images: 10,000)")


@dataclass(frozen=True)
class Tracking(Section):
    """Section ``tracking``."""

    uri: str | None = setting(
        None, "null: sqlite file in the user's data folder; else an MLflow tracking URI", longest=MOST_PATH
    )
    experiment: str = setting("likeness", "name of the MLflow experiment")
    internal_metrics: bool = setting(False, "true: also log scores that were computed on real rows (not private!)")


@dataclass(frozen=True)
class Schedule(Section):
    """Section ``schedule``."""

    cron: str = setting("0 3 * * 1", "when the served flow runs: Mondays at three")
    timezone: str = setting("UTC", "of the cron line")


@dataclass(frozen=True, kw_only=True)
class Params(Section):
    """All of params.yaml.

    ``sections`` holds the sections of methods as written. One with a key ``expert`` has the expert keys there, one that
    was made in Python may have them in their places.
    """

    method: str = setting(help="hp | marginals | merf | merf_ae | moments | ntk | pearl; likeness params METHOD")
    privacy: Privacy = setting(help="the promise; every document states it")
    ledger: LedgerSettings = setting(LedgerSettings(), "outlives this folder: see PRIVACY.md")
    ingest: Ingest = setting(help="the private table and its public schema")
    categories: Categories = setting(
        Categories(), "of columns whose categories the schema calls private; without such columns, nothing"
    )
    sections: Mapping[str, Any] = setting(dict, longest=None)
    train: Train = setting(Train(), "what holds for the training of every method")
    sample: Sample = setting(Sample, "the synthetic table")
    evaluate: Evaluate = setting(Evaluate(), "reads real rows; its results stay in reports/internal")
    tracking: Tracking = setting(Tracking(), "one MLflow run for every pipeline run that changed a result")
    schedule: Schedule = setting(Schedule(), "for those who run a Prefect server")

    def __post_init__(self) -> None:
        """Check the rules between sections."""
        if self.ingest.from_database and self.privacy.adjacency == "replace_one":
            raise ParamsError(
                "privacy.adjacency is replace_one, but ingest.source is a database: its rows have no fixed order. "
                "Set privacy.adjacency: add_remove_one, or export a file."
            )
        if self.ingest.unit is None:
            return
        if self.privacy.adjacency != "add_remove_one":
            raise ParamsError(
                f"privacy.adjacency is {self.privacy.adjacency}, but ingest.unit lets a person have several rows. "
                "Another person may have more or fewer, so the number of records cannot be public. "
                "Set privacy.adjacency: add_remove_one, or ingest.unit: null."
            )
        rule = f"who is protected with all their rows, as '{ONE_PERSON}' or 'one patient', as a person has several rows"
        require(self.privacy.unit != ONE_ROW, "privacy.unit", self.privacy.unit, rule)
