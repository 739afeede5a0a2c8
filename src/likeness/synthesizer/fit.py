"""A fit: release noisy statistics of rows in memory, and train the generators of their row sets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from likeness.data.encoding.frames import pandas_frame
from likeness.generators.base import Compute
from likeness.methods.fit import fit_all
from likeness.pipeline.account import account_of
from likeness.pipeline.datasets import model_of
from likeness.pipeline.rows_in_memory import release_all
from likeness.release.door import Door
from likeness.release.partition_selection import completed, partition_queries
from likeness.release.released import Released, from_bytes
from likeness.synthesizer.fitted import Fitted
from likeness.synthesizer.parameters import project_of, refuse_faults, schema_of

if TYPE_CHECKING:
    from likeness.pipeline.project import Project
    from likeness.pipeline.rows_in_memory import RowsInMemory
    from likeness.synthesizer import Synthesizer


def fit(given: "Synthesizer", frames: Any, person: str | None) -> Fitted:
    """Release and train. All checks come before the ledger, and the cost is on record before the rows are summed.

    Args:
        given: whose parameters.
        frames: the training rows: a frame, or frames by the name of their table.
        person: the column that names people, if the caller says it.

    Raises:
        LikenessError: see :meth:`likeness.Synthesizer.fit`.
    """
    named = frames if isinstance(frames, Mapping) else {"": frames}
    given_tables = {name: pandas_frame(frame) for name, frame in named.items()}
    refuse_faults(given, given_tables.get("", (None,))[0])
    model = model_of(schema_of(given))
    tables = model.frames_by_table(given_tables, person)
    project = project_of(given, model.schema)
    plan, train = project.plan, project.params.train
    frames = {name: table for name, (table, _) in tables.items()}
    rows = model.in_memory(frames, project.complete_params, project.ledger)
    categories = _categories(project, rows)
    schema = completed(project.written_schema, list(categories.values()))
    sources = rows.records(model.with_records(schema).encoded)
    doors = [Door(plan, project.ledger_to_spend, *source, project.provenance) for source in sources]
    row_sets = project.row_sets_of(schema)
    released = {**categories, **release_all(project.method, row_sets, doors)}
    compute = Compute(train.device, train.threads, train.precision)
    generators, losses = fit_all(project.method, row_sets, released.values(), compute)
    privacy = account_of(project, plan, schema, list(released.values()), generators)
    types = {name: frame_type.of(model.tables[name].names) for name, (_, frame_type) in tables.items()}
    return Fitted(model, plan, released, privacy, losses, types, generators)


def _categories(project: "Project", rows: "RowsInMemory") -> dict[str, Released]:
    """The released categories of the open columns, by the name of their query."""
    released = {}
    for query in partition_queries(project.written_schema, project.plan, project.params.categories.most):
        read = rows.partitions(query.column)
        door = Door(project.plan, project.ledger_to_spend, rows.dataset, read, project.provenance)
        released[query.name] = from_bytes(door.release(query), query.name)
    return released
