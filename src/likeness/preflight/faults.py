"""Preflight check of params.yaml and the schema: every fault in words, and not only the first."""

import contextlib
import dataclasses
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from likeness.config.load import params_from, read_content
from likeness.config.params import Params
from likeness.core.errors import DataError, LedgerError, LikenessError, ParamsError, SchemaError
from likeness.core.paths import ProjectPaths, read_json
from likeness.core.refusals import refusals_of
from likeness.core.remote import source_path
from likeness.core.text import choices
from likeness.core.typed import build
from likeness.data.private_tables import read_manifest
from likeness.data.schema.column import Column
from likeness.data.schema.column_keys import DROP, column_from
from likeness.data.schema.kinds.categories import escape_formula
from likeness.data.schema.schema import KEYS, Schema, entries
from likeness.data.schema.yaml import read_mapping
from likeness.data.source.formats import format_of, format_of_images
from likeness.data.source.header import header_of, is_parquet, types_of
from likeness.data.source.opening import is_text
from likeness.data.source.parquet_files import texts_without_cells
from likeness.methods import method_from
from likeness.pipeline.datasets import model_described
from likeness.pipeline.new_project import outdated_files
from likeness.pipeline.project import Project


@dataclass(frozen=True)
class Fault:
    """One thing to put right: the file that has it, and a sentence with the remedy."""

    file: str
    text: str


@dataclass(frozen=True)
class Examined:
    """The readable part of a project, None if params.yaml cannot be read; all faults, and facts that are none."""

    project: Project | None
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]


def examine(root: Path = Path()) -> Examined:
    """Read params.yaml, its schema and the header of the source. No row is opened."""
    params, faults = _params(ProjectPaths(root))
    if params is None:
        return Examined(None, tuple(faults), ())
    project = Project(root, params)
    faults += [params_fault(error) for error in refusals_of(partial(method_from, params))]
    where, notes = project.schema_file, list[str]()
    try:
        mapping = read_mapping(where)
    except SchemaError as error:
        return Examined(project, (*faults, Fault(where.name, str(error).removeprefix(f"{where}: "))), ())
    if missing := refusals_of(lambda: model_described(mapping, where.name)):
        return Examined(project, (*faults, Fault(where.name, str(missing[0]))), ())
    texts = faults_of(mapping)
    faults += [Fault(where.name, text) for text in texts]
    faults += [params_fault(error) for error in ([] if texts else refusals_of(lambda: project.written_model))]
    sections = model_described(mapping).sections
    columns = [column for section in sections.values() for column in columns_of(mapping, section)]
    constant = [name for name, spec in columns if isinstance(spec, Mapping) and _is_constant(spec)]
    run = [
        f"{text!r} of {name}" for name, spec in columns for text in _categories(spec) if escape_formula(text) != text
    ]
    notes += [f"the CSV escapes categories that a spreadsheet would run: {', '.join(run)}"] if run else []
    note = "one category only, which costs noise and holds no information; kind drop is cheaper"
    notes += [f"{note}: {', '.join(constant)}"] if constant else []
    if "columns" in sections.values():
        faults += _source_faults(project, mapping, notes)
    else:
        for key, section in sections.items():
            if mapping.get(section) is not None and getattr(project.params.ingest, key) is not None:
                names = [mapping.get("person"), *needed_of(columns_of(mapping, section))]
                faults += _header_faults(project, key, names)[1]
    if not faults:
        faults += map(params_fault, refusals_of(lambda: project.counts))
    faults += _ledger_faults(project, notes)
    if not faults:
        schema = project.public_schema
        notes += project.method.hints(schema) if isinstance(schema, Schema) else []
    if project.paths.stages.exists() and (old := outdated_files(root)):
        notes.append(f"not as in the installed version: {', '.join(old)}. Write them: likeness new . --upgrade")
    return Examined(project, tuple(faults), tuple(notes))


