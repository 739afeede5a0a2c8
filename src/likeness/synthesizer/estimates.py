"""What a fit says of its training rows, from released numbers alone: the account, estimates and the model."""

from collections.abc import Iterable
from inspect import signature
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from likeness.core.errors import ArtifactError, ReleaseError
from likeness.core.refusals import errors_in_words
from likeness.core.text import small_table
from likeness.core.typed import check_whole_number
from likeness.inference.estimates import Question, estimate
from likeness.ledger.records import base_attempt
from likeness.privacy.cohorts import Cohort
from likeness.report.formats import number
from likeness.report.statement import statement
from likeness.synthesizer.parameters import Parameters
from likeness.synthesizer.published import Published, margins

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.data.schema.schema import Schema
    from likeness.methods.saved_generator import SavedGenerator
    from likeness.release.released import Released
    from likeness.report.pages import Page


_ALWAYS = ("method", "epsilon", "delta", "population")  # parameters that a notebook shows, also the defaults


class Account(dict[str, Any]):
    """The account of a fit, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        total = self["total"]
        text = f"{self['identity']}: ε = {number(total['epsilon'])} at δ = {number(total['delta'])}; {self['unit']}"
        names = ("query", "dimension", "sensitivity", "noise_scale", "rho")
        rows = [[number(query[name]) for name in names] for query in self["queries"]]
        return small_table(text, rows, ("query", "numbers", "sensitivity", "σ", "ρ"))


class Estimates(Parameters):
    """Numbers about the training rows. All of them cost nothing.

    Attributes:
        schema_, generator_, releases_, privacy_: those of :class:`likeness.Synthesizer`.
    """

    schema_: "Schema"
    generator_: "SavedGenerator"
    releases_: "dict[str, Released]"
    privacy_: dict[str, Any]
    _fitted: Published

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
        options = {"statistic": statistic, "quantile": quantile, "level": level, "sampling": sampling, "max_cv": max_cv}
        question = Question.from_columns(columns, by, **options)
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
            outcome: a column: a number, or one of which a category is modeled as a linear probability.
            columns: of the main effects. A number counts as the middle of its cell.
            category: of an outcome with categories.
            level: as in :meth:`estimate`.
            sampling: as there.

        Returns:
            a pandas frame with a row for each coefficient, as :meth:`estimate` gives it.

        Raises:
            ParamsError: an argument has a wrong value.
            ReleaseError: the release does not count these pairs, or has too much noise for so many columns.
            MissingPackageError: ``likeness_margins`` is not installed.
            NotFittedError: :meth:`fit` was not called.
        """
        self.check_fitted("releases_")
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        model = margins("LinearModel", "Synthesizer.regression")(outcome, names, category, level, sampling)
        return model.fit(self._fitted.model.schema, self.releases_.values(), self.num_records)  # type: ignore[no-any-return]

    @property
    def model_(self) -> Any:
        """The fitted model: ``model_.marginal(["age", "sex"])`` gives its share of each cell. It costs nothing.

        Raises:
            MissingPackageError: ``likeness_margins`` is not installed.
            NotFittedError: :meth:`fit` was not called, or fitted people with histories.
        """
        self.check_fitted("generator_")
        return margins("FittedModel", "Synthesizer.model_")(self.schema_, self.generator_)

    @property
    def relations_(self) -> "DataFrame":
        """The verdict on each pair of columns, from released numbers and the model. It costs nothing.

        A frame with a row a pair. ``verdict`` is ``kept``, ``not kept`` or ``unknown``, where noise explains everything
        or the pair was never measured. ``strength`` is that of the release: the absolute correlation of ranks, Cramér's
        V of two columns with two values, and alike for others. ``detectable`` is the strength that noise does not hide,
        ``synthetic`` that of the model. ``rule`` says whether a public rule speaks of the pair. See
        :mod:`likeness.inference.relations` for the test. Images have no pairs.

        Raises:
            NotFittedError: :meth:`fit` was not called.
        """
        self.check_fitted("releases_")
        return self._fitted.relations()

    @property
    def privacy(self) -> dict[str, Any]:
        """The account, as in ``reports/privacy.json``: target, total, every query, lifetime of these people.

        ``total.epsilon`` is the guaranteed ε. ``ledger.lifetime`` is that at the time of the fit.
        """
        self.check_fitted("privacy_")
        return Account(self.privacy_)

    @property
    def statement(self) -> str:
        """The privacy statement in Markdown."""
        return statement(self.privacy)

    def report(self, n: int | None = None, seed: int = 0) -> "Page":
        """The public page about this fit: what to trust, every column, pairs, synthetic rows, and the account.

        A notebook shows it, and its ``save`` writes it as one file. It needs no real row, and costs nothing. To compare
        with real rows, use :func:`likeness.compare`.

        Args:
            n: as in :meth:`likeness.Synthesizer.sample`.
            seed: as there.

        Raises:
            NotFittedError: :meth:`fit` was not called.
            LikenessError: so many rows do not fit in memory.
        """
        self.check_fitted("releases_")
        with errors_in_words():
            return self._fitted.page(n, check_whole_number("seed", seed))

    def _repr_html_(self) -> str:
        """Show a notebook the parameters, and after a fit what a reader may believe."""
        values, standard = self.get_params(), signature(type(self)).parameters
        values.pop("schema", None)
        shown = {name: value for name, value in values.items() if name in _ALWAYS or value != standard[name].default}
        if hasattr(self, "privacy_"):
            total, pairs = self.privacy_["total"], self.privacy_.get("relations")
            shown["spent"] = f"ε = {number(total['epsilon'])} at δ = {number(total['delta'])}"
            if pairs:
                counts = {"kept": len(pairs["kept"]), "not kept": len(pairs["not_kept"]), "unknown": pairs["unknown"]}
                shown |= {f"pairs {word}": number(count) for word, count in counts.items()}
        return small_table(type(self).__name__, shown.items())


