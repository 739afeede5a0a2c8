"""What records cost that a database has lost."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from likeness.core.errors import LedgerError
from likeness.ledger.budget import Budget, Cost, budget_of, discretization_error_of
from likeness.ledger.records import RECOVERED, Record
from likeness.privacy.lattice_error import MOST_ERROR

_NO_COST = {"rho": 0.0, "delta_keys": 0.0, "error": 0.0}


def costs_of_lost(
    records: Sequence[Record], copies: Sequence[Record], heads: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """What lost records cost, as bodies of records that name them.

    Args:
        records: on the chain.
        copies: all records up to the anchor, or none.
        heads: numbers of records by their digests, which must have been on the chain.
    """
    on_record = {record.digest for record in records}
    on_record |= {digest for record in records if record.kind == RECOVERED for digest in record.body["lost"]}
    known = {record.digest: record for record in copies if record.digest not in on_record}
    names = list(dict.fromkeys(str(r.body["identity"]) for r in records if r.kind == "cap"))
    spent = dict.fromkeys(names, Cost(0.0))
    free = sorted(digest for digest, record in known.items() if record.kind != "reserve")
    if free and names:
        yield {"identity": names[0], **_NO_COST, "rows_digests": [], "lost": free}
    for digest, record in known.items():
        if record.kind == "reserve":
            body = {key: record.body[key] for key in ("identity", "rho", "delta_keys", "digest", "rows_digests")}
            cost = Cost(float(body["rho"]), float(body["delta_keys"]))
            spent[body["identity"]] = Cost.total([spent.get(body["identity"], Cost(0.0)), cost])
            yield {**body, "error": discretization_error_of(record.body), "lost": [digest]}
    unknown = sorted(heads.keys() - on_record - known.keys())
    if unknown:
        of = {"lost": unknown, "error": MOST_ERROR * max(heads[digest] for digest in unknown)}
        yield from (remainder(budget_on_record(records, name).after(spent[name]), of) for name in names)


def remainder(budget: Budget, of: Mapping[str, Any]) -> dict[str, Any]:
    """All that is left of a cap, as the cost of lost records that nobody knows."""
    delta = max(0.0, budget.selection_delta - budget.spent_delta)
    costs = {"rho": budget.remaining_rho, "delta_keys": delta, "error": of["error"]}
    return {**costs, "identity": budget.population, "lost": of["lost"]}


def budget_on_record(records: Sequence[Record], population: str) -> Budget:
    """The budget of people that are in the ledger.

    Raises:
        LedgerError: they are not.
    """
    budget = budget_of(records, population)
    if budget is None:
        raise LedgerError(
            f"population '{population}' is not in the ledger. Give a name that `likeness ledger budget` prints."
        )
    return budget