def faults_of(mapping: Any) -> list[str]:
    """Every fault of a schema, of whatever kind of data set, from the content of its file.

    Raises:
        MissingPackageError: that of a wing which is not installed.
    """
    return model_described(mapping).faults(mapping, schema_faults)


def params_fault(error: LikenessError) -> Fault:
    """A fault of params.yaml, from an error that may name this file itself."""
    return _fault(str(error).removeprefix(f"{ProjectPaths.params}: "))


def _fault(text: str) -> Fault:
    return Fault(str(ProjectPaths.params), text)


def schema_faults(mapping: Any) -> list[str]:
    """Every fault of a schema, from the content of its file."""
    if not isinstance(mapping, Mapping):
        return [str(error) for error in refusals_of(lambda: Schema.from_dict(mapping, "schema"))]
    faults = [f"{key} is not a key of a schema.{choices(key, KEYS, 'Keys')}" for key in mapping if key not in KEYS]
    faults += [f"{key} is an open question: {_OPEN[key]}." for key in _OPEN if mapping.get(key) is None]
    if mapping.get("task", "") is None:
        faults.append("task is an open question: classification or regression.")
    good: list[dict[str, Any]] = []
    columns = columns_of(mapping)
    for name, spec in columns:
        try:
            column = column_from(name, spec)
        except SchemaError as error:
            faults += _column_faults(name, spec, error)
            continue
        content = column.to_dict() if isinstance(column, Column) else {"kind": DROP, "reason": column.reason}
        good.append({"name": name, **content})
    rest = {key: mapping[key] for key in KEYS if key in mapping}
    rest |= {key: "?" for key in _OPEN if mapping.get(key) is None}
    if rest.get("task", "") is None:
        rest |= {"task": "none", "label": None}
    bad = {name for name, _ in columns} - {column["name"] for column in good}
    if bad:
        # Stand-ins try what spans columns. What is said of the label needs a readable label; rules need all columns.
        good += [{"name": name, "kind": "categorical", "categories": ["0", "1"]} for name in bad]
        rest = {key: value for key, value in rest.items() if key not in ("rules", "derived")}
        if str(rest.get("label")) in bad:
            rest |= {"task": "none", "label": None}
            good = [column for column in good if "image" not in rest or column["name"] != mapping["label"]]
    if columns:
        rest["columns"] = good
    spanning = refusals_of(lambda: Schema.from_dict(rest, "schema"))
    return faults + [str(error).removeprefix("schema: ") for error in spanning]


_OPEN = {"name": "a short name of the table", "source": "where bounds and categories come from"}


def columns_of(mapping: Any, section: str = "columns") -> list[tuple[str, Any]]:
    """The readable columns of a schema, without the pixels of an image."""
    try:
        return list(entries(mapping.get(section))) if isinstance(mapping, Mapping) else []
    except SchemaError:
        return []


def needed_of(columns: Iterable[tuple[str, Any]]) -> list[str]:
    """The columns that a source must have."""
    return [name for name, spec in columns if not (isinstance(spec, Mapping) and spec.get("kind") == DROP)]


def _is_constant(spec: Mapping[str, Any]) -> bool:
    return len(_categories(spec)) == 1 and not spec.get("nullable")


def _categories(spec: Any) -> list[str]:
    categories = spec.get("categories") if isinstance(spec, Mapping) else None
    return list(map(str, categories)) if isinstance(categories, list) else []


def _column_faults(name: str, spec: Any, error: SchemaError) -> list[str]:
    """Faults of one column: its open questions in one sentence, then every other fault."""
    open_keys = [key for key in _COLUMN_QUESTIONS if isinstance(spec, Mapping) and key in spec and spec[key] is None]
    open_keys = [key for key in open_keys if key in ("lower", "upper", *(key for key, _ in error.faults))]
    texts = [text for key, text in error.faults if key not in open_keys]
    if open_keys:
        listed = ", ".join(open_keys[:-1]) + " and " + open_keys[-1] if open_keys[1:] else open_keys[0]
        verb = "are open questions" if open_keys[1:] else "is an open question"
        texts.insert(0, f"column '{name}': {listed} {verb}. Answer from public knowledge, never from the rows.")
    return texts


