"""Parameters of a synthesizer: what is wrong with them, as the settings of params.yaml, and as JSON."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.config.params import (
    ONE_PERSON,
    ONE_ROW,
    Card,
    Categories,
    Evaluate,
    Ingest,
    LedgerSettings,
    Params,
    Privacy,
    Train,
)
from likeness.config.typed import build, require
from likeness.core.errors import ParamsError
from likeness.core.hashing import plain
from likeness.data.histories.schema import HistorySchema
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.schema import Schema
from likeness.methods import method_named
from likeness.onboarding.missing_inputs import MissingInputs
from likeness.pipeline.other_ledgers import Named
from likeness.pipeline.project import Project

if TYPE_CHECKING:
    from likeness.synthesizer import Synthesizer

_PRIVACY_KEYS = ("epsilon", "delta", "population", "unit", "adjacency", "num_records")


def settings_of(given: "Synthesizer") -> Params:
    """The parameters as the stages have them, checked by their rules.

    Args:
        given: whose parameters.

    Raises:
        ParamsError: a parameter is wrong.
    """
    method_named(given.method)
    unit = _unit(given)
    privacy = {name: plain(getattr(given, name)) for name in _PRIVACY_KEYS}
    privacy["population"] = "?" if given.population is None else given.population  # a fit refuses None
    if unit is not None and given.unit == ONE_ROW:
        privacy["unit"] = ONE_PERSON
    cap = {} if given.cap is None else plain(given.cap)
    if isinstance(cap, list):
        require(len(cap) == 2, "cap", given.cap, "a pair of epsilon and delta")
        cap = dict(zip(("epsilon", "delta"), cap, strict=True))
    ledger = {"home": _home(given), "cap": cap, "attempt": given.attempt}
    training = {name: plain(getattr(given, name)) for name in ("device", "seed", "threads", "precision")}
    return Params(
        method=given.method,
        privacy=build(Privacy, privacy, "privacy"),
        ledger=build(LedgerSettings, ledger, "ledger"),
        ingest=build(Ingest, {"source": "", "schema": "", "unit": unit}, "ingest"),
        train=build(Train, training, "train"),
        sections={given.method: plain(given.settings or {})},
        categories=build(Categories, plain(given.categories or {}), "categories"),
        evaluate=Evaluate(card=None if given.card is None else build(Card, plain(given.card), "card")),
    )


def _unit(given: "Synthesizer") -> dict[str, Any] | None:
    """Section ``ingest.unit``; None where a row is a person."""
    column, most = given.unit_column, given.max_rows
    said = getattr(given.schema, "unit", None)
    if said is not None:
        require((column, most) == (None, None), "unit_column", column, "left out: the schema of histories says it")
        column, most = said.column, said.max_rows
    if (column is None) is not (most is None):
        raise ParamsError(
            "unit_column and max_rows go together. Give both if a person may have several rows, else neither."
        )
    return None if column is None else {"column": column, "max_rows": plain(most)}


def _home(given: "Synthesizer") -> str | None:
    return None if given.ledger_home is None else str(given.ledger_home)


def refuse_faults(given: "Synthesizer", frame: Any = None) -> None:
    """Refuse everything that is missing or wrong in ledger, parameters and schema, in one list.

    Args:
        given: whose parameters.
        frame: the training rows of one table, as pandas has them.

    Raises:
        LikenessError: of the one kind of all faults, else a ParamsError.
    """
    first, schema = MissingInputs(), given.schema
    account = getattr(given, "privacy_", None)  # of an earlier fit, here or where it was saved
    known = [] if account is None else [Named("this synthesizer", account["identity"], account["ledger"]["id"])]
    first.ledger(_home(given), given.population, known)
    if given.population is None:
        first.question("synthesizer.population", "a name for the PEOPLE in the data; new versions of it keep it")
    if isinstance(schema, SchemaDraft) and schema.person is not None and given.unit_column is None:
        words = "the most rows of one person that are used; noise grows with it"
        first.question(f"synthesizer.unit_column = {schema.person!r}; synthesizer.max_rows", words)
    first.schema(schema, frame)
    first.tried(given.params)
    first.refuse()


def project_of(given: "Synthesizer", schema: Schema | HistorySchema) -> Project:
    """The project of a fit, with the cap on record if the caller gives none.

    Raises:
        ParamsError: a parameter is wrong, or the method cannot train on the device.
    """
    project = Project(Path(), given.params(), schema)
    params = project.params
    project.method.check_device(params.train.device)
    budget = project.ledger.budget(params.privacy.population) if given.cap is None else None
    if budget is None:
        return project
    cap = replace(params.ledger.cap, epsilon=budget.cap_epsilon, delta=budget.cap_delta)
    return replace(project, params=replace(params, ledger=replace(params.ledger, cap=cap)))


def schema_of(given: "Synthesizer") -> Schema | HistorySchema:
    """The checked schema; :func:`refuse_faults` made sure that there is one."""
    schema = given.schema
    assert schema is not None
    if isinstance(schema, SchemaDraft):
        return schema.complete()
    if isinstance(schema, Mapping):
        return Schema.from_dict(schema, "schema")
    return Schema.load(schema) if isinstance(schema, str | Path) else schema


def from_plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters from JSON: the cap is a pair, and epsilon a number."""
    cap = params["cap"]
    return {
        **params,
        "epsilon": float(params["epsilon"]),
        "cap": None if cap is None else tuple(float(value) for value in cap),
    }
