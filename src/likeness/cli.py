"""The command line: ``likeness ledger ...`` and ``likeness summary``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likeness.errors import LikenessError

if TYPE_CHECKING:
    from likeness.privacy.home import Home
    from likeness.privacy.ledger import Ledger

# A traceback with local variables could show a key or a row.
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Differentially private synthetic data.",
)
ledger_app = typer.Typer(no_args_is_help=True, help="The ledger of everything ever released on this machine.")
app.add_typer(ledger_app, name="ledger")


@ledger_app.command("init")
def ledger_init(
    if_absent: Annotated[bool, typer.Option(help="Do nothing if there is a ledger already.")] = False,
) -> None:
    """Start a ledger; refused where there is, or was, one."""
    from likeness.privacy.ledger import Ledger

    home = _home()
    if if_absent and home.database.exists():
        Ledger.open(home)
        typer.echo(f"ledger at {home.path}")
        return
    ledger = Ledger.create(home)
    typer.echo(f"started ledger {ledger.id} at {home.path}, anchor in {home.anchor}. Back up both, apart.")


@ledger_app.command("show")
def ledger_show() -> None:
    """Print every record, oldest first."""
    for record in _open().records():
        body = record.body
        if record.kind == "reserve":
            text = f"{body['identity']}  {body['query']}  rho {float(body['rho']):.6g}  key {body['key'][:12]}"
        elif record.kind == "commit":
            text = f"entry {body['reserve_seq']}  sha256 {body['sha256'][:12]}  key {body['key'][:12]}"
        elif record.kind == "cap":
            text = f"{body['identity']}  {body['adjacency']}  cap ({float(body['epsilon']):g}, {body['delta']:g})"
        else:
            text = f"ledger {body['ledger_id']}"
        typer.echo(f"{record.seq:>5}  {record.time}  {record.kind:<8} {text}")


@ledger_app.command("verify")
def ledger_verify() -> None:
    """Check chain, anchor and every released file; print the head for an outside witness."""
    from likeness.canonical import sha256_bytes

    ledger = _open()
    lost = []
    for key, (seq, digest) in ledger.commits().items():
        path = ledger.home.releases / f"{key}.safetensors"
        if not path.exists() or sha256_bytes(path.read_bytes()) != digest:
            lost.append(f"entry {seq} ({key[:12]})")
    if lost:
        raise LikenessError(f"released bytes are lost or altered: {', '.join(lost)}. Restore {ledger.home.releases}.")
    head = ledger.head()
    typer.echo(f"ledger {head.ledger_id}: {head.count} records, {len(ledger.commits())} releases, head {head.head}")


@ledger_app.command("budget")
def ledger_budget() -> None:
    """Print what was spent and what remains, by identity."""
    ledger = _open()
    for name in ledger.identities():
        budget = ledger.budget(name)
        assert budget is not None
        typer.echo(
            f"{name} ({budget.adjacency}): spent epsilon {budget.spent_epsilon:.6g} of {budget.cap_epsilon:g} at delta "
            f"{budget.cap_delta:g}; rho {budget.spent_rho:.6g} spent, {budget.remaining_rho:.6g} left; "
            f"{budget.uncommitted} reserved but never committed (counted as spent)"
        )


@ledger_app.command("cap")
def ledger_cap(
    identity: Annotated[str, typer.Argument(help="Name of the people in the data.")],
    epsilon: Annotated[float, typer.Option(help="Lifetime epsilon.")],
    delta: Annotated[float, typer.Option(help="Lifetime delta.")],
) -> None:
    """Change a lifetime cap. The change stays on record for ever."""
    _open().change_cap(identity, epsilon, delta)
    typer.echo(f"cap of {identity}: epsilon {epsilon:g} at delta {delta:g}")


@ledger_app.command("reanchor")
def ledger_reanchor(
    head: Annotated[str, typer.Argument(help="The ledger's newest head, from an outside witness.")],
) -> None:
    """Write a lost anchor anew; the head must come from a receipt's tracking run or another copy."""
    from likeness.privacy.ledger import Ledger

    Ledger.reanchor(_home(), head)
    typer.echo("anchor written")


@app.command()
def summary() -> None:
    """Say where the results of the last run are, what was spent, and how good they are."""
    from likeness.summary import summary_text

    typer.echo(summary_text(Path()))


def _home() -> "Home":
    from likeness.params import load_params
    from likeness.privacy.home import locate

    configured = load_params().ledger.home if Path("params.yaml").exists() else None
    return locate(configured)


def _open() -> "Ledger":
    from likeness.privacy.ledger import Ledger

    return Ledger.open(_home())


def main() -> None:
    """Entry point: errors raised on purpose are messages, not tracebacks."""
    try:
        app()
    except LikenessError as error:
        typer.echo(f"likeness: {error}", err=True)
        sys.exit(2)
