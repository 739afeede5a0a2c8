"""Each reader refuses what another version wrote, by its name."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from likeness.bundle.contents import params_of, settings_of
from likeness.bundle.verdict import Wrong
from likeness.config.load import load_params
from likeness.core.errors import LedgerError, ParamsError, PlanError, ReleaseError
from likeness.core.format import FORMAT, KNOWN
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import Plan
from likeness.privacy.receipt import Receipt
from likeness.verify import ledger

RECEIPT = Receipt(*"qsm", {}, *"msac", 1, 1, 30, 1.0, 1.0, 1.0, math.inf, *"idspkl", 3)
PLAN = Plan("m", "people", Adjacency.ADD_REMOVE_ONE, 1.0, 1e-5, None, ())
RESERVATION = {key: 0 for key in (*ledger._BODIES["reserve"][0], *ledger._SALTS)} | {"group": "", "backend": "local"}


def settings() -> dict[str, Any]:
    root = Path(__file__).parents[1]
    return settings_of(Project(root, load_params(root / "params.yaml")))


@pytest.mark.parametrize(
    ("value", "read", "error", "keys"),
    [
        (PLAN.to_dict(), Plan.from_dict, PlanError, ["format", "recipe"]),
        (RECEIPT.to_dict(), lambda value: Receipt.from_dict(value, "r"), ReleaseError, ["recipe", "group", "backend"]),
        (settings(), params_of, ParamsError, ["format", "recipe", "requires"]),
        (RESERVATION, lambda body: ledger._check_body("reserve", body, 7), Wrong, ["group", "backend"]),
    ],
    ids=["plan", "receipt", "bundle", "record"],
)
def test_what_another_version_wrote_is_refused_by_name(
    value: Mapping[str, Any], read: Callable[[Any], object], error: type[Exception], keys: list[str]
) -> None:
    assert keys[0] in value and (error is Wrong or read(value))
    for key in keys:
        unknown, words = (["links"], "part 'links'") if key == "requires" else (7, f"{key} 7")
        with pytest.raises(error, match=rf": this version does not know {words}\. Install the Likeness that wrote it"):
            read({**value, key: unknown})


def test_no_file_of_the_open_format_is_taken_for_one_of_format_1(monkeypatch: pytest.MonkeyPatch) -> None:
    written = [(PLAN.to_dict(), Plan.from_dict, PlanError), (settings(), params_of, ParamsError)]
    Ledger.create(locate())
    assert FORMAT == 0
    monkeypatch.setitem(KNOWN, "format", 1)
    for value, read, error in written:
        with pytest.raises(error, match="does not know format 0"):
            read(value)  # type: ignore[operator]
    with pytest.raises(LedgerError, match=r"the ledger at .* does not know format 0\. Install the Likeness"):
        Ledger.open(locate())
