"""Run a grid of methods and ε, after saying what all of it would cost: ``python -m flows.sweep --epsilon 0.2 1 10``.

Every cell is a project folder of its own below ``sweeps/``, with the code, schema and settings of this one, so that no
run overwrites another's artifacts; all share this machine's ledger and DVC's cache. A cell that ran before is free.
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from prefect import flow
from prefect.client.schemas.objects import State
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.states import Completed, Failed

from flows.sweep_folders import SWEEPS, cell_name, prepare, settings_of
from flows.synthesize import stop_cleanly, synthesize
from likeness.config.load import load_params
from likeness.config.params import Params
from likeness.core.errors import BudgetError, LikenessError, ParamsError
from likeness.ledger.budget import Cost, check_headrooms
from likeness.ledger.ledger import Ledger
from likeness.methods import METHODS
from likeness.pipeline.open_ledger import open_ledger
from likeness.preflight.cost import grid_costs, known_rows, room_lines, rooms_for, with_target

if TYPE_CHECKING:
    from likeness.release.request import Dataset


def rows_of(cells: Sequence[Params], root: Path, ledger: Ledger) -> "Dataset | None":
    """The rows that an earlier run in this folder, or in a cell of the same settings, took in; None if none did."""
    found = known_rows(cells[0], ledger)
    for cell in cells:
        written = root / SWEEPS / cell_name(cell) / "params.yaml"
        same = written.exists() and yaml.safe_load(written.read_text()) == settings_of(cell, root)
        if found is None and same:
            with contextlib.chdir(written.parent):
                found = known_rows(load_params(), ledger)
    return found


def price_list(cells: Sequence[Params]) -> tuple[list[str], str]:
    """What the grid costs beyond what is on record, one line a cell and one a cap; and why it may not start, if so."""
    ledger = open_ledger(cells[0])
    costs, rooms = grid_costs(cells, ledger, rows_of(cells, Path.cwd(), ledger)), rooms_for(cells[0], ledger)
    lines = [f"{cell_name(cell):<28} rho {cost.rho:.6g} to be charged" for cell, cost in zip(cells, costs, strict=True)]
    total = Cost.total(costs)
    lines += [f"all of it: rho {total.rho:.6g}, composed with what was spent before:", *room_lines(rooms, total)]
    try:
        check_headrooms(rooms, total)
    except BudgetError as error:
        return lines, str(error)
    return lines, ""


@flow(name="sweep", retries=0, persist_result=False, log_prints=False)
def sweep(cells: list[str]) -> State[None]:
    """Run prepared cells one after the other; a cell that fails does not stop the others."""
    failed = []
    for cell in cells:
        state = synthesize(root=cell, return_state=True)
        print(f"{cell}: {'done' if state.is_completed() else state.message}", file=sys.stderr)
        if not state.is_completed():
            failed.append(Path(cell).name)
    if failed:
        return Failed(message=f"failed: {', '.join(failed)}")
    return Completed(message=f"{len(cells)} runs")


def fix_places(params: Params) -> None:
    """Cells run in other folders: what is relative to this one is passed on as absolute."""
    from likeness.ledger.home import locate
    from likeness.tracking.run import tracking_store

    home = locate(params.ledger.home, params.ledger.url)
    os.environ["LIKENESS_HOME"], os.environ["LIKENESS_ANCHOR"] = str(home.path), str(home.anchor)
    os.environ["LIKENESS_MLFLOW_URI"] = tracking_store(params)[0]


def confirmed(yes: bool) -> bool:
    """A person's consent, or ``--yes``; nobody is asked who cannot answer."""
    if yes:
        return True
    if not sys.stdin.isatty():
        print("sweep: nobody to ask, nothing started. To start it unasked: --yes", file=sys.stderr)
        return False
    return input("Start? [y/N] ").strip().lower() in ("y", "yes")


def main() -> int:
    """Price, ask, run.

    Returns:
        0; 1 if a run failed; 2 if the grid was refused or nobody agreed.
    """
    parser = argparse.ArgumentParser(prog="python -m flows.sweep", description="Run a grid of methods and epsilons.")
    parser.add_argument("--epsilon", type=float, nargs="+", required=True)
    parser.add_argument("--method", nargs="+", choices=sorted(METHODS), help="default: the one of params.yaml")
    parser.add_argument("--yes", action="store_true", help="start without asking")
    options = parser.parse_args()
    try:
        params, root = load_params(), Path.cwd()
        if not all(epsilon > 0 for epsilon in options.epsilon):
            raise ParamsError("--epsilon must be greater than 0")
        names = dict.fromkeys(options.method or [params.method])
        cells = [with_target(params, name, e) for name in names for e in dict.fromkeys(options.epsilon)]
        fix_places(params)
        lines, refusal = price_list(cells)
    except LikenessError as error:
        print(f"sweep: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines), flush=True)
    if refusal:
        print(f"sweep: {refusal}", file=sys.stderr)
    if refusal or not confirmed(options.yes):
        return 2
    folders = [root / SWEEPS / cell_name(cell) for cell in cells]
    for cell, folder in zip(cells, folders, strict=True):
        prepare(cell, root, folder)
    stop_cleanly()
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        state = sweep([str(folder) for folder in folders], return_state=True)
    print(f"sweep: {state.message}; results in {SWEEPS}/", file=sys.stderr)
    return 0 if state.is_completed() else 1


if __name__ == "__main__":
    sys.exit(main())
