"""The ledger of every release of this machine or team."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from likeness.cli.console import JSON, App, say, say_json, table
from likeness.config.load import read_content
from likeness.config.params import LedgerSettings
from likeness.core.errors import ArtifactError, BudgetError, LedgerError, LikenessError
from likeness.core.hashing import sha256_bytes
from likeness.core.paths import ProjectPaths
from likeness.core.typed import build, require
from likeness.ledger.budget import Cost, budget_on_record
from likeness.ledger.chain import Chain
from likeness.ledger.home import Home, locate
from likeness.ledger.ledger import Ledger, recover
from likeness.ledger.records import DAY, RECOVERED, Record
from likeness.ledger.witness import Witness, check_witnesses, git_witnesses, trailer, write_trailer
from likeness.methods import method_named
from likeness.pipeline.project import Project
from likeness.pipeline.provenance import provenance
from likeness.pipeline.tracking import TRACKING
from likeness.preflight.cost import RUNS_A_YEAR, afford, remainder, schedule, with_target
from likeness.release.released import check_against, load_released
from likeness.release.store import restore, stored_bytes

_MOST_NAMES = 5  # in one sentence

ledger_app = App(
    no_args_is_help=True, add_completion=False, help="The ledger of every release of this machine or team."
)


@ledger_app.command("init")
def ledger_init(if_absent: Annotated[bool, typer.Option(help="Do nothing if a ledger exists.")] = False) -> None:
    """Start a ledger. Refused if one exists, or existed here, or if files of this project name another one."""
    home = _home()
    exists = Chain.exists(home)
    ledger = Ledger.open(home) if exists and if_absent else None
    if ProjectPaths.params.exists() and (ledger or not exists):
        section = read_content(ProjectPaths.params).get("privacy")
        population = section.get("population") if isinstance(section, dict) else section
        if population is not None:  # else nothing was released
            Project.load().ledger_session.refuse_other(ledger)
    if ledger is not None:
        say(f"ledger at {home.location}")
        return
    ledger = Ledger.create(home)
    say(ledger.welcome)
    for other in sorted({witness.ledger_id for witness in git_witnesses(Path())} - {ledger.id}):
        say(f"warning: git remembers ledger {other}. If it is this machine's, restore it instead.", err=True)


@ledger_app.command("show")
def ledger_show(as_json: JSON = False) -> None:
    """Print every record, oldest first: query, cost, user, commit and software."""
    ledger = _open()
    if as_json:
        say_json([dict(sorted(record._asdict().items())) for record in ledger.records()])
        return
    committed, rows = ledger.commits(), []
    for record in ledger.records():
        text = _text(record)
        if record.kind == "reserve":
            text += "" if record.body["key"] in committed else "  never committed: counts as spent"
            text += f"\n{_origin(record.body)}"
        rows.append((str(record.seq), record.time, record.kind, text))
    say(table(("#", "time", "kind", ""), rows, text_columns=4))


def _text(record: Record) -> str:
    body = record.body
    if record.kind == "reserve":
        slot = "" if body["slot"] == "1" else f"  slot {body['slot']}"
        cost = f"rho {float(body['rho']):.6g}" + (f"  delta {body['delta_keys']:.6g}" if body["delta_keys"] else "")
        return f"{body['identity']}  {body['query']}  {cost}  key {body['key'][:12]}{slot}"
    if record.kind == "commit":
        return f"entry {body['reserve_seq']}  sha256 {body['sha256'][:12]}  key {body['key'][:12]}"
    if record.kind == "cap":
        keys = f", {body['delta_keys']:g} for thresholds" if body["delta_keys"] else ""
        return f"{body['identity']}  {body['adjacency']}  cap ({float(body['epsilon']):g}, {body['delta']:g}{keys})"
    if record.kind == "lost":
        who = body.get("asked_by", "unknown")
        return f"{body['identity']}  bytes given up, next draw is charged  key {body['key'][:12]}  by {who}"
    if record.kind == RECOVERED:
        lost = f"of {len(body['lost'])} lost records" if "rows_digests" in body else "all that was left"
        return f"{body['identity']}  rho {float(body['rho']):.6g}  {lost}  by {body.get('asked_by', 'unknown')}"
    if record.kind == "published":
        return f"{body['identity']}  files {body['files'][:12]}  from {len(body['releases'])} releases"
    return f"by {body.get('asked_by', 'unknown')}" if record.kind == DAY else f"ledger {body['ledger_id']}"


def _origin(body: Mapping[str, Any]) -> str:
    """User, commit and software of an entry."""
    commit = str(body.get("git_commit", "unknown"))[:12] + (" with changes" if body.get("git_changed") else "")
    software = {"likeness": body.get("likeness", "unknown"), **(body.get("software") or {})}
    return (
        f"by {body.get('asked_by', 'unknown')}  commit {commit}  params "
        f"{str(body.get('params_sha256', 'unknown'))[:12]}  {', '.join(f'{k} {v}' for k, v in software.items())}"
    )


@ledger_app.command("verify")
def ledger_verify(
    files: Annotated[list[Path] | None, typer.Argument(help="Released files that must be on the chain.")] = None,
    git: Annotated[list[Path] | None, typer.Option(help="A repository whose commits carry trailers.")] = None,
    mlflow: Annotated[bool, typer.Option(help="Look at the tracking runs too.")] = False,
    other: Annotated[list[str] | None, typer.Option(help="Id of a ledger that is certainly another one.")] = None,
    as_json: JSON = False,
) -> None:
    """Check chain, anchor, every released file and outside witnesses. Print the head for an outside witness."""
    ledger = _open()
    lost, given_up, commits = [], ledger.lost_keys(), ledger.commits()
    for key, (seq, digest) in commits.items():
        data = stored_bytes(ledger, key)
        if key not in given_up and (data is None or sha256_bytes(data) != digest):
            lost.append(f"entry {seq} ({key[:12]})")
    witnesses = [witness for folder in git or [] for witness in git_witnesses(folder)]
    receipts = {path: load_released(path).receipt for path in files or []}
    # A released file names the entry that paid for it.
    witnesses += [Witness(str(path), of.ledger_id, of.ledger_seq, key=of.key) for path, of in receipts.items()]
    if mlflow:
        run_witnesses = TRACKING.need("run_witnesses", "--mlflow needs the part of Likeness that asks MLflow.")
        witnesses += run_witnesses(Project.load())
    right = check_witnesses(ledger.records(), witnesses, other or [])
    for path, receipt in receipts.items():
        if receipt.ledger_id == ledger.id:
            check_against(commits, path, receipt, ledger.id)
    if lost:
        location = ledger.home.location if ledger.keeps_bytes else ledger.home.releases
        names = ", ".join(lost[:_MOST_NAMES]) + (f" and {len(lost) - _MOST_NAMES} more" if lost[_MOST_NAMES:] else "")
        raise LikenessError(f"released bytes are lost or altered: {names}. Restore {location} from a backup.")
    head = ledger.head()
    if as_json:
        checked = {"ledger": head.ledger_id, "records": head.count, "releases": len(commits), "head": head.head}
        say_json({**checked, "witnesses": len(witnesses), "witnesses_of_this_ledger": right})
        return
    line = f"ledger {head.ledger_id}: {head.count} records, {len(commits)} releases"
    if witnesses:
        line += f", {right} of {len(witnesses)} outside witnesses are of this ledger, and on its chain"
    say(f"{line}, head {head.head}")


@ledger_app.command("budget")
def ledger_budget(as_json: JSON = False) -> None:
    """Print cost and rest of each population's budget."""
    ledger = _open()
    if as_json:
        say_json([_budget(ledger, name) for name in ledger.populations()])
        return
    for name in ledger.populations():
        budget = budget_on_record(ledger.records(), name)
        say(
            f"{name} ({budget.adjacency}): spent epsilon {budget.spent_epsilon:.6g} of {budget.cap_epsilon:g} at delta "
            f"{budget.cap_delta:g}; rho {budget.spent_rho:.6g} spent, {budget.remaining_rho:.6g} left; "
            f"{budget.uncommitted} reserved but never committed (counted as spent)"
        )
        if budget.selection_delta or budget.spent_delta:
            spent = f"delta {budget.spent_delta:.6g} spent of the {budget.selection_delta:g} for them"
            say(f"  thresholds of private categories: {spent}")


