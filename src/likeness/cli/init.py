"""``likeness init``: the draft of a new table's schema."""

import contextlib
import csv
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from likeness.cli.check import report_of
from likeness.cli.console import say, wrap_text
from likeness.cli.ledger import ledger_init
from likeness.cli.run import run
from likeness.config.load import read_content, section_in
from likeness.config.params import DATABASES, FileFormat, Ingest
from likeness.core.errors import LikenessError, MissingPackageError, ParamsError, SchemaError, no_project
from likeness.core.paths import ProjectPaths
from likeness.core.remote import source_path
from likeness.core.text import normal_text
from likeness.core.typed import build
from likeness.data.schema.answers import parse_columns
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.kinds import Categorical, Date, Datetime
from likeness.data.schema.schema import Schema, entries
from likeness.data.schema.yaml import read_mapping
from likeness.data.source.databases import Database
from likeness.data.source.formats import format_of
from likeness.data.source.header import guesses_of, layout_of
from likeness.data.source.opening import table_name
from likeness.pipeline.datasets import MODELS
from likeness.pipeline.project import Project
from likeness.preflight.interview import Completed, Interview, new_sheet, read_sheet
from likeness.preflight.settings import check_columns, draft_params

_PARAMS = ProjectPaths.params
_MOVING = (Date.name, Datetime.name)
_FILL_IN = """{sheet}: one row for each column of the table. Fill it in with a spreadsheet or an editor. Save it as CSV.
All you write becomes PUBLIC: from a codebook or law, never from the rows. The kinds are guesses. Correct them.
  possible values   0..110, or red, green, blue, or no/yes, or 1990-01-01..2026-12-31
  missing           no, yes, or the words that mean a missing value, as NA, ?
Then run the same command again, best with --ask: it asks what the sheet leaves open."""
_DECIMAL = """Semicolons separate the columns of {table}. If numbers have a decimal comma, delete the draft schema,
and run in the project: likeness init {table} --format decimal=,"""
_NEXT_STEPS = (
    "{target}: a draft. Its column names come from the header, and its kinds are guesses. Every '# ?' in it "
    "({questions}) is a question to you. Answer from public knowledge, because the schema is published with the "
    "results.\nparams.yaml now points to it. Answer privacy.population there.{about} Keep the table out of git.\n"
    "{split}Then: likeness check"
)
_SPLIT = "All rows train. To hold some out for tests, set ingest.split.test_fraction.\n"


