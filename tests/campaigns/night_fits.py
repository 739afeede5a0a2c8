"""Nights of :mod:`nights` by the Python API: ``Synthesizer.fit`` of a table, and of people with histories."""

import os
import random
import signal
import sys
from typing import Any

import likeness
from likeness import Synthesizer
from likeness.core.errors import LikenessError
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from tests.campaigns.fault_field import CAP_RHO, REFUSED, Field
from tests.campaigns.honest_bundles import HISTORIES, wards_and_visits

SETTINGS = {"privatize": {"bins": 4}, "train": {"iterations": 5, "num_components": 4}}
KINDS = ("a table", "histories")
FIT_FAULTS = ("kill -9", "SIGTERM", "small files")


class Fits:
    """Fits of one population into one ledger."""

    def __init__(self, field: Field, kind: str) -> None:
        """Take the ledger of a field."""
        self.field, self.kind = field, kind
        os.environ.update({"LIKENESS_HOME": str(field.home), "LIKENESS_ANCHOR": str(field.anchor)})
        self.seconds = field.child(lambda: self._fit(0)).seconds

    def night(self, night: int) -> tuple[str, list[str]]:
        """A fit of more people that is hurt, the next one, and the one after it."""
        dice = random.Random(f"{self.kind} {night}")
        fault, body = dice.choice(FIT_FAULTS), lambda: self._fit(night)
        if fault == "small files":
            ended = self.field.child(body, most_bytes=dice.choice([4096, 40_000, 200_000]))
            told = (
                ["(refused)" if ended.code else "(had room)"] if ended.clear else [f"not clear: {ended.output[-300:]}"]
            )
        else:
            number = signal.SIGKILL if fault == "kill -9" else signal.SIGTERM
            ended = self.field.start(body).kill(dice.uniform(0, self.seconds), number)
            told = ["(too late)" if ended.code == 0 else "(before the end)"]
        told += self.field.broken_rules(CAP_RHO)
        first = self.field.child(body)  # the next one, by itself
        count, again = len(Ledger.open(locate()).records()), self.field.child(body)
        if first.code:
            told.append(f"the next run failed: {first.output.strip()[-300:]}")
        elif (
            again.output.splitlines()[-1:] != first.output.splitlines()[-1:]
            or len(Ledger.open(locate()).records()) != count
        ):
            told.append("the run after gave other bytes, or was charged")
        return fault, [*told, *self.field.broken_rules(CAP_RHO)]

    def _fit(self, night: int) -> None:
        """Fit, and print the digests of the released bytes."""
        told: dict[str, Any] = {"population": f"people of {self.kind}", "cap": (1e6, 1e-5), "settings": SETTINGS}
        frames = {name: frame.iloc[: len(frame) - 250 + night] for name, frame in wards_and_visits().items()}
        schema = likeness.HistorySchema.from_dict(HISTORIES)
        try:
            if self.kind == "histories":
                people = frames["people"]
                events = frames["events"][frames["events"]["pid"].isin(people["pid"])]
                fitted = Synthesizer(schema=schema, **told).fit({"people": people, "events": events})
            else:
                table = {"name": "visits", "source": "made up", "task": "none", "columns": HISTORIES["events"]}
                fitted = Synthesizer(schema=table, **told).fit(frames["events"][["day", "state"]])
        except (LikenessError, OSError) as error:
            print(error)
            sys.exit(REFUSED)
        print(sorted(query["sha256"] for query in fitted.privacy_["queries"]))
