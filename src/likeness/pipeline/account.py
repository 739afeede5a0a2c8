"""The account of a run: all its releases, composed and checked against ledger and target."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness import __version__
from likeness.config.params import Params
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import ReleaseError
from likeness.core.format import COUNTED, FORMAT
from likeness.core.hashing import json_value, sha256_bytes
from likeness.core.paths import read_json
from likeness.data.schema.rule import Rule
from likeness.inference.relations import summary
from likeness.ledger.budget import Budget
from likeness.methods.base import Method
from likeness.methods.row_set import RowSet
from likeness.pipeline.consistency import auxiliary_of, check_run
from likeness.pipeline.project import Project
from likeness.pipeline.written_tables import check_synthetic, table_request
from likeness.privacy.accountant import Account, compose
from likeness.privacy.plan import Plan
from likeness.privacy.receipt import Receipt
from likeness.release.released import Released, check_against, load_released

if TYPE_CHECKING:
    from likeness.ledger.ledger import Ledger

# The guarantee may exceed the target by rounding only.
_TOLERANCE = 1e-9

SOFTWARE = ("autodp", "opendp", "numpy")
"""Libraries whose versions the account names. The generator names what trained it."""
_OF_A_QUERY = (
    "query",
    "stage",
    "sensitivity",
    "noise_multiplier",
    "rho",
    "dimension",
    "mechanism",
    "sampler",
    "ledger_seq",
)


def account(project: Project) -> dict[str, Any]:
    """Compose every receipt of the run; the content of ``reports/privacy.json``.

    Raises:
        ReleaseError: a released file is missing, unknown to the ledger or not of these settings; or the generator was
            trained on others; or the total exceeds the target.
        ArtifactError: the synthetic table is missing or not of this generator.
    """
    ledger = project.ledger
    commits = ledger.commits()
    released = {path: load_released(path) for path in project.paths.released_files}
    for path, release in released.items():
        check_against(commits, path, release.receipt, ledger.id)
    outputs = _checked_outputs(project, released)
    state = LedgerState.read(ledger, project.params.privacy.population)
    software = {name: version(name) for name in SOFTWARE} | {"likeness": __version__}
    return {**account_of(project, released.values(), state, outputs), "software": software}


def account_elsewhere(project: Project) -> dict[str, Any]:
    """``reports/privacy.json`` as the machine with the ledger wrote it, if it is about the files that are here.

    Everything in it but the ledger's own words is computed again.

    Raises:
        ReleaseError: settings, releases, generator, table and account do not belong together.
        ArtifactError: one of them is missing.
    """
    params, account = project.params, read_json(project.paths.privacy)
    population, adjacency, cap = params.privacy.population, project.written_plan.adjacency, params.ledger.cap
    released = {path: load_released(path) for path in project.paths.released_files}
    digests = {release.receipt.key: sha256_bytes(path.read_bytes()) for path, release in released.items()}
    unknown = Budget(population, adjacency, cap.epsilon, cap.delta, 0.0, 0)
    outputs = _checked_outputs(project, released)
    again = account_of(project, released.values(), LedgerState("", unknown, digests), outputs)
    quoted = {key: account.get(key) for key in ("ledger", "software")}
    ids = {release.receipt.ledger_id for release in released.values()}
    if account != {**again, **quoted} or ids != {dict(quoted["ledger"] or {}).get("id")}:
        raise ReleaseError(
            f"{project.paths.privacy} is about other files than those here. The account of these is made where the "
            "ledger is. To get the files of the account back, run: dvc checkout"
        )
    return account


def _checked_outputs(project: Project, released: Mapping[Path, Released]) -> dict[str, str]:
    """SHA-256 of the files that an account is about, if they and the releases belong together."""
    check_run(project, project.written_plan, released)
    return check_synthetic(project) if project.frames is None else {}


def account_of(
    project: Project, released: Iterable[Released], ledger: "LedgerState", outputs: Mapping[str, str]
) -> dict[str, Any]:
    """The account, without versions of software, that follows from the files of a project or of a stranger's bundle.

    Args:
        project: of the run.
        released: every release of it, in the order of its stages.
        ledger: what the ledger says about these people.
        outputs: SHA-256 of the files that it is about, by path.

    Raises:
        ReleaseError: the total exceeds the target.
        ArtifactError: a generator is missing or damaged.
    """
    params, row_sets, released = project.params, project.row_sets, list(released)
    return AccountedRun(
        params,
        project.written_plan,
        released,
        compose_costs(params, [release.receipt for release in released]),
        ledger,
        table_request(project),
        outputs,
        notes(project.method, row_sets, auxiliary_of(released)),
        project.schema.rules,
        summary(row_sets, released, project.model.load_generators(project.paths.generator)),
        [column.name for column in project.written_schema.unbounded_columns],
    ).to_json()


def notes(method: Method, row_sets: Sequence[RowSet], auxiliary: Mapping[str, Released]) -> list[str]:
    """Give the method's notes on the answers of the auxiliary stage, see :meth:`likeness.methods.base.Method.notes`."""
    return [note for rows in row_sets for note in method.notes(rows.context, rows.auxiliary(auxiliary))]


