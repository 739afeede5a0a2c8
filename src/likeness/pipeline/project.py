"""A project: a folder with its settings, and whatever follows from them, each worked out once.

A stage loads only what it uses of a project, so each property imports what it needs.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.config.load import load_params, source_at
from likeness.config.params import Params
from likeness.core.errors import ArtifactError, DataError, SchemaError
from likeness.core.paths import ProjectPaths, read_json

if TYPE_CHECKING:
    from likeness.data.schema.schema import Schema
    from likeness.data.source.databases import Database
    from likeness.engine import Engine
    from likeness.ledger.home import Home
    from likeness.ledger.ledger import Ledger
    from likeness.methods.base import Context, Method
    from likeness.pipeline.private_rows import ColumnKeys, EncodedRows
    from likeness.privacy.plan import Plan
    from likeness.release.door import Door
    from likeness.release.request import Dataset


@dataclass(frozen=True)
class Project:
    """One look at a project: make a new one for the next stage.

    Nothing depends on the current directory, so two projects with absolute roots work in one process.

    Attributes:
        root: the folder. Whatever is relative in params.yaml is relative to it.
        params: the settings as they are written.
        given_schema: the public schema, where it is in memory and not in the file that the settings name.
    """

    root: Path
    params: Params
    given_schema: "Schema | None" = None

    @classmethod
    def load(cls, root: Path = Path()) -> "Project":
        """The project in a folder.

        Raises:
            ParamsError: params.yaml is missing or wrong.
        """
        return cls(root, load_params(root / ProjectPaths.params))

    @cached_property
    def paths(self) -> ProjectPaths:
        """Where its files lie."""
        return ProjectPaths(self.root)

    # --- what follows from settings and schema

    @property
    def schema_file(self) -> Path:
        """The file of the public schema."""
        return self.root / self.params.ingest.schema

    @cached_property
    def written_schema(self) -> "Schema":
        """The public schema as it is written: columns may be open.

        Raises:
            SchemaError: it is wrong, or would synthesize the column that says who somebody is.
        """
        from likeness.data.schema.schema import Schema

        schema = self.given_schema or Schema.load(self.schema_file)
        unit = self.params.ingest.unit
        if unit is not None and unit.column in schema.names:
            raise SchemaError(
                f"column '{unit.column}' is ingest.unit.column, whose values name people: it is never released. In the "
                "schema give it kind drop with a reason, or leave it out."
            )
        return schema

    @cached_property
    def schema(self) -> "Schema":
        """The public schema, its open columns completed by the categories that were released.

        Raises:
            ArtifactError: they are not released yet, or were released for another schema.
        """
        from likeness.release.keys import completed
        from likeness.release.released import load_released

        written = self.written_schema
        if not written.open_columns:
            return written
        return completed(written, [load_released(path) for path in self.paths.category_files])

    @property
    def foreseen_schema(self) -> "Schema":
        """The schema before anything is released: an open column has stand-ins for the most categories it may get."""
        return self.written_schema.foreseen(self.params.categories.most)

    @cached_property
    def method(self) -> "Method":
        """The recipe that the settings choose."""
        from likeness.methods import method_from

        return method_from(self.params).at(self.root)

    @cached_property
    def context(self) -> "Context":
        """Public facts for the recipe."""
        return self.context_of(self.schema)

    def context_of(self, schema: "Schema") -> "Context":
        """Public facts for the recipe, with a schema without open columns."""
        from likeness.methods.base import Context

        params = self.params
        return Context(schema, params.privacy.adjacency, params.privacy.num_records, params.train.seed)

    @cached_property
    def plan(self) -> "Plan":
        """The plan, from public settings alone.

        Raises:
            PlanError: a later stage could not answer it.
        """
        from likeness.privacy.adjacency import Adjacency
        from likeness.privacy.plan import SelectionShares, make_plan
        from likeness.release.keys import STAGE, query_name

        privacy, categories = self.params.privacy, self.params.categories
        facts = self.context_of(self.foreseen_schema)
        self.method.check(facts)
        names = tuple(query_name(place) for place, _ in enumerate(self.written_schema.open_columns, start=1))
        return make_plan(
            method=self.params.method,
            identity=privacy.population,
            shares=self.method.shares(facts),
            epsilon=privacy.epsilon,
            delta=privacy.delta,
            adjacency=Adjacency(privacy.adjacency),
            num_records=privacy.num_records,
            unit=self.params.ingest.unit,
            selection=SelectionShares(names, STAGE, categories.share, categories.delta_share) if names else None,
        )

    @cached_property
    def written_plan(self) -> "Plan":
        """The plan as stage ``plan`` wrote it.

        Raises:
            ArtifactError: it is missing.
        """
        from likeness.privacy.plan import Plan

        return Plan.from_dict(read_json(self.paths.plan))

    # --- the source

    @property
    def source(self) -> Path:
        """The private source.

        Raises:
            DataError: it does not exist.
        """
        path = self.root / self.params.ingest.source
        if not path.exists():
            raise DataError(
                f"params.yaml: ingest.source {path} does not exist. Give a .csv, .csv.gz or .parquet file, or a folder "
                "of .parquet files."
            )
        return path

    @property
    def database(self) -> "Database | None":
        """The source, if it is a database."""
        from likeness.data.source.databases import Database

        ingest = self.params.ingest
        return Database(source_at(ingest.source, self.root), ingest.query or "") if ingest.from_database else None

    def source_digest(self) -> str:
        """Keyed hash of the source: of a file's bytes, or of the rows that a database gives.

        Raises:
            DataError: there is no such file, or the database cannot be read.
        """
        from likeness.core.hashing import keyed_digest

        database, key = self.database, self.ledger.key
        return keyed_digest(self.source, key) if database is None else database.fingerprint(key)

    def engine(self) -> "AbstractContextManager[Engine]":
        """Where the passes over rows are worked on."""
        from likeness.engine import open_engine

        engine = self.params.engine
        return open_engine(engine.kind, engine.workers, engine.scheduler, self.paths.workers)

    # --- the ledger

    @property
    def ledger_place(self) -> tuple[str | None, str | None]:
        """Folder and database of the ledger, as the settings name them."""
        home, url = self.params.ledger.home, self.params.ledger.url
        return None if home is None else str(self.root / Path(home).expanduser()), url

    @property
    def ledger_home(self) -> "Home":
        """The folders of the ledger of this machine or team."""
        from likeness.ledger.home import locate

        return locate(*self.ledger_place)

    @cached_property
    def ledger(self) -> "Ledger":
        """The ledger, verified."""
        from likeness.ledger.ledger import Ledger

        return Ledger.open(self.ledger_home)

    @cached_property
    def ledger_to_spend(self) -> "Ledger":
        """The ledger with the caps of the identity on record, for whoever asks the door.

        Raises:
            LedgerError: git remembers a longer or another ledger of that id: this one is an old copy.
        """
        from likeness.ledger.witness import check_witnesses, git_witnesses
        from likeness.privacy.adjacency import Adjacency

        ledger, privacy, cap = self.ledger, self.params.privacy, self.params.ledger.cap
        witnesses = [witness for witness in git_witnesses(self.root) if witness.ledger_id == ledger.id]
        check_witnesses(ledger.records(), witnesses)
        unit, adjacency = self.params.ingest.unit, Adjacency(privacy.adjacency)
        person = None if unit is None else unit.column
        ledger.declare_population(privacy.population, adjacency, cap.epsilon, cap.delta, person, self.delta_for_keys)
        ledger.declare_limits(privacy.population, self.limits)
        return ledger

    @property
    def delta_for_keys(self) -> float:
        """The part of a lifetime cap's δ that is for thresholds, where these people are not on record yet.

        As much as runs with these settings need until they have used the cap's ρ, but at most half, and enough for one:
        half of δ leaves nearly all of ρ (95 % at ε = 10). ``likeness ledger cap`` changes it on record.
        """
        from likeness.privacy.calibration import rho_for

        cap, privacy = self.params.ledger.cap, self.params.privacy
        if not self.written_schema.open_columns:
            return 0.0
        one, half = privacy.delta * self.params.categories.delta_share, cap.delta / 2
        if one >= cap.delta or not math.isfinite(privacy.epsilon):
            return half
        runs = rho_for(cap.epsilon, cap.delta) / rho_for(privacy.epsilon, privacy.delta)
        return max(one, min(one * math.floor(runs), half) if math.isfinite(runs) else half)

    @property
    def limits(self) -> dict[str, tuple[float, float]]:
        """Caps beside the lifetime cap that the settings ask for, from scope to (ε, δ)."""
        caps = self.params.ledger.caps
        scopes = {"project": caps.project, "user": caps.user, "month": caps.month}
        return {scope: (cap.epsilon, cap.delta) for scope, cap in scopes.items() if cap is not None}

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Who asks, for which project, from which commit, with which settings and software: public facts."""
        from likeness.core.hashing import sha256_json
        from likeness.pipeline.provenance import provenance, public_settings

        settings = {"params_sha256": sha256_json(public_settings(self.params))}
        return {**provenance(self.root), "project": self.params.ledger.project or "", **settings}

    # --- the private rows

    def rows(self) -> "tuple[Dataset, EncodedRows]":
        """Whose rows the encoded table holds, without opening it; and what opens it, once the cost is on record.

        Raises:
            ArtifactError: the table was made under another identity, adjacency, unit of privacy or encoding than the
                settings say, or with the key of another ledger.
            DataError: ``privacy.num_records`` is not the number of training rows.
        """
        from likeness.data.encoding.layout import encoding_digest
        from likeness.pipeline.private_rows import EncodedRows, dataset_of

        table, encoding = self.paths.encoded, encoding_digest(self.schema)
        dataset, card = dataset_of(self.params, table, self.ledger.id, {"encoding": encoding})
        return dataset, EncodedRows(table.absolute(), card, self.schema)

    def keys(self) -> "tuple[Dataset, Callable[[str], ColumnKeys]]":
        """Whose rows the ingested table holds, and what opens one of its open columns.

        Raises:
            ArtifactError: as :meth:`rows`; or the table was typed by another schema.
            DataError: ``privacy.num_records`` is not the number of training rows.
        """
        from dataclasses import replace

        from likeness.data.encoding.layout import encoding_digest
        from likeness.data.private_tables import text_columns
        from likeness.pipeline.private_rows import ColumnKeys, dataset_of

        table, schema = self.paths.table, self.written_schema
        dataset, card = dataset_of(self.params, table, self.ledger.id, {})
        if not {column.name for column in schema.open_columns} <= set(text_columns(table)):
            raise ArtifactError(f"{table} was written under another schema than params.yaml says. Run: dvc repro")
        encoded = replace(dataset, encoding=encoding_digest(schema))
        return encoded, lambda column: ColumnKeys(table.absolute(), card, column)

    def door(self, engine: "Engine | None" = None) -> "Door":
        """The door to the encoded rows.

        Args:
            engine: where parts of the rows are summed; None: in this process.
        """
        from likeness.engine import LOCAL
        from likeness.release.door import Door

        plan, ledger = self.written_plan, self.ledger_to_spend
        return Door(plan, ledger, *self.rows(), self.provenance, engine or LOCAL)

    def key_door(self, column: str) -> "Door":
        """The door to the texts of an open column."""
        from likeness.release.door import Door

        plan, ledger = self.written_plan, self.ledger_to_spend
        dataset, read = self.keys()
        return Door(plan, ledger, dataset, read(column), self.provenance)