def _budget(ledger: Ledger, name: str) -> dict[str, Any]:
    """The budget of a population for scripts."""
    budget = budget_on_record(ledger.records(), name)
    thresholds = budget.selection_delta or budget.spent_delta
    cap, spent = ({"delta_keys": delta} if thresholds else {} for delta in (budget.selection_delta, budget.spent_delta))
    return {
        "identity": name,
        "adjacency": str(budget.adjacency),
        "cap": {"epsilon": budget.cap_epsilon, "delta": budget.cap_delta, **cap},
        "spent": {"epsilon": budget.spent_epsilon, "rho": budget.spent_rho, **spent},
        "remaining_rho": budget.remaining_rho,
        "uncommitted": budget.uncommitted,
    }


@ledger_app.command("afford")
def ledger_afford(
    method: Annotated[list[str] | None, typer.Option(help="Of a grid; may be given several times.")] = None,
    epsilon: Annotated[list[float] | None, typer.Option(help="Of a grid; may be given several times.")] = None,
    every: Annotated[str | None, typer.Option(help="night, week or month: the run of params.yaml on new rows.")] = None,
    years: Annotated[float, typer.Option(help="How long, with --every.")] = 1.0,
    as_json: JSON = False,
) -> None:
    """Print the cost of runs, and whether the cap has room for all of them. Spends nothing.

    Without options it is one run with params.yaml. With --method and --epsilon it is each method with each epsilon.
    """
    project = Project.load()
    params = project.params
    if every is not None:
        _schedule(project, every, years, as_json)
        return
    projects = _grid(project, method or [params.method], epsilon or [params.privacy.epsilon])
    runs = [(run.params.method, run.params.privacy.epsilon) for run in projects]
    costs, budget = afford(projects)
    total = Cost.total(costs)
    if as_json:
        charged = zip(runs, costs, strict=True)
        grid = [{"method": name, "epsilon": target, "rho": cost.rho} for (name, target), cost in charged]
        of_runs = grid[0] if len(grid) == 1 else {"runs": grid, "rho": total.rho}
        after = {
            "cap": {"epsilon": budget.cap_epsilon, "delta": budget.cap_delta},
            "spent_rho": budget.spent_rho,
            "spent_delta_keys": budget.spent_delta,
            "remaining_rho": budget.add_cost(total).remaining_rho,
        }
        say_json({**of_runs, "delta_keys": total.delta, **after})
        return
    names = [f"{name} at epsilon {target:g}" for name, target in runs]
    if len(runs) > 1:
        for name, cost in zip(names, costs, strict=True):
            say(f"{name}: rho {cost.rho:.6g}")
        names = ["all of them"]
    keys = f", and delta {total.delta:.6g} for thresholds," if total.delta else ""
    say(f"{names[0]}: at most rho {total.rho:.6g}{keys} to be charged")
    say(remainder(budget, total))


