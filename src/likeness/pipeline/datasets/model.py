"""The data model: all that the floors above must know of a kind of data set.

A stage loads only what it uses of a model, so each method imports what it needs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, Union

from likeness.config.params import Evaluate, FileFormat, Params
from likeness.core.paths import Outputs, ProjectPaths
from likeness.data.encoding.layout import encoding_digest
from likeness.data.schema.row_sets import EventSchema, PublicSchema
from likeness.data.schema.schema import Schema

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.data.encoding.frames import FrameType
    from likeness.data.schema.draft import SchemaDraft
    from likeness.evaluation.classifiers import Factory
    from likeness.ledger.ledger import Ledger
    from likeness.methods.base import Context, Method
    from likeness.methods.row_set import RowSet
    from likeness.methods.saved_generator import SavedGenerator
    from likeness.pipeline.sources import Sources
    from likeness.release.released import Released

T = TypeVar("T")
Frame = tuple["DataFrame", "FrameType"]
Where = Union[Mapping[str, Any], "DataFrame"]
Dtypes = Mapping[str, Mapping[str, str]] | None
Tables = Mapping[str, "DataFrame"]
_BYTES_A_CELL = 10  # of the rows, where a stage holds all of them; the source is read in chunks
_EVALUATION_START = 3  # seconds: imports, marginals, neighbors and pages
_EVALUATION_SECONDS = 3 / (20_000 * 108)  # a row, coordinate and estimator: mean of the defaults on Adult
MOST_COMPARED = 100_000
"""Synthetic records that a page sets beside the release: they are drawn one by one, so the first ones are a sample."""


def single_or_dict(values: Mapping[str, T]) -> T | dict[str, T]:
    """Return the only value as it is, or several values by name."""
    return next(iter(values.values())) if len(values) == 1 else dict(values)


@dataclass(frozen=True)
class DataModel(ABC):
    """A data set: its tables, its row sets, and what is done with them from the source to the report.

    Attributes:
        schema: public.
        outputs: names of its tables and generators.
        endings: of the files into which ``likeness sample`` writes a table; an empty one is that of a folder.
        shares: of the budget, one for each row set.
        is_per_person: whether the rows of a person share one contribution.
        prefixes: beginnings of the names of the queries, one for each row set.
        sections: of a schema file that hold columns, by the key of ``ingest`` that names their source.
    """

    schema: Any

    outputs: ClassVar[Outputs]
    endings: ClassVar[tuple[str, ...]] = ("csv", "parquet")
    shares: ClassVar[tuple[float, ...]] = (1.0,)
    is_per_person: ClassVar[bool] = False
    prefixes: ClassVar[tuple[str, ...]] = ("",)
    sections: ClassVar[Mapping[str, str]] = {"source": "columns"}

    @staticmethod
    @abstractmethod
    def serves(schema: Any) -> bool:
        """Tell whether a public schema describes a data set of this kind."""

    @staticmethod
    def describes(content: Any) -> bool:
        """Tell whether the content of a schema file describes a data set of this kind, and none of one table."""
        return False

    @staticmethod
    def schema_from(content: Any, where: str) -> PublicSchema:
        """The public schema that the content of a file describes.

        Raises:
            SchemaError: it is wrong.
        """
        return Schema.from_dict(content, where)

    @classmethod
    def faults(cls, content: Any, of_table: Callable[[Any], list[str]]) -> list[str]:
        """Every fault of a schema file.

        Args:
            content: of the file.
            of_table: the faults of the schema of one table.
        """
        return of_table(content)

    @staticmethod
    def linked_draft() -> "Callable[..., SchemaDraft] | None":
        """Give what drafts a schema of linked tables, from tables, person, order, name, dtypes; None: there is one."""
        return None

    @property
    @abstractmethod
    def records(self) -> Schema:
        """One row a record."""

    @property
    @abstractmethod
    def tables(self) -> dict[str, Schema]:
        """Schemas of the synthetic tables, by name."""

    @property
    def key(self) -> str | None:
        """The column of each table that names its records; None where nothing links the tables."""
        return None

    @property
    def conditions(self) -> Sequence[str] | None:
        """The columns that ``sample.where`` may name; None: all of the schema."""
        return None

    @abstractmethod
    def with_records(self, schema: Schema) -> Self:
        """The model whose open columns are completed."""

    def complete(self, params: Params, of_files: bool = True) -> Params:
        """The settings, with what the schema says of them.

        Args:
            params: as they are given.
            of_files: whether the rows come from the sources that the settings name.

        Raises:
            ParamsError: the settings do not go with the schema.
        """
        return params

    def recipe(self, method: "Method") -> "Method":
        """The method as it serves this data set.

        Raises:
            ParamsError: it serves none of this kind.
        """
        return method

    def encoding(self, rows: Schema) -> str:
        """Digest of the public rules that turn the rows of a row set into what maps see."""
        return encoding_digest(rows)

    @property
    def encodings(self) -> dict[str, tuple[Schema, str]]:
        """Schema and digest of the encoding of each row set, by the beginning of the names of its queries."""
        return {prefix: (rows, self.encoding(rows)) for prefix, rows in self.schema.row_sets.items()}

    def row_sets(self, context_of: "Callable[[Schema], Context]") -> "tuple[RowSet, ...]":
        """The rows that a method is asked about, given the public facts about rows of a schema."""
        from likeness.methods.row_set import RowSet

        parts = zip(self.encodings.items(), self.outputs.generators, self.shares, strict=True)
        return tuple(
            RowSet(context_of(rows), encoding, generator, prefix, share, self.is_per_person)
            for (prefix, (rows, encoding)), generator, share in parts
        )

    @abstractmethod
    def ingest(self, sources: "Sources", ledger: "Ledger", paths: ProjectPaths) -> None:
        """Write the private rows of each row set, with split and person, and with a manifest that has their digests.

        Args:
            sources: the sources, with their settings.
            ledger: whose key makes the digests.
            paths: where they are written.

        Raises:
            DataError: a source is missing or does not fit the schema, or a part of the split has no rows.
            LedgerError: the rows belong to another population.
        """

    @property
    def event_schema(self) -> EventSchema | None:
        """The schema by which events of people make the row sets; None where the source has the rows."""
        return None

    def check_strangers(self, strangers: int, events: int) -> None:
        """Refuse a source in which too many rows are of nobody.

        Args:
            strangers: number of events of nobody among the people.
            events: number of all events.

        Raises:
            DataError: there are too many.
        """
        return None

    @abstractmethod
    def evaluate(
        self, written: Schema, tables: Tables, settings: Evaluate, paths: ProjectPaths, halved: bool = False
    ) -> None:
        """Compare synthetic tables with held-out rows. What it writes is NOT private.

        Args:
            written: the schema of a row a record as it is written.
            tables: typed, by name.
            settings: of the evaluation.
            paths: of the private rows, and of the comparison.
            halved: no row is held out, so halves of all rows stand for training and held-out ones.
        """

    def estimators(self, settings: Evaluate) -> "dict[str, Factory]":
        """The estimators that judge a synthetic table with a task, by name.

        Raises:
            ParamsError: no estimator has a name of ``evaluate.classifiers``.
        """
        from likeness.evaluation.classifiers import select

        return select(self.records.task, settings.classifiers)

    def bytes_a_column(self, rows: int, drawn: int, settings: Evaluate) -> float:
        """Memory of a column of the records at its peak, for a forecast.

        Args:
            rows: training records.
            drawn: synthetic records.
            settings: of the evaluation.
        """
        return _BYTES_A_CELL * rows

    def evaluation_seconds(self, rows: int, drawn: int, width: int, settings: Evaluate) -> float:
        """Rough seconds of an evaluation on two cores.

        Args:
            rows: training records.
            drawn: synthetic records.
            width: coordinates of an encoded record.
            settings: of the evaluation.
        """
        from likeness.evaluation.classifiers import DEFAULT, MOST_TABLE_ROWS

        most = settings.max_rows or MOST_TABLE_ROWS
        # Classifiers see the real table twice, once shuffled.
        scored = (2 * min(rows, most) + min(drawn, most)) / 3
        count = len(settings.classifiers or DEFAULT.get(self.records.task, ()))
        return _EVALUATION_START + count * scored * width * _EVALUATION_SECONDS

    def plain_bytes(self, table: "DataFrame", name: str, layout: FileFormat) -> bytes:
        """A synthetic table in its form without Parquet.

        Args:
            table: in its dtypes.
            name: of the table.
            layout: how the source is written.
        """
        from likeness.pipeline.synthetic_table import csv_bytes

        return csv_bytes(table, self.tables[name], layout)

    def write_folder(self, table: "DataFrame", name: str, target: Path) -> None:
        """Write a synthetic table as a folder of files, where :attr:`endings` has an empty one.

        Raises:
            ArtifactError: the folder exists.
        """
        raise NotImplementedError

    def load_generators(self, folder: Path) -> "list[SavedGenerator]":
        """The generators in a folder, one for each row set.

        Raises:
            ArtifactError: files are missing or not ours.
        """
        from likeness.methods.saved_generator import SavedGenerator

        return [SavedGenerator.load(folder / name) for name in self.outputs.inner_folders]

    @abstractmethod
    def frames_by_table(self, sources: Mapping[str, Frame], person: str | None) -> dict[str, Frame]:
        """The frames of a Python caller by the name of their table.

        Args:
            sources: frames by the name that the caller gives; that of a lone frame is empty.
            person: the column that names people, if the caller says it.

        Raises:
            ParamsError: these are not the frames of the schema.
        """

    @abstractmethod
    def draw(
        self, saved: "Sequence[SavedGenerator]", rows: int, seed: int, where: "Where", dtypes: Dtypes = None
    ) -> "dict[str, DataFrame]":
        """Synthetic tables by name.

        Args:
            saved: the generators of all row sets.
            rows: number of records.
            seed: public.
            where: see :func:`likeness.pipeline.where.conditions`; or a frame, for a record beside each row.
            dtypes: words by column, for each table; they go before those of the schema.

        Raises:
            ParamsError: ``where`` asks for what the model does not make.
        """

    @abstractmethod
    def section(
        self, released: "Iterable[Released]", total: float | None, tables: Tables, most: int | None
    ) -> dict[str, Any]:
        """The part of the public page about the tables, ready to print.

        Args:
            released: all files of the run.
            total: the number of records where it is public.
            tables: typed synthetic rows, by name.
            most: records that are compared with the release, the first ones; None where they answer to a condition.
        """

    @abstractmethod
    def count_violations(self, tables: Tables) -> dict[str, int]:
        """Count the rows of synthetic tables that break each rule; empty without rules."""