def compose_costs(params: Params, receipts: Sequence[Receipt]) -> Account:
    """The total of all releases of a run.

    Raises:
        ReleaseError: it exceeds the target.
    """
    total = compose(list(receipts), params.privacy.delta)
    if total.epsilon > params.privacy.epsilon * (1 + _TOLERANCE):
        raise ReleaseError(
            f"data/released composes to epsilon {total.epsilon:.9g} at delta {total.delta:g}, more than "
            f"privacy.epsilon, {params.privacy.epsilon:g}. It does not belong to this params.yaml. Do not publish it."
        )
    return total


@dataclass(frozen=True)
class LedgerState:
    """The entries of a ledger about a population.

    Attributes:
        ledger_id: random name of the ledger.
        budget: of the population.
        digests: SHA-256 of each committed release, by its key.
    """

    ledger_id: str
    budget: Budget
    digests: Mapping[str, str]

    @classmethod
    def read(cls, ledger: "Ledger", population: str) -> "LedgerState":
        """The present state of a ledger that holds releases of the population."""
        budget = ledger.budget(population)
        assert budget is not None
        return cls(ledger.id, budget, {key: digest for key, (_, digest) in ledger.commits().items()})


@dataclass(frozen=True)
class AccountedRun:
    """A run with everything that its account tells.

    Attributes:
        params: the settings.
        plan: the plan.
        released: every release, in the order of the account.
        total: the composed cost of the releases.
        ledger: what the ledger says about these people.
        sample: the request for the table.
        outputs: SHA-256 of the files that it is about, by path.
        notes: see :func:`notes`.
        rules: of the schema, which every row keeps.
        relations: what a reader may believe, see :func:`likeness.inference.relations.summary`.
        private_bounds: columns whose bounds were released.
    """

    params: Params
    plan: Plan
    released: Sequence[Released]
    total: Account
    ledger: LedgerState
    sample: Mapping[str, Any]
    outputs: Mapping[str, str]
    notes: Sequence[str] = ()
    rules: Sequence[Rule] = ()
    relations: Mapping[str, Any] | None = None
    private_bounds: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """The account, without the versions of the software."""
        receipts, private = [release.receipt for release in self.released], self.plan.private
        plugins = sorted({receipt.plugin for receipt in receipts} - {""})
        value = {
            "format": FORMAT,
            "private": private,
            "method": self.params.method,
            **({"plugin": ", ".join(plugins)} if plugins else {}),
            **self._protection(),
            **self._costs(),
            "queries": [self._query(release) for release in self.released],
            "notes": [*_notes_on_nights(receipts), *self.notes, *_notes_on_databases(receipts)],
            **({"rules": [rule.text for rule in self.rules]} if self.rules else {}),
            **({"relations": self.relations} if self.relations else {}),
            **({"private_bounds": list(self.private_bounds)} if self.private_bounds else {}),
            "sample": self.sample,
            "outputs": self.outputs if private else {},  # without noise, a digest would reveal exact values
            "ledger": {"id": self.ledger.ledger_id, "lifetime": lifetime_of(self.ledger.budget)},
        }
        stated: dict[str, Any] = json_value(value)
        return stated

    def _protection(self) -> dict[str, Any]:
        """State who is protected, and against which change of the table."""
        unit, privacy = self.plan.unit, self.params.privacy
        return {
            "identity": privacy.population,
            "unit": describe_unit(unit, privacy.unit),
            **({} if unit is None else {"rows_of_a_person": unit}),
            "adjacency": str(self.plan.adjacency),
            "num_records": self.plan.num_records,
        }

    def _costs(self) -> dict[str, Any]:
        """The target, and the composed cost with its curves."""
        privacy, total = self.params.privacy, self.total
        names = ("rho", "epsilon", "epsilon_rdp", "epsilon_gaussian", "delta")
        return {
            "target": {"epsilon": privacy.epsilon, "delta": privacy.delta},
            "total": _values(total, (*names, *(("delta_keys",) if total.delta_keys else ()))),
            "rdp_curve": {"orders": total.orders, "total": total.curve, "stages": total.stages},
        }

    def _query(self, released: Released) -> dict[str, Any]:
        """A release with its noise and its cost, and the number of its partitions where it has a threshold."""
        receipt = released.receipt
        step = 2.0**-receipt.lattice_bits
        value = {
            **_values(receipt, _OF_A_QUERY),
            "map": receipt.feature,
            "noise_scale": receipt.noise_scale * step,
            "share": self.plan.query(receipt.query).share,
            "sha256": self.ledger.digests[receipt.key],
        }
        if receipt.threshold is None:
            return value
        threshold = receipt.threshold * step
        return {**value, "threshold": threshold, "delta_keys": receipt.delta_keys, "keys": len(released.keys)}