_COLUMN_QUESTIONS = ("kind", "lower", "upper", "categories", "nullable", "reason")


def _params(paths: ProjectPaths) -> tuple[Params | None, list[Fault]]:
    """Settings, section by section: an open question or a wrong section hides no other fault."""
    try:
        content = read_content(paths.params)
    except ParamsError as error:
        return None, [params_fault(error)]
    faults = []
    privacy = content.get("privacy")
    if isinstance(privacy, dict) and privacy.get("population") is None:
        question = "a name for the PEOPLE in the data. New versions of the data keep it"
        faults.append(_fault(f"privacy.population is an open question: {question}."))
        content = {**content, "privacy": {**privacy, "population": "?"}}
    ingest = content["ingest"] if isinstance(content.get("ingest"), dict) else {}
    if ingest.get("source", "") is None:  # as `likeness new` writes it
        return None, [*faults, _fault("ingest.source is an open question: the table. Run: likeness init TABLE")]
    unit = ingest.get("unit")
    if isinstance(unit, dict) and unit.get("max_rows") is None:
        question = "the most rows of one person that are used. It is public, and the noise grows with it"
        faults.append(_fault(f"ingest.unit.max_rows is an open question: {question}."))
        content = {**content, "ingest": {**ingest, "unit": {**unit, "max_rows": 1}}}
    for name, kind in typing.get_type_hints(Params).items():
        if name in content and dataclasses.is_dataclass(kind):
            tried = refusals_of(partial(build, kind, content[name], name))  # type: ignore[arg-type]
            faults += [_fault(str(error)) for error in tried]
    settings: list[Params] = []
    last = refusals_of(lambda: settings.append(params_from(content)))
    if last and str(last[0]) not in [fault.text for fault in faults]:
        faults.append(_fault(str(last[0])))
    return (settings[0] if settings else None), faults


def _header_faults(project: Project, key: str, names: Iterable[str]) -> tuple[list[str], list[Fault]]:
    """The header of a source, and the columns of a schema that it lacks."""
    ingest, sources = project.params.ingest, project.sources
    queried = sources.people if key == "people" and ingest.from_database else sources.database
    source = source_path(project.root, getattr(ingest, key)) if queried is None else queried
    try:
        header = header_of(source, ingest.format)
    except DataError as error:
        return [], [_fault(f"ingest.{key}: {error}")]
    where = f"{source.name}: ingest.people" if queried is not None and key == "people" else source.name
    if queried is None and is_text(source.name) and len(header) == 1 and not {*names} & {*header}:
        fault = "its first line is one column, and none of the schema. Correct ingest.format.separator, or the schema."
        return [], [Fault(where, fault)]
    fault = "of the schema is not in the header. Correct the schema"
    return header, [Fault(where, f"column '{name}' {fault}.") for name in names if name not in header]


