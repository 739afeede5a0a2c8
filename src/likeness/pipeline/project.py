"""A project: a folder with its settings, and everything that follows from them, worked out once.

A stage loads only what it uses of a project, so each property imports what it needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.config.load import load_params
from likeness.config.params import AUTO, COME, Params
from likeness.core.errors import ArtifactError, DataError, SchemaError
from likeness.core.hashing import sha256_json
from likeness.core.paths import Outputs, ProjectPaths, read_json
from likeness.pipeline.datasets import model_of, read_schema
from likeness.pipeline.sources import Sources, digest_of
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import Plan, QueryShare, make_plan

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.core.artifacts import Artifacts
    from likeness.data.schema.row_sets import PublicSchema
    from likeness.data.schema.schema import Schema
    from likeness.ledger.ledger import Ledger
    from likeness.methods.base import Context, Method
    from likeness.methods.row_set import RowSet
    from likeness.pipeline.counts import CountBackend
    from likeness.pipeline.datasets.model import DataModel
    from likeness.pipeline.ledger_session import LedgerSession
    from likeness.pipeline.synthetic_table import Request


@dataclass(frozen=True)
class Project:
    """One look at a project. Make a new one for the next stage.

    Nothing depends on the current directory, so two projects with absolute roots work in one process.

    Attributes:
        root: the folder. Relative paths in params.yaml start here.
        params: the settings of params.yaml.
        given_schema: the public schema, of a table or of histories, if it is in memory and not in a file.
        frames: the private rows of a Python caller by the name of their table, in the place of sources.
        artifacts: the files of a run in memory, in the place of those in the folder.
    """

    root: Path
    params: Params
    given_schema: "PublicSchema | None" = None
    frames: "Mapping[str, DataFrame] | None" = None
    artifacts: "Artifacts | None" = None

    @classmethod
    def load(cls, root: Path = Path()) -> "Project":
        """The project in a folder.

        Raises:
            ParamsError: params.yaml is missing or wrong.
        """
        return cls(root, load_params(root / ProjectPaths.params))

    @cached_property
    def paths(self) -> ProjectPaths:
        """The paths of its files."""
        return ProjectPaths(self.root if self.artifacts is None else self.artifacts.root)

    def output(self, name: str) -> Path:
        """The path of a file or folder that a run publishes beside its releases, by its name in a bundle."""
        return self.paths.root / Outputs.project_path(name)

    @property
    def schema_file(self) -> Path:
        """The file of the public schema."""
        return self.root / self.params.ingest.schema

    @cached_property
    def public_schema(self) -> "PublicSchema":
        """The public schema.

        Raises:
            SchemaError: it is wrong.
        """
        return self.given_schema or read_schema(self.schema_file)

    @cached_property
    def written_model(self) -> "DataModel":
        """The data model of the public schema as it is written.

        Raises:
            SchemaError: the schema is wrong.
            ParamsError: the settings do not go with it.
        """
        model = model_of(self.public_schema)
        model.complete(self.params, self.given_schema is None)  # or refused
        return model

    @cached_property
    def model(self) -> "DataModel":
        """The data model, with the released categories of its open columns.

        Raises:
            ArtifactError: no categories are released yet, or those of another schema.
        """
        return self.written_model.with_records(self.schema)

    @cached_property
    def complete_params(self) -> Params:
        """The settings with the unit of privacy, which of histories the schema says."""
        return self.written_model.complete(self.params, self.given_schema is None)

    @property
    def outputs(self) -> Outputs:
        """Names of the tables and generators of a run."""
        return self.written_model.outputs

    @cached_property
    def written_schema(self) -> "Schema":
        """The schema of a row a record as it is written: columns may be open.

        Raises:
            SchemaError: it is wrong, or would synthesize the column that names people.
        """
        schema = self.written_model.records
        unit = self.complete_params.ingest.unit
        if unit is not None and unit.column in schema.names:
            raise SchemaError(
                f"column '{unit.column}' is ingest.unit.column: its values name people and are never released. In the "
                "schema, give it kind drop with a reason, or leave it out."
            )
        return schema

    @cached_property
    def schema(self) -> "Schema":
        """The public schema, with the released categories and bounds of its columns.

        Raises:
            ArtifactError: they are not released yet, or those of another schema.
        """
        from likeness.release.private_bounds import complete_schema
        from likeness.release.released import load_released

        written = self.written_schema
        if not written.open_columns and not written.unbounded_columns:
            return written
        return complete_schema(written, [load_released(path) for path in self.paths.category_files])

    @cached_property
    def method(self) -> "Method":
        """The recipe of the settings and the schema.

        Raises:
            ParamsError: it makes no histories, and the schema is one of them.
        """
        from likeness.methods import method_from

        return self.written_model.recipe(method_from(self.params))

    @cached_property
    def context(self) -> "Context":
        """Public facts for the recipe."""
        return self.context_of(self.schema)

    def context_of(self, schema: "Schema") -> "Context":
        """Public facts for the recipe: the modeled columns of a schema without open columns."""
        from likeness.methods.base import Context

        params = self.params
        return Context(schema.model_schema, params.privacy.adjacency, params.privacy.num_records, params.train.seed)

    @cached_property
    def row_sets(self) -> "tuple[RowSet, ...]":
        """The rows that the recipe is asked about."""
        return self.row_sets_of(self.schema)

    def row_sets_of(self, schema: "Schema") -> "tuple[RowSet, ...]":
        """The rows that the recipe is asked about, where those of a record have a schema without open columns."""
        return self.written_model.with_records(schema).row_sets(self.context_of)

    @cached_property
    def sample(self) -> "Request":
        """The request for the table, with its number of rows.

        Raises:
            ArtifactError: the number is ``auto``, and nothing is released yet.
        """
        from likeness.pipeline.synthetic_table import row_request
        from likeness.release.released import load_answers

        sample = self.params.sample
        if sample.rows == AUTO and not self.paths.auxiliary_files:
            raise ArtifactError(f"{self.paths.auxiliary} is missing. Run: likeness run")
        return row_request(sample, self.context, load_answers(self.paths.auxiliary_files))

    @cached_property
    def plan(self) -> "Plan":
        """The plan, from public settings alone.

        Raises:
            PlanError: a later stage could not answer it.
        """
        from likeness.methods import distribution_of
        from likeness.release.partition_selection import STAGE, query_name
        from likeness.release.private_bounds import bounds_share

        privacy, categories = self.params.privacy, self.params.categories
        # Stand-ins for the categories that a column may get.
        planned = self.written_schema.with_stand_ins(categories.most)
        shares = [share for rows in self.row_sets_of(planned) for share in rows.shares(self.method)]
        names = [query_name(index) for index, _ in enumerate(self.written_schema.open_columns, start=1)]
        parts = [part / max(1, len(names)) for part in (categories.share, categories.delta_share)]
        return make_plan(
            method=self.params.method,
            identity=privacy.population,
            shares=shares,
            epsilon=privacy.epsilon,
            delta=privacy.delta,
            adjacency=Adjacency(privacy.adjacency),
            num_records=privacy.num_records,
            unit=self.complete_params.ingest.unit,
            selection=[*(QueryShare(name, STAGE, *parts) for name in names), *bounds_share(self.written_schema)],
            plugin=distribution_of(self.params.method),
        )

    @cached_property
    def written_plan(self) -> "Plan":
        """The plan as stage ``plan`` wrote it.

        Raises:
            ArtifactError: it is missing.
        """
        return Plan.from_dict(read_json(self.paths.plan))

    @cached_property
    def sources(self) -> "Sources":
        """The private sources."""
        return Sources(self.root, self.params, self.frames)

    @cached_property
    def backend(self) -> "CountBackend":
        """The backend that counts the rows where they are.

        Raises:
            MissingPackageError: its wing, or a package that it needs, is not installed.
        """
        from likeness.pipeline.counts import backend_of

        return backend_of(self.sources, self.written_model)

    @cached_property
    def counts(self) -> "CountBackend | None":
        """The backend that counts the rows where they are, as ``ingest.rows`` asks; None where they come.

        Raises:
            DataError: settings, schema or a column need the rows here, or the database cannot be reached.
            MissingPackageError: as :attr:`backend`.
        """
        if self.params.ingest.rows == COME:
            return None
        _ = self.written_schema, self.complete_params  # or refused
        if reasons := self.backend.reasons():
            raise DataError(
                f"ingest.rows is stay, and rows have to come here: {'; '.join(reasons)}. Nothing was spent. Change "
                "that, or set ingest.rows: come."
            )
        return self.backend

    def source_digest(self) -> str:
        """Keyed hash of the sources: of a file's bytes, or of a database's rows. It reads no row that stays there.

        Raises:
            DataError: a file does not exist, or the database cannot be read.
        """
        with self.ledger_session.remedy_in_a_clone():
            if self.counts is None:
                return digest_of(self.sources.all_sources, self.ledger.key)
            return self.counts.digest(self.ledger.key)

    @cached_property
    def ledger_session(self) -> "LedgerSession":
        """The location of the ledger, and its refusals."""
        from likeness.pipeline.ledger_session import LedgerSession

        return LedgerSession(self.root, self.params)

    @property
    def ledger(self) -> "Ledger":
        """The ledger, verified once.

        Raises:
            LedgerError: it is damaged; or there is none, and files of the project name another one.
        """
        return self.ledger_session.ledger

    @cached_property
    def ledger_to_spend(self) -> "Ledger":
        """The ledger for the door, as :meth:`likeness.pipeline.ledger_session.LedgerSession.to_spend`."""
        selects = bool(self.written_schema.open_columns)
        return self.ledger_session.to_spend(self.complete_params.ingest.unit, selects)

    def check_known(self, paths: Sequence[Path]) -> None:
        """Refuse released files that the ledger does not know: rolled back, edited, or drawn elsewhere.

        A machine without a ledger checks nothing, and says so.

        Raises:
            ReleaseError: a file is not, byte for byte, what the ledger committed.
        """
        from likeness.release.released import check_against, ledger_is_absent, load_released

        if paths and not ledger_is_absent(*self.params.ledger.location(self.root)):
            commits, ledger_id = self.ledger.commits(), self.ledger.id
            for path in paths:
                check_against(commits, path, load_released(path).receipt, ledger_id)

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """User, commit, settings and software: public facts."""
        from likeness.pipeline.provenance import provenance, public_settings

        return {**provenance(self.root), "params_sha256": sha256_json(public_settings(self.params))}
