"""The ledger of a project: where it lies, what it refuses, and the cap that it gets."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from likeness.config.params import NONE, Params
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import ArtifactError, DataError, LedgerError, NightError
from likeness.core.hashing import sha256_bytes
from likeness.core.paths import read_json
from likeness.ledger.chain import read_anchor
from likeness.ledger.database import holding
from likeness.ledger.home import Home, locate
from likeness.ledger.ledger import Ledger, check_declared
from likeness.ledger.records import moment
from likeness.ledger.reservation import check_same_request
from likeness.ledger.series import Series
from likeness.ledger.witness import Witness, check_witnesses, git_witnesses
from likeness.pipeline.other_ledgers import other_ledger, refuse_other_ledger, rows_elsewhere
from likeness.pipeline.sources import Sources
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import rho_for


@dataclass(frozen=True)
class LedgerSession:
    """The ledger that the settings name.

    Attributes:
        root: the folder of the project.
        params: the settings.
    """

    root: Path
    params: Params

    @property
    def home(self) -> Home:
        """The folders of the ledger of this machine or team."""
        return locate(*self.params.ledger.location(self.root))

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger, verified.

        Raises:
            LedgerError: it is damaged; or there is none, and files of the project name another one.
        """
        home = self.home
        if not Ledger.exists(home) and read_anchor(home) is None:  # a lost one says so itself
            self.refuse_other(None)
        return Ledger.open(home)

    def refuse_other(self, ledger: Ledger | None) -> None:
        """Refuse a ledger where files of the project name another one about the same people.

        Args:
            ledger: that is open; None: there is none yet.

        Raises:
            LedgerError: the message names the other one, and how to join it.
        """
        refuse_other_ledger(self.root, self.params.privacy.population, self.home, ledger)

    def is_stated(self, account: Path) -> bool:
        """Tell whether an account still says what the ledger says of its releases and of these people."""
        try:
            stated, budget = read_json(account), self.ledger.budget(self.params.privacy.population)
            lifetime = {key: value for key, value in stated["ledger"]["lifetime"].items() if key != "spent_epsilon"}
            queries = {(query["ledger_seq"], query["sha256"]) for query in stated["queries"]}
            if budget is None or (stated["ledger"]["id"], lifetime) != (self.ledger.id, budget.account_entries):
                return False
            return queries <= {*self.ledger.commits().values()}
        except (ArtifactError, KeyError, TypeError, AttributeError):  # none, or edited
            return False

    def check_same_request(self, rho: float) -> None:
        """Refuse a plan by another recipe than that of the earlier releases; see :func:`check_same_request`.

        Where no ledger is, nothing is checked. A team's database is not opened: the first stage that spends refuses.

        Args:
            rho: of the plan.

        Raises:
            BudgetError: a person has not agreed to the new recipe.
        """
        if self.home.url is None and self.home.database.exists():
            records, params = self.ledger.records(), self.params
            check_same_request(records, params.privacy.population, params.ledger.attempt, rho)

    @contextmanager
    def remedy_in_a_clone(self) -> Iterator[None]:
        """Add to a refusal of the source what a clone without private rows can do."""
        try:
            yield
        except DataError as error:
            home = self.home
            ledger = self.ledger if Ledger.exists(home) else None
            other = other_ledger(self.root, self.params.privacy.population, home, ledger)
            raise DataError(f"{error}{rows_elsewhere(self.root, other)}") from None

    def check_ready(self, sources: Sources) -> None:
        """Refuse a run, before its first stage, where the rows or their ledger are elsewhere.

        Args:
            sources: of the project.

        Raises:
            DataError: a source does not exist here.
            LedgerError: there is no ledger; or files of the project name another one.
        """
        with self.remedy_in_a_clone():
            _ = sources.all_sources
        self.refuse_other(self.ledger)

    def check_night(self, began: str) -> None:
        """Refuse a run after which the newest night of the series is neither of the day on which it began nor of today.

        Args:
            began: that day, in UTC; empty: each day until today is right.

        Raises:
            NightError: the run made no night: a clock is or was wrong, or its rows were read beside another ledger.
        """
        privacy, now = self.params.privacy, moment([])
        if privacy.series == NONE:
            return
        night = Series.from_records(self.ledger.records(), privacy.population, self.params.ledger.attempt).night
        if night is not None and not began <= night.day <= now:
            remedy = "Its rows were read beside another copy of the ledger. Run: likeness run --force"
            if night.day > now:
                remedy = f"Set the clock. If it is right, and {night.day} was wrong, run: likeness ledger day {now}"
            fault = f"the newest night of the series is of {night.day}, and the clock says {now}"
            raise NightError(f"{fault}: a run now makes no night. {remedy}")

    @contextmanager
    def exclusive_run(self, seconds: float) -> Iterator[None]:
        """Keep other runs of these people from starting while the block lasts.

        The ledger does not need it: it never exceeds a cap and never releases twice. But two plans that start together
        can both begin, and one may not finish: it spends for nothing.

        Args:
            seconds: to wait for another run.

        Raises:
            LedgerError: the other run took longer.
        """
        population, home = self.params.privacy.population, self.home
        lock = holding(home, f"run-{sha256_bytes(population.encode())[:16]}", seconds)
        with ExitStack() as held:
            try:
                if Ledger.exists(home):  # without one the first stage refuses to run
                    held.enter_context(lock)
            except TimeoutError as holder:
                raise LedgerError(
                    f"another run of '{population}' was still at work after {seconds:g} s. This one did nothing. Start "
                    f"it again when the other has ended. If the other hangs, end {holder}: the lock ends with it."
                ) from None
            yield

    def check_witnesses(self, *others: Witness) -> None:
        """Refuse an old copy of the ledger, where git or others remember a longer or another ledger of this id."""
        witnesses = (*git_witnesses(self.root), *others)
        check_witnesses(self.ledger.records(), [each for each in witnesses if each.ledger_id == self.ledger.id])

    def to_spend(self, unit: PrivacyUnit | None, selects: bool) -> Ledger:
        """The ledger with the cap of the population on record, for the door.

        Args:
            unit: of privacy; None: a row is a person.
            selects: whether partition selection takes a part of the cap's δ.

        Raises:
            LedgerError: git remembers a longer or another ledger of this id, so this one is an old copy; or files of
                the project name another ledger.
        """
        self.check_witnesses()
        self.refuse_other(self.ledger)
        selection = delta_for_selection(self.params) if selects else 0.0
        self.ledger.declare_population(*self._declaration(unit), selection)
        return self.ledger

    def check_declared(self, unit: PrivacyUnit | None) -> None:
        """Refuse settings that contradict the record, as :meth:`to_spend` does, and record nothing."""
        check_declared(self.ledger.records(), *self._declaration(unit))

    def _declaration(self, unit: PrivacyUnit | None) -> tuple[str, Adjacency, float, float, str | None]:
        privacy, cap = self.params.privacy, self.params.ledger.cap
        person = None if unit is None else unit.column
        return privacy.population, Adjacency(privacy.adjacency), cap.epsilon, cap.delta, person


def delta_for_selection(params: Params) -> float:
    """The part of a lifetime cap's δ for partition selection.

    Runs with these settings need this much until they have used the cap's ρ. It is enough for one run. Above that, it
    is at most half of δ, which leaves nearly all of ρ (95 % at ε = 10). ``likeness ledger cap`` changes it.
    """
    cap, privacy = params.ledger.cap, params.privacy
    per_run, half = privacy.delta * params.categories.delta_share, cap.delta / 2
    if per_run >= cap.delta or not math.isfinite(privacy.epsilon):
        return half
    runs = rho_for(cap.epsilon, cap.delta) / rho_for(privacy.epsilon, privacy.delta)
    return max(per_run, min(per_run * math.floor(runs), half) if math.isfinite(runs) else half)
