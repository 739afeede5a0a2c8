"""People with events: a record is a person with all rows of both tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from likeness.config.params import NONE, Evaluate, Params
from likeness.core.errors import LikenessError, ParamsError
from likeness.core.hashing import sha256_json
from likeness.core.paths import Outputs, ProjectPaths
from likeness.core.typed import require
from likeness.data.encoding.layout import encoding_digest
from likeness.data.schema.schema import Schema
from likeness.pipeline.datasets.model import DataModel, Dtypes, Frame, Tables, Where
from likeness_histories.schema import NEXT, HistorySchema

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.ledger.ledger import Ledger
    from likeness.methods.base import Method
    from likeness.methods.saved_generator import SavedGenerator
    from likeness.pipeline.sources import Sources
    from likeness.release.records import Records
    from likeness.release.released import Released
    from likeness_histories.draft import HistoryDraft


class Histories(DataModel):
    """People and their events: a row set of people, and one of events that follow each other."""

    schema: HistorySchema
    outputs = Outputs(("people", "events"), ("generator/people", "generator/following"))
    shares = (0.4, 0.6)
    is_per_person = True
    prefixes = ("", NEXT)
    sections: ClassVar[Mapping[str, str]] = {"people": "people", "source": "events"}

    @staticmethod
    def serves(schema: Any) -> bool:
        """Tell whether it is the schema of histories."""
        return isinstance(schema, HistorySchema)

    @staticmethod
    def describes(content: Any) -> bool:
        """Tell whether it has events."""
        return isinstance(content, Mapping) and "events" in content

    @staticmethod
    def schema_from(content: Any, where: str) -> HistorySchema:
        """The schema of both tables."""
        return HistorySchema.from_dict(content, where)

    @classmethod
    def faults(cls, content: Any, of_table: Callable[[Any], list[str]]) -> list[str]:
        """Those of each table, and what spans both."""
        about = ("name", "source")
        head = {"task": "none", **{key: content[key] for key in about if key in content}}
        faults = [] if content.get("most") is not None else ["most is an open question: the most events that count."]
        for table in cls.sections.values():
            if content.get(table) is not None:
                texts = of_table({**head, "columns": content[table]})
                faults += [text if text.startswith(about) else f"{table}: {text}" for text in texts]
        if not faults:
            try:
                HistorySchema.from_dict(content)
            except LikenessError as error:
                faults = [str(error).removeprefix("schema: ")]
        return list(dict.fromkeys(faults))

    @staticmethod
    def linked_draft() -> "type[HistoryDraft]":
        """A draft of both tables."""
        from likeness_histories.draft import HistoryDraft

        return HistoryDraft

    @property
    def records(self) -> Schema:
        """One row a person: the number of events, and the first one."""
        return self.schema.first_rows

    @property
    def tables(self) -> dict[str, Schema]:
        """People and events, each with the key."""
        return self.schema.table_schemas

    @property
    def key(self) -> str:
        """It names people."""
        return self.schema.person

    @property
    def conditions(self) -> Sequence[str]:
        """Columns of people."""
        return [column.name for column in self.schema.person_columns]

    def with_records(self, schema: Schema) -> Self:
        """The same model: no column is open."""
        return self

    def complete(self, params: Params, of_files: bool = True) -> Params:
        """The settings with the unit of privacy: a person, with as many events as count."""
        unit, linked = self.schema.unit, self.schema.people is not None
        if params.ingest.unit not in (None, unit):
            raise ParamsError(
                f"params.yaml: ingest.unit must be {{column: {unit.column}, max_rows: {unit.max_rows}}}, as the schema "
                "of histories says. Leave it out, because it follows from the schema."
            )
        left_out = {
            "ingest.people": of_files and (params.ingest.people is not None) is not linked,
            "ingest.split.column": params.ingest.split.column is not None,
            "privacy.series": params.privacy.series != NONE,
        }
        for key, wrong in left_out.items():
            if wrong:
                remedy = "Name the table of people" if key == "ingest.people" and linked else "Leave it out"
                raise ParamsError(f"params.yaml: {key} does not go with this schema of histories. {remedy}.")
        return replace(params, ingest=replace(params.ingest, unit=unit))

    def recipe(self, method: "Method") -> "Method":
        """The method with a generator that knows a row given a part of it."""
        return method.adapt_to_histories([rows.names for rows in self.schema.row_sets.values()])

    def encoding(self, rows: Schema) -> str:
        """It hangs on the whole schema, which says how rows are made of events."""
        return sha256_json([encoding_digest(rows), self.schema.published_schema.to_dict()])

    def ingest(self, sources: "Sources", ledger: "Ledger", paths: ProjectPaths) -> None:
        """Write both row sets, all at once: a person's events may lie anywhere."""
        from likeness_histories.private_rows import write_histories

        params = self.complete(sources.params, sources.frames is None)
        write_histories(self.schema, sources, params, ledger, paths)

    @property
    def event_schema(self) -> HistorySchema:
        """The schema itself."""
        return self.schema

    def check_strangers(self, strangers: int, events: int) -> None:
        """Too many events name nobody among the people."""
        from likeness_histories.private_rows import check_strangers

        check_strangers(strangers, events, self.schema.person)

    def evaluate(
        self, written: Schema, tables: Tables, settings: Evaluate, paths: ProjectPaths, halved: bool = False
    ) -> None:
        """Distances of lengths, events and transitions, with their ceiling and floor."""
        from likeness.data.private_tables import read_manifest
        from likeness_histories.measures import evaluate_histories
        from likeness_histories.private_rows import STRANGERS, written_histories

        unknown, real = read_manifest(paths.table)[STRANGERS], written_histories(paths, settings.seed, halved)
        evaluate_histories(self.schema, real, tables, settings.seed, paths.evaluation, unknown, halved)

    def frames_by_table(self, sources: Mapping[str, Frame], person: str | None) -> dict[str, Frame]:
        """A lone frame is that of the events."""
        schema, frames = self.schema, {name or "events": frame for name, frame in sources.items()}
        rule = f"the frames {' and '.join(sorted(schema.source_schemas))} of the schema"
        require(set(frames) == set(schema.source_schemas), "X", sorted(frames), rule)
        same = person is None or str(person) == schema.person
        require(same, "person", person, f"the schema's person, {schema.person}")
        return frames

    def draw(
        self, saved: "Sequence[SavedGenerator]", rows: int, seed: int, where: Where, dtypes: Dtypes = None
    ) -> "dict[str, DataFrame]":
        """People under conditions, and then their events."""
        from likeness_histories.generator import HistoryGenerator

        if not isinstance(where, Mapping):
            raise ParamsError("where must be a mapping from columns of people, got a frame. Correct it.")
        people, following = saved
        return HistoryGenerator(people, following, self.schema).tables(rows, seed, where, dtypes)

    def as_released(self, tables: Tables, most: int) -> "dict[str, Iterable[Records]]":
        """Rows of people and pairs of events as a release counts them, by the prefix of their queries.

        Args:
            tables: typed, by name.
            most: people that count; the first ones.
        """
        from likeness.pipeline.private_rows import encoded_chunks
        from likeness.release.records import EachPerson
        from likeness_histories.row_sets import rows_of_tables

        schema, people, events = self.schema, tables["people"].head(most), tables["events"]
        rows = rows_of_tables(schema, people, events[events[schema.person].isin(people[schema.person])])
        first, following = schema.row_sets
        chunks = encoded_chunks(rows.transitions, schema.next_rows, rows.numbers)
        return {first: encoded_chunks(rows.people, schema.first_rows), following: EachPerson().stream(chunks)}

    def section(
        self,
        released: "Iterable[Released]",
        total: float | None,
        tables: Tables,
        most: int | None,
    ) -> dict[str, Any]:
        """Numbers of people and of events that follow each other."""
        from likeness_histories.report import histories_section

        synthetic = None if most is None else self.as_released(tables, most)
        return histories_section(self.schema, released, total, tables, synthetic)

    def count_violations(self, tables: Tables) -> dict[str, int]:
        """Rows that break what histories promise, or a rule within a person."""
        from likeness_histories.row_sets import link_violations

        return link_violations(self.schema, **tables)
