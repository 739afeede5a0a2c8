"""The command line: ``likeness ledger ...``, ``summary``, ``bundle``, ``verify`` and ``sample``; see also cli_run."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likeness import cli_run
from likeness.cli_run import JSON
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
app.command()(cli_run.run)
app.command()(cli_run.compare)


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
    ledger = _open()
    committed = ledger.commits()
    for record in ledger.records():
        body = record.body
        if record.kind == "reserve":
            text = f"{body['identity']}  {body['query']}  rho {float(body['rho']):.6g}  key {body['key'][:12]}"
            if body["key"] not in committed:
                text += "  never committed: counts as spent"
        elif record.kind == "commit":
            text = f"entry {body['reserve_seq']}  sha256 {body['sha256'][:12]}  key {body['key'][:12]}"
        elif record.kind == "cap":
            text = f"{body['identity']}  {body['adjacency']}  cap ({float(body['epsilon']):g}, {body['delta']:g})"
        else:
            text = f"ledger {body['ledger_id']}"
        typer.echo(f"{record.seq:>5}  {record.time}  {record.kind:<8} {text}")


@ledger_app.command("export")
def ledger_export() -> None:
    """Print every record as JSON, one a line: who asked, from which commit, what, at what cost."""
    for record in _open().records():
        typer.echo(json.dumps(vars(record), sort_keys=True))


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
def summary(as_json: JSON = False) -> None:
    """Say where the results of the last run are, what was spent, and how good they are."""
    from likeness.summary import summary_json, summary_text

    typer.echo(json.dumps(summary_json(Path()), indent=1) if as_json else summary_text(Path()))


@app.command("bundle")
def bundle_(
    target: Annotated[Path, typer.Argument(help="A new folder, or a new file that ends in .zip.")] = Path("bundle"),
    as_json: JSON = False,
) -> None:
    """Put all that may be published about the last run in one place, and nothing else."""
    from likeness.bundle import write_bundle
    from likeness.params import load_params

    names = write_bundle(load_params(), target)
    if as_json:
        typer.echo(json.dumps({"bundle": str(target), "files": names}, indent=1))
    else:
        typer.echo(f"{target}: {len(names)} files. Verify it anywhere: likeness verify {target}")


@app.command()
def verify(
    path: Annotated[Path, typer.Argument(help="A bundle: a folder or a zip file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Recompute everything that a bundle claims. Exit code 0: all right; 1: something is wrong."""
    from likeness.verifier import verify as checks_of

    checks = checks_of(path)
    if as_json:
        typer.echo(json.dumps([vars(check) for check in checks], indent=1))
    else:
        words = {True: "ok", False: "WRONG", None: "not tested"}
        for check in checks:
            typer.echo(f"{words[check.passed]:<11}{check.name:<16}{check.text}")
    wrong = [check.name for check in checks if check.passed is False]
    if wrong:
        typer.echo(f"verdict: WRONG ({', '.join(wrong)}). Do not trust this bundle.", err=True)
        raise typer.Exit(1)
    typer.echo("verdict: everything that could be tested is right", err=as_json)


@app.command()
def sample(
    path: Annotated[Path, typer.Argument(help="A bundle: a folder or a zip file.")],
    rows: Annotated[int, typer.Option(min=1, help="How many rows. They cost no privacy.")],
    out: Annotated[Path, typer.Option(help="A .csv or .parquet file.")],
    seed: Annotated[int, typer.Option(help="Public; the same seed gives the same rows.")] = 0,
    where: Annotated[list[str] | None, typer.Option(help="COLUMN=CATEGORY; may be given several times.")] = None,
    as_json: JSON = False,
) -> None:
    """Draw more rows from a bundle or a saved synthesizer, on any machine."""
    from likeness.verifier import draw, opened

    if out.suffix not in (".csv", ".parquet"):
        raise LikenessError(f"--out {out} must end in .csv or .parquet")
    given = dict(_pair(text) for text in where or [])
    with opened(path) as folder:
        table = draw(folder, rows, seed, given)
    if out.suffix == ".csv":
        table.to_csv(out, index=False)
    else:
        table.to_parquet(out, index=False)
    told = {"file": str(out), "rows": rows, "seed": seed, "where": given, "columns": list(table.columns)}
    typer.echo(json.dumps(told, indent=1) if as_json else f"{out}: {rows:,} rows")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise LikenessError(f"--where {text}: write COLUMN=CATEGORY")
    return name, value


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
