"""One table: a record is a row."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from likeness.config.params import NONE, Evaluate, Params
from likeness.core.errors import ParamsError
from likeness.core.paths import Outputs, ProjectPaths
from likeness.data.schema.column import PERSON_COLUMN, SPLIT_COLUMN
from likeness.data.schema.schema import Schema
from likeness.pipeline.datasets.model import DataModel, Dtypes, Frame, Tables, Where

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.ledger.ledger import Ledger
    from likeness.methods.saved_generator import SavedGenerator
    from likeness.pipeline.sources import Sources
    from likeness.release.released import Released

_NAME = "synthetic"


class Table(DataModel):
    """One table, whose columns may have private categories."""

    schema: Schema
    outputs = Outputs((_NAME,), ("generator",))

    @staticmethod
    def serves(schema: Any) -> bool:
        """Tell whether it is the schema of a table without images."""
        return isinstance(schema, Schema) and schema.image is None

    @property
    def records(self) -> Schema:
        """Its rows."""
        return self.schema

    @property
    def tables(self) -> dict[str, Schema]:
        """The table itself."""
        return {_NAME: self.schema}

    def with_records(self, schema: Schema) -> Self:
        """The table with completed columns."""
        return type(self)(schema)

    def complete(self, params: Params, of_files: bool = True) -> Params:
        """The settings as they are, if they name the people whom the schema names."""
        named = [dropped.name for dropped in self.schema.dropped if dropped.names_person]
        if named and params.ingest.unit is None:
            argument = f"ingest.unit: {{column: {named[0]}, max_rows: ?}} in params.yaml"
            remedy = argument if of_files else f"unit_column={named[0]!r} and max_rows"
            raise ParamsError(
                f"column '{named[0]}' names the person, as the schema says, so a person may have several rows. Give "
                f"{remedy}. If each person has one row, write another reason for '{named[0]}' in the schema."
            )
        if params.privacy.series != NONE and params.ingest.unit is None:
            key = "ingest.unit in params.yaml" if of_files else "unit_column and max_rows"
            raise ParamsError(
                f"privacy.series is {params.privacy.series}, so a column must name the people: the nights of a person "
                f"are told by it. Give {key}, also where each person has one row."
            )
        return params

    def ingest(self, sources: "Sources", ledger: "Ledger", paths: ProjectPaths) -> None:
        """Write the rows in chunks."""
        from likeness.core.engine import threads
        from likeness.data.private_tables import write_private_chunks
        from likeness.pipeline.ingest import IngestedRows, typed_rows

        rows = IngestedRows(sources.params, self.schema, ledger)

        def manifest_of_rows() -> dict[str, Any]:
            manifest = rows.manifest(sources.params, ledger.id, ledger.key)
            # The door does it too, but later.
            ledger.check_owner(manifest["identity"], manifest["digest"], manifest["rows_digests"])
            return manifest

        write_private_chunks(typed_rows(sources, self.schema, rows, threads()), paths.table, manifest_of_rows)

    def evaluate(
        self, written: Schema, tables: Tables, settings: Evaluate, paths: ProjectPaths, halved: bool = False
    ) -> None:
        """Score against real training rows and shuffled ones; without held-out rows, against halves of all rows."""
        from likeness.data.private_tables import sample_private
        from likeness.data.source.cells import apply_released
        from likeness.data.source.split import halves

        table = apply_released(sample_private(paths.table, settings.max_real_rows, settings.seed), written, self.schema)
        extras = [name for name in (SPLIT_COLUMN, PERSON_COLUMN) if name in table]
        parts = halves(len(table), settings.seed) if halved else table[SPLIT_COLUMN].array
        train, test = (table[parts == part].drop(columns=extras) for part in ("train", "test"))
        self.judge(train, test, tables[_NAME], settings, paths.evaluation, halved)

    def judge(
        self,
        train: "DataFrame",
        test: "DataFrame",
        synthetic: "DataFrame",
        settings: Evaluate,
        folder: Path,
        halved: bool,
    ) -> None:
        """Score synthetic rows beside real training rows, against held-out ones.

        Args:
            train: typed rows.
            test: typed rows.
            synthetic: typed rows.
            settings: of the evaluation.
            folder: where the scores are written.
            halved: see :meth:`evaluate`.
        """
        from likeness.report.internal import Measures, evaluate

        estimators = self.estimators(settings) if self.schema.task != "none" else None
        evaluate(train, test, synthetic, self.schema, settings, folder, Measures(estimators), halved)

    def frames_by_table(self, sources: Mapping[str, Frame], person: str | None) -> dict[str, Frame]:
        """The lone frame."""
        if person is not None or set(sources) != {""}:
            raise ParamsError("schema is that of one table. Give a HistorySchema for people with histories.")
        return {_NAME: sources[""]}

    def draw(
        self, saved: "Sequence[SavedGenerator]", rows: int, seed: int, where: Where, dtypes: Dtypes = None
    ) -> "dict[str, DataFrame]":
        """Rows under conditions, or one beside each row of a frame."""
        from likeness.data.encoding.dtypes import to_dtypes
        from likeness.pipeline.drawn_rows import DrawnRows
        from likeness.pipeline.where import allowed_values

        drawn = DrawnRows(saved[0], self.schema)
        if isinstance(where, Mapping):
            typed = drawn.draw_where(rows, seed, allowed_values(where, self.schema))
        else:
            typed = drawn.complete(where, seed)
        return {_NAME: to_dtypes(typed, self.schema, (dtypes or {}).get(_NAME))}

    def section(
        self, released: "Iterable[Released]", total: float | None, tables: Tables, most: int | None
    ) -> dict[str, Any]:
        """Its numbers, and its first rows."""
        from likeness.data.schema.constrained_tables import forward_transform
        from likeness.pipeline.private_rows import encoded_chunks
        from likeness.report.released_numbers import table_section

        schema, table = self.schema, tables[_NAME]
        rows = (
            None if most is None else encoded_chunks(forward_transform(table.head(most), schema), schema.model_schema)
        )
        return table_section(schema, released, total, table, rows)

    def count_violations(self, tables: Tables) -> dict[str, int]:
        """Rows that break a rule of the schema."""
        from likeness.data.schema.constrained_tables import violation_counts

        return violation_counts(tables[_NAME], self.schema)
