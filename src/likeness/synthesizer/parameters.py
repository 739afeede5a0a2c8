"""Parameters of a synthesizer: what is wrong with them, as the settings of params.yaml, and as JSON."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from likeness.config.params import ONE_PERSON, ONE_ROW, LedgerSettings, Params, Privacy, Train
from likeness.core.artifacts import Artifacts
from likeness.core.errors import NotFittedError, ParamsError, SchemaError
from likeness.core.hashing import json_value
from likeness.core.typed import build, require
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.kinds import Categorical
from likeness.data.schema.row_sets import PublicSchema
from likeness.data.schema.schema import Schema
from likeness.methods import DEFAULT, method_named
from likeness.pipeline.other_ledgers import LedgerReference
from likeness.pipeline.project import Project
from likeness.preflight.missing_inputs import MissingInputs
from likeness.preflight.sdv import draft

if TYPE_CHECKING:
    from pandas import DataFrame

P = TypeVar("P", bound="Parameters")
_OF_FRAME = "names and dtypes of the frame"  # the source of such a schema
_LONGEST = 100  # characters of a parameter that the representation shows


class Estimator:
    """Base of a class whose constructor stores each of its parameters in an attribute of that name."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 (scikit-learn's signature)
        """The parameters of the constructor, by name."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change parameters.

        Raises:
            ValueError: the constructor has no such parameter.
        """
        names = list(signature(type(self)).parameters)
        for name, value in params.items():
            if name not in names:
                raise ValueError(f"Invalid parameter {name!r} for {type(self).__name__}. Valid: {', '.join(names)}")
            setattr(self, name, value)
        return self

    def check_fitted(self, attribute: str) -> None:
        """Refuse the use of an estimator whose fit has not set this attribute.

        Raises:
            NotFittedError: the attribute is missing.
        """
        if not hasattr(self, attribute):
            raise NotFittedError(f"This {type(self).__name__} is not fitted. Call fit first.")

    def __repr__(self) -> str:
        """The call that makes it, without defaults."""
        values, standard = self.get_params(), signature(type(self)).parameters
        arguments = [f"{name}={_short(value)}" for name, value in values.items() if value != standard[name].default]
        return f"{type(self).__name__}({', '.join(arguments)})"

    def __sklearn_tags__(self) -> Any:
        """The tags that scikit-learn asks of an estimator in a pipeline or a search."""
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()


def _short(value: Any) -> str:
    """The value as Python writes it; of a long one, such as a schema, the name of its class."""
    text = repr(value)
    return text if len(text) <= _LONGEST and "\n" not in text else f"<{type(value).__name__}>"


_PRIVACY_KEYS = ("epsilon", "delta", "population", "unit", "adjacency", "num_records", "series")


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters(Estimator):
    """The parameters of a synthesizer. All of them are public; a fit checks them.

    Attributes:
        method: a name in :data:`likeness.methods.METHODS`.
        epsilon: ε of the whole fit; ``inf`` turns noise off and states NOT PRIVATE.
        delta: δ, well below 1 / number of records.
        schema: public knowledge of the columns: a :class:`~likeness.data.schema.schema.Schema`, a completed
            ``likeness.draft(frame)``, the path of a schema file, or its content as a mapping. For people with histories
            a :class:`likeness.HistorySchema`. None: names and dtypes of the frame are public, and nothing else is. Then
            bounds and categories are released with a part of the budget.
        label: without a schema, the column to be predicted; None: there is none.
        adjacency: ``add_remove_one`` (the number of records is private) or ``replace_one`` (it is public).
        num_records: number of rows; with ``replace_one`` only, and then always.
        population: a name for the people in the data. New versions of the data keep it, and costs add up under it.
        unit: words of the statement for the protected unit. With ``unit_column``, the default means one person.
        unit_column: the column of the table whose values name the people, if a person may have several rows. It is no
            column of the schema, and never released. None: a row is a person.
        max_rows: the most rows of one person that are used; with ``unit_column`` only, and then always. Noise grows
            with it.
        series: ``growing``: each day's fit is about people who came since an earlier one, which costs less. The frame
            then holds everybody, also those of earlier days (docs/howto/series.md). ``none``: each fit is about all.
        ledger_home: folder of the ledger; None: the user's. ``LIKENESS_HOME`` overrides both.
        cap: lifetime cap of these people as (ε, δ), which must be that on record. None: the cap on record, or that of
            ``likeness params ledger`` for people who are new to the ledger.
        attempt: another value is a deliberate second release, at the full cost.
        settings: the method's section of params.yaml, or a part of it; other keys have their defaults.
        categories: section ``categories`` of params.yaml, or a part of it, for a schema with private categories.
        seed: public seed of the training.
        device: ``auto``, ``cpu``, ``cuda`` or ``mps``.
        threads: of the training, part of its reproducibility.
        precision: of the products in a network while it trains, ``float32`` or ``bfloat16``.
    """

    method: str = DEFAULT
    epsilon: float = 1.0
    delta: float = 1e-5
    schema: PublicSchema | SchemaDraft | Mapping[str, Any] | str | Path | None = None
    label: str | None = None
    adjacency: str = Privacy.adjacency
    num_records: int | None = None
    population: str | None = None
    unit: str = Privacy.unit
    unit_column: str | None = None
    max_rows: int | None = None
    series: str = Privacy.series
    ledger_home: str | None = None
    cap: tuple[float, float] | None = None
    attempt: str = LedgerSettings.attempt
    settings: Mapping[str, Any] | None = None
    categories: Mapping[str, Any] | None = None
    seed: int = Train.seed
    device: str = Train.device
    threads: int = Train.threads
    precision: str = Train.precision

    @property
    def public_schema(self) -> PublicSchema:
        """The schema as an object; :func:`refuse_faults` made sure that there is one."""
        schema = self.schema
        assert schema is not None
        if isinstance(schema, SchemaDraft):
            return schema.complete()
        if isinstance(schema, Mapping):
            return Schema.from_dict(schema, "schema")
        return Schema.load(schema) if isinstance(schema, str | Path) else schema

    def params(self) -> Params:
        """The parameters as the stages have them, checked by their rules.

        Raises:
            ParamsError: a parameter is wrong.
        """
        method_named(self.method)
        unit = _unit(self)
        privacy = {name: json_value(getattr(self, name)) for name in _PRIVACY_KEYS}
        privacy["population"] = "?" if self.population is None else self.population  # a fit refuses None
        if unit is not None and self.unit == ONE_ROW:
            privacy["unit"] = ONE_PERSON
        cap = {} if self.cap is None else json_value(self.cap)
        if isinstance(cap, list):
            require(len(cap) == 2, "cap", self.cap, "a pair of epsilon and delta")
            cap = dict(zip(("epsilon", "delta"), cap, strict=True))
        ledger = {"home": _home(self), "cap": cap, "attempt": self.attempt}
        training = {name: json_value(getattr(self, name)) for name in ("device", "seed", "threads", "precision")}
        sections = {
            "method": self.method,
            "privacy": privacy,
            "ledger": ledger,
            "ingest": {"source": "", "schema": "", "unit": unit},
            "train": training,
            "sections": {self.method: json_value(self.settings or {})},
            "categories": json_value(self.categories or {}),
        }
        return build(Params, sections, "")