def init(
    source: Annotated[
        str,
        typer.Argument(
            help="A CSV, Excel or Parquet file with a header, a folder of .parquet files or images, .npz, or a URL."
        ),
    ],
    name: Annotated[str | None, typer.Option(help="Short name of the table; by default that of the file.")] = None,
    label: Annotated[str | None, typer.Option("--label", "-l", help="The column to predict, if there is one.")] = None,
    person: Annotated[
        str | None, typer.Option(help="The column that names the person of a row, if a person may have several rows.")
    ] = None,
    people: Annotated[
        str | None,
        typer.Option(help="The table of people, where SOURCE is that of their events. Both have the column --person."),
    ] = None,
    order: Annotated[
        str | None, typer.Option(help="The date or number that orders the events of a person: SOURCE has histories.")
    ] = None,
    query: Annotated[str | None, typer.Option(help="Of a database: SELECT ..., or the name of a table.")] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            help="A completed schema, as of an earlier year. It answers the questions about columns of its names."
        ),
    ] = None,
    ask: Annotated[
        bool, typer.Option("--ask", "-a", help="Ask here, one line a column, and write no draft; then offer to run.")
    ] = False,
    columns: Annotated[
        Path | None,
        typer.Option(
            help="A CSV with a row for each column: written if it is not there, and read once you filled it in."
        ),
    ] = None,
    nullable: Annotated[
        str | None,
        typer.Option(
            help="Columns that may miss a value: all, none, or names separated by commas. Never look at the rows."
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="The public column that says train or test; by default that of params.yaml, or 'split'."),
    ] = None,
    layout: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="KEY=VALUE",
            help="How a file is written, as `decimal=,`, `encoding=latin-1` or `sheet=visits`. Repeat it for others.",
        ),
    ] = None,
    private: Annotated[
        bool,
        typer.Option(
            "--private",
            help="Only the label's categories are public. A part of the budget releases all others, and all bounds.",
        ),
    ] = False,
) -> None:
    """Draft the public schema of your table, and point params.yaml to it. A person completes it, there or here."""
    if not _PARAMS.is_file():
        raise ParamsError(no_project(_PARAMS))
    check_terminal(ask)
    label, person, order, split = (option and normal_text(option) for option in (label, person, order, split))
    form = {key: value for key, _, value in (each.partition("=") for each in layout or ())}
    table = _open_source(source, query, name, build(FileFormat, form, "ingest.format"))
    if table.layout.separator == ";" and "decimal" not in form:
        say(_DECIMAL.format(table=table.location))
    ingest = section_in(read_content(_PARAMS), "ingest")  # readable, or refused
    now, unit, max_rows = section_in(ingest, "split"), None, None
    if people is not None or order is not None:  # the schema says the unit
        table_options = {"label": label, "answers": answers, "split": split, "private": private}
        draft, people = _draft_of_histories(table, people, person, order, table_options)
        about = ""
    else:
        person, max_rows = _people_before(table, person, ingest.get("unit"))
        draft, split = _draft_of_table(table, label, person, split, now.get("column"), answers)
        advice = (
            "see ingest.unit if a person may have several rows" if person is None else "answer ingest.unit.max_rows"
        )
        unit, about = person, "" if table.images is not None or max_rows else f" There, {advice}."
    if moving := [f"{name} (to {draft[name].upper})" for name in draft if answers and draft[name].kind in _MOVING]:
        say(f"From {answers}: {', '.join(moving)}. Do these dates go on in this table? Then move the bounds.")
    target = ProjectPaths.schemas / f"{table.name}.yaml"
    if target.exists():
        raise LikenessError(f"{target} exists and is not overwritten. Give another --name, or delete the file.")
    text = _PARAMS.read_text(encoding="utf-8")
    facts = text, table.location, table.query, target.as_posix(), person, split, table.layout
    settings = partial(draft_params, *facts, people=people, unit=unit, of_records=table.settings)
    drafted = settings(max_rows)  # complete, or refused before the first question
    if columns is not None and not _fill_from_sheet(columns, draft):
        return
    if nullable is not None:
        able = [each for each in draft.able() if not draft[each].is_settled]
        draft.nullable = parse_columns(nullable, list(draft), able)
    if private and not (ask and draft.label is None):
        draft.make_private()
    if split is not None:
        say(f"Column {split} says train or test and is no data. Its two words stand in params.yaml, ingest.split.")
    if ask:
        _complete(Interview(_ask, say, draft, private), target, settings, table.location)
        return
    schema, all_train = draft.text(), split is None and not now.get("test_fraction")
    _write(target, schema, drafted)
    say(_NEXT_STEPS.format(target=target, questions=schema.count("  # ? "), about=about, split=_SPLIT * all_train))


@dataclass(frozen=True)
class _Source:
    """A source that was opened for its header."""

    location: str  # as params.yaml writes it
    query: str | None
    layout: FileFormat
    name: str  # of the table
    kinds: dict[str, str]  # a guess for each column
    dtypes: dict[str, str]  # words of dtypes by column, where the file says them
    database: bool  # whether it is a query of one
    images: tuple[tuple[int, ...], int] | None  # as likeness.data.source.formats.SourceFormat.layout gives it
    settings: Mapping[str, Any]  # keys of params.yaml that its format asks for


def _people_before(table: _Source, person: str | None, unit: Any) -> tuple[str | None, Any]:
    """The column that names people, by default that of the last table, and the most rows of one if they are known."""
    bound = unit if isinstance(unit, Mapping) else {}
    if person is None and bound.get("column") in list(table.kinds):
        person = bound["column"]
        say(f"As before, column {person} names people (ingest.unit of params.yaml).")
    return person, bound.get("max_rows") if person is not None and person == bound.get("column") else None


