"""A fit of people with histories, and tables drawn from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.config.params import Params
from likeness.config.typed import require
from likeness.core.paths import HISTORIES
from likeness.data.encoding.frames import opened
from likeness.data.histories.schema import HistorySchema
from likeness.generators.base import Compute
from likeness.pipeline.histories import HistoryGenerator
from likeness.pipeline.project import Project
from likeness.synthesizer.fitted import Fitted
from likeness.synthesizer.parameters import project_of, refuse_faults

if TYPE_CHECKING:
    from likeness.synthesizer import Synthesizer


@dataclass(frozen=True)
class FittedHistories(Fitted):
    """A fit of people with histories."""

    generator: HistoryGenerator

    def attributes(self) -> dict[str, Any]:
        """Those of each fit, and the generator of both tables."""
        curves = dict(zip(HISTORIES.tables, self.losses, strict=bool(self.losses)))
        return {**super().attributes(), "loss_curve_": curves, "histories_": self.generator, "frames_": self.frames}

    def sample(self, n: Any, where: Any, seed: int) -> Any:
        """Both tables of ``n`` people, by name."""
        return self._drawn(self.generator, self.rows(n), seed, where)

    def replicates(self, count: int, n: Any, where: Any, seed: int, params: Params) -> list[Any]:
        """Both tables from models that are fitted to new draws of the noise; the first are the base."""
        from likeness.methods.replicates import linked_replicates

        rows, train, fitted = self.rows(n), params.train, self.generator
        project = Project(Path(), params, fitted.schema)
        compute = Compute(train.device, train.threads, train.precision)
        source = project.method, project.row_sets, self.released.values(), (fitted.people, fitted.following)
        return [
            self._drawn(HistoryGenerator(first, following, fitted.schema), rows, stream, where)
            for (first, following), stream in linked_replicates(*source, compute, count, seed)
        ]

    def _drawn(self, generator: HistoryGenerator, count: int, seed: int, where: Any) -> Any:
        """Tables of ``count`` people as frames of the libraries and dtypes of the training rows."""
        require(where is None or isinstance(where, Mapping), "where", "a frame", "a mapping from columns of people")
        schema = generator.schema
        frames = {name: self.frames.get(name, self.frame) for name in schema.written}
        dtypes = {name: {**frame.dtypes, schema.person: "int64"} for name, frame in frames.items()}
        drawn = generator.tables(count, seed, where or {}, dtypes)
        return {name: frames[name].native(table) for name, table in drawn.items()}


def fit_histories(given: "Synthesizer", schema: HistorySchema, tables: Any, person: str | None) -> FittedHistories:
    """Release and train. All checks come before the ledger, and the cost is on record before the rows are summed.

    Args:
        given: whose parameters.
        schema: public.
        tables: the frame of events, or frames by the name of their table.
        person: the column that names people, if the caller says it.

    Raises:
        LikenessError: see :meth:`likeness.Synthesizer.fit`.
    """
    from likeness.methods.fit import fit_all
    from likeness.pipeline.account import stated
    from likeness.pipeline.history_rows import read_histories
    from likeness.pipeline.rows_in_memory import history_doors, release_all

    tables = dict(tables) if isinstance(tables, Mapping) else {"events": tables}
    names = {"events"} if schema.people is None else {"people", "events"}
    require(set(tables) == names, "X", sorted(tables), f"the frames {' and '.join(sorted(names))} of the schema")
    require(person is None or str(person) == schema.person, "person", person, f"the schema's person, {schema.person}")
    refuse_faults(given)
    frames = {name: opened(frame) for name, frame in tables.items()}
    project = project_of(given, schema)
    plan, train = project.plan, project.params.train
    people = frames["people"][0] if "people" in frames else None
    rows, digests = read_histories(schema, frames["events"][0], people, project.ledger.key)
    doors = history_doors(project, schema, rows, digests)
    released = release_all(project.method, project.row_sets, doors)
    privacy = stated(project, plan, project.schema, list(released.values()))
    compute = Compute(train.device, train.threads, train.precision)
    generators, losses = fit_all(project.method, project.row_sets, released.values(), compute)
    types = {name: frame_type.of(schema.written[name].names) for name, (_, frame_type) in frames.items()}
    generator = HistoryGenerator(generators[0], generators[1], schema)
    return FittedHistories(schema, plan, released, privacy, losses, types, generator)