def _schedule(project: Project, every: str, years: float, as_json: bool) -> None:
    """Print what the cap allows of a run that is repeated, or refuse it where it has no room for all."""
    require(every in RUNS_A_YEAR, "--every", every, f"one of {', '.join(RUNS_A_YEAR)}")
    require(0 < years <= 100, "--years", years, "a number above 0, at most 100")
    planned = schedule(project, every, years)
    runs, cost, room, epsilon = planned.runs, planned.cost, planned.room, planned.epsilon
    if as_json:
        say_json({"runs": runs, "rho": cost.rho, "delta_keys": cost.delta, "room": room, "epsilon": epsilon})
    params = project.params
    keys = f" and delta {cost.delta:.6g} for private categories" if cost.delta else ""
    text = (
        f"{params.method} at epsilon {params.privacy.epsilon:g}, every {every} for {years:g} "
        f"year{'s' if years != 1 else ''}: {runs:,} run{'s' if runs != 1 else ''} on new rows, rho {cost.rho:.6g}"
        f"{keys} each. The lifetime cap of {params.privacy.population} has room for {room:,}."
    )
    if room < runs:
        key = f"privacy.epsilon: {epsilon:g} has room for all" if epsilon else "No smaller privacy.epsilon has room"
        if cost.delta and planned.keys_room < runs:
            key = (
                f"Its delta for private categories has room for {planned.keys_room:,}, whatever privacy.epsilon is: "
                "lower categories.delta_share, or raise the cap's part for them: likeness ledger cap --delta-keys"
            )
        raise BudgetError(f"over budget: {text} {key}. Or run less often.")
    if not as_json:
        say(text)


def _grid(project: Project, methods: list[str], epsilons: list[float]) -> list[Project]:
    """The project with each method and each epsilon."""
    for name in methods:
        method_named(name, "--method")
    for epsilon in epsilons:
        require(epsilon > 0, "--epsilon", epsilon, "a number greater than 0")
    return [with_target(project, name, target) for name in dict.fromkeys(methods) for target in dict.fromkeys(epsilons)]


