"""A project: a folder with its settings, and everything that follows from them, worked out once.

A stage loads only what it uses of a project, so each property imports what it needs.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.config.load import load_params, source_at
from likeness.config.params import Params
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import ArtifactError, DataError, ParamsError, PlanError, SchemaError
from likeness.core.files import expanded
from likeness.core.paths import HISTORIES, ONE_TABLE, Outputs, ProjectPaths, read_json
from likeness.core.remote import Place, place_at

if TYPE_CHECKING:
    from likeness.data.histories.schema import HistorySchema
    from likeness.data.schema.schema import Schema
    from likeness.data.source.databases import Database
    from likeness.engine import Engine
    from likeness.ledger.home import Home
    from likeness.ledger.ledger import Ledger
    from likeness.methods.base import Context, Method
    from likeness.methods.row_set import RowSet
    from likeness.pipeline.card import CardQuery
    from likeness.pipeline.private_rows import ColumnPartitions, EncodedRows
    from likeness.pipeline.synthetic_table import Request
    from likeness.privacy.plan import Plan
    from likeness.release.door import Door
    from likeness.release.request import Dataset

_SHARES = (0.4, 0.6)  # of the budget of histories: for rows of people, and for transitions


@dataclass(frozen=True)
class Project:
    """One look at a project. Make a new one for the next stage.

    Nothing depends on the current directory, so two projects with absolute roots work in one process.

    Attributes:
        root: the folder. Relative paths in params.yaml start here.
        params: the settings of params.yaml.
        given_schema: the public schema, of a table or of histories, if it is in memory and not in a file.
    """

    root: Path
    params: Params
    given_schema: "Schema | HistorySchema | None" = None

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
    def public_schema(self) -> "Schema | HistorySchema":
        """The public schema, of a table or of people with histories.

        Raises:
            SchemaError: it is wrong.
        """
        from likeness.data.histories.schema import read_schema

        return self.given_schema or read_schema(self.schema_file)

    @cached_property
    def histories(self) -> "HistorySchema | None":
        """The schema of people with histories; None for a project of one table.

        Raises:
            SchemaError: it is wrong.
            ParamsError: the settings do not go with it.
        """
        from likeness.data.schema.schema import Schema

        schema, params, of_files = self.public_schema, self.params, self.given_schema is None
        if isinstance(schema, Schema):
            return None
        unit = PrivacyUnit(schema.person, schema.most)
        if params.ingest.unit not in (None, unit):
            raise ParamsError(
                f"params.yaml: ingest.unit must be {{column: {unit.column}, max_rows: {unit.max_rows}}}, as the schema "
                "of histories says. Leave it out, because it follows from the schema."
            )
        left_out = {
            "ingest.people": of_files and (params.ingest.people is None) is not (schema.people is None),
            "ingest.split.column": params.ingest.split.column is not None,
            "evaluate.card": params.evaluate.card is not None,
        }
        for key, wrong in left_out.items():
            if wrong:
                words = "Name the table of people" if key == "ingest.people" and schema.people else "Leave it out"
                raise ParamsError(f"params.yaml: {key} does not go with this schema of histories. {words}.")
        _with_unit(params, schema)  # or refused
        return schema

    @cached_property
    def complete_params(self) -> Params:
        """The settings with the unit of privacy, which of histories the schema says."""
        return self.params if self.histories is None else _with_unit(self.params, self.histories)

    @cached_property
    def outputs(self) -> Outputs:
        """Names of the tables and generators of a run."""
        return ONE_TABLE if self.histories is None else HISTORIES

    @cached_property
    def written_schema(self) -> "Schema":
        """The public schema as it is written: columns may be open. Of people with histories that of a row a person.

        Raises:
            SchemaError: it is wrong, or would synthesize the column that names people.
        """
        from likeness.data.schema.schema import Schema

        schema = self.public_schema if self.histories is None else self.histories.first_rows
        assert isinstance(schema, Schema)
        unit = self.complete_params.ingest.unit
        if unit is not None and unit.column in schema.names:
            raise SchemaError(
                f"column '{unit.column}' is ingest.unit.column: its values name people and are never released. In the "
                "schema, give it kind drop with a reason, or leave it out."
            )
        return schema

    @cached_property
    def schema(self) -> "Schema":
        """The public schema, with the released categories of its open columns.

        Raises:
            ArtifactError: no categories are released yet, or those of another schema.
        """
        from likeness.release.partition_selection import completed
        from likeness.release.released import load_released

        written = self.written_schema
        if not written.open_columns:
            return written
        return completed(written, [load_released(path) for path in self.paths.category_files])

    @property
    def foreseen_schema(self) -> "Schema":
        """The schema before any release: an open column has stand-ins for all categories that it may get."""
        return self.written_schema.foreseen(self.params.categories.most)

    @property
    def tables(self) -> "dict[str, Schema]":
        """Schemas of the synthetic tables, by name."""
        return {self.outputs.tables[0]: self.schema} if self.histories is None else self.histories.written

    @cached_property
    def method(self) -> "Method":
        """The recipe of the settings and the schema.

        Raises:
            ParamsError: it makes no histories, and the schema is one of them.
        """
        if self.histories is None:
            return self.chosen_method
        return self.chosen_method.for_histories([rows.names for rows in self.histories.row_sets.values()])

    @property
    def chosen_method(self) -> "Method":
        """The recipe of the settings, whatever the schema is."""
        from likeness.methods import method_from

        return method_from(self.params).at(self.root)

    @cached_property
    def context(self) -> "Context":
        """Public facts for the recipe."""
        return self.context_of(self.schema)

    def context_of(self, schema: "Schema") -> "Context":
        """Public facts for the recipe: the modeled columns of a schema without open columns."""
        from likeness.methods.base import Context

        params = self.params
        return Context(schema.modeled, params.privacy.adjacency, params.privacy.num_records, params.train.seed)

    @cached_property
    def row_sets(self) -> "tuple[RowSet, ...]":
        """The rows that the recipe is asked about."""
        return self.row_sets_of(self.schema)

    def row_sets_of(self, schema: "Schema") -> "tuple[RowSet, ...]":
        """The rows that the recipe is asked about: those of a schema without open columns, or both of histories."""
        from likeness.methods.row_set import RowSet

        encoded = self.encoded_rows_of(schema)
        if self.histories is None:
            return (RowSet(self.context_of(schema), encoded[""][1]),)
        parts = zip(encoded.items(), self.outputs.generators, _SHARES, strict=True)
        return tuple(
            RowSet(self.context_of(rows), encoding, generator, prefix, share, by_person=True)
            for (prefix, (rows, encoding)), generator, share in parts
        )

    def encoded_rows_of(self, schema: "Schema") -> "dict[str, tuple[Schema, str]]":
        """Schema and digest of the encoding of each row set, by the beginning of the names of its queries."""
        from likeness.core.hashing import sha256_json
        from likeness.data.encoding.layout import encoding_digest

        histories = self.histories
        if histories is None:
            return {"": (schema, encoding_digest(schema))}
        return {
            prefix: (rows, sha256_json([encoding_digest(rows), histories.published.to_dict()]))
            for prefix, rows in histories.row_sets.items()
        }

    @property
    def encodings(self) -> "list[tuple[Path, Path, Schema, str]]":
        """Of each row set the private table, its encoded form, its schema, and the digest of the encoding."""
        paths = self.paths
        tables = [(paths.table, paths.encoded)]
        if self.histories is not None:
            tables += [(paths.next_table, paths.next_encoded)]
        rows = self.encoded_rows_of(self.schema).values()
        return [(*places, *one) for places, one in zip(tables, rows, strict=True)]

    @cached_property
    def sample(self) -> "Request":
        """The request for the table, with its number of rows.

        Raises:
            ArtifactError: the number is ``auto``, and nothing is released yet.
        """
        from likeness.config.params import AUTO
        from likeness.pipeline.synthetic_table import numbered
        from likeness.release.released import load_folder

        sample = self.params.sample
        if sample.rows == AUTO and not self.paths.auxiliary_files:
            raise ArtifactError(f"{self.paths.auxiliary} is missing. Run: dvc repro")
        return numbered(sample, self.context, load_folder(self.paths.auxiliary))

    @cached_property
    def plan(self) -> "Plan":
        """The plan, from public settings alone.

        Raises:
            PlanError: a later stage could not answer it.
        """
        from likeness.data.rules.rules import learned
        from likeness.pipeline.card import card_shares
        from likeness.privacy.adjacency import Adjacency
        from likeness.privacy.plan import SelectionShares, make_plan
        from likeness.release.partition_selection import STAGE, query_name

        privacy, categories = self.params.privacy, self.params.categories
        foreseen = self.foreseen_schema
        facts = self.context_of(foreseen)
        if learned(facts.schema.rules) and not self.method.learns_functions:
            first, second = learned(facts.schema.rules)[0]
            raise PlanError(
                f"{self.method.name} cannot learn how '{first}' determines '{second}'. Give that rule of the schema a "
                "table, or use method marginals."
            )
        shares = [share for rows in self.row_sets_of(foreseen) for share in rows.shares(self.method)]
        names = tuple(query_name(place) for place, _ in enumerate(self.written_schema.open_columns, start=1))
        return make_plan(
            method=self.params.method,
            identity=privacy.population,
            shares=shares,
            epsilon=privacy.epsilon,
            delta=privacy.delta,
            adjacency=Adjacency(privacy.adjacency),
            num_records=privacy.num_records,
            unit=self.complete_params.ingest.unit,
            selection=SelectionShares(names, STAGE, categories.share, categories.delta_share) if names else None,
            card=card_shares(self.params.evaluate.card, facts),
        )

    @cached_property
    def written_plan(self) -> "Plan":
        """The plan as stage ``plan`` wrote it.

        Raises:
            ArtifactError: it is missing.
        """
        from likeness.privacy.plan import Plan

        return Plan.from_dict(read_json(self.paths.plan))

    def card_queries(self) -> "list[CardQuery]":
        """The queries of the card about the written table; none without a card."""
        from likeness.data.rules.tables import to_model
        from likeness.pipeline.card import card_queries
        from likeness.pipeline.synthetic_table import read_synthetic
        from likeness.release.released import load_folder

        card = self.params.evaluate.card
        if card is None:
            return []
        table = to_model(read_synthetic(self.paths.synthetic, self.schema), self.schema)
        return card_queries(card, self.written_plan, self.context, load_folder(self.paths.auxiliary), table)

    # --- the source

    @property
    def source(self) -> Place:
        """The private source.

        Raises:
            DataError: it does not exist.
        """
        return self._place("source", self.params.ingest.source)

    @property
    def people_source(self) -> "Place | Database | None":
        """The private table of people, if histories have one. It is in the database of the events, if there is one.

        Raises:
            DataError: it does not exist.
        """
        people = self.params.ingest.people
        if people is None:
            return None
        return self._database("people", people) or self._place("people", people)

    def _place(self, key: str, given: str) -> Place:
        from likeness.data.source.opening import FORMATS

        path = place_at(self.root, given)
        if not path.exists():
            raise DataError(f"params.yaml: ingest.{key} {given} does not exist. Give {FORMATS}.")
        return path

    @property
    def database(self) -> "Database | None":
        """The source, if it is a database."""
        return self._database("query", self.params.ingest.query or "")

    def _database(self, key: str, query: str) -> "Database | None":
        ingest = self.params.ingest
        if not ingest.from_database:
            return None
        from likeness.data.source.databases import Database

        return Database(source_at(ingest.source, self.root), query, f"ingest.{key}")

    def source_digest(self) -> str:
        """Keyed hash of the source: of a file's bytes, or of a database's rows.

        Raises:
            DataError: the file does not exist, or the database cannot be read.
        """
        from likeness.core.hashing import keyed_digest
        from likeness.core.remote import RemotePath

        with self._beside_rows():
            given = [one for one in (self.database or self.source, self.people_source) if one is not None]
            key = self.ledger.key
            return " ".join(
                keyed_digest(one, key) if isinstance(one, Path | RemotePath) else one.fingerprint(key) for one in given
            )

    def engine(self) -> "AbstractContextManager[Engine]":
        """The engine for the passes over rows."""
        from likeness.engine import open_engine

        engine = self.params.engine
        return open_engine(engine.kind, engine.workers, engine.scheduler, self.paths.workers)

    # --- the ledger

    @property
    def ledger_place(self) -> tuple[str | None, str | None]:
        """Folder and database of the ledger, as the settings name them."""
        home, url = self.params.ledger.home, self.params.ledger.url
        return str(self.root / expanded(home)) if home else None, url

    @property
    def ledger_home(self) -> "Home":
        """The folders of the ledger of this machine or team."""
        from likeness.ledger.home import locate

        return locate(*self.ledger_place)

    @cached_property
    def ledger(self) -> "Ledger":
        """The ledger, verified.

        Raises:
            LedgerError: it is damaged; or there is none, and files of the project name another one.
        """
        from likeness.ledger.chain import read_anchor
        from likeness.ledger.ledger import Ledger

        home = self.ledger_home
        if not Ledger.exists(home) and read_anchor(home) is None:  # a lost one says so itself
            self.refuse_other_ledger(None)
        return Ledger.open(home)

    def refuse_other_ledger(self, ledger: "Ledger | None") -> None:
        """Refuse a ledger where files of the project name another one about the same people.

        Args:
            ledger: that is open; None: there is none yet.

        Raises:
            LedgerError: the message names the other one, and how to join it.
        """
        from likeness.pipeline.other_ledgers import refuse_other_ledger

        refuse_other_ledger(self.root, self.params.privacy.population, self.ledger_home, ledger)

    def check_ready(self) -> None:
        """Refuse a run, before its first stage, where the rows or their ledger are elsewhere.

        Raises:
            DataError: the source does not exist here.
            LedgerError: there is no ledger; or files of the project name another one.
        """
        with self._beside_rows():
            _ = self.people_source, self.database or self.source
        self.refuse_other_ledger(self.ledger)

    @contextmanager
    def _beside_rows(self) -> "Iterator[None]":
        """Add to a refusal of the source what a clone without private rows can do."""
        from likeness.ledger.ledger import Ledger
        from likeness.pipeline.other_ledgers import other_ledger, rows_elsewhere

        try:
            yield
        except DataError as error:
            home = self.ledger_home
            ledger = self.ledger if Ledger.exists(home) else None
            other = other_ledger(self.root, self.params.privacy.population, home, ledger)
            raise DataError(f"{error}{rows_elsewhere(self.root, other)}") from None

    @cached_property
    def ledger_to_spend(self) -> "Ledger":
        """The ledger with the cap of the population on record, for the door.

        Raises:
            LedgerError: git remembers a longer or another ledger of this id, so this one is an old copy; or files of
                the project name another ledger.
        """
        from likeness.ledger.witness import check_witnesses, git_witnesses
        from likeness.privacy.adjacency import Adjacency

        ledger, privacy, cap = self.ledger, self.params.privacy, self.params.ledger.cap
        witnesses = [witness for witness in git_witnesses(self.root) if witness.ledger_id == ledger.id]
        check_witnesses(ledger.records(), witnesses)
        self.refuse_other_ledger(ledger)
        unit, adjacency = self.complete_params.ingest.unit, Adjacency(privacy.adjacency)
        person = None if unit is None else unit.column
        ledger.declare_population(
            privacy.population, adjacency, cap.epsilon, cap.delta, person, self.delta_for_selection
        )
        return ledger

    @property
    def delta_for_selection(self) -> float:
        """The part of a lifetime cap's δ for partition selection, if the population is not on record yet.

        Runs with these settings need this much until they have used the cap's ρ. It is enough for one run. Above
        that, it is at most half of δ, which leaves nearly all of ρ (95 % at ε = 10). ``likeness ledger cap`` changes
        it.
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

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """User, commit, settings and software: public facts."""
        from likeness.core.hashing import sha256_json
        from likeness.pipeline.provenance import provenance, public_settings

        settings = {"params_sha256": sha256_json(public_settings(self.params))}
        return {**provenance(self.root), **settings}

    # --- the private rows

    def rows(self, place: int = 0) -> "tuple[Dataset, EncodedRows]":
        """Whose rows an encoded table holds, and the function that opens it once the cost is on record.

        Args:
            place: of the row set.

        Raises:
            ArtifactError: the table has another population, adjacency, unit of privacy or encoding than the settings,
            or
                the key of another ledger.
            DataError: ``privacy.num_records`` is not the number of training rows.
        """
        from likeness.pipeline.private_rows import EncodedRows, dataset_of

        table = (self.paths.encoded, self.paths.next_encoded)[place]
        encoded = list(self.encoded_rows_of(self.schema).values())
        schema, encoding = encoded[place]
        dataset, manifest = dataset_of(self.complete_params, table, self.ledger.id, {"encoding": encoding})
        dataset = replace(dataset, beside=tuple(digest for _, digest in encoded))
        return dataset, EncodedRows(table.absolute(), manifest, schema.modeled)

    def partitions(self) -> "tuple[Dataset, Callable[[str], ColumnPartitions]]":
        """Whose rows the ingested table holds, and the function that opens one of its open columns.

        Raises:
            ArtifactError: as :meth:`rows`; or another schema typed the table.
            DataError: ``privacy.num_records`` is not the number of training rows.
        """
        from likeness.data.encoding.layout import encoding_digest
        from likeness.data.private_tables import text_columns
        from likeness.pipeline.private_rows import ColumnPartitions, dataset_of

        table, schema = self.paths.table, self.written_schema
        dataset, manifest = dataset_of(self.complete_params, table, self.ledger.id, {})
        if not {column.name for column in schema.open_columns} <= set(text_columns(table)):
            raise ArtifactError(f"{table} was written under another ingest.schema than params.yaml has. Run: dvc repro")
        encoded = replace(dataset, encoding=encoding_digest(schema))
        return encoded, lambda column: ColumnPartitions(table.absolute(), manifest, column)

    def door(self, engine: "Engine | None" = None, place: int = 0) -> "Door":
        """The door to encoded rows.

        Args:
            engine: where parts of the rows are summed; None: in this process.
            place: of the row set.
        """
        from likeness.engine import LOCAL
        from likeness.release.door import Door

        plan, ledger = self.written_plan, self.ledger_to_spend
        return Door(plan, ledger, *self.rows(place), self.provenance, engine or LOCAL)

    def partition_door(self, column: str) -> "Door":
        """The door to the texts of an open column."""
        from likeness.release.door import Door

        plan, ledger = self.written_plan, self.ledger_to_spend
        dataset, read = self.partitions()
        return Door(plan, ledger, dataset, read(column), self.provenance)


def _with_unit(params: Params, schema: "HistorySchema") -> Params:
    """The settings with the unit of privacy of a schema.

    Raises:
        ParamsError: ``privacy`` does not go with a person who has several rows.
    """
    return replace(params, ingest=replace(params.ingest, unit=PrivacyUnit(schema.person, schema.most)))
