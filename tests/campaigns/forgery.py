"""A forger's tools: change one thing in a bundle, and make all else agree with it that can be made to agree."""

import contextlib
import json
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import numpy as np

from likeness.bundle import contents as names
from likeness.bundle.chain import chain_of, chain_text
from likeness.bundle.files import Bundle
from likeness.bundle.write import data_card
from likeness.core.hashing import canonical_json, sha256_bytes, sha256_json
from likeness.core.paths import Outputs
from likeness.data.schema.schema import Schema
from likeness.ledger.budget import budget_of
from likeness.ledger.records import Record, hash_of, opening_of
from likeness.pipeline.account import lifetime_of
from likeness.pipeline.datasets import read_schema
from likeness.pipeline.synthetic_table import csv_bytes, parquet_bytes, sample_request
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.released import Released, load_released, to_bytes
from likeness.release.request import request_in
from likeness.report.statement import statement
from likeness.synthesizer.published import Published

P = ParamSpec("P")
Json = dict[str, Any]
Plant = Callable[[Path], Path | None]
"""Plants a lie in a folder. Returns what is to be verified, where that is another place."""


def planted(write: Callable[Concatenate[Path, P], Path | None]) -> Callable[P, Plant]:
    """Of a function of a folder and more: a function of the rest, which returns the plant."""
    return lambda *arguments, **keywords: lambda folder: write(folder, *arguments, **keywords)


class Seal(IntEnum):
    """How far a forger goes; each level has those before it."""

    NONE = 0
    SUMS = 1  # SHA256SUMS
    TEXTS = 2  # digests in privacy.json; statement and data card
    CHAIN = 3  # digests of files in the ledger's records, and all digests of its chain


def seal(folder: Path, level: Seal) -> None:
    """Make a bundle agree with itself."""
    if level >= Seal.CHAIN:
        edit_chain(folder, lambda records: _seal_records(folder, records))
    if level >= Seal.TEXTS:
        _seal_texts(folder)
    if level >= Seal.SUMS:
        files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        files.remove(names.CHECKSUMS)
        lines = (f"{sha256_bytes((folder / name).read_bytes())}  {name}\n" for name in files)
        (folder / names.CHECKSUMS).write_text("".join(lines))


def _seal_records(folder: Path, records: list[Json]) -> None:
    """Digests of releases and files as they are now."""
    digests = {one.receipt.key: _digest(folder, name) for name, one in Bundle(folder).released_files.items()}
    for record in records:
        body = record.get("body", {})
        if record.get("kind") == "commit":
            body["sha256"] = digests.get(body["key"], body["sha256"])
    shown = [record["body"] for record in records if record.get("kind") == "published"]
    shown[-1]["files"] = sha256_json({name: _digest(folder, name) for name in names.recorded_files(_outputs(folder))})


def _seal_texts(folder: Path) -> None:
    """Digests in the account, and the texts that are written from it."""
    digests = {one.receipt.query: _digest(folder, name) for name, one in Bundle(folder).released_files.items()}

    def change(privacy: Json) -> None:
        for query in privacy["queries"]:
            query["sha256"] = digests.get(query["query"], query["sha256"])
        for path in privacy["outputs"]:
            privacy["outputs"][path] = _digest(folder, _name(path))

    edit_json(folder / names.PRIVACY, change)
    privacy = json.loads((folder / names.PRIVACY).read_text())
    schema = read_schema(folder / names.SCHEMA)
    rows = schema if isinstance(schema, Schema) else schema.first_rows
    with contextlib.suppress(ValueError):  # a text in the place of a number: both pages keep their words
        (folder / names.STATEMENT).write_text(statement(privacy))
        (folder / names.CARD).write_text(data_card(privacy, rows))