@ledger_app.command("cap")
def ledger_cap(
    identity: Annotated[str, typer.Argument(help="Name of the people in the data: privacy.population.")],
    epsilon: Annotated[float, typer.Option(help="Epsilon.")],
    delta: Annotated[float, typer.Option(help="Delta.")],
    delta_keys: Annotated[float | None, typer.Option(help="For private categories. No release may decide it.")] = None,
) -> None:
    """Change the lifetime cap. The change stays on record for ever."""
    ledger = _open()
    ledger.change_cap(identity, epsilon, delta, delta_keys)
    part = budget_on_record(ledger.records(), identity).selection_delta
    keys = f", {part:g} of it for thresholds" if part else ""
    say(f"cap of {identity}: epsilon {epsilon:g} at delta {delta:g}{keys}")


@ledger_app.command("reanchor")
def ledger_reanchor(
    head: Annotated[str, typer.Argument(help="The ledger's newest head, from an outside witness.")],
) -> None:
    """Write a lost anchor again. Take the head from a receipt's tracking run or another copy."""
    Chain.reanchor(_home(), head)
    say("anchor written")


@ledger_app.command("recover")
def ledger_recover() -> None:
    """Bring back what a lost or restored ledger lacks. A record without a copy costs all that is left of each cap."""
    asked_by = {"asked_by": provenance()["asked_by"]}
    back, costs = recover(_home(), asked_by, git_witnesses(Path()))
    say(f"{back} lost records are back, and {costs} costs of others are on record")


@ledger_app.command("day")
def ledger_day(
    day: Annotated[str, typer.Argument(help="Today in UTC, as 2026-11-26.")],
    fewer: Annotated[str | None, typer.Option(help="People of whom today's source rightly lacks most.")] = None,
) -> None:
    """Say which day it is, after a clock was wrong or a year's rest. It stays on record for ever."""
    ledger = _open()
    ledger.confirm_day(day, {"asked_by": provenance()["asked_by"]}, fewer)
    say(f"the ledger goes on at {day}")


@ledger_app.command("witness")
def ledger_witness(
    into: Annotated[Path | None, typer.Option(help="A commit message that gets the trailer.")] = None,
) -> None:
    """Print the head as a git trailer for a commit message. A prepare-commit-msg hook gives --into "$1"."""
    line = trailer(_open().head())
    if into is None:
        typer.echo(line)  # a terminal must not break it
    else:
        write_trailer(into, line)


@ledger_app.command("restore")
def ledger_restore(files: Annotated[list[Path], typer.Argument(help="Released files.")]) -> None:
    """Put released files back into a store that lost them. It costs nothing, because the ledger knows every byte."""
    ledger = _open()
    for path in files:
        if not path.is_file():
            raise ArtifactError(f"{path} is not a file. Give a released .safetensors file.")
        say(f"{path}: release {restore(ledger, path.read_bytes(), str(path))[:12]} is in the store")


@ledger_app.command("redraw")
def ledger_redraw(key: Annotated[str, typer.Argument(help="Key of the release, or its beginning.")]) -> None:
    """Give up lost bytes. The next run draws the release again at the full cost. It stays on record for ever."""
    ledger = _open()
    matches = [committed for committed in ledger.commits() if committed.startswith(key)]
    if len(key) < 8 or len(matches) != 1:
        raise LedgerError(f"'{key}' begins the keys of {len(matches)} committed releases. Give 8 letters or more.")
    digest = ledger.commits()[matches[0]][1]
    data = stored_bytes(ledger, matches[0])
    if data is not None and sha256_bytes(data) == digest:
        raise LedgerError(f"release {key} is whole in the store. It costs nothing. Run: likeness run")
    for path in ProjectPaths().released_files:
        if path.exists() and sha256_bytes(path.read_bytes()) == digest:
            raise LedgerError(f"{path} is this release. Put it back at no cost: likeness ledger restore {path}")
    ledger.redraw(matches[0], {"asked_by": provenance()["asked_by"]})
    reserved, _ = ledger.find(matches[0])
    assert reserved is not None
    say(f"{key} is given up. The next run draws it again and costs rho {reserved.body['rho']:.6g} again.")


def _home() -> Home:
    if not ProjectPaths.params.exists():
        return locate()
    section = build(LedgerSettings, read_content(ProjectPaths.params).get("ledger") or {}, "ledger")
    return locate(section.home, section.url)  # whatever else is an open question yet


def _open() -> Ledger:
    return Ledger.open(_home())