def running_total(
    runs: Iterable[str | Path], columns: str | Iterable[str], by: str | Iterable[str] | None = None, level: float = 0.95
) -> "DataFrame":
    """Count the people of all nights of a series until the newest run, from released numbers alone. It costs nothing.

    The people are the disjoint union of the cohorts of a few runs (:mod:`likeness.privacy.cohorts`). Their counts add
    up, and so do the squares of their errors. Each cohort has the rows of its people as its night had them.

    Args:
        runs: folders of bundles, saved synthesizers or projects. Those that are not needed may be among them.
        columns: of a table.
        by: columns of the groups.
        level: how often the intervals cover the truth.

    Returns:
        a pandas frame with a row for each cell, whose values are its index: ``unbiased``, the number to add up,
        ``noise_error``, its standard error, and ``low`` and ``high``, the interval.

    Raises:
        ArtifactError: a run that is needed is not among them.
        ReleaseError: a run is about everybody, or the runs are of several series, or their cells differ.
        ParamsError: an argument has a wrong value.
    """
    nights, series = {}, set()
    for run in runs:
        published = Published.read(Path(run))
        receipt = next(iter(published.released.values())).receipt
        cohort = Cohort.from_group(receipt.group)
        if cohort is None:
            raise ReleaseError(f"{run} is about everybody. Give runs with privacy.series: growing.")
        series.add((receipt.ledger_id, receipt.identity, base_attempt(receipt.slot)))
        nights[cohort.last] = (cohort, published)
    if len(series) != 1:
        raise ReleaseError(f"the runs are of {len(series)} series, and totals are of one. Give the runs of one series.")
    question, frames, night = Question.from_columns(columns, by, statistic="count", level=level), [], max(nights)
    while night:
        if night not in nights:
            raise ArtifactError(f"the run of night {night} is not among those given. Give it, too.")
        cohort, published = nights[night]
        frames.append(estimate(published.model.schema, published.released.values(), question, None))
        night = cohort.first - 1
    if not all(frame.index.equals(frames[0].index) for frame in frames):
        fault = "the runs count in different cells, so that counts do not add up"
        raise ReleaseError(f"{fault}. Ask for columns of categories.")
    total = frames[0][["unbiased", "noise_error"]].copy()
    total["unbiased"] = sum(frame["unbiased"] for frame in frames)
    total["noise_error"] = np.sqrt(sum(frame["noise_error"] ** 2 for frame in frames))
    margin = NormalDist().inv_cdf((1 + level) / 2) * total["noise_error"]
    return total.assign(low=total["unbiased"] - margin, high=total["unbiased"] + margin)
