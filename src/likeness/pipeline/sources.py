"""The private sources of a project: files, folders, or queries of a database."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Union

from likeness.config.load import source_at
from likeness.config.params import Ingest, Params
from likeness.core.errors import DataError, ParamsError
from likeness.core.hashing import keyed_digest
from likeness.core.remote import RemotePath, SourcePath, source_path

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.data.source.databases import Database

PEOPLE = "people"
"""The name of the frame of people, beside that of their rows."""


class Frame(NamedTuple):
    """The rows of a Python caller, and their name in messages."""

    rows: "DataFrame"
    name: str


Location = Union[SourcePath, "Database", Frame]


@dataclass(frozen=True)
class Sources:
    """The sources that the settings name.

    Attributes:
        root: the folder of the project.
        params: the settings.
        frames: the rows of a Python caller by the name of their table, in the place of sources; None: there are none.
    """

    root: Path
    params: Params
    frames: "Mapping[str, DataFrame] | None" = None

    @property
    def ingest(self) -> Ingest:
        """The section about them."""
        return self.params.ingest

    @property
    def file(self) -> SourcePath:
        """The source, which is a file or a folder.

        Raises:
            DataError: it does not exist.
            ParamsError: as :meth:`check_order`.
        """
        path = self._source_path("source", self.ingest.source)
        self.check_order(path)
        return path

    def check_order(self, path: SourcePath) -> None:
        """Refuse an order of rows that one record can change, where pairs and the split go by places.

        Args:
            path: of the source.

        Raises:
            ParamsError: it is a folder whose names are cells of records, or names of their files.
        """
        if self.params.privacy.adjacency != "replace_one":
            return
        from likeness.data.source.files import has_names_of_records

        if has_names_of_records(path):
            raise ParamsError(
                "params.yaml: privacy.adjacency is replace_one, but ingest.source is a folder of images or of "
                "partitions. A record decides names in it, and they decide the places of all rows. Set "
                "privacy.adjacency: add_remove_one and num_records: null, or give one .parquet or .npz file."
            )

    @property
    def database(self) -> "Database | None":
        """The source, if it is a database."""
        return self._database("query", self.ingest.query or "")

    @property
    def rows(self) -> "SourcePath | Database":
        """The source, whatever it is.

        Raises:
            DataError: it does not exist.
        """
        return self.database or self.file

    @property
    def people(self) -> "SourcePath | Database | None":
        """The table of people, if histories have one. It is in the database of the events, if there is one.

        Raises:
            DataError: it does not exist.
        """
        people = self.ingest.people
        if people is None:
            return None
        return self._database("people", people) or self._source_path("people", people)

    @property
    def all_sources(self) -> "list[SourcePath | Database]":
        """All of them: the rows, then the people.

        Raises:
            DataError: one does not exist.
        """
        return [source for source in (self.rows, self.people) if source is not None]

    @property
    def tables(self) -> "tuple[Location, Location | None]":
        """The rows and, if histories have a table of people, that one: where they lie, or the frames themselves.

        Raises:
            DataError: a source does not exist.
        """
        if self.frames is None:
            return self.rows, self.people
        ((name, rows),) = [item for item in self.frames.items() if item[0] != PEOPLE]
        people = self.frames.get(PEOPLE)
        where = "the DataFrame" if name == "synthetic" else name
        return Frame(rows, where), None if people is None else Frame(people, PEOPLE)

    def _source_path(self, key: str, location: str) -> SourcePath:
        from likeness.data.source.opening import FORMATS

        path = source_path(self.root, location)
        if not path.exists():
            raise DataError(f"params.yaml: ingest.{key} {location} does not exist. Give {FORMATS}.")
        return path

    def _database(self, key: str, query: str) -> "Database | None":
        if not self.ingest.from_database:
            return None
        from likeness.data.source.databases import Database

        return Database(source_at(self.ingest.source, self.root), query, f"ingest.{key}")


def digest_of(sources: "Iterable[SourcePath | Database]", key: bytes) -> str:
    """Keyed hash of sources: of a file's bytes, or of a database's rows.

    Raises:
        DataError: a database cannot be read.
    """
    return " ".join(
        keyed_digest(item, key) if isinstance(item, Path | RemotePath) else item.fingerprint(key) for item in sources
    )


def check_number(params: Params, count: int | None) -> None:
    """Insist on the number of training rows of the settings; None where it is not public."""
    if count != params.privacy.num_records:
        raise DataError(
            f"params.yaml: privacy.num_records is {params.privacy.num_records}, the training table has {count} rows. "
            "Under replace_one the number of records is public and must be right. Correct it."
        )