def edit_json(path: Path, change: Callable[[Json], object]) -> None:
    """Change a JSON file, written as we write it."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


def edit_chain(folder: Path, change: Callable[[list[Json]], object]) -> None:
    """Change records of the ledger, number them, and compute every digest again."""
    path = folder / names.LEDGER
    records = json.loads(json.dumps(chain_of(path.read_text())[0]))  # no two of which share an object
    change(records)
    for place, record in enumerate(records, start=1):
        record |= {"seq": place, "digest": ""}
    path.write_text(chain_text(chain_of(chain_text(records, ""))[0]))


@planted
def edit_body(folder: Path, kind: str, query: str | None = None, **changes: Any) -> None:
    """Change the body of a record: that of a release, or the last of its kind."""

    def change(records: list[Json]) -> None:
        keys = {one.receipt.key for one in Bundle(folder).answers if query in (None, one.receipt.query)}
        chosen = [r["body"] for r in records if r.get("kind") == kind and r["body"].get("key") in {None, *keys}]
        chosen[-1].update(changes)

    edit_chain(folder, change)


@planted
def edit_receipt(folder: Path, query: str, **changes: Any) -> None:
    """Change the receipt of a release."""
    path = folder / names.RELEASED / f"{query}.safetensors"
    one = load_released(path)
    _write(path, one, {**one.receipt.to_dict(), **changes})


def edit_both(query: str, **changes: Any) -> Plant:
    """Change facts of a release in its receipt and in its reservation."""
    return all_of(edit_body("reserve", query, **changes), edit_receipt(query, **changes))


@planted
def edit_values(folder: Path, query: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Change the values of a release."""
    path = folder / names.RELEASED / f"{query}.safetensors"
    one = load_released(path)
    path.write_bytes(to_bytes(Released(change(one.lattice), one.receipt, one.keys)))


@planted
def edit_request(folder: Path, query: str, **changes: Any) -> None:
    """Change what the ledger says was asked, under the key that belongs to it, in every place that names the key."""
    edit_body("reserve", query, **changes)(folder)
    one = next(one for one in Bundle(folder).answers if one.receipt.query == query)
    bodies = [record.body for record in Bundle(folder).records if record.kind == "reserve"]
    old = one.receipt.key
    new = sha256_json(request_in(next(body for body in bodies if body["key"] == old)))
    edit_receipt(query, key=new)(folder)
    renamed = lambda records: json.loads(json.dumps(records).replace(old, new))  # noqa: E731
    edit_chain(folder, lambda records: records.__setitem__(slice(None), renamed(records)))
    trained = sorted(one.receipt.key for one in Bundle(folder).answers)
    for spec in Bundle(folder).project.outputs.generators:
        edit_json(folder / spec / "spec.json", lambda value: value["provenance"].update(releases=trained))
    edit_body("published", releases=trained)(folder)


@planted
def replace_query(folder: Path, name: str, query: Query, values: np.ndarray | None = None) -> None:
    """Another map in a release, and a receipt that is right for it.

    Args:
        name: of the release.
        query: with the map.
        values: in lattice steps; None: zeros.
    """
    path = folder / names.RELEASED / f"{name}.safetensors"
    one = load_released(path)
    squared = query.sensitivity_squared(Adjacency(one.receipt.adjacency), one.receipt.unit)
    scale = one.receipt.noise_multiplier * squared**0.5
    changes = {
        "feature": query.spec(),
        "num_groups": query.num_groups,
        "dimension": query.dimension,
        "lattice_bits": query.lattice_bits,
        "sensitivity": squared**0.5 * 2.0**-query.lattice_bits,
        "noise_scale": scale,
        "rho": squared / (2 * scale**2),
    }
    lattice = np.zeros((query.num_groups, query.width), dtype=np.int64) if values is None else values
    _write(path, Released(lattice, one.receipt), {**one.receipt.to_dict(), **changes})


@planted
def edit_file(folder: Path, name: str, old: str, new: str) -> None:
    """Replace a text that a file has."""
    text = (folder / name).read_bytes().decode()
    assert old in text, (name, old)
    (folder / name).write_bytes(text.replace(old, new).encode())


