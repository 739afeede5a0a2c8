"""The nights of a series on record: which cohort each asks about, and which one may come next."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from likeness.core.errors import BudgetError, LedgerError
from likeness.ledger.records import DAY, FEWER, MOST_BACK, Record, base_attempt, days_between, moment
from likeness.ledger.reservation import Reservation
from likeness.privacy.cohorts import MOST_NIGHTS, Cohort

LAST_STAGE = "privatize"
"""The stage whose release completes a night."""
_MOST_AHEAD = 3  # days after the newest night, where no gap was longer


class Night(NamedTuple):
    """A night on record.

    Attributes:
        cohort: the people that it asks about.
        day: on which its rows were read, in UTC.
        entry: body of its first reservation.
    """

    cohort: Cohort
    day: str
    entry: Mapping[str, Any]


@dataclass
class Series:
    """The nights of a series, up to one of its records.

    A night has one cohort, one day and one version of the rows. Nights follow each other by one, each on another day.
    The cohort follows from the nights before (:meth:`likeness.privacy.cohorts.Cohort.from_night`). So nobody chooses
    it, and no record can claim a smaller one.

    Attributes:
        night: the newest; None before the first.
        ends: last nights of cohorts, see :meth:`likeness.privacy.cohorts.Cohort.from_night`.
        queries: plan and name of each release of the newest night that is not lost, by its key.
        waiting: releases of the newest night without a commit, from key to stage.
        complete: whether the last stage of the newest night has a commit.
        longest: days of the longest gap between two nights.
        confirmed: newest day that a person confirmed since the newest night; empty: none.
        fewer: newest day whose source may lack most people, by a person's word.
    """

    night: Night | None = None
    ends: set[int] = field(default_factory=lambda: {0})
    queries: dict[str, tuple[str, str]] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    complete: bool = False
    longest: int = 0
    confirmed: str = ""
    fewer: str = ""

    @classmethod
    def from_records(cls, records: Iterable[Record], population: str, attempt: str) -> Self:
        """The series of an attempt: another attempt is another series.

        Args:
            records: of the ledger.
            population: name of the people.
            attempt: of the settings, with or without the number of a draw.
        """
        series, name = cls(), base_attempt(attempt)
        for record in records:
            body = record.body
            if record.kind == "commit":
                series.commit(str(body["key"]))
            elif record.kind == "lost":
                series.queries.pop(str(body["key"]), None)
            elif record.kind == DAY:
                series.confirmed = record.time
            elif record.kind == FEWER and body["identity"] == population:
                series.fewer = record.time
            elif record.kind == "reserve" and body["identity"] == population and base_attempt(body["slot"]) == name:
                series.reserve(record)
        return series

    def next_cohort(self, day: str) -> Cohort:
        """The cohort of a day: that of the newest night if it is of this day, else the one that follows.

        Args:
            day: of a record that is made now.
        """
        if self.night is not None and self.night.day == day:
            return self.night.cohort
        return self.following

    def day_of_night(self, records: list[Record]) -> str:
        """The day of a night whose rows are read now, if the clock can be believed.

        A clock that was far ahead for one night would put all later nights to sleep until that day.

        Args:
            records: of the ledger.

        Raises:
            LedgerError: the clock is behind the last record, or far ahead of the newest night, and no person confirmed
                the day.
        """
        now, last = moment([]), records[-1].time
        if days_between(now, last) > MOST_BACK:
            fault = f"the ledger's last record is of {last}: no night would follow until then"
        else:
            now = max(now, last)
            if not (since := self._far_before(now)):
                return now
            fault = f"the newest night of the series is of {since}, more than twice as long ago as any night before"
        raise LedgerError(
            f"the clock says {now}, and {fault}. Nothing was read. Set the clock. If it is right, run: likeness ledger "
            f"day {now}"
        )

    def _far_before(self, day: str) -> str:
        """The newest night, or the day that a person confirmed since, if a day is far after it; else nothing."""
        since = self.confirmed or (day if self.night is None else self.night.day)
        return since if days_between(since, day) > max(_MOST_AHEAD, 2 * self.longest) else ""

    @property
    def following(self) -> Cohort:
        """The cohort of the next night."""
        last = 0 if self.night is None else self.night.cohort.last
        return Cohort.from_night(last + 1, self.ends | self._newest_end())

    def _newest_end(self) -> set[int]:
        """The last night of the newest cohort, if it is released and goes on where another one ends."""
        if self.night is None or self.waiting or not self.complete or self.night.cohort.first - 1 not in self.ends:
            return set()
        return {self.night.cohort.last}

    def allows(self, cohort: Cohort, digest: str, day: str, plan: str = "", query: str = "") -> bool:
        """Tell whether a release about a cohort may be the next record.

        Args:
            cohort: the people.
            digest: keyed hash of their rows.
            day: on which the rows were read.
            plan: its digest.
            query: name of the release.
        """
        if self.night is not None and (self.night.cohort, self.night.entry["digest"]) == (cohort, digest):
            same = all(planned == plan and name != query for planned, name in self.queries.values())
            return same and self.night.day == day
        new = self.night is None or day > self.night.day or (self.confirmed != "" and day != self.night.day)
        near = new and not self._far_before(day)
        return near and cohort.last <= MOST_NIGHTS and cohort == self.following

    def reserve(self, record: Record) -> None:
        """Take a reservation of the series; one about everybody is none."""
        body = record.body
        cohort = Cohort.from_group(str(body.get("group", "")))
        if cohort is None:
            return
        if self.night is None or self.night.cohort != cohort:
            self.ends |= self._newest_end()
            self.queries, self.waiting, self.complete, self.confirmed, day = {}, {}, False, "", str(body["day"])
            self.longest = max(self.longest, 0 if self.night is None else days_between(self.night.day, day))
            self.night = Night(cohort, day, body)
        self.waiting[str(body["key"])] = str(body.get("stage"))
        self.queries[str(body["key"])] = str(body.get("plan")), str(body.get("query"))

    def commit(self, key: str) -> None:
        """Take a commit."""
        self.complete |= self.waiting.pop(key, None) == LAST_STAGE


def check_night(records: Sequence[Record], request: Reservation, day: str) -> None:
    """Refuse a release about a cohort that is not that of the night, or about other rows of it, or by other settings.

    Two clones with two schemas or plans would both pay for one cohort, and neither would notice.

    Args:
        records: of the ledger.
        request: the release.
        day: of its record.

    Raises:
        BudgetError: the night has another cohort, other rows or another plan, or has answered this query.
        LedgerError: the rows were read on an earlier day.
    """
    if request.group:
        if not 0 <= days_between(request.day, day) <= MOST_BACK:
            raise LedgerError(f"the rows of this night were read on {request.day}, and it is {day}. Run: likeness run")
        series = Series.from_records(records, request.population, request.attempt)
        cohort, question = Cohort.from_group(request.group), (request.plan, request.details["query"])
        allowed = cohort is not None and series.allows(cohort, request.digest, request.day, *question)
        if request.unit is None or not allowed:
            raise BudgetError(
                f"a night of the series about '{request.population}' is on record, and this release is about other "
                "rows, or other nights, or asks by another schema or plan. Nothing was spent. A night has one version "
                "of each. Run it again on the next day (UTC), or give back those that the night began with."
            )
