"""The pipeline for Python: fit a synthesizer to a DataFrame, draw rows, state the cost.

It uses the door, the functions and the ledger of the stages. Equal rows, schema, settings and population are one
release here and there, and cost nothing the second time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import pandas as pd

from likeness.config.params import AUTO, Sample
from likeness.config.typed import build, whole
from likeness.core.errors import ArtifactError, ParamsError
from likeness.core.files import expanded
from likeness.data.schema.allowed import plain_condition
from likeness.inference.estimates import Question, estimate
from likeness.inference.model import FittedModel
from likeness.inference.regression import Model, regression
from likeness.methods import DEFAULT
from likeness.pipeline.project import Project
from likeness.pipeline.run_stage import in_words
from likeness.pipeline.where import named
from likeness.preflight.forecast import forecast
from likeness.preflight.report import Report
from likeness.report.statement import statement
from likeness.synthesizer.files import bundle, load, save
from likeness.synthesizer.parameters import Parameters, schema_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.data.encoding.frames import FrameType
    from likeness.data.schema.schema import Schema
    from likeness.methods.saved_generator import SavedGenerator
    from likeness.release.released import Released
    from likeness.synthesizer.fitted import Fitted


class Synthesizer(Parameters):
    """Differentially private synthetic rows, in the conventions of scikit-learn.

    Its :class:`~likeness.synthesizer.parameters.Parameters` are public. A ledger must exist
    (``likeness.Ledger.start()``, once a machine). What a fit lacks, it lists in one refusal.

    Attributes:
        schema_: the schema as an object, with released categories.
        generator_: the trained generator.
        releases_: noisy statistics with their receipts, by the name of their query.
        frame_: library and dtypes of the training rows, which every sample has.
        loss_curve_: (iteration, loss) during the training, of histories by table; empty after :meth:`load`.
        privacy_: see :attr:`privacy`.
        n_features_in_, feature_names_in_: number and names of the schema's columns.

    Examples:
        >>> synthesizer = Synthesizer(epsilon=1.0, schema="data/schema/adult.yaml", population="uci-adult-1994")
        >>> synthetic = synthesizer.fit(train).sample(32_000)  # doctest: +SKIP
    """

    schema_: "Schema"
    generator_: "SavedGenerator"
    releases_: "dict[str, Released]"
    frame_: "FrameType"
    loss_curve_: "list[tuple[int, float]] | dict[str, list[tuple[int, float]]]"
    privacy_: dict[str, Any]
    _fitted: "Fitted"

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
        from likeness.synthesizer.fit import fit

        if y is not None:
            raise ParamsError("y must be None, because the label is a column of X. Name it in the schema.")
        return self._keep(fit(self, X, person))

    def check(self, rows: int) -> "Report":
        """Forecast what the noise of a fit leaves, from public facts alone. It spends nothing and opens no row.

        Args:
            rows: number of training records, a public round number. Never ``len(frame)``: a private number of records
                makes the forecast private.

        Returns:
            the report of ``likeness check``, to print. ``forecast.expected`` has its numbers, ``passed`` its verdict.

        Raises:
            ParamsError, SchemaError, PlanError: a parameter is wrong, or the release would be impossible.
        """
        project = Project(Path(), self.params(), schema_of(self))
        return Report((), (), forecast(project, whole("rows", rows, least=1)))

    def _keep(self, fitted: "Fitted") -> "Synthesizer":
        self._fitted = fitted
        vars(self).update(fitted.attributes())
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
            if a value is missing. A column whose dtype cannot hold each category, as the word of ``other`` among
            numbers, is a category of texts. A column whose dtype cannot hold the bounds has the dtype of its kind.
            With ``replicates`` a list of such frames.

        Raises:
            ParamsError: ``n``, ``where`` or ``replicates`` has a wrong value, or the method makes no replicates.
            NotFittedError: :meth:`fit` was not called.
            LikenessError: so many rows do not fit in memory.
        """
        self.check_fitted("releases_")
        seed = whole("seed", seed)
        with in_words():
            if replicates is None:
                return self._fitted.sample(n, where, seed)  # type: ignore[no-any-return]
            return self._fitted.replicates(whole("replicates", replicates, least=2), n, where, seed, self.params())

    def estimate(
        self,
        columns: str | Iterable[str],
        by: str | Iterable[str] | None = None,
        statistic: str = "share",
        *,
        quantile: float = 0.5,
        level: float = 0.95,
        sampling: bool = False,
        max_cv: float = Question.max_cv,
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
            max_cv: the largest coefficient of variation of a number that is not marked as unreliable.

        Returns:
            a pandas frame with a row for each cell, whose values are its index. ``estimate`` is the nearest possible
            number: shares sum to one, means lie within the bounds. ``unbiased`` is the one to add up or to model.
            ``noise_error`` is its standard error from the privacy noise, ``sampling_error`` that from sampling. ``low``
            and ``high`` are the interval. A mean has a ``cell_error`` too: half of what cells of several values leave
            open. ``cv`` is the coefficient of variation, and ``unreliable`` says whether it is above ``max_cv``.

        Raises:
            ParamsError: an argument has a wrong value.
            ReleaseError: the release does not count these cells.
            NotFittedError: :meth:`fit` was not called.
        """
        self.check_fitted("releases_")
        words = {"statistic": statistic, "quantile": quantile, "level": level, "sampling": sampling, "max_cv": max_cv}
        question = Question.of(columns, by, **words)
        return estimate(self._fitted.model.schema, self.releases_.values(), question, self.num_records)

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
        self.check_fitted("releases_")
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        model = Model(outcome, names, category, level, sampling)
        return regression(self._fitted.model.schema, self.releases_.values(), model, self.num_records)

    @property
    def model_(self) -> "FittedModel":
        """The fitted model: ``model_.marginal(["age", "sex"])`` gives its share of each cell. It costs nothing.

        Raises:
            NotFittedError: :meth:`fit` was not called, or fitted people with histories.
        """
        self.check_fitted("generator_")
        return FittedModel(self.schema_, self.generator_)

    @property
    def relations_(self) -> "DataFrame":
        """What a reader may believe of each pair of columns, from released numbers and the model. It costs nothing.

        A frame with a row a pair. ``verdict`` is ``kept``, ``not kept`` or ``unknown``, where noise explains everything
        or the pair was never measured. ``strength`` is that of the release: the absolute correlation of ranks, Cramér's
        V of two columns with two values, and alike for others. ``detectable`` is the strength that noise does not hide,
        ``synthetic`` that of the model. ``rule`` says whether a public rule speaks of the pair. See
        :mod:`likeness.inference.relations` for the test. Images have no pairs.

        Raises:
            NotFittedError: :meth:`fit` was not called.
        """
        self.check_fitted("releases_")
        return self._fitted.relations(self.params())

    @property
    def card_(self) -> "DataFrame":
        """The figures of the card about the table of :meth:`sample` without arguments, each with its 95 % interval.

        ``rows`` is the number of training rows. ``mean_1_way`` and ``worst_2_way`` are total variations of columns and
        pairs. Accuracies are those of naive Bayes, trained on the synthetic rows. Empty without ``card``.
        """
        figures = pd.DataFrame(self.privacy.get("card", []), columns=["measure", "value", "low", "high"])
        return figures.set_index("measure")

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
        return self.privacy_

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
            LikenessError: the path cannot be written.
        """
        self.check_fitted("releases_")
        with in_words():
            save(self._fitted, self.get_params(deep=False), expanded(path))

    @classmethod
    def load(cls, path: str | Path) -> "Synthesizer":
        """Read what :meth:`save` wrote; no ledger is needed to sample.

        Raises:
            ArtifactError: :meth:`save` did not write the folder, or a file is missing or damaged.
            ReleaseError: generator, released statistics and account do not belong together.
        """
        try:
            with in_words():
                params, fitted = load(expanded(path))
            return cls(**params)._keep(fitted)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ArtifactError(f"{path}: a file was changed by hand. Restore the folder from a copy.") from None

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
            open_others: publish the names of other populations in the ledger, which a verifier then sees.

        Returns:
            names of the files in it.

        Raises:
            ReleaseError: the fit is not private.
            LedgerError: the ledger of the fit is not here.
            ArtifactError: the path exists.
            LikenessError: the path cannot be written, or so many rows do not fit in memory.
        """
        self.check_fitted("releases_")
        if self.card is not None and (n, seed, where or {}) != (None, 0, {}):
            raise ParamsError("the card is about the table of sample() without arguments. Leave n, where and seed out.")
        where = {name: plain_condition(value) for name, value in named(where or {}).items()}
        rows, seed = AUTO if n is None else whole("n", n, least=1), whole("seed", seed)
        sample = build(Sample, {"rows": rows, "seed": seed, "where": where}, "sample")
        with in_words():
            return bundle(self._fitted, replace(self.params(), sample=sample), expanded(path), open_others)