def set_value(name: str, keys: str, value: Any) -> Plant:
    """Set a value of a JSON file.

    Args:
        name: of the file.
        keys: from the outside in, with dots between them.
        value: None: take the key away.
    """

    def change(content: Any) -> None:
        *outer, last = keys.split(".")
        for key in outer:
            content = content[int(key)] if isinstance(content, list) else content[key]
        if value is None:
            del content[last]
        else:
            content[last] = value

    return lambda folder: edit_json(folder / name, change)


@planted
def all_of(folder: Path, *plants: Plant) -> None:
    """One after the other."""
    for one in plants:
        one(folder)


@planted
def hide(folder: Path, opened_as: str | None = None) -> None:
    """Show the records of an earlier run of these people as links, and state the lifetime without them.

    Args:
        opened_as: the people that the links are said to be about.
    """
    ours = _keys(folder)

    def change(records: list[Json]) -> None:
        for record in records:
            body = record.get("body", {})
            about = body.get("releases", [body["key"]] if "key" in body else [])
            if not set(about) <= set(ours):
                shown = opening_of(Record(**record))
                for key in ("time", "kind", "body"):
                    del record[key]
                record |= {"hash": hash_of(shown)} if opened_as is None else {**shown, "identity": opened_as}

    edit_chain(folder, change)
    follow(folder)


def follow(folder: Path) -> None:
    """The account states the lifetime that the ledger gives, if it gives any."""
    found = Bundle(folder)
    with contextlib.suppress(KeyError, TypeError, ValueError):
        if budget := budget_of(found.records, found.project.params.privacy.population):
            stated = lifetime_of(budget)
            edit_json(folder / names.PRIVACY, lambda value: value["ledger"].update(lifetime=stated))


def redraw(
    folder: Path, change: Callable[[Any], Any] = lambda table: table, only_csv: bool = False, stem: str = "synthetic"
) -> None:
    """Both files of a table as the generator of the bundle draws them, changed or not, with their lineage.

    Args:
        folder: of the bundle.
        change: of the table.
        only_csv: the Parquet file has the table without the change.
        stem: name of the table.
    """
    bundle = Bundle(folder)
    sample = bundle.project.sample
    table = Published.from_checked_folder(folder).tables(*sample)[stem]
    changed = change(table)
    (folder / f"{stem}.csv").write_bytes(
        csv_bytes(changed, bundle.project.model.tables[stem], bundle.project.params.ingest.format)
    )
    outputs = json.loads((folder / names.PRIVACY).read_text())["outputs"]
    places = [path for path in outputs if "generator" in path or Path(path).name == f"{stem}.csv"]
    files = {path: _digest(folder, _name(path)) for path in places}
    shown = table if only_csv else changed
    (folder / f"{stem}.parquet").write_bytes(parquet_bytes(shown, files, sample_request(sample)))


def _write(path: Path, one: Released, receipt: Json) -> None:
    """A released file with any receipt."""
    from safetensors.numpy import save

    tensors = {"lattice": one.lattice}
    if one.keys:
        tensors["keys"] = np.frombuffer(canonical_json(list(one.keys)).encode(), dtype=np.uint8)
    path.write_bytes(save(tensors, metadata={"receipt": canonical_json(receipt)}))


def _outputs(folder: Path) -> Outputs:
    """The kind of a bundle."""
    return names.outputs_in([path.name for path in folder.iterdir()])


def _name(path: str) -> str:
    """The name in a bundle of a file of a project."""
    return path.removeprefix("data/models/").removeprefix("data/synthetic/")


def _keys(folder: Path) -> list[str]:
    return [one.receipt.key for one in Bundle(folder).answers]


def _digest(folder: Path, name: str) -> str:
    return sha256_bytes((folder / name).read_bytes())
