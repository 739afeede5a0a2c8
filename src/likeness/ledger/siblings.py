"""Other ledgers of this machine, which its anchors name."""

import contextlib
from pathlib import Path
from typing import NamedTuple

from likeness.core.errors import LedgerError
from likeness.ledger.chain import Anchor, Chain, anchor_path, anchors
from likeness.ledger.database import make_engine
from likeness.ledger.home import Home


class Sibling(NamedTuple):
    """Another ledger, which an anchor of this machine names.

    Attributes:
        anchor: the anchor's file.
        place: where the ledger is.
        ledger_id: its id.
        answered: whether it has answered about the people; None: it cannot be read here.
    """

    anchor: Path
    place: str
    ledger_id: str
    answered: bool | None


def sibling_ledgers(home: Home, population: str) -> list[Sibling]:
    """Other ledgers of this machine, without an anchor that a ledger left behind when it moved.

    Args:
        home: whose folder of anchors names them.
        population: name of the people.
    """
    path_of_this = anchor_path(home.anchor, home.place)
    siblings = [_sibling(path, anchor, population) for path, anchor in anchors(home.anchor) if path != path_of_this]
    read = {one.ledger_id for one in siblings if one.answered is not None}
    return [one for one in siblings if one.answered is not None or one.ledger_id not in read]


def _sibling(path: Path, anchor: Anchor, population: str) -> Sibling:
    """The ledger of an anchor. A file without the anchor's head is an older copy, or another ledger."""
    place, ledger_id, answered = str(anchor.home), str(anchor.ledger_id), None
    with contextlib.suppress(LedgerError, OSError, ValueError):
        home = Home(Path(place), path.parent)
        if home.database.exists():
            chain = Chain(home, make_engine(home), b"")
            records = chain.records()
            # What this version does not know of another one may be a release: there a cap counts.
            spending = {"reserve"} if chain.is_of_this_version() else {"reserve", "cap"}
            if anchor.head in {record.digest for record in records}:
                found = {record.kind for record in records if record.body.get("identity") == population}
                place, answered = str(home.database), not spending.isdisjoint(found)
    return Sibling(path, place, ledger_id, answered)