def _unit(parameters: Parameters) -> dict[str, Any] | None:
    """Section ``ingest.unit``; None where a row is a person."""
    column, most = parameters.unit_column, parameters.max_rows
    unit = getattr(parameters.schema, "unit", None)
    if unit is not None:
        require((column, most) == (None, None), "unit_column", column, "left out: the schema of histories says it")
        column, most = unit.column, unit.max_rows
    if (column is None) is not (most is None):
        remedy = "Give both if a person may have several rows, else neither."
        raise ParamsError(f"unit_column and max_rows go together. {remedy}")
    return None if column is None else {"column": column, "max_rows": json_value(most)}


def _home(parameters: Parameters) -> str | None:
    return None if parameters.ledger_home is None else str(parameters.ledger_home)


def with_schema(parameters: P, frame: "DataFrame | None") -> P:
    """Parameters with a schema: without one, that of a frame whose names and dtypes alone are public.

    Raises:
        SchemaError: a label has no public classes, or is no column.
    """
    if parameters.schema is not None or frame is None:
        return parameters
    schema = draft(frame)
    schema.source, schema.label, schema.person = _OF_FRAME, parameters.label, parameters.unit_column
    if (label := parameters.label) is not None and schema[label].kind == Categorical.name:
        if not hasattr(frame[label], "cat"):
            lines = f"schema = likeness.draft(frame); schema.label = {label!r}; schema.source = {_OF_FRAME!r}"
            question = f"schema[{label!r}].categories = ?  # every class of the label, from public knowledge"
            raise SchemaError(
                f"label '{label}': its classes must be public. Run these lines first:\n{lines}\n{question}\n"
                "schema.make_private(); synthesizer.schema = schema"
            )
        schema[label].categories = [str(category) for category in frame[label].cat.categories]
    schema.make_private()
    drafted = copy(parameters)
    drafted.schema = schema
    return drafted


def refuse_faults(parameters: Parameters, frame: Any = None) -> None:
    """Refuse everything that is missing or wrong in ledger, parameters and schema, in one list.

    Args:
        parameters: whose parameters.
        frame: the training rows of one table, as pandas has them.

    Raises:
        LikenessError: of the one kind of all faults, else a ParamsError.
    """
    first, schema = MissingInputs(), parameters.schema
    account = getattr(parameters, "privacy_", None)  # of an earlier fit, here or where it was saved
    identities = [] if account is None else [(account["identity"], account["ledger"]["id"])]
    references = [LedgerReference("this synthesizer", *each) for each in identities]
    first.ledger(_home(parameters), parameters.population, references)
    if parameters.population is None:
        first.question("synthesizer.population", "a name for the PEOPLE in the data; new versions of it keep it")
    if isinstance(schema, SchemaDraft) and schema.person is not None and parameters.unit_column is None:
        text = "the most rows of one person that are used; noise grows with it"
        first.question(f"synthesizer.unit_column = {schema.person!r}; synthesizer.max_rows", text)
    first.schema(schema, frame)
    first.add_refusal(parameters.params)
    first.refuse()


def project_of(
    parameters: Parameters, schema: PublicSchema, frames: "Mapping[str, DataFrame]", artifacts: Artifacts
) -> Project:
    """The project of a fit, with the cap on record if the caller gives none.

    Args:
        parameters: of the fit.
        schema: complete.
        frames: the training rows by the name of their table.
        artifacts: where the stages write.

    Raises:
        ParamsError: a parameter is wrong.
    """
    project = Project(Path(), parameters.params(), schema, frames, artifacts)
    params = project.params
    budget = project.ledger.budget(params.privacy.population) if parameters.cap is None else None
    if budget is None:
        return project
    cap = replace(params.ledger.cap, epsilon=budget.cap_epsilon, delta=budget.cap_delta)
    return replace(project, params=replace(params, ledger=replace(params.ledger, cap=cap)))


def from_plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters from JSON: the cap is a pair, and epsilon a number."""
    cap = None if params["cap"] is None else tuple(map(float, params["cap"]))
    return {**params, "epsilon": float(params["epsilon"]), "cap": cap}
