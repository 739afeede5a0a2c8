"""The pipeline for Python: fit a synthesizer to a DataFrame, draw rows, state the cost.

It uses the door, the functions and the ledger of the stages. Equal rows, schema, settings and population are one
release here and there, and cost nothing the second time.
"""

import operator
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

from likeness.config.explain import fresh, merged
from likeness.config.params import (
    AUTO,
    ONE_PERSON,
    ONE_ROW,
    Card,
    Categories,
    Evaluate,
    Ingest,
    LedgerSettings,
    Params,
    Privacy,
    Sample,
    Train,
)
from likeness.config.typed import allowed, build, renamed, require
from likeness.core.errors import ArtifactError, ParamsError, ReleaseError
from likeness.core.estimator import Estimator
from likeness.core.hashing import sha256_bytes
from likeness.core.paths import read_json, write_json
from likeness.data.encoding.dtypes import in_dtypes
from likeness.data.encoding.frames import FrameType, opened
from likeness.data.histories.schema import HistorySchema, read_schema
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.schema import Schema, schema_text
from likeness.methods import DEFAULT, METHODS, method_from
from likeness.methods.base import Context
from likeness.onboarding.first_list import FirstList
from likeness.pipeline.account import Standing, composed, notes, privacy_json
from likeness.pipeline.card import STAGE as CARD
from likeness.pipeline.card import card_figures, card_queries, check_tables
from likeness.pipeline.drawn_rows import DrawnRows
from likeness.pipeline.project import Project
from likeness.pipeline.rows_in_memory import in_memory
from likeness.pipeline.synthetic_table import numbered, typed_rows
from likeness.release.partition_selection import STAGE as SELECTION_STAGE
from likeness.release.partition_selection import completed, partition_queries
from likeness.release.query import Query
from likeness.release.released import Released, from_bytes, load_folder
from likeness.report.statement import statement

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.inference.model import FittedModel
    from likeness.methods.saved_generator import SavedGenerator
    from likeness.release.door import Door

_SETTINGS, _PLAN, _PRIVACY, _STATEMENT = "synthesizer.json", "plan.json", "privacy.json", "PRIVACY_STATEMENT.md"
_SCHEMA, _GENERATOR, _RELEASED = "schema.yaml", "generator", "released"  # as in a bundle: `likeness sample` reads them


