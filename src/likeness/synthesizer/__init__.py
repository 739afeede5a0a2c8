"""The pipeline for Python: fit a synthesizer to a DataFrame, draw rows, state the cost.

It uses the door, the functions and the ledger of the stages. Equal rows, schema, settings and population are one
release here and there, and cost nothing the second time.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from likeness.config.params import AUTO, Sample
from likeness.core.errors import ArtifactError, ParamsError
from likeness.core.files import expand_home
from likeness.core.refusals import errors_in_words
from likeness.core.retry import retry_on_disconnect
from likeness.core.typed import build, check_whole_number
from likeness.data.schema.allowed import condition_setting
from likeness.pipeline.project import Project
from likeness.pipeline.where import conditions_by_name
from likeness.preflight.forecast import forecast
from likeness.preflight.report import Report
from likeness.synthesizer.estimates import Estimates
from likeness.synthesizer.files import bundle, load, save

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.data.encoding.frames import FrameType
    from likeness.synthesizer.published import Published


class Synthesizer(Estimates):
    """Differentially private synthetic rows, in the conventions of scikit-learn.

    Its :class:`~likeness.synthesizer.parameters.Parameters` are public. A ledger must exist
    (``likeness.Ledger.start()``, once per machine). What a fit lacks, it lists in one refusal.

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

    frame_: "FrameType"
    loss_curve_: "list[tuple[int, float]] | dict[str, list[tuple[int, float]]]"

    def fit(
        self,
        X: "DataFrame | Mapping[str, DataFrame]",  # noqa: N803 (scikit-learn's name)
        y: None = None,
        person: str | None = None,
    ) -> "Synthesizer":
        """Release noisy statistics of the rows, or fetch earlier releases, and train a generator on them.

        All checks come before the ledger. The cost is on record before the rows are summed. The synthesizer does not
        store the rows. A fit whose connection to a database broke begins again, three times, and pays nothing twice.

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
            LikenessError: a disk is full, or this user may not write there.
        """
        from likeness.synthesizer.published import fit

        if y is not None:
            raise ParamsError("y must be None, because the label is a column of X. Name it in the schema.")
        with errors_in_words():
            return self._keep(retry_on_disconnect(lambda: fit(self, X, person)))

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
        project = Project(Path(), self.params(), self.public_schema)
        return Report((), (), forecast(project, check_whole_number("rows", rows, least=1)))

    def _keep(self, fitted: "Published") -> "Synthesizer":
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
        seed = check_whole_number("seed", seed)
        with errors_in_words():
            if replicates is None:
                return self._fitted.sample(n, where, seed)  # type: ignore[no-any-return]
            count = check_whole_number("replicates", replicates, least=2)
            return self._fitted.sample_replicates(count, n, where, seed, self.params())

    def save(self, path: str | Path) -> None:
        """Write generator, released statistics, schema, plan, statement and parameters into a new folder.

        All of it may be published, unless the statement says NOT PRIVATE. The place of the ledger stays behind.
        ``likeness sample`` reads the folder as it reads a bundle.

        Raises:
            ArtifactError: the path exists.
            LikenessError: the path cannot be written.
        """
        self.check_fitted("releases_")
        with errors_in_words():
            save(self._fitted, self.get_params(deep=False), expand_home(path))

    @classmethod
    def load(cls, path: str | Path) -> "Synthesizer":
        """Read what :meth:`save` wrote; no ledger is needed to sample.

        Raises:
            ArtifactError: :meth:`save` did not write the folder, or a file is missing or damaged.
            ReleaseError: generator, released statistics and account do not belong together.
        """
        try:
            with errors_in_words():
                params, fitted = load(expand_home(path))
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
        where = {name: condition_setting(value) for name, value in conditions_by_name(where or {}).items()}
        rows, seed = AUTO if n is None else check_whole_number("n", n, least=1), check_whole_number("seed", seed)
        sample = build(Sample, {"rows": rows, "seed": seed, "where": where}, "sample")
        with errors_in_words():
            return bundle(self._fitted, replace(self.params(), sample=sample), expand_home(path), open_others)