def _values(source: object, names: Iterable[str]) -> dict[str, Any]:
    """Attributes by their names."""
    return {name: getattr(source, name) for name in names}


def _notes_on_nights(receipts: Sequence[Receipt]) -> list[str]:
    """Say whom a night of a series is about; nothing where a run is about everybody."""
    cohorts = {receipt.group for receipt in receipts} - {""}
    return [
        f"This run is about the people whom a night of {first} to {last} of a series named first, and about nobody "
        "else. The lifetime counts for each person the runs that are about this person."
        for first, last in (group.split("-") for group in sorted(cohorts))
    ]


def _notes_on_databases(receipts: Sequence[Receipt]) -> list[str]:
    """Name the databases that counted the rows."""
    names = dict.fromkeys(receipt.backend.split()[0] for receipt in receipts if COUNTED.fullmatch(receipt.backend))
    return [
        f"The rows stay in their database ({name}), which counted or summed them. Each receipt has the SHA-256 "
        "that `likeness sql` prints."
        for name in names
    ]


def lifetime_of(budget: Budget) -> dict[str, Any]:
    """Give what the population has spent of its lifetime cap."""
    return {**budget.account_entries, "spent_epsilon": json_value(budget.spent_epsilon)}


def describe_unit(unit: PrivacyUnit | None, phrase: str) -> str:
    """Say who is protected.

    Args:
        unit: whose rows are bounded; None: a row is a person.
        phrase: the curator's words for a unit.
    """
    if unit is None:
        return phrase
    rows = "1 row" if unit.max_rows == 1 else f"{unit.max_rows:,} rows"
    return f"{phrase} with all rows of one value of {unit.column!r}, of which at most {rows} are used"
