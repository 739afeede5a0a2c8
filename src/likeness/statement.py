"""The account of a run: what was really released, composed, checked against ledger and target, in two forms."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from likeness import __version__
from likeness.artifacts import context, method, released_files
from likeness.bounds import Unit
from likeness.consistency import auxiliary_of, check_run
from likeness.errors import ReleaseError
from likeness.params import Params
from likeness.privacy.accountant import Account, compose
from likeness.privacy.budget import Budget
from likeness.privacy.fineness import ALLOWANCE
from likeness.privacy.ledger import Ledger
from likeness.privacy.plan import Plan
from likeness.privacy.receipt import Receipt
from likeness.release.released import check_against, load_released
from likeness.synthetic import check_synthetic, sample_request

# The guarantee may exceed the target by rounding only.
_TOLERANCE = 1e-9

SOFTWARE = ("autodp", "opendp", "numpy", "torch")
"""Libraries whose versions the account names."""


def account(params: Params, plan: Plan, ledger: Ledger) -> dict[str, Any]:
    """Compose every receipt of the run; the content of ``reports/privacy.json``.

    Raises:
        ReleaseError: a released file is missing, unknown to the ledger or not of these settings, the generator was
            trained on others, or the total exceeds the target.
        ArtifactError: the synthetic table is missing or not of this generator.
    """
    released = {path: load_released(path) for path in released_files()}
    receipts = {path: one.receipt for path, one in released.items()}
    commits, ledger_id = ledger.commits(), ledger.id
    for path, receipt in receipts.items():
        check_against(commits, path, receipt, ledger_id)
    check_run(params, plan, released)
    total = composed(params, list(receipts.values()))
    return privacy_json(
        params,
        plan,
        list(receipts.values()),
        total,
        Standing.of(ledger, params.privacy.identity),
        sample_request(params.sample),
        check_synthetic(params.sample),
        method(params).notes(context(params), auxiliary_of(released.values())),
        {one.receipt.query: len(one.keys) for one in released.values()},
    )


def composed(params: Params, receipts: Sequence[Receipt]) -> Account:
    """The total of all releases of a run.

    Raises:
        ReleaseError: it exceeds the target.
    """
    total = compose(list(receipts), params.privacy.delta)
    if total.epsilon > params.privacy.epsilon * (1 + _TOLERANCE):
        raise ReleaseError(
            f"the releases compose to epsilon {total.epsilon:.9g} at delta {total.delta:g}, more than the target "
            f"{params.privacy.epsilon:g}. Do not publish: data/released does not belong to this params.yaml."
        )
    return total


@dataclass(frozen=True)
class Standing:
    """What a ledger says about a population.

    Attributes:
        ledger_id: random name of the ledger.
        budget: of the population.
        digests: SHA-256 of each committed release, by its key.
    """

    ledger_id: str
    budget: Budget
    digests: Mapping[str, str]

    @classmethod
    def of(cls, ledger: Ledger, identity: str) -> "Standing":
        """As the ledger stands now. Releases of the population are on record."""
        budget = ledger.budget(identity)
        assert budget is not None
        return cls(ledger.id, budget, {key: digest for key, (_, digest) in ledger.commits().items()})


def privacy_json(
    params: Params,
    plan: Plan,
    receipts: Sequence[Receipt],
    total: Account,
    standing: Standing,
    sample: Mapping[str, Any],
    outputs: Mapping[str, str],
    notes: Sequence[str] = (),
    keys: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """The account as JSON.

    Args:
        standing: what the ledger says about these people.
        sample: how the table was asked for.
        outputs: SHA-256 of the files that it is about, by path.
        notes: what the method read off released values, see :meth:`likeness.methods.base.Method.notes`.
        keys: how many keys were released, by the name of the query.
    """
    budget = standing.budget
    queries = [
        {
            "query": receipt.query,
            "stage": receipt.stage,
            "map": dict(receipt.feature),
            "sensitivity": receipt.sensitivity,
            "noise_multiplier": receipt.noise_multiplier,
            "noise_scale": receipt.noise_scale * 2.0**-receipt.lattice_bits,
            "rho": _finite(receipt.rho),
            "share": plan.query(receipt.query).share,
            "dimension": receipt.dimension,
            "mechanism": receipt.mechanism,
            "sampler": receipt.sampler,
            "ledger_seq": receipt.ledger_seq,
            "sha256": standing.digests[receipt.key],
            **_threshold(receipt, (keys or {}).get(receipt.query, 0)),
        }
        for receipt in receipts
    ]
    return {
        "format": 1,
        "private": plan.private,
        "method": params.method,
        "identity": params.privacy.identity,
        "unit": protected(params.ingest.unit, params.privacy.unit),
        **({} if params.ingest.unit is None else {"rows_of_a_person": params.ingest.unit.to_dict()}),
        "adjacency": str(plan.adjacency),
        "num_records": plan.num_records,
        "target": {"epsilon": _finite(params.privacy.epsilon), "delta": params.privacy.delta},
        "total": {
            "rho": _finite(total.rho),
            "epsilon": _finite(total.epsilon),
            "epsilon_rdp": _finite(total.epsilon_rdp),
            "epsilon_gaussian": _finite(total.epsilon_gaussian),
            "delta": total.delta,
            **({"delta_keys": total.delta_keys} if total.delta_keys else {}),
        },
        "rdp_curve": {
            "orders": list(total.orders),
            "total": [_finite(value) for value in total.curve],
            "stages": {stage: [_finite(value) for value in curve] for stage, curve in total.stages.items()},
        },
        "queries": queries,
        "notes": list(notes),
        "sample": dict(sample),
        # Without noise, a digest would tell of exact values.
        "outputs": dict(outputs) if plan.private else {},
        "ledger": {
            "id": standing.ledger_id,
            "lifetime": {
                "spent_rho": _finite(budget.spent_rho),
                "spent_epsilon": _finite(budget.spent_epsilon),
                "cap_epsilon": _finite(budget.cap_epsilon),
                "cap_delta": budget.cap_delta,
                "uncommitted": budget.uncommitted,
                **_lifetime_keys(budget),
            },
        },
        "software": {name: version(name) for name in SOFTWARE} | {"likeness": __version__},
    }


def _threshold(receipt: Receipt, keys: int) -> dict[str, Any]:
    """What a release with a threshold has beside: in rows, how many keys passed, and what it cost of δ."""
    if receipt.threshold is None:
        return {}
    rows = receipt.threshold * 2.0**-receipt.lattice_bits
    return {"threshold": rows, "delta_keys": receipt.delta_keys, "keys": keys}


def _lifetime_keys(budget: Budget) -> dict[str, float]:
    """The part of the cap's δ for thresholds, where it has one."""
    if not (budget.cap_keys or budget.spent_delta):
        return {}
    return {"cap_delta_keys": budget.cap_keys, "spent_delta_keys": budget.spent_delta}


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


