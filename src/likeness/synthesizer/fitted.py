"""What a fit leaves of its rows: releases, account and generators."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likeness.config.params import Params, Sample
from likeness.config.typed import check_whole_number, require
from likeness.data.encoding.dtypes import typed_again
from likeness.data.encoding.frames import FrameType, pandas_frame
from likeness.data.schema.schema import Schema
from likeness.generators.base import Compute
from likeness.inference.relations import Relation, relations
from likeness.methods.base import Context
from likeness.methods.fit import fit_all
from likeness.methods.replicates import replicates
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.account import account_of
from likeness.pipeline.datasets import model_of
from likeness.pipeline.datasets.model import MOST_COMPARED, DataModel, single_or_dict
from likeness.pipeline.project import Project
from likeness.pipeline.rows_in_memory import release_all
from likeness.pipeline.synthetic_table import row_request
from likeness.privacy.plan import Plan
from likeness.release.door import Door
from likeness.release.partition_selection import STAGE, complete_schema, partition_queries
from likeness.release.released import Released, from_bytes
from likeness.report.statement import statement
from likeness.synthesizer.parameters import project_of, refuse_faults, schema_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.pipeline.project import Project
    from likeness.pipeline.rows_in_memory import RowsInMemory
    from likeness.report.pages import Page
    from likeness.synthesizer import Synthesizer


@dataclass(frozen=True)
class Fitted:
    """The results of a fit. All of it may be published, unless noise is off.

    Attributes:
        written: the data model of the schema as it is written.
        plan: of the releases.
        released: by the name of their query.
        privacy: the account.
        losses: (iteration, loss) during the training of each generator; empty where files say none.
        frames: library and dtypes of each frame of training rows, by the name of the table.
        generators: of each row set.
    """

    written: DataModel
    plan: Plan
    released: dict[str, Released]
    privacy: dict[str, Any]
    losses: list[list[tuple[int, float]]]
    frames: Mapping[str, FrameType]
    generators: list[SavedGenerator]

    @cached_property
    def schema(self) -> Schema:
        """The schema of a row a record, with released categories."""
        selected = [release for release in self.released.values() if release.receipt.stage == STAGE]
        return complete_schema(self.written.records, selected)

    @cached_property
    def model(self) -> DataModel:
        """The data model, with released categories."""
        return self.written.with_records(self.schema)

    @property
    def frame(self) -> FrameType:
        """Library and dtypes of the table, or of the events."""
        return self.frames[self.model.outputs.tables[-1]]

    def rows(self, n: Any) -> int:
        """The number of rows to draw: a given one, or as many as the noisy count or the public number says.

        Raises:
            ParamsError: it is no whole number from 1.
        """
        if n is None:
            context = Context(self.schema, self.privacy["adjacency"], self.privacy["num_records"], 0)
            n = row_request(Sample(), context, self.released).rows
        return check_whole_number("n", n, least=1)

    def attributes(self) -> dict[str, Any]:
        """The public attributes of a synthesizer with this fit, in the names of scikit-learn."""
        names = self.schema.names
        curves = zip(self.model.outputs.tables, self.losses, strict=bool(self.losses))
        values = {
            "plan_": self.plan,
            "releases_": self.released,
            "privacy_": self.privacy,
            "loss_curve_": single_or_dict(dict(curves)),
            "frame_": self.frame,
            "schema_": self.schema,
            "n_features_in_": len(names),
            "feature_names_in_": np.array(names, dtype=object),
        }
        return {**values, **({"generator_": self.generators[0]} if len(self.generators) == 1 else {})}

    def sample(self, n: Any, where: Any, seed: int) -> Any:
        """Synthetic rows as frames of the libraries and dtypes of the training rows.

        They meet conditions, or there is one beside each row of a frame.
        """
        if where is None or isinstance(where, Mapping):
            return self._draw_frames(self.generators, self.rows(n), seed, where or {})
        frame, _ = pandas_frame(where, "where: must be a mapping from columns to values, or")
        require(n is None or n == len(frame), "n", n, "the number of rows of where, or left out")
        return self._draw_frames(self.generators, len(frame), seed, frame)

    def replicates(self, count: int, n: Any, where: Any, seed: int, params: Params) -> list[Any]:
        """Give what :meth:`sample` gives, from models fitted to new draws of the noise; the first is the base.

        Raises:
            ParamsError: the method makes none.
        """
        require(where is None or isinstance(where, Mapping), "replicates", count, "left out if where is a frame")
        rows, train = self.rows(n), params.train
        project = Project(Path(), params, self.model.schema)
        source = project.method, project.row_sets, self.released.values(), self.generators
        compute = Compute(train.device, train.threads, train.precision)
        models = replicates(*source, compute, count, seed)
        return [self._draw_frames(generators, rows, stream, where or {}) for generators, stream in models]

    def relations(self, params: Params) -> "DataFrame":
        """See :attr:`likeness.Synthesizer.relations_`."""
        row_sets = Project(Path(), params, self.model.schema).row_sets
        verdicts = relations(row_sets, self.released.values(), self.generators)
        return pd.DataFrame(verdicts, columns=Relation._fields).set_index(["first", "second"])

    def page(self, n: Any, seed: int) -> "Page":
        """The public page about these rows, see :meth:`likeness.Synthesizer.report`."""
        from likeness.report.pages import Page, render  # with it comes matplotlib

        model, losses = self.model, self.losses[0] if len(self.losses) == 1 else []
        drawn = model.draw(self.generators, self.rows(n), seed, {})
        tables = {name: typed_again(table, model.tables[name]) for name, table in drawn.items()}
        released = list(self.released.values())
        section = model.section(released, self.privacy["num_records"], tables, MOST_COMPARED)
        columns = {"iteration": [float(at) for at, _ in losses], "loss": [value for _, value in losses]}
        return Page(render(self.privacy, statement(self.privacy), columns, section))

    def _draw_frames(self, generators: Sequence[SavedGenerator], rows: int, seed: int, where: Any) -> Any:
        """Tables as frames like those of the training rows, or like the last one where there was none."""
        frames = {name: self.frames.get(name, self.frame) for name in self.model.tables}
        key = {} if self.model.key is None else {self.model.key: "int64"}
        dtypes = {name: {**frame.dtypes, **key} for name, frame in frames.items()}
        tables = self.model.draw(generators, rows, seed, where, dtypes)
        return single_or_dict({name: frames[name].native(table) for name, table in tables.items()})


def fit(synthesizer: "Synthesizer", frames: Any, person: str | None) -> Fitted:
    """Release and train. All checks come before the ledger, and the cost is on record before the rows are summed.

    Args:
        synthesizer: whose parameters.
        frames: the training rows: a frame, or frames by the name of their table.
        person: the column that names people, if the caller says it.

    Raises:
        LikenessError: see :meth:`likeness.Synthesizer.fit`.
    """
    named = frames if isinstance(frames, Mapping) else {"": frames}
    given_tables = {name: pandas_frame(frame) for name, frame in named.items()}
    refuse_faults(synthesizer, given_tables.get("", (None,))[0])
    model = model_of(schema_of(synthesizer))
    tables = model.frames_by_table(given_tables, person)
    project = project_of(synthesizer, model.schema)
    plan, train = project.plan, project.params.train
    frames = {name: table for name, (table, _) in tables.items()}
    rows = model.read_frames(frames, project.complete_params, project.ledger)
    categories = _categories(project, rows)
    schema = complete_schema(project.written_schema, list(categories.values()))
    sources = rows.records(model.with_records(schema).encodings)
    doors = [Door(plan, project.ledger_to_spend, *source, project.provenance) for source in sources]
    row_sets = project.row_sets_of(schema)
    released = {**categories, **release_all(project.method, row_sets, doors)}
    compute = Compute(train.device, train.threads, train.precision)
    generators, losses = fit_all(project.method, row_sets, released.values(), compute)
    privacy = account_of(project, plan, schema, list(released.values()), generators)
    types = {name: frame_type.select(model.tables[name].names) for name, (_, frame_type) in tables.items()}
    return Fitted(model, plan, released, privacy, losses, types, generators)


def _categories(project: "Project", rows: "RowsInMemory") -> dict[str, Released]:
    """The released categories of the open columns, by the name of their query."""
    released = {}
    for query in partition_queries(project.written_schema, project.plan, project.params.categories.most):
        read = rows.partitions(query.column)
        door = Door(project.plan, project.ledger_to_spend, rows.dataset, read, project.provenance)
        released[query.name] = from_bytes(door.release(query), query.name)
    return released
