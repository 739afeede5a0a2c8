"""Rows from a folder that may be published: a bundle, a saved synthesizer, or a project after its training."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.bundle.contents import PRIVACY, RELEASED, SCHEMA, SETTINGS, params_of
from likeness.bundle.files import check_whole, checksums, files, form
from likeness.config.params import FileFormat, Params, Sample
from likeness.core.errors import ArtifactError
from likeness.core.format import check_known
from likeness.core.paths import ProjectPaths, read_json
from likeness.core.typed import require
from likeness.generators.base import Compute
from likeness.methods.base import Context
from likeness.methods.replicates import replicates
from likeness.pipeline.datasets import model_of, read_schema
from likeness.pipeline.datasets.model import MOST_COMPARED, DataModel
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import read_synthetic, row_request
from likeness.release.partition_selection import STAGE, complete_schema
from likeness.release.released import Released, load_folder, load_released
from likeness.report.statement import statement

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.report.pages import Page

_MOST_ROWS = 10**8  # that nobody asked for: a stranger's release may say any number
SAVED = "synthesizer.json"
"""The file of a saved synthesizer that holds its parameters."""


@dataclass(frozen=True)
class Published:
    """The published content of a folder.

    Attributes:
        folder: the folder.
        context: public facts, with the schema of a row a record.
        released: by the name of their query.
        generator: folder of the generators.
        model: the data model.
    """

    folder: Path
    context: Context
    released: dict[str, Released]
    generator: Path
    model: DataModel

    @classmethod
    def read(cls, folder: Path) -> "Published":
        """Read a folder, if it has the form and the checksums that it states.

        Raises:
            ArtifactError: a file is missing or damaged.
        """
        check_given(folder)
        return cls.from_checked_folder(folder)

    @classmethod
    def from_checked_folder(cls, folder: Path) -> "Published":
        """Read a folder whose form and checksums were checked.

        Raises:
            ArtifactError: a file is missing or damaged.
        """
        generator, paths = folder / "generator", ProjectPaths(folder)
        if _is_project(folder):
            releases = [load_released(path) for path in paths.released_files if path.exists()]
            project = Project.load(folder)
            context = replace(project.context, schema=project.schema)
            released = {release.receipt.query: release for release in releases}
            return cls(folder, context, released, paths.generator, project.model)
        model, released = model_of(read_schema(folder / SCHEMA, aliases=False)), load_folder(folder / RELEASED)
        selected = [release for release in released.values() if release.receipt.stage == STAGE]
        schema = complete_schema(model.records, selected)
        facts = read_json(folder / PRIVACY)
        check_known(facts, ("format",), PRIVACY, ArtifactError)
        context = Context(schema, facts["adjacency"], facts["num_records"], 0)
        return cls(folder, context, released, generator, model.with_records(schema))

    @property
    def layout(self) -> FileFormat:
        """The format of the CSV of a run's source; that of a saved synthesizer is a frame."""
        return FileFormat() if (self.folder / SAVED).exists() else self._params().ingest.format

    def tables(self, rows: int | None, seed: int, where: Mapping[str, Any]) -> "dict[str, DataFrame]":
        """Draw the tables by name, as typed pandas DataFrames.

        Args:
            rows: how many; None: as many as the noisy count of training rows, or the public number, says.
            seed: public.
            where: which rows, see :func:`likeness.pipeline.where.conditions`.
        """
        saved = self.model.load_generators(self.generator)
        return self.model.draw(saved, self._rows(rows), seed, where, self._dtypes())

    def replicates(
        self, rows: int | None, seed: int, where: Mapping[str, Any], count: int
    ) -> "Iterator[dict[str, DataFrame]]":
        """Draw the base, and tables that are each from models that are fitted to a new draw of the noise, by name.

        Args:
            rows: of each table.
            seed: public.
            where: which rows.
            count: how many beside the base.

        Raises:
            ParamsError: the method makes none.
        """
        params, rows = self._params(), self._rows(rows)
        compute = Compute(params.train.device, params.train.threads, params.train.precision)
        project = Project(self.folder, params, self.model.schema)
        source = project.method, project.row_sets, self.released.values(), self.model.load_generators(self.generator)
        for saved, stream in replicates(*source, compute, count, seed):
            yield self.model.draw(saved, rows, stream, where, self._dtypes())

    def page(self) -> "Page":
        """The public page, drawn from a bundle alone: it needs no page of a stranger.

        Raises:
            ArtifactError: a field of the account is missing, or there is no account.
            DataError: a value of a table is none of its column.
        """
        from likeness.report.pages import Page, render

        privacy, schemas = read_json(self.folder / PRIVACY), self.model.tables
        tables = {name: read_synthetic(self.folder / f"{name}.parquet", schema) for name, schema in schemas.items()}
        most = None if privacy["sample"]["where"] else MOST_COMPARED
        section = self.model.section(list(self.released.values()), privacy["num_records"], tables, most)
        return Page(render(privacy, statement(privacy), {}, section))

    def _rows(self, rows: int | None) -> int:
        if rows is not None:
            return rows
        rows = row_request(Sample(), self.context, self.released).rows
        require(rows <= _MOST_ROWS, "rows", rows, f"given: the noisy count is larger than {_MOST_ROWS:,}")
        return rows

    def _params(self) -> Params:
        """The settings of the run."""
        from likeness.synthesizer import Synthesizer

        if (self.folder / SETTINGS).exists():
            return params_of(read_json(self.folder / SETTINGS))
        if (self.folder / SAVED).exists():
            return Synthesizer.load(self.folder).params()
        return Project.load(self.folder).params

    def _dtypes(self) -> dict[str, dict[str, str]]:
        """Read the dtypes that a saved synthesizer remembers of its frames, by table."""
        settings = self.folder / SAVED
        saved = read_json(settings) if settings.exists() else {"frames": {}}
        try:
            return {name: dict(frame["dtypes"]) for name, frame in saved["frames"].items()}
        except (AttributeError, TypeError, ValueError):
            raise ArtifactError(f"{settings} was changed by hand. Restore the folder from a copy.") from None


def check_given(folder: Path) -> None:
    """Refuse a bundle or a saved synthesizer that does not have the form and the checksums that it states.

    Raises:
        ArtifactError: naming file and rule.
    """
    if (folder / SAVED).exists():
        check_whole(folder, checksums)
    elif not _is_project(folder):
        check_whole(folder, files, checksums, form)


def _is_project(folder: Path) -> bool:
    """Tell whether it is a project, whose generator is elsewhere."""
    return not (folder / "generator").exists() and ProjectPaths(folder).params.exists()