def protected(unit: Unit | None, words: str) -> str:
    """Who is protected, in words.

    Args:
        words: what the curator calls a unit.
    """
    if unit is None:
        return words
    rows = "1 row" if unit.max_rows == 1 else f"{unit.max_rows:,} rows"
    return f"{words} with all rows of one value of {unit.column!r}, of which at most {rows} are used"


_ADJACENCY = {
    "add_remove_one": "one record added or removed; the number of records is itself protected",
    "replace_one": "one record replaced by any other; the number of records is public",
}
_PEOPLE = "one person added or removed with all rows; the number of people and of records is itself protected"


def statement(privacy: dict[str, Any]) -> str:
    """The same account for a person, in Markdown."""
    total, target, lifetime = privacy["total"], privacy["target"], privacy["ledger"]["lifetime"]
    several = privacy.get("rows_of_a_person")
    neighbors = _PEOPLE if several else _ADJACENCY[privacy["adjacency"]]
    lines = ["# Privacy statement", ""]
    if not privacy["private"]:
        lines += ["**NOT PRIVATE.** This run was made with `epsilon: inf`: no noise was added. Do not publish.", ""]
    lines += [
        f"The synthetic table was made by the method **{privacy['method']}** from {len(privacy['queries'])} noisy "
        "statistics of the private table, and from nothing else that depends on it.",
        "",
        f"- **Whose data:** `{privacy['identity']}`; unit of privacy: {privacy['unit']}.",
        f"- **Neighboring tables:** `{privacy['adjacency']}`: {neighbors}.",
        f"- **Guarantee:** ε = {_number(total['epsilon'])} at δ = {total['delta']:g} "
        f"(target ε = {_number(target['epsilon'])}, δ = {target['delta']:g}), {_conversion(total)}, "
        f"total ρ = {_number(total['rho'])}.",
        *_categories(privacy),
        f"- **For comparison:** composition of Rényi differential privacy gives ε = {_number(total['epsilon_rdp'])}; "
        f"were the noise continuous, exact composition of Gaussians would give {_number(total['epsilon_gaussian'])}.",
        f"- **Lifetime of these people in ledger `{privacy['ledger']['id']}`:** "
        f"ε = {_number(lifetime['spent_epsilon'])} spent of {_number(lifetime['cap_epsilon'])} at "
        f"δ = {lifetime['cap_delta']:g}{_kept(lifetime)}.",
        *_about(privacy),
        "",
        "## Every query",
        "",
        "| query | stage | coordinates | L2 sensitivity | noise σ | σ / sensitivity | share of ρ | ρ | ledger entry |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for query in privacy["queries"]:
        coordinates = query.get("keys", query["dimension"])
        lines.append(
            f"| {query['query']} | {query['stage']} | {coordinates:,} | {query['sensitivity']:.6g} | "
            f"{query['noise_scale']:.6g} | {query['noise_multiplier']:.6g} | {query['share']:.3g} | "
            f"{_number(query['rho'])} | {query['ledger_seq']} |"
        )
    lines += [
        "",
        "Noise: discrete Gaussian on an integer lattice, drawn once by OpenDP from the operating system's generator; "
        "each record is clipped to its declared bound and truncated to the lattice before it is summed, and the "
        "sensitivity counts that."
        + (f" It is {several['max_rows']:,} times that of one record, and so is the noise." if several else ""),
        *_notes(privacy),
        "",
        "## What is not covered",
        "",
        f"- What was taken as public: the schema (columns, bounds, {_listed(privacy)}), the split, the settings in "
        "params.yaml."
        " If one of them was read off the rows, this statement does not hold.",
        "- A person with more than one value of the column that names people."
        if several
        else "- A person with more than one row, unless the unit above says so.",
        "- Everything under `data/private` and `reports/internal`: exact, not private, not to be published.",
        "- Statistical truth: synthetic rows resemble the population; none of them is a person, and an inference about"
        " a group can be right without anybody's record having been used for it.",
        "- Other releases about the same people that are not in this ledger.",
        "",
        "PRIVACY.md tells the threat model and the side channels.",
        "",
    ]
    return "\n".join(lines)


def _thresholds(privacy: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [query for query in privacy["queries"] if "threshold" in query]


def _categories(privacy: Mapping[str, Any]) -> list[str]:
    """Of which columns the categories were released, and from how many rows on."""
    lines = []
    for query in _thresholds(privacy):
        if not privacy["private"]:
            lines.append(f"- **Categories of `{query['map']['column']}`:** read off the rows, without noise.")
            continue
        lines.append(
            f"- **Categories of `{query['map']['column']}`:** not taken as public. Released are the {query['keys']:,} "
            f"whose noisy number of records is at least {query['threshold']:.6g}"
            + (f" (the {query['map']['most']:,} largest)" if query["keys"] == query["map"]["most"] else "")
            + f"; every other value became `{query['map']['other']}`. A value that only the records of one person have "
            f"is released with probability at most {query['delta_keys']:.3g}, which is part of δ."
        )
    return lines


def _listed(privacy: Mapping[str, Any]) -> str:
    names = ", ".join(f"`{query['map']['column']}`" for query in _thresholds(privacy))
    return f"categories but those of {names}" if names else "categories"


def _kept(lifetime: Mapping[str, Any]) -> str:
    """The part of a lifetime's δ that is kept for thresholds."""
    if "cap_delta_keys" not in lifetime:
        return ""
    kept, taken = lifetime["cap_delta_keys"], lifetime["spent_delta_keys"]
    return f", of which {kept:g} is kept for thresholds and {taken:g} taken"


def _conversion(total: Mapping[str, Any]) -> str:
    """By which of the two conversions the claim was made."""
    if total["epsilon"] == total["epsilon_rdp"] or float(total["epsilon"]) > 0.9999999 * float(total["epsilon_rdp"]):
        return "by composition of Rényi differential privacy"
    return f"by exact composition of Gaussians and {ALLOWANCE:g} for their lattice"


def _about(privacy: dict[str, Any]) -> list[str]:
    """Which files the statement is about, and whether they hold chosen rows only."""
    files = "; ".join(f"`{path}`, SHA-256 `{sha}`" for path, sha in privacy["outputs"].items())
    lines = [f"- **About:** {files}."] if files else []
    if privacy["sample"]["where"]:
        given = ", ".join(f"{name} = {value}" for name, value in privacy["sample"]["where"].items())
        lines.append(f"- **Only rows with:** {given}. The table is not like the whole population.")
    return lines


def _notes(privacy: dict[str, Any]) -> list[str]:
    """What was read off released values, at no further cost."""
    notes = privacy.get("notes", [])  # earlier versions wrote none
    return ["", "Read off these values, at no further cost:", "", *(f"- {note}" for note in notes)] if notes else []


def _number(value: float | str) -> str:
    return "∞" if value == "inf" else f"{value:.6g}"