class Synthesizer(Estimator):
    """Differentially private synthetic rows, in the conventions of scikit-learn.

    Every parameter is public. A ledger must exist (``likeness.Ledger.start()``, once a machine). What a fit lacks, it
    lists in one refusal.

    Args:
        method: a name in :data:`likeness.methods.METHODS`.
        epsilon: ε of the whole fit; ``inf`` turns noise off and states NOT PRIVATE.
        delta: δ, well below 1 / number of records.
        schema: public knowledge of the columns: a :class:`~likeness.data.schema.schema.Schema`, a completed
            ``Schema.draft(frame)``, the path of a schema file, or its content as a mapping. For people with histories
            a :class:`~likeness.data.histories.schema.HistorySchema`.
        adjacency: ``add_remove_one`` (the number of records is private) or ``replace_one`` (it is public).
        num_records: number of rows; with ``replace_one`` only, and then always.
        population: a name for the people in the data. New versions of the data keep it, and costs add up under it.
        unit: words of the statement for the protected unit. With ``unit_column``, the default means one person.
        unit_column: the column of the table whose values name the people, if a person may have several rows. It is no
            column of the schema, and never released. None: a row is a person.
        max_rows: the most rows of one person that are used; with ``unit_column`` only, and then always. Noise grows
            with it.
        ledger_home: folder of the ledger; None: the user's. ``LIKENESS_HOME`` overrides both.
        cap: lifetime cap of these people as (ε, δ), which must be that on record. None: the cap on record, or that of
            ``likeness params ledger`` for people who are new to the ledger.
        attempt: another value is a deliberate second release, at the full cost.
        settings: the method's section of params.yaml, or a part of it; other keys have the values of a new project.
        categories: section ``categories`` of params.yaml, or a part of it, for a schema with private categories.
        card: section ``evaluate.card`` of params.yaml, such as ``{"share": 0.03}``: that part of ρ pays for noisy
            numbers about the table of :meth:`sample` without arguments. They may be published. None: no card.
        seed: public seed of the training.
        device: ``auto``, ``cpu``, ``cuda`` or ``mps``.
        threads: of the training, part of its reproducibility.
        precision: of the products in a network while it trains, ``float32`` or ``bfloat16``.

    Attributes:
        schema_: the schema as an object, with released categories.
        generator_: the trained generator.
        releases_: noisy statistics with their receipts, by the name of their query.
        frame_: library and dtypes of the training rows, which every sample has.
        loss_curve_: (iteration, loss) during the training; empty after :meth:`load`.
        privacy_: see :attr:`privacy`.
        n_features_in_: number of the schema's columns.
        feature_names_in_: their names.

    Examples:
        >>> synthesizer = Synthesizer(epsilon=1.0, schema="data/schema/adult.yaml", population="uci-adult-1994")
        >>> synthetic = synthesizer.fit(train).sample(32_000)  # doctest: +SKIP
    """

    _new: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

    def __init__(
        self,
        *,
        method: str = DEFAULT,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        schema: "Schema | SchemaDraft | HistorySchema | Mapping[str, Any] | str | Path | None" = None,
        adjacency: str = Privacy.adjacency,
        num_records: int | None = None,
        population: str | None = None,
        unit: str = Privacy.unit,
        unit_column: str | None = None,
        max_rows: int | None = None,
        ledger_home: str | None = None,
        cap: tuple[float, float] | None = None,
        attempt: str = LedgerSettings.attempt,
        settings: Mapping[str, Any] | None = None,
        categories: Mapping[str, Any] | None = None,
        card: Mapping[str, Any] | None = None,
        seed: int = Train.seed,
        device: str = Train.device,
        threads: int = Train.threads,
        precision: str = Train.precision,
    ) -> None:
        """Store the parameters. :meth:`fit` checks them."""
        self.method = method
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.adjacency = adjacency
        self.num_records = num_records
        self.population = population
        self.unit = unit
        self.unit_column = unit_column
        self.max_rows = max_rows
        self.ledger_home = ledger_home
        self.cap = cap
        self.attempt = attempt
        self.settings = settings
        self.categories = categories
        self.card = card
        self.seed = seed
        self.device = device
        self.threads = threads
        self.precision = precision

    def fit(
        self,
        X: "DataFrame | Mapping[str, DataFrame]",  # noqa: N803 (scikit-learn's name)
        y: None = None,
        person: str | None = None,
    ) -> "Synthesizer":
        """Release noisy statistics of the rows, or fetch earlier releases, and train a generator on them.

        All checks come before the ledger. The cost is on record before the rows are summed. The synthesizer does not
        store the rows.

        Args:
            X: training rows only, a frame of pandas, polars or pyarrow. Hold test rows out first; with ``unit_column``,
                all rows of a person or none. Columns that the schema does not have are left out. Except under
                ``replace_one``, the order of rows does not matter. With the schema of histories, the frame of events,
                or a mapping with the frames ``people`` and ``events``.
            y: for scikit-learn's signature only; the label is a column of ``X``.
            person: with the schema of histories, the name of the column that names people, which must be the schema's.

        Returns:
            itself, fitted.

        Raises:
            ParamsError, SchemaError, PlanError: a parameter is wrong, or the release would be impossible.
            DataError: the rows do not fit the schema. Messages name column and rule, never a value.
            BudgetError: over the lifetime cap; nothing was summed.
            LedgerError: there is no ledger, or it is damaged.
        """
        from likeness.data.source.files import read_frame, read_frame_people
        from likeness.data.source.row_digests import SourceDigest
        from likeness.generators.base import Compute
        from likeness.methods.fit import fit
        from likeness.release.door import Door

        if y is not None:
            raise ParamsError("y must be None, because the label is a column of X. Name it in the schema.")
        if isinstance(self.schema, HistorySchema):
            return self._fit_histories(self.schema, X, person)
        if person is not None or isinstance(X, Mapping):
            raise ParamsError("schema is that of one table. Give a HistorySchema for people with histories.")
        X, frame = opened(X)  # noqa: N806
        self._refuse_all(X)
        project = Project(Path(), self.params(), _schema(self.schema))
        written, recipe, plan = project.written_schema, project.method, project.plan
        recipe.check_device(project.params.train.device)
        project, people = self._with_cap(project), None
        params, ledger = project.params, project.ledger
        source = SourceDigest(SourceDigest.key_of(ledger.key))
        if params.ingest.unit is None:
            table = read_frame(X, written, source=source)
        else:
            table, people = read_frame_people(X, written, params.ingest.unit.column, source=source)
        rows = in_memory(params, written, table, ledger, people, source.digest())
        keys: dict[str, Released] = {}
        for query in partition_queries(written, plan, params.categories.most):
            read = rows.partitions(query.column)
            door = Door(plan, project.ledger_to_spend, rows.dataset, read, project.provenance)
            keys[query.name] = from_bytes(door.release(query), query.name)
        schema = completed(written, list(keys.values()))
        facts = project.context_of(schema)
        door = Door(plan, project.ledger_to_spend, *rows.records(schema), project.provenance)

        def answer(query: Query) -> Released:
            return from_bytes(door.release(query), query.name)

        auxiliary = recipe.ask(facts, answer)
        embedding = answer(recipe.embedding_query(facts, auxiliary))
        released = {**keys, **auxiliary, embedding.receipt.query: embedding}
        train = params.train
        compute = Compute(train.device, train.threads, train.precision)
        generator, losses = fit(recipe, facts, auxiliary, embedding, compute, list(keys.values()))
        released |= _card(project, schema, generator, auxiliary, door)
        receipts = [one.receipt for one in released.values()]
        total, read_off = composed(params, receipts), recipe.notes(facts, auxiliary)
        counts = {name: len(one.keys) for name, one in released.items()}
        standing = Standing.of(ledger, params.privacy.population)
        figures = card_figures(facts, released)
        privacy = privacy_json(
            params, plan, receipts, total, standing, _NO_TABLE, {}, read_off, counts, schema.rules, figures
        )
        self.plan_, self.generator_, self.loss_curve_, self.frame_ = plan, generator, losses, frame
        self._keep(written, released, privacy)
        return self

    def _fit_histories(self, schema: HistorySchema, given: Any, person: str | None) -> "Synthesizer":
        """Release and fit people and their transitions."""
        from likeness.data.source.row_digests import SourceDigest
        from likeness.generators.base import Compute
        from likeness.methods.fit import fit_all
        from likeness.pipeline.histories import HistoryGenerator
        from likeness.pipeline.history_rows import read_histories
        from likeness.pipeline.rows_in_memory import history_doors, release_histories

        frames = dict(given) if isinstance(given, Mapping) else {"events": given}
        names = {"events"} if schema.people is None else {"people", "events"}
        require(set(frames) == names, "X", sorted(frames), f"the frames {' and '.join(sorted(names))} of the schema")
        require(person in (None, schema.person), "person", person, f"the schema's person, {schema.person}")
        first = self._first_list()
        first.tried(self.params)
        first.refuse()
        tables = {name: opened(frame) for name, frame in frames.items()}
        project = Project(Path(), self.params(), schema)
        plan = project.plan
        project = self._with_cap(project)
        people = tables["people"][0] if "people" in tables else None
        source = SourceDigest(SourceDigest.key_of(project.ledger.key))
        rows = read_histories(schema, tables["events"][0], people, source)
        released = release_histories(project, history_doors(project, schema, rows, source.digest()))
        receipts = [one.receipt for one in released.values()]
        total = composed(project.params, receipts)
        standing = Standing.of(project.ledger, project.params.privacy.population)
        facts = notes(project.method, project.row_sets, released)
        privacy = privacy_json(project.params, plan, receipts, total, standing, _NO_TABLE, {}, facts)
        compute = Compute(self.device, self.threads, self.precision)
        generators, losses = fit_all(project.method, project.row_sets, released.values(), compute)
        self.histories_ = HistoryGenerator(generators[0], generators[1], schema)
        self.plan_, self.loss_curve_ = plan, losses
        self.frames_ = {name: frame for name, (_, frame) in tables.items()}
        self.frame_ = self.frames_["events"]
        self._keep(schema, released, privacy)
        return self

    @overload
    def sample(
        self, n: int | None = None, where: "Mapping[str, Any] | DataFrame | None" = None, seed: int = 0
    ) -> "DataFrame": ...

    @overload
    def sample(
        self, n: int | None = None, where: "Mapping[str, Any] | None" = None, seed: int = 0, *, replicates: int
    ) -> "list[DataFrame]": ...

    def sample(
        self,
        n: int | None = None,
        where: "Mapping[str, Any] | DataFrame | None" = None,
        seed: int = 0,
        *,
        replicates: int | None = None,
    ) -> "DataFrame | list[DataFrame]":
        """Draw any number of synthetic rows. They cost nothing.

        Args:
            n: number of rows; None: as many as the noisy count of training rows says, or ``num_records``.
            where: only such rows: by the name of a column a value, a pair as a range with both ends, None for missing,
                or a list of these. Or a frame with some of the columns: one row is drawn for each of its rows.
            seed: public; equal seeds give equal rows.
            replicates: draw as many tables and one more. The first is the base, from a model that is fitted to the
                release without a penalty. Each other comes from a model that is fitted to a new draw of the noise.
                Analyze all of them alike, and pool the results with :func:`likeness.combine`. 20 are usual.

        Returns:
            the schema's columns as a frame of the library that made the training rows, in the dtypes of these rows.
            A category dtype has the schema's categories. An integer or bool column takes its nullable dtype (``Int64``)
            if a value is missing, and a catch-all (``other``) that is no number is missing there. With ``replicates``
            a list of such frames.

        Raises:
            ParamsError: ``n``, ``where`` or ``replicates`` has a wrong value, or the method makes no replicates.
            NotFittedError: :meth:`fit` was not called.
        """
        if isinstance(self.schema, HistorySchema):
            self.check_fitted("histories_")
            return self._sample_histories(self.schema, n, where, operator.index(seed), replicates)  # type: ignore[return-value]
        self.check_fitted("generator_")
        if where is not None and not isinstance(where, Mapping):
            require(replicates is None, "replicates", replicates, "left out if where is a frame")
            given, _ = opened(where, "where: must be a mapping from columns to values, or")
            require(n is None or n == len(given), "n", n, "the number of rows of where, or left out")
            return self._as_given(DrawnRows(self.generator_, self.schema_).beside(given, operator.index(seed)))
        n = self._usual_number if n is None else n
        require(operator.index(n) >= 1, "n", n, "at least 1")
        if replicates is not None:
            return self._replicates(operator.index(replicates), operator.index(n), where or {}, operator.index(seed))
        return self._as_given(
            typed_rows(self.generator_, self.schema_, operator.index(n), operator.index(seed), where or {})
        )

    def _sample_histories(
        self, schema: HistorySchema, n: int | None, where: Any, seed: int, replicates: int | None
    ) -> "dict[str, DataFrame]":
        """Both tables of ``n`` people, by name."""
        require(replicates is None, "replicates", replicates, "left out for people with histories")
        require(where is None or isinstance(where, Mapping), "where", "a frame", "a mapping from columns of people")
        n = self._usual_number if n is None else operator.index(n)
        require(n >= 1, "n", n, "at least 1")
        frames = {name: self.frames_.get(name, self.frame_) for name in schema.written}
        dtypes = {name: {**frame.dtypes, schema.person: "int64"} for name, frame in frames.items()}
        drawn = self.histories_.tables(n, seed, where or {}, dtypes)
        return {name: frames[name].native(table) for name, table in drawn.items()}

    @property
    def _usual_number(self) -> int:
        """As many rows as the noisy count of training rows, or the public number, says."""
        context = Context(self.schema_, self.adjacency, self.num_records, self.seed)
        return numbered(Sample(), context, self.releases_).rows

    def _replicates(self, count: int, n: int, where: Mapping[str, Any], seed: int) -> "list[DataFrame]":
        from likeness.generators.base import Compute
        from likeness.methods.replicates import replicates

        require(count >= 2, "replicates", count, "at least 2")
        compute = Compute(self.device, self.threads, self.precision)
        context = Context(self.schema_, self.adjacency, self.num_records, self.seed)
        method = method_from(self.params())
        models = replicates(method, context, self.releases_, self.generator_, compute, count, seed)
        return [self._as_given(typed_rows(model, self.schema_, n, rows_seed, where)) for model, rows_seed in models]

    def estimate(
        self,
        columns: str | Iterable[str],
        by: str | Iterable[str] | None = None,
        statistic: str = "share",
        *,
        quantile: float = 0.5,
        level: float = 0.95,
        sampling: bool = False,
    ) -> "DataFrame":
        """Numbers about the training rows with margins of error, from the noisy statistics alone. They cost nothing.

        They are nearer to the truth than the synthetic rows, which stand for a model. See docs/trust.md.

        Of people with histories, numbers are about people: ``number of events``, ``first ...`` and people's columns.
        With ``last ...``, ``next ...`` or ``gap`` they are about pairs of events, and the pairs of a person share the
        weight 1.

        Args:
            columns: of a table; for means and quantiles numbers, one after the other.
            by: columns of the groups. A share is then one of its group.
            statistic: ``share``, ``count``, ``mean`` or ``quantile``.
            quantile: which one; 0.5 is the median.
            level: how often the intervals cover the truth.
            sampling: make the intervals about the population of which the rows are a random sample.

        Returns:
            a pandas frame with a row for each cell, whose values are its index. ``noise_error`` is the standard error
            from the privacy noise, ``sampling_error`` that from sampling. ``low`` and ``high`` are the interval. A
            mean has a ``cell_error`` too: half of what cells of several values leave open.

        Raises:
            ParamsError: an argument has a wrong value.
            ReleaseError: the release does not count these cells.
            NotFittedError: :meth:`fit` was not called.
        """
        from likeness.inference.estimates import Question, estimate

        self.check_fitted("releases_")
        words = {"statistic": statistic, "quantile": quantile, "level": level, "sampling": sampling}
        question = Question.of(columns, by, **words)
        return estimate(self._schema_of_releases, self.releases_.values(), question, self.num_records)

    @property
    def _schema_of_releases(self) -> Schema | HistorySchema:
        """The schema that questions about releases are in."""
        return self._written if isinstance(self._written, HistorySchema) else self.schema_

    def regression(
        self,
        outcome: str,
        columns: str | Iterable[str],
        category: str | None = None,
        *,
        level: float = 0.95,
        sampling: bool = False,
    ) -> "DataFrame":
        """Least squares of a column on main effects of others, from the noisy statistics alone. It costs nothing.

        Args:
            outcome: a column: the label, a category of which is modeled as a linear probability, or a number.
            columns: of the main effects. A number counts as the middle of its cell.
            category: of an outcome with categories.
            level: how often the intervals cover the truth.
            sampling: make the intervals about the population of which the rows are a random sample.

        Returns:
            a pandas frame with a row for each coefficient, as :meth:`estimate` gives it.

        Raises:
            ParamsError: an argument has a wrong value.
            ReleaseError: the release does not count these pairs, or has too much noise for so many columns.
            NotFittedError: :meth:`fit` was not called.
        """
        from likeness.inference.regression import Model, regression

        self.check_fitted("releases_")
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        model = Model(outcome, names, category, level, sampling)
        return regression(self._schema_of_releases, self.releases_.values(), model, self.num_records)

    @property
    def model_(self) -> "FittedModel":
        """The fitted model: ``model_.marginal(["age", "sex"])`` gives its share of each cell. It costs nothing.

        Raises:
            NotFittedError: :meth:`fit` was not called, or fitted people with histories.
        """
        from likeness.inference.model import FittedModel

        self.check_fitted("generator_")
        return FittedModel(self.schema_, self.generator_)

    @property
    def card_(self) -> "DataFrame":
        """The figures of the card about the table of :meth:`sample` without arguments, each with its 95 % interval.

        ``rows`` is the number of training rows. ``mean_1_way`` and ``worst_2_way`` are total variations of columns and
        pairs. Accuracies are those of naive Bayes, trained on the synthetic rows. Empty without ``card``.
        """
        import pandas as pd

        figures = pd.DataFrame(self.privacy.get("card", []), columns=["measure", "value", "low", "high"])
        return figures.set_index("measure")

    def _as_given(self, table: "DataFrame") -> "DataFrame":
        """Typed rows as a frame like that of the training rows."""
        rows: DataFrame = self.frame_.native(in_dtypes(table, self.schema_, self.frame_.dtypes))
        return rows

    @classmethod
    def create(cls, method: str = DEFAULT, epsilon: float = 1.0, **parameters: Any) -> "Synthesizer":
        """A synthesizer in the words of SmartNoise: ``Synthesizer.create("marginals", epsilon=1.0, schema=...)``."""
        return cls(method=method, epsilon=epsilon, **parameters)

    def fit_sample(self, X: "DataFrame") -> "DataFrame":  # noqa: N803 (scikit-learn's name)
        """:meth:`fit`, and then :meth:`sample` with as many rows as the noisy count says, as in SmartNoise."""
        return self.fit(X).sample()

    @property
    def privacy(self) -> dict[str, Any]:
        """The account, as in ``reports/privacy.json``: target, total, every query, lifetime of these people.

        ``total.epsilon`` is the guaranteed ε. ``ledger.lifetime`` is that at the time of the fit.
        """
        self.check_fitted("privacy_")
        value: dict[str, Any] = self.privacy_
        return value

    @property
    def statement(self) -> str:
        """The privacy statement in Markdown."""
        return statement(self.privacy)

    def save(self, path: str | Path) -> None:
        """Write generator, released statistics, schema, plan, statement and parameters into a new folder.

        All of it may be published, unless the statement says NOT PRIVATE. The place of the ledger stays behind.
        ``likeness sample`` reads the folder as it reads a bundle.

        Raises:
            ArtifactError: the path exists.
        """
        self.check_fitted("releases_")
        target = Path(path)
        if target.exists():
            raise ArtifactError(f"{target} exists and is not overwritten. Delete it, or give another name.")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".synthesizer") as temporary:
            folder = Path(temporary) / "synthesizer"
            self._save_generator(folder / _GENERATOR)
            (folder / _RELEASED).mkdir()
            for name, data in self._released_bytes().items():
                (folder / _RELEASED / f"{name}.safetensors").write_bytes(data)
            (folder / _SCHEMA).write_text(schema_text(self._written), encoding="utf-8")
            params = {name: value for name, value in self.get_params(deep=False).items() if name not in _LEFT_OUT}
            saved = {"format": 1, "params": _plain(params), "new": self._new_values(), "frame": self.frame_.to_dict()}
            if isinstance(self._written, HistorySchema):
                saved["frames"] = {name: frame.to_dict() for name, frame in self.frames_.items()}
            write_json(folder / _SETTINGS, saved)
            write_json(folder / _PLAN, self.plan_.to_dict())
            write_json(folder / _PRIVACY, self.privacy_)
            (folder / _STATEMENT).write_bytes(self.statement.encode())
            folder.rename(target)

    @classmethod
    def load(cls, path: str | Path) -> "Synthesizer":
        """Read what :meth:`save` wrote; no ledger is needed to sample.

        Raises:
            ArtifactError: :meth:`save` did not write the folder, or a file is missing or damaged.
            ReleaseError: generator, released statistics and account do not belong together.
        """
        try:
            return cls._loaded(Path(path))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ArtifactError(f"{path}: a file was changed by hand. Restore the folder from a copy.") from None

    @classmethod
    def _loaded(cls, folder: Path) -> "Synthesizer":
        """The synthesizer of a folder in which each file has its form."""
        from likeness.methods.saved_generator import SavedGenerator
        from likeness.pipeline.histories import HistoryGenerator
        from likeness.privacy.plan import Plan

        if not (folder / _SETTINGS).is_file():
            raise ArtifactError(f"{folder} is no saved synthesizer: it has no {_SETTINGS}. Give the folder of save().")
        settings = read_json(folder / _SETTINGS)
        if settings.get("format") != 1:
            raise ArtifactError(f"{folder / _SETTINGS} has an unknown format. Fit again with this version.")
        schema = read_schema(folder / _SCHEMA, aliases=False)
        loaded = cls(**{**_from_plain(settings["params"]), "schema": schema})
        released, privacy = load_folder(folder / _RELEASED), read_json(folder / _PRIVACY)
        loaded.plan_ = Plan.from_dict(read_json(folder / _PLAN))
        loaded.loss_curve_, loaded.frame_ = [], FrameType(**settings.get("frame", {}))
        if isinstance(schema, HistorySchema):
            loaded.histories_ = HistoryGenerator.load(folder / _GENERATOR, schema)
            loaded.frames_ = {name: FrameType(**frame) for name, frame in settings["frames"].items()}
            generators = [loaded.histories_.people, loaded.histories_.following]
        else:
            loaded.generator_ = SavedGenerator.load(folder / _GENERATOR)
            generators = [loaded.generator_]
        loaded._new = {loaded.method: settings.get("new", {})}  # a fit again asks what this one asked
        loaded._keep(schema, released, privacy)
        stated = {query["query"]: query["sha256"] for query in privacy["queries"]}
        if stated != {name: sha256_bytes(data) for name, data in loaded._released_bytes().items()}:
            raise ReleaseError(
                f"{folder}: the released files are not those of {_PRIVACY}. Restore the folder from a copy."
            )
        keys = sorted(one.receipt.key for one in released.values() if one.receipt.stage != CARD)
        if any(one.provenance["releases"] != keys for one in generators):
            raise ReleaseError(
                f"{folder}: the generator was trained on other releases. Restore the folder from a copy."
            )
        return loaded

    def bundle(
        self,
        path: str | Path,
        n: int | None = None,
        where: Mapping[str, Any] | None = None,
        seed: int = 0,
        open_others: bool = False,
    ) -> list[str]:
        """Draw the table, and write the bundle: all that may be published, for `likeness verify`.

        Args:
            path: a new folder, or a new .zip file.
            n: as in :meth:`sample`.
            where: as in :meth:`sample`, a mapping.
            seed: as in :meth:`sample`.
            open_others: publish the names of other populations in the ledger, so that a verifier sees that they are
                others.

        Returns:
            names of the files in it.

        Raises:
            ReleaseError: the fit is not private.
            LedgerError: the ledger of the fit is not here.
            ArtifactError: the path exists.
        """
        from likeness.bundle.write import write_bundle
        from likeness.pipeline.synthetic_table import drawn_tables, write_synthetic

        self.check_fitted("releases_")
        if self.card is not None and (n, seed, where or {}) != (None, 0, {}):
            raise ParamsError("the card is about the table of sample() without arguments. Leave n, where and seed out.")
        params = self.params()
        home = None if params.ledger.home is None else str(Path(params.ledger.home).expanduser().absolute())
        sample = build(Sample, {"rows": AUTO if n is None else n, "seed": seed, "where": where or {}}, "sample")
        params = replace(params, sample=sample, ledger=replace(params.ledger, home=home))
        with tempfile.TemporaryDirectory() as temporary:
            project = Project(Path(temporary), params, self._written)
            paths = project.paths
            for name, file in method_from(params).public_files().items():
                place = project.method.public_files()[name].path
                if place != file.path:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(file.path.read_bytes())
            folders = {SELECTION_STAGE: paths.categories, "auxiliary": paths.auxiliary, "privatize": paths.released}
            folders[CARD] = paths.card
            for name, data in self._released_bytes().items():
                folder = folders[self.releases_[name].receipt.stage]
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{name}.safetensors").write_bytes(data)
            write_json(paths.plan, self.plan_.to_dict())
            self._save_generator(paths.generator)
            tables = drawn_tables(paths.generator, project.schema, project.histories, project.sample)
            write_synthetic(project, tables)
            return write_bundle(project, Path(path), open_others)

    def _save_generator(self, folder: Path) -> None:
        """Write the generator, or both of histories."""
        (self.histories_ if isinstance(self._written, HistorySchema) else self.generator_).save(folder)

    def _first_list(self) -> FirstList:
        """What every fit needs and may lack: a ledger, and a name for the people."""
        first = FirstList()
        first.ledger(None if self.ledger_home is None else str(self.ledger_home))
        if self.population is None:
            first.question("synthesizer.population", "a name for the PEOPLE in the data; new versions of it keep it")
        return first

    def _refuse_all(self, frame: Any) -> None:
        """Refuse everything that is missing or wrong in ledger, parameters and schema, in one list."""
        first = self._first_list()
        person = getattr(self.schema, "person", None)
        if person is not None and self.unit_column is None:
            words = "the most rows of one person that are used; noise grows with it"
            first.question(f"synthesizer.unit_column = {person!r}; synthesizer.max_rows", words)
        first.schema(self.schema, frame)
        first.tried(self.params)
        first.refuse()

    def params(self) -> Params:
        """The parameters as the stages have them, checked by their rules."""
        allowed("method", self.method, METHODS)
        privacy = {name: _plain(getattr(self, name)) for name in _PRIVACY_KEYS}
        privacy["population"] = "?" if self.population is None else self.population  # which is refused before
        column, most = self.unit_column, self.max_rows
        if isinstance(self.schema, HistorySchema):
            require((column, most) == (None, None), "unit_column", column, "left out: the schema of histories says it")
            column, most = self.schema.person, self.schema.most
        if column is not None and self.unit == ONE_ROW:
            privacy["unit"] = ONE_PERSON
        if (column is None) is not (most is None):
            raise ParamsError(
                "unit_column and max_rows go together. Give both if a person may have several rows, else neither."
            )
        unit = None if column is None else {"column": column, "max_rows": _plain(most)}
        cap = {} if self.cap is None else _plain(self.cap)
        if isinstance(cap, list):
            require(len(cap) == 2, "cap", self.cap, "a pair of epsilon and delta")
            cap = dict(zip(("epsilon", "delta"), cap, strict=True))
        home = None if self.ledger_home is None else str(self.ledger_home)
        ledger = {"home": home, "cap": cap, "attempt": self.attempt}
        training = {name: _plain(getattr(self, name)) for name in ("device", "seed", "threads", "precision")}
        return Params(
            method=self.method,
            privacy=build(Privacy, privacy, "privacy"),
            ledger=build(LedgerSettings, ledger, "ledger"),
            ingest=build(Ingest, {"source": "", "schema": "", "unit": unit}, "ingest"),
            train=build(Train, training, "train"),
            sections={self.method: self._section()},
            categories=build(Categories, _plain(self.categories or {}), "categories"),
            evaluate=Evaluate(card=None if self.card is None else build(Card, _plain(self.card), "card")),
        )

    def _section(self) -> Any:
        """The method's section: what ``settings`` says, and for other keys what new work takes."""
        return merged(self._new_values(), _plain(self.settings or {}))

    def _new_values(self) -> Mapping[str, Any]:
        """What new work takes for the method; of a synthesizer that was loaded, what it took at its time."""
        loaded = self._new.get(self.method)
        return fresh(METHODS[self.method]) if loaded is None else loaded

    def _with_cap(self, project: Project) -> Project:
        """The project with the cap on record, if the caller gives none."""
        params = project.params
        budget = project.ledger.budget(params.privacy.population) if self.cap is None else None
        if budget is None:
            return project
        cap = replace(params.ledger.cap, epsilon=budget.cap_epsilon, delta=budget.cap_delta)
        return replace(project, params=replace(params, ledger=replace(params.ledger, cap=cap)))

    def _keep(self, written: Schema | HistorySchema, released: Mapping[str, Released], privacy: dict[str, Any]) -> None:
        import numpy as np

        categories = [one for one in released.values() if one.receipt.stage == SELECTION_STAGE]
        self._written, self.releases_, self.privacy_ = written, dict(released), privacy
        rows = written.first_rows if isinstance(written, HistorySchema) else written
        schema = self.schema_ = completed(rows, categories)
        self.n_features_in_ = len(schema.names)
        self.feature_names_in_ = np.array(schema.names, dtype=object)

    def _released_bytes(self) -> dict[str, bytes]:
        from likeness.release.released import to_bytes

        return {name: to_bytes(one) for name, one in self.releases_.items()}