def _source_faults(project: Project, mapping: Any, notes: list[str]) -> list[Fault]:
    """The differences between the header of the source and the schema."""
    ingest, database = project.params.ingest, project.sources.database
    source = source_path(project.root, ingest.source)
    where, columns = source.name if database is None else database.name, dict(columns_of(mapping))
    try:
        has_no_header = format_of(source) is not None if database is None else database.dialect == "spark"
    except DataError as error:
        return [_fault(f"ingest.source: {error}")]
    needed = needed_of(columns.items())
    header, missing = ([], []) if has_no_header else _header_faults(project, "source", needed)
    if missing and not header:
        return missing
    faults = [*map(params_fault, refusals_of(partial(project.sources.check_order, source))), *missing]
    if has_no_header:  # the wing of Spark compares the columns
        return faults
    split, person = ingest.split.column, None if ingest.unit is None else ingest.unit.column
    for key, name in (("split", split), ("unit", person)):
        if name is not None and name not in header:
            faults.append(_fault(f"ingest.{key}.column '{name}' is not in the header of {where}. Correct it."))
    if person in needed:
        fault = "names people (ingest.unit) and is never released. Give it kind drop, or leave it out"
        faults.append(Fault(project.schema_file.name, f"column '{person}' {fault}."))
    types = types_of(source) if database is None and is_parquet(source) else {}
    faults += _category_faults(project, columns, types)
    images = isinstance(mapping, Mapping) and mapping.get("image") is not None
    pixels = [name for name in header if images and name.startswith("pixel_")]
    if images and types and not pixels:
        try:
            pixels = [format_of_images(where).encoded_column(types, where)]
        except DataError as error:
            faults.append(_fault(f"ingest.source: {error}"))
    past = [name for name in header if name not in columns and name not in (split, person, *pixels)]
    if past:
        # A file without a header has a row there: names are safe to show only beside all names of the schema.
        safe = bool(needed) and not missing
        names = ", ".join(past) if safe else f"{len(past)} of {len(header)} columns of the first line"
        notes.append(f"not read, because the schema does not name them: {names}")
    return faults


def _category_faults(project: Project, columns: Mapping[str, Any], types: Mapping[str, Any]) -> list[Fault]:
    """Categories that no cell of a Parquet column can give, by its type. Other files have no types."""
    faults = []
    for name in [name for name in columns if name in types]:
        try:
            column = column_from(name, columns[name])
        except SchemaError:
            continue  # which is among the faults
        is_texts = isinstance(column, Column) and column.is_categorical and not column.type.default_categories
        if not isinstance(column, Column) or not is_texts or column.open:
            continue
        wrong = texts_without_cells(types[name], [text for text in column.categories if text != column.other])
        if wrong:
            texts = ", ".join(map(repr, wrong))
            fault = f"no cell of type {types[name]} gives {texts}, so the source has no such value"
            remedy = "Write whole numbers as 3, true and false as True and False, days as 2024-12-31"
            faults.append(Fault(project.schema_file.name, f"column '{name}': {fault}. {remedy}."))
    return faults


def _ledger_faults(project: Project, notes: list[str]) -> list[Fault]:
    """Check that the ledger is usable and would take a release with these settings; nothing goes on record.

    A missing ledger is a note. A team's database is not opened.
    """
    try:
        home = project.ledger_session.home
    except LedgerError as error:
        return [_fault(f"ledger: {error}")]
    if home.url is not None:
        return []
    if not home.database.exists():
        faults = [_fault(str(error)) for error in refusals_of(lambda: project.ledger_session.refuse_other(None))]
        first = "Before the first run on a machine: likeness ledger init"
        notes += [] if faults else [f"there is no ledger at {home.location} yet. {first}"]
        return faults
    unit, rho = project.params.ingest.unit, None
    with contextlib.suppress(LikenessError):  # which is among the faults
        unit = project.complete_params.ingest.unit
        rho = project.plan.rho

    def check() -> None:
        project.ledger_session.refuse_other(project.ledger)
        project.ledger_session.check_declared(unit)
        if rho is not None:
            project.ledger_session.check_same_request(rho)

    return [_fault(str(error)) for error in refusals_of(check) or refusals_of(partial(_check_owner, project))]


def _check_owner(project: Project) -> None:
    """Refuse another name for the people of the last run, if the source is certainly unchanged since."""
    paths, population = project.paths, project.params.privacy.population
    if not (paths.table.exists() and paths.source.exists()) or project.params.ingest.from_database:
        return
    manifest = read_manifest(paths.table)
    if manifest["identity"] == population or manifest["ledger"] != project.ledger.id:
        return
    if read_json(paths.source).get("hmac") == project.source_digest():
        project.ledger.check_owner(population, manifest["digest"], manifest["rows_digests"])
