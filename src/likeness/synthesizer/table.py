"""A fit of one table, and rows drawn from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likeness.config.params import Params, Sample
from likeness.config.typed import require
from likeness.core.paths import ONE_TABLE
from likeness.data.encoding.dtypes import in_dtypes
from likeness.data.encoding.frames import opened
from likeness.data.schema.ruled_tables import to_model
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_frame, read_frame_people
from likeness.data.source.row_digests import SourceDigest
from likeness.generators.base import Compute
from likeness.methods import method_from
from likeness.methods.base import Context
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.drawn_rows import DrawnRows
from likeness.pipeline.synthetic_table import numbered, typed_rows
from likeness.release.partition_selection import completed, partition_queries
from likeness.release.released import Released, from_bytes
from likeness.synthesizer.fitted import Fitted
from likeness.synthesizer.parameters import project_of, refuse_faults, schema_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.pipeline.project import Project
    from likeness.pipeline.rows_in_memory import RowsInMemory
    from likeness.release.door import Door
    from likeness.synthesizer import Synthesizer

_TABLE = ONE_TABLE.tables[0]


@dataclass(frozen=True)
class FittedTable(Fitted):
    """A fit of one table."""

    generator: SavedGenerator

    def attributes(self) -> dict[str, Any]:
        """Those of each fit, and the generator."""
        return {**super().attributes(), "generator_": self.generator}

    def sample(self, n: Any, where: Any, seed: int) -> Any:
        """Rows under conditions, or one beside each row of a frame."""
        if where is None or isinstance(where, Mapping):
            return self._native(typed_rows(self.generator, self.schema, self.rows(n), seed, where or {}))
        given, _ = opened(where, "where: must be a mapping from columns to values, or")
        require(n is None or n == len(given), "n", n, "the number of rows of where, or left out")
        return self._native(DrawnRows(self.generator, self.schema).beside(given, seed))

    def replicates(self, count: int, n: Any, where: Any, seed: int, params: Params) -> list[Any]:
        """Tables from models that are fitted to new draws of the noise; the first is the base.

        Raises:
            ParamsError: the method makes none.
        """
        from likeness.methods.replicates import replicates

        require(where is None or isinstance(where, Mapping), "replicates", count, "left out if where is a frame")
        rows, privacy, train = self.rows(n), params.privacy, params.train
        context = Context(self.schema, privacy.adjacency, privacy.num_records, train.seed)
        compute = Compute(train.device, train.threads, train.precision)
        models = replicates(method_from(params), context, self.released, self.generator, compute, count, seed)
        return [self._native(typed_rows(model, self.schema, rows, stream, where or {})) for model, stream in models]

    def _native(self, table: "DataFrame") -> Any:
        """Typed rows as a frame like that of the training rows."""
        return self.frame.native(in_dtypes(table, self.schema, self.frame.dtypes))


def fit_table(given: "Synthesizer", frame: Any) -> FittedTable:
    """Release and train. All checks come before the ledger, and the cost is on record before the rows are summed.

    Args:
        given: whose parameters.
        frame: the training rows.

    Raises:
        LikenessError: see :meth:`likeness.Synthesizer.fit`.
    """
    from likeness.methods.fit import fit_all
    from likeness.pipeline.account import stated
    from likeness.pipeline.rows_in_memory import release_all
    from likeness.release.door import Door

    table, frame_type = opened(frame)
    refuse_faults(given, table)
    project = project_of(given, schema_of(given))
    plan, train = project.plan, project.params.train
    rows = _private_rows(project, table)
    categories = _categories(project, rows)
    schema = completed(project.written_schema, list(categories.values()))
    row_sets = project.row_sets_of(schema)
    door = Door(plan, project.ledger_to_spend, *rows.records(schema), project.provenance)
    released = {**categories, **release_all(project.method, row_sets, [door])}
    compute = Compute(train.device, train.threads, train.precision)
    (generator,), losses = fit_all(project.method, row_sets, released.values(), compute)
    released |= _card(project, schema, generator, released, door)
    privacy = stated(project, plan, schema, list(released.values()))
    frames = {_TABLE: frame_type.of(schema.names)}
    return FittedTable(project.written_schema, plan, released, privacy, losses, frames, generator)


def _private_rows(project: "Project", table: "DataFrame") -> "RowsInMemory":
    """The training rows, typed by the schema.

    Raises:
        DataError: they do not fit it.
    """
    from likeness.pipeline.rows_in_memory import in_memory

    ledger, unit, people = project.ledger, project.params.ingest.unit, None
    source = SourceDigest()
    if unit is None:
        typed = read_frame(table, project.written_schema, source=source)
    else:
        typed, people = read_frame_people(table, project.written_schema, unit.column, source=source)
    return in_memory(project.params, project.written_schema, typed, ledger, people, [source.digest(ledger.key)])


def _categories(project: "Project", rows: "RowsInMemory") -> dict[str, Released]:
    """The released categories of the open columns, by the name of their query."""
    from likeness.release.door import Door

    released = {}
    for query in partition_queries(project.written_schema, project.plan, project.params.categories.most):
        read = rows.partitions(query.column)
        door = Door(project.plan, project.ledger_to_spend, rows.dataset, read, project.provenance)
        released[query.name] = from_bytes(door.release(query), query.name)
    return released


def _card(
    project: "Project", schema: Schema, generator: SavedGenerator, released: Mapping[str, Released], door: "Door"
) -> dict[str, Released]:
    """The released card about the table that the generator draws without arguments; none without a card."""
    from likeness.pipeline.card import card_queries, check_tables

    card, facts = project.params.evaluate.card, project.context_of(schema)
    if card is None:
        return {}
    table = to_model(typed_rows(generator, schema, *numbered(Sample(), facts, released)), schema)
    queries = card_queries(card, project.plan, facts, released, table)
    for query in queries:
        check_tables(door, query, card.tables)
    return {query.name: from_bytes(door.release(query), query.name) for query in queries}