_PRIVACY_KEYS = ("epsilon", "delta", "population", "unit", "adjacency", "num_records")
_LEFT_OUT = ("schema", "ledger_home")  # not in the saved parameters: it has a file; it is a place on this machine
_NO_TABLE: dict[str, Any] = {"rows": None, "seed": None, "where": {}}  # the account is about a generator only


def _card(
    project: Project, schema: Schema, generator: "SavedGenerator", auxiliary: Mapping[str, Released], door: "Door"
) -> dict[str, Released]:
    """The released card about the table that the generator draws without arguments; none without a card."""
    from likeness.data.rules.tables import to_model

    card, facts = project.params.evaluate.card, project.context_of(schema)
    if card is None:
        return {}
    table = to_model(typed_rows(generator, schema, *numbered(Sample(), facts, auxiliary)), schema)
    queries = card_queries(card, project.plan, facts, auxiliary, table)
    for query in queries:
        check_tables(door, query, card.tables)
    return {query.name: from_bytes(door.release(query), query.name) for query in queries}


def _schema(given: "Schema | SchemaDraft | Mapping[str, Any] | str | Path | None") -> Schema:
    """The checked schema; that there is one, the first list made sure."""
    assert given is not None
    if isinstance(given, Schema):
        return given
    if isinstance(given, SchemaDraft):
        return given.complete()
    return Schema.from_dict(given, "schema") if isinstance(given, Mapping) else Schema.load(given)


def _plain(value: Any) -> Any:
    """A value as YAML has it: tuples as lists, numbers of numpy as Python's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return value.item()
    return "inf" if value == float("inf") else value


def _from_plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters from JSON: the cap is a pair, and epsilon a number."""
    named = renamed(renamed(params, "privacy"), "ledger")  # a folder of an earlier version has the old words
    named["epsilon"] = float(named["epsilon"])
    named["cap"] = None if named["cap"] is None else tuple(float(value) for value in named["cap"])
    return named
