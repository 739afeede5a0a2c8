"""The nights of a series on record: which cohort each asks about, and which one may come next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from likeness.core.errors import BudgetError
from likeness.ledger.records import Record, base_attempt
from likeness.ledger.reservation import Reservation
from likeness.privacy.cohorts import MOST_NIGHTS, Cohort

LAST_STAGE = "privatize"
"""The stage whose release completes a night."""


class Night(NamedTuple):
    """A night on record.

    Attributes:
        cohort: the people that it asks about.
        day: of its first record.
        digest: keyed hash of the rows of the cohort.
        seal: of the first nights, see :mod:`likeness.ledger.first_nights` and
            :func:`likeness.ledger.reservation.seal_digest`.
    """

    cohort: Cohort
    day: str
    digest: str
    seal: str

    @property
    def salt(self) -> str:
        """The salt of the seal."""
        return self.seal.partition(":")[0]


@dataclass
class Series:
    """The nights of a series, up to one of its records.

    A night has one cohort, one day and one version of the rows. Nights follow each other by one, each on another day.
    The cohort follows from the nights before (:meth:`likeness.privacy.cohorts.Cohort.from_night`). So nobody chooses
    it, and no record can claim a smaller one.

    Attributes:
        night: the newest; None before the first.
        ends: last nights of cohorts, see :meth:`likeness.privacy.cohorts.Cohort.from_night`.
        waiting: releases of the newest night without a commit, from key to stage.
        complete: whether the last stage of the newest night has a commit.
    """

    night: Night | None = None
    ends: set[int] = field(default_factory=lambda: {0})
    waiting: dict[str, str] = field(default_factory=dict)
    complete: bool = False

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

    def allows(self, cohort: Cohort, digest: str, day: str) -> bool:
        """Tell whether a release about a cohort may be the next record.

        Args:
            cohort: the people.
            digest: keyed hash of their rows.
            day: of the record.
        """
        if self.night is not None and (self.night.cohort, self.night.digest) == (cohort, digest):
            return True
        new = self.night is None or self.night.day != day
        return new and cohort.last <= MOST_NIGHTS and cohort == self.following

    def reserve(self, record: Record) -> None:
        """Take a reservation of the series; one about everybody is none."""
        body = record.body
        cohort = Cohort.from_group(str(body.get("group", "")))
        if cohort is None:
            return
        if self.night is None or self.night.cohort != cohort:
            self.ends |= self._newest_end()
            self.waiting, self.complete = {}, False
            self.night = Night(cohort, record.time, str(body["digest"]), str(body.get("first_nights", "")))
        self.waiting[str(body["key"])] = str(body.get("stage"))

    def commit(self, key: str) -> None:
        """Take a commit."""
        self.complete |= self.waiting.pop(key, None) == LAST_STAGE


def check_night(records: Sequence[Record], request: Reservation, day: str) -> None:
    """Refuse a release about a cohort that is not that of the night, or about other rows of it.

    Args:
        records: of the ledger.
        request: the release.
        day: of its record.

    Raises:
        BudgetError: the night has another cohort, or its rows are on record already.
    """
    if request.group:
        series = Series.from_records(records, request.population, request.attempt)
        cohort = Cohort.from_group(request.group)
        if request.unit is None or cohort is None or not series.allows(cohort, request.digest, day):
            raise BudgetError(
                f"a night of the series about '{request.population}' is on record, and this release is about other "
                "rows, or other nights. Nothing was spent. A night has one version of its rows. Run it again on the "
                "next day (UTC), or give back the rows that the night began with."
            )
