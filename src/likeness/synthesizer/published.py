"""What a run publishes: of a fit, a bundle, a saved synthesizer, or a project after its training."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likeness.bundle.contents import PRIVACY, SCHEMA, SETTINGS, BundleProject, params_of
from likeness.bundle.files import check_whole, checksums, files, form
from likeness.config.params import Params, Sample
from likeness.core.artifacts import Artifacts
from likeness.core.errors import ArtifactError
from likeness.core.format import check_known
from likeness.core.paths import ProjectPaths, read_json
from likeness.core.typed import check_whole_number, require
from likeness.core.wings import Wings
from likeness.data.encoding.dtypes import typed_again
from likeness.data.encoding.frames import FrameType, pandas_frame
from likeness.generators.base import Compute
from likeness.inference.relations import Relation, relations
from likeness.ledger.records import moment
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.counts import ANSWERS
from likeness.pipeline.datasets import model_of, read_schema
from likeness.pipeline.datasets.model import MOST_COMPARED, DataModel, Tables, single_or_dict
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import read_synthetic, row_request
from likeness.release.released import Released, load_released
from likeness.report.files import read_losses
from likeness.report.statement import statement
from likeness.stages import STAGES
from likeness.synthesizer.parameters import Parameters, from_plain, project_of, refuse_faults, with_schema

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.report.pages import Page

SAVED = "synthesizer.json"
"""The file of a saved synthesizer that holds its parameters."""
_MOST_ROWS = 10**8  # that nobody asked for: a stranger's release may say any number
_STAGES = ("plan", "ingest", "categories", "preprocess", "auxiliary", "privatize", "train", "account")
"""Those of a fit. All checks of the plan come before a row is read."""
MARGINS: Wings[Callable[..., Any]] = Wings("likeness.margins", {})


@dataclass(frozen=True)
class Published:
    """The results of a run, without its rows. They may be published, unless noise is off.

    Attributes:
        project: the settings; the schema, with released categories; of a fit also the artifacts in memory.
        released: the releases, by the name of their query.
        generator: the folder of the generators.
        account: the file of the account.
        frames: library and dtypes of each frame of training rows, by the name of the table; empty without frames.
    """

    project: Project
    released: dict[str, Released]
    generator: Path
    account: Path
    frames: Mapping[str, FrameType] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Published":
        """Read a folder, if it has the form and the checksums that it states.

        Raises:
            ArtifactError: a file is missing or damaged.
        """
        if (folder / SAVED).exists():
            check_whole(folder, checksums)
        elif not _is_project(folder):
            check_whole(folder, files, checksums, form)
        return cls.from_checked_folder(folder)

    @classmethod
    def from_checked_folder(cls, folder: Path) -> "Published":
        """Read a folder whose form and checksums were checked.

        Raises:
            ArtifactError: a file is missing or damaged.
        """
        if _is_project(folder):
            return cls.from_project(Project.load(folder), {})
        schema, frames = read_schema(folder / SCHEMA, aliases=False), {}
        check_known(read_json(folder / PRIVACY), ("format",), PRIVACY, ArtifactError)
        saved = folder / SAVED
        if saved.exists():
            settings = read_json(saved)
            try:
                frames = {name: FrameType.from_dict(frame) for name, frame in settings["frames"].items()}
                params = Parameters(**from_plain(settings["params"]), schema=schema).params()
            except (AttributeError, TypeError, ValueError):
                raise ArtifactError(f"{saved} was changed by hand. Restore the folder from a copy.") from None
        else:
            params = params_of(read_json(folder / SETTINGS))
        return cls.from_project(BundleProject(folder, params, schema), frames)

    @classmethod
    def from_project(cls, project: Project, frames: Mapping[str, FrameType]) -> "Published":
        """Read what the stages of a project wrote."""
        paths = project.paths
        releases = [load_released(path) for path in paths.released_files if path.exists()]
        released = {release.receipt.query: release for release in releases}
        return cls(project, released, paths.generator, paths.privacy, frames)

    @cached_property
    def privacy(self) -> dict[str, Any]:
        """The account."""
        return read_json(self.account)

    @cached_property
    def generators(self) -> list[SavedGenerator]:
        """The generator of each row set."""
        return self.model.load_generators(self.generator)

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

    def tables(
        self, rows: int | None, seed: int, where: Mapping[str, Any], saved: Sequence[SavedGenerator] | None = None
    ) -> "dict[str, DataFrame]":
        """Draw the tables by name, as typed pandas DataFrames.

        Args:
            rows: how many; None: as many as the noisy count of training rows, or the public number, says.
            seed: public.
            where: which rows, see :func:`likeness.pipeline.where.conditions`.
            saved: the generators; None: those of the run.
        """
        count = self.rows(rows)
        if rows is None:
            require(count <= _MOST_ROWS, "rows", count, f"given: the noisy count is larger than {_MOST_ROWS:,}")
        dtypes = {name: dict(frame.dtypes) for name, frame in self.frames.items()}
        return self.model.draw(saved or self.generators, count, seed, where, dtypes)

    def replicates(
        self, rows: int | None, seed: int, where: Mapping[str, Any], count: int
    ) -> "Iterator[dict[str, DataFrame]]":
        """Draw the base, and ``count`` times what :meth:`tables` gives, from models fitted to new draws of the noise.

        Raises:
            ParamsError: the method makes none.
        """
        for saved, stream in self._models(self.project.params, count, seed):
            yield self.tables(rows, stream, where, saved)

    def attributes(self) -> dict[str, Any]:
        """The public attributes of a synthesizer with this fit, in the names of scikit-learn."""
        names, losses = self.project.schema.names, dict(self._losses)
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
            "schema_": self.project.schema,
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

    def sample_replicates(self, count: int, n: Any, where: Any, seed: int, params: Params) -> list[Any]:
        """Give what :meth:`sample` gives, from models fitted to new draws of the noise; the first is the base.

        Raises:
            ParamsError: the method makes none.
        """
        require(where is None or isinstance(where, Mapping), "replicates", count, "left out if where is a frame")
        rows, models = self.rows(n), self._models(params, count, seed)
        return [self._draw_frames(generators, rows, stream, where or {}) for generators, stream in models]

    def _models(self, params: Params, count: int, seed: int) -> Iterator[tuple[list[SavedGenerator], int]]:
        """See :func:`likeness_margins.replicates.replicates`."""
        project, compute = self.project, Compute(params.train.device, params.train.threads, params.train.precision)
        source = project.method, project.row_sets, self.released.values(), self.generators
        draw = margins("replicates", "A sample with replicates")
        return draw(*source, compute, count, seed)  # type: ignore[no-any-return]

    def relations(self) -> "DataFrame":
        """See :attr:`likeness.Synthesizer.relations_`."""
        verdicts = relations(self.project.row_sets, self.released.values(), self.generators)
        return pd.DataFrame(verdicts, columns=Relation._fields).set_index(["first", "second"])

    def page(self, n: Any, seed: int) -> "Page":
        """The public page about rows that are drawn for it, see :meth:`likeness.Synthesizer.report`."""
        drawn = self.model.draw(self.generators, self.rows(n), seed, {})
        tables = {name: typed_again(table, self.model.tables[name]) for name, table in drawn.items()}
        return self._render(tables, MOST_COMPARED)

    def bundle_page(self) -> "Page":
        """The public page, drawn from a bundle alone: it needs no page of a stranger.

        Raises:
            ArtifactError: a field of the account is missing, or there is no account.
            DataError: a value of a table is none of its column.
        """
        folder, schemas = self.account.parent, self.model.tables
        tables = {name: read_synthetic(folder / f"{name}.parquet", schema) for name, schema in schemas.items()}
        return self._render(tables, None if self.privacy["sample"]["where"] else MOST_COMPARED)

    def _render(self, tables: Tables, most: int | None) -> "Page":
        from likeness.report.pages import Page, render  # with it comes matplotlib

        section = self.model.section(list(self.released.values()), self.privacy["num_records"], tables, most)
        return Page(render(self.privacy, statement(self.privacy), self._losses, section))

    def _draw_frames(self, generators: Sequence[SavedGenerator], rows: int, seed: int, where: Any) -> Any:
        """Tables as frames like those of the training rows, or like the last one where there was none."""
        frames = {name: self.frames.get(name, self.frame) for name in self.model.tables}
        key = {} if self.model.key is None else {self.model.key: "int64"}
        dtypes = {name: {**frame.dtypes, **key} for name, frame in frames.items()}
        tables = self.model.draw(generators, rows, seed, where, dtypes)
        return single_or_dict({name: frames[name].native(table) for name, table in tables.items()})


def fit(synthesizer: Parameters, frames: Any, person: str | None) -> Published:
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
    frame = given_tables.get("", (None,))[0]
    synthesizer = with_schema(synthesizer, frame)
    refuse_faults(synthesizer, frame)
    model = model_of(synthesizer.public_schema)
    tables = model.frames_by_table(given_tables, person)
    artifacts, stages = Artifacts(), {stage.name: stage for stage in STAGES}
    project = project_of(synthesizer, model.schema, {name: table for name, (table, _) in tables.items()}, artifacts)
    began = moment([])
    try:
        for name in _STAGES:
            with artifacts.limited_to(stages[name].paths):
                stages[name].run(project)
    finally:
        artifacts.remove(ProjectPaths.private)
        ANSWERS.clear()
    project.ledger_session.check_night(began)
    types = {name: frame_type.select(model.tables[name].names) for name, (_, frame_type) in tables.items()}
    return Published.from_project(replace(project, frames=None), types)


def margins(name: str, subject: str) -> Callable[..., Any]:
    """Give what the wing of further margins of error offers.

    Raises:
        MissingPackageError: it is not installed.
    """
    return MARGINS.need(name, f"{subject} is that of a part of Likeness.")


def _is_project(folder: Path) -> bool:
    """Tell whether it is a project, whose generator is elsewhere."""
    return not (folder / "generator").exists() and ProjectPaths(folder).params.exists()