def _draft_of_table(
    table: _Source, label: str | None, person: str | None, split: str | None, earlier_split: Any, answers: Path | None
) -> tuple[SchemaDraft, str | None]:
    """The draft with the answers of a completed schema, and the column of the split.

    ``earlier_split`` is that of params.yaml. A person's answer stays where the table has the column.
    """
    kinds, shape = table.kinds, None
    if table.images is not None:
        shape, depth = table.images
        kinds = dict.fromkeys([label or "label", split or "split"][:depth], Categorical.name)
        label = label or next(iter(kinds), None)
    free = [each for each in kinds if each not in (label, person)]
    splits = [each for each in free if each == earlier_split] + [each for each in kinds if each.casefold() == "split"]
    split = next(iter(splits), None) if split is None else split
    earlier: Mapping[str, Any] = {}
    if answers is not None:
        Schema.load(answers)  # complete, or refused
        earlier = read_mapping(answers)
    label = earlier.get("label") if label is None and earlier.get("label") in kinds else label
    check_columns(kinds, label=label, person=person, split=split)
    kinds = {each: kind for each, kind in kinds.items() if each != split}
    draft = SchemaDraft(kinds, table.name, table.dtypes, shape)
    draft.source = earlier.get("source")
    for each, spec in entries(earlier.get("columns") or {}):
        if each in list(draft):
            draft[each].settle(spec)
    draft.label, draft.person = label, person
    return draft, split


def _draft_of_histories(
    events: _Source, people: str | None, person: str | None, order: str | None, table_options: Mapping[str, Any]
) -> tuple[SchemaDraft, str | None]:
    """The draft, and the table of people as params.yaml writes it. It refuses options that are for a table alone."""
    if wrong := next((name for name, value in table_options.items() if value), None):
        raise LikenessError(f"--{wrong} does not go with --people and --order, which are for histories. Leave it out.")
    if person is None:
        raise LikenessError("--people and --order need --person. Give the column that names the person in each table.")
    if person == order:
        remedy = "Give the column of dates or numbers as --order."
        raise LikenessError(f"--person and --order both name '{person}'. {remedy}")
    sources = {"events": events}
    if people is not None:
        is_query = events.database
        location, query = (events.location, people) if is_query else (people, None)
        sources = {"people": _open_source(location, query, events.name, events.layout), **sources}
        people = people if is_query else sources["people"].location
    for source in sources.values():
        check_columns(source.kinds, person=person)
    check_columns(events.kinds, order=order)
    dtypes = {name: word for source in sources.values() for name, word in source.dtypes.items()}
    tables = {name: source.kinds for name, source in sources.items()}
    draft = next(filter(None, (model.linked_draft() for model in MODELS.values())), None)
    if draft is None:
        raise MissingPackageError(f"--people and --order are for linked tables. {MODELS.remedy}")
    return draft(tables, person, order, events.name, dtypes), people


def _fill_from_sheet(sheet: Path, draft: SchemaDraft) -> bool:
    """Fill the draft from a sheet, and tell whether there was one. If not, it is written."""
    if not sheet.exists():
        sheet.write_text(new_sheet(draft), encoding="utf-8-sig")  # the mark that Excel looks for
        say(_FILL_IN.format(sheet=sheet))
        return False
    try:
        read_sheet(sheet.read_text(encoding="utf-8-sig"), draft)
    except (OSError, UnicodeDecodeError, csv.Error):
        raise LikenessError(f"{sheet} cannot be read. Save it as CSV in UTF-8.") from None
    except SchemaError as error:
        raise SchemaError(f"{sheet} has faults. Correct them and run the command again.\n{error}") from None
    return True


def _open_source(source: str, query: str | None, name: str | None, layout: FileFormat) -> _Source:
    """A source with a name for its table, and the guessed kind of each column."""
    if not query and source.startswith(DATABASES):
        raise LikenessError("A database needs --query. Give the name of a table, or one SELECT in quotes.")
    of_database = Ingest(source, "", query=query).from_database
    location = Database(source, query or "") if of_database else source_path(Path(), source)
    name = table_name(location.name) if name is None else name
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise LikenessError(f"'{name}' cannot name a table. Give a --name of letters, digits, - and _.")
    written = location.as_posix() if isinstance(location, Path) else source
    if not isinstance(location, Database) and (reader := format_of(location)) is not None:
        images = reader.layout(location)
        return _Source(written, query, layout_of(location, layout), name, {}, {}, of_database, images, reader.settings)
    guesses = guesses_of(location, layout)  # it says that there is no such file
    return _Source(written, query, layout_of(location, layout), name, *guesses, of_database, None, {})


