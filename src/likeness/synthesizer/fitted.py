"""What a fit leaves of its rows: releases, account and generators."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likeness.config.params import Params, Sample
from likeness.core.artifacts import Artifacts
from likeness.core.paths import ProjectPaths, read_json
from likeness.core.typed import check_whole_number, require
from likeness.data.encoding.dtypes import typed_again
from likeness.data.encoding.frames import FrameType, pandas_frame
from likeness.data.schema.schema import Schema
from likeness.generators.base import Compute
from likeness.inference.relations import Relation, relations
from likeness.methods.replicates import replicates
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.datasets import model_of
from likeness.pipeline.datasets.model import MOST_COMPARED, DataModel, single_or_dict
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import row_request
from likeness.release.released import Released, load_released
from likeness.report.files import read_losses
from likeness.report.statement import statement
from likeness.stages import STAGES
from likeness.synthesizer.parameters import project_of, refuse_faults

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.report.pages import Page
    from likeness.synthesizer import Synthesizer


_STAGES = ("plan", "ingest", "categories", "preprocess", "auxiliary", "privatize", "train", "account")
"""Those of a fit. All checks of the plan come before a row is read."""


@dataclass(frozen=True)
class Fitted:
    """The results of a fit: the artifacts of a run, without its rows. They may be published, unless noise is off.

    Attributes:
        project: the settings, and the artifacts in memory.
        frames: library and dtypes of each frame of training rows, by the name of the table.
    """

    project: Project
    frames: Mapping[str, FrameType]

    @cached_property
    def released(self) -> dict[str, Released]:
        """The releases, by the name of their query."""
        return {path.stem: load_released(path) for path in self.project.paths.released_files}

    @cached_property
    def privacy(self) -> dict[str, Any]:
        """The account."""
        return read_json(self.project.paths.privacy)

    @cached_property
    def generators(self) -> list[SavedGenerator]:
        """The generator of each row set."""
        return self.project.model.load_generators(self.project.paths.generator)

    @property
    def schema(self) -> Schema:
        """The schema of a row a record, with released categories."""
        return self.project.schema

    @property
    def model(self) -> DataModel:
        """The data model, with released categories."""
        return self.project.model

    @cached_property
    def _losses(self) -> dict[str, list[float]]:
        """Columns of the losses; none after a load."""
        path = self.project.paths.loss
        return read_losses(path) if path.exists() else {}

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
            n = row_request(Sample(), self.project.context, self.released).rows
        return check_whole_number("n", n, least=1)

    def attributes(self) -> dict[str, Any]:
        """The public attributes of a synthesizer with this fit, in the names of scikit-learn."""
        names, losses = self.schema.names, dict(self._losses)
        steps = losses.pop("iteration", [])
        curves = {
            table: [(int(step), loss) for step, loss in zip(steps, curve, strict=True) if not math.isnan(loss)]
            for table, curve in zip(self.model.outputs.tables, losses.values(), strict=bool(losses))
        }
        values = {
            "plan_": self.project.written_plan,
            "releases_": self.released,
            "privacy_": self.privacy,
            "loss_curve_": single_or_dict(curves),
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
        rows, train, project = self.rows(n), params.train, self.project
        source = project.method, project.row_sets, self.released.values(), self.generators
        compute = Compute(train.device, train.threads, train.precision)
        models = replicates(*source, compute, count, seed)
        return [self._draw_frames(generators, rows, stream, where or {}) for generators, stream in models]

    def relations(self) -> "DataFrame":
        """See :attr:`likeness.Synthesizer.relations_`."""
        verdicts = relations(self.project.row_sets, self.released.values(), self.generators)
        return pd.DataFrame(verdicts, columns=Relation._fields).set_index(["first", "second"])

    def page(self, n: Any, seed: int) -> "Page":
        """The public page about these rows, see :meth:`likeness.Synthesizer.report`."""
        from likeness.report.pages import Page, render  # with it comes matplotlib

        model = self.model
        drawn = model.draw(self.generators, self.rows(n), seed, {})
        tables = {name: typed_again(table, model.tables[name]) for name, table in drawn.items()}
        released = list(self.released.values())
        section = model.section(released, self.privacy["num_records"], tables, MOST_COMPARED)
        return Page(render(self.privacy, statement(self.privacy), self._losses, section))

    def _draw_frames(self, generators: Sequence[SavedGenerator], rows: int, seed: int, where: Any) -> Any:
        """Tables as frames like those of the training rows, or like the last one where there was none."""
        frames = {name: self.frames.get(name, self.frame) for name in self.model.tables}
        key = {} if self.model.key is None else {self.model.key: "int64"}
        dtypes = {name: {**frame.dtypes, **key} for name, frame in frames.items()}
        tables = self.model.draw(generators, rows, seed, where, dtypes)
        return single_or_dict({name: frames[name].native(table) for name, table in tables.items()})


def fit(synthesizer: "Synthesizer", frames: Any, person: str | None) -> Fitted:
    """Run the stages over artifacts in memory. The cost is on record before the rows are summed.

    No private artifact is left, also after an error.

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
    model = model_of(synthesizer.public_schema)
    tables = model.frames_by_table(given_tables, person)
    artifacts, stages = Artifacts(), {stage.name: stage for stage in STAGES}
    project = project_of(synthesizer, model.schema, {name: table for name, (table, _) in tables.items()}, artifacts)
    try:
        for name in _STAGES:
            with artifacts.limited_to(stages[name].paths):
                stages[name].run(project)
    finally:
        artifacts.remove(ProjectPaths.private)
    types = {name: frame_type.select(model.tables[name].names) for name, (_, frame_type) in tables.items()}
    return Fitted(replace(project, frames=None), types)