def _complete(interview: Interview, target: Path, settings: Callable[..., str], source: str) -> None:
    """Ask everything, write a completed schema, point params.yaml to it, and offer to run if nothing is wrong."""
    answers_file = target.with_suffix(".answers.json")
    answered = _run_interview(interview, answers_file)
    _write(target, answered.draft.text(), settings(answered.max_rows, answered.population))
    answers_file.unlink(missing_ok=True)
    say(f"Written: {target}, params.yaml. For details: likeness check")
    if "://" not in source and Path(source).resolve().is_relative_to(Path.cwd()):
        say(f"Keep {source} out of git.")
    report = report_of(None)
    if report.faults:
        say(report.text())
        return
    say(report.summarize())
    if not report.refusal:
        _offer_run(Path(f"{interview.draft.name}.zip"))


def _run_interview(interview: Interview, answers_file: Path) -> Completed:
    """The interview to its end. If a person stops it, the answers so far stay in a file."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 (arrow keys, and lines longer than a terminal's buffer)
    interview.lines, interview.save = _kept_lines(answers_file), partial(_keep, answers_file)
    if interview.lines:
        say(f"Going on after {len(interview.lines)} answers in {answers_file}. To start again, delete the file.")
    try:
        return interview.run()
    except typer.Abort:
        message = f"Your answers are in {answers_file}. likeness init goes on with the same options."
        say(f"\nStopped. {message if answers_file.exists() else 'Nothing was written.'}", err=True)
        raise typer.Exit(1) from None


def _kept_lines(path: Path) -> list[tuple[str, str]]:
    """Lines of an interview that stopped."""
    try:
        return [(str(key), str(line)) for key, line in json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError):
        raise LikenessError(f"{path} cannot be read. Delete it to start again.") from None


def _keep(path: Path, lines: Sequence[tuple[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pairs = ",\n".join(json.dumps(pair, ensure_ascii=False) for pair in lines)
    path.write_text(f"[\n{pairs}\n]\n", encoding="utf-8")


def _offer_run(bundle: Path) -> None:
    """Offer to spend now, or print the commands that do it later."""
    project = Project.load()
    home = project.ledger_session.home
    # A team's database has a ledger already.
    first = home.url is None and not home.database.exists()
    steps = [f"spend epsilon {project.params.privacy.epsilon:g}", f"bundle to {bundle}"]
    if first:
        steps.insert(1, "make this machine's ledger")
    say(f"The run will {', '.join(steps)}.")
    if typer.confirm("Run now?", default=False):
        if first:
            ledger_init()
        run(bundle=bundle)
        return
    say(f"Nothing is spent. Then: {'likeness ledger init, ' if first else ''}likeness run --bundle {bundle}")


def _ask(question: str) -> str:
    """A line from the terminal, which the last line of a long question begins."""
    above, break_, last = wrap_text(question).rpartition("\n")
    if break_:
        typer.echo(above)
    try:
        return str(typer.prompt(last, default="", show_default=False, prompt_suffix=" "))
    except UnicodeDecodeError:
        raise LikenessError("your answer is not UTF-8 text. Type it again.") from None


def check_terminal(ask: bool) -> None:
    """Refuse questions where nobody can answer.

    Raises:
        LikenessError: ``ask`` is set, and there is no terminal.
    """
    if ask and not _terminal():
        raise LikenessError("--ask needs a terminal for your answers. Leave --ask out to get a draft.")


def _terminal() -> bool:
    """Tell whether a person can answer."""
    return sys.stdin.isatty()


def _write(target: Path, schema: str, settings: str) -> None:
    """Write the schema and, last, the settings that point to it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(schema, encoding="utf-8")
    _PARAMS.write_text(settings, encoding="utf-8")
