"""Plants of :mod:`tests.campaigns.lies`: false words, numbers, weights and rows in files of a bundle."""

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from likeness.bundle import contents as names
from likeness.bundle.files import Bundle
from likeness.core.hashing import sha256_bytes
from likeness.inference.relations import summary
from likeness.methods.maps import MAPS
from likeness.methods.saved_generator import SavedGenerator
from likeness.release.query import Query
from likeness.release.released import load_released
from likeness.verify.receipts import query_again
from tests.campaigns.forgery import (
    Plant,
    edit_chain,
    edit_json,
    edit_receipt,
    edit_values,
    hide,
    planted,
    redraw,
    replace_query,
    set_value,
)

NOTE = "an independent auditor has confirmed epsilon = 0.01"
OFF, SHA = 1e-3, "0" * 64
KEYS, COUNTS, COLUMNS, SECOND, EMBEDDING = "categories_1", "class_counts", "columns", "second", "embedding"
FOLLOWING = "next_embedding"
NUMBERS = ("steps", "histograms", "finer_histograms")
ALL = (KEYS, COUNTS, *NUMBERS, COLUMNS, "products", SECOND, EMBEDDING)


def file(name: str, data: bytes = b"x") -> Plant:
    """Write a file."""
    return lambda folder: (folder / name).write_bytes(data) and None


@planted
def without(folder: Path, *files: str) -> None:
    """Take files away."""
    for name in files:
        (folder / name).unlink()


def records(change: Callable[[list[dict[str, Any]]], object]) -> Plant:
    """Change records of the ledger."""
    return lambda folder: edit_chain(folder, change)


def last(which: str, **changes: Any) -> Plant:
    """Change the last record of a kind, beside its body."""
    return records(lambda records: [r for r in records if r.get("kind") == which][-1].update(changes))


def link(**changes: Any) -> Plant:
    """Change the first link to other people's records."""
    return records(lambda records: next(r for r in records if "content" in r).update(changes))


def unsealed(name: str, change: Callable[[list[str]], list[str]]) -> Plant:
    """Change lines of a file."""
    return lambda folder: (
        (folder / name).write_text("".join(change((folder / name).read_text().splitlines(True)))) and None
    )


def order(records: list[dict[str, Any]]) -> None:
    """The commit of the embedding stands before its reservation."""
    places = [place for place, record in enumerate(records) if record.get("kind") in ("reserve", "commit")]
    records[places[-2]], records[places[-1]] = records[places[-1]], records[places[-2]]


def asked_early(records: list[dict[str, Any]]) -> None:
    """The reservation of the embedding stands before the commit of the release before it."""
    places = [place for place, record in enumerate(records) if record.get("kind") in ("reserve", "commit")]
    answered, asked, done = (records[place] for place in places[-3:])
    records[places[-3]], records[places[-2]] = asked, answered
    done["body"]["reserve_seq"] = places[-3] + 1


def links(pattern: str, new: str) -> Plant:
    """Replace a pattern in the lines of links to other people's records."""
    lines = lambda told: [re.sub(pattern, new, line) if "content" in line else line for line in told]  # noqa: E731
    return unsealed(names.LEDGER, lines)


@planted
def metadata(folder: Path, name: str) -> None:
    """A note in the header of a safetensors file."""
    data = (folder / name).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header["__metadata__"]["note"] = NOTE
    text = json.dumps(header).encode()
    (folder / name).write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :])


@planted
def parquet(folder: Path, change: Callable[[dict[bytes, bytes]], dict[bytes, bytes]], field: bool = False) -> None:
    """Write the Parquet file of the table again with other words in its header."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / names.TABLE)
    if field:
        first = table.schema.field(0).with_metadata({"note": NOTE})
        table = table.cast(table.schema.set(0, first))
    pq.write_table(table.replace_schema_metadata(change(dict(table.schema.metadata))), folder / names.TABLE)


def padded(folder: Path) -> None:
    """Bytes between the columns of the Parquet file and its header."""
    path = folder / names.TABLE
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little") + 8
    path.write_bytes(data[:-size] + NOTE.encode() + data[-size:])


def pandas(header: dict[bytes, bytes], **changes: Any) -> dict[bytes, bytes]:
    return {**header, b"pandas": json.dumps({**json.loads(header[b"pandas"]), **changes}).encode()}


def table(change: Callable[[Any], Any]) -> Plant:
    """Draw the table from the generator, and change it in both files."""
    return lambda folder: redraw(folder, change)


def real(table: Any) -> Any:
    """Rows of other people in the place of the table's."""
    return table.assign(x=table["x"].array[::-1], years=table["years"].array[::-1])


def swapped(table: Any) -> Any:
    """Categories renamed, codes as they were."""
    first, second = table["paid"].cat.categories
    return table.assign(paid=table["paid"].cat.rename_categories({first: second, second: first}))


def moved(table: Any) -> Any:
    """One cell in two hundred is another."""
    x = table["x"].to_numpy().copy()
    x[0] = 1 - x[0]
    return table.assign(x=x)


def older(table: Any) -> Any:
    """Everybody below forty years has one year more."""
    return table.assign(years=table["years"] + (table["years"] < 40).astype("Int64"))


def nudged(table: Any) -> Any:
    """Every number in its last digits."""
    return table.assign(x=table["x"] * (1 - 1e-7))


def memorized(folder: Path, generator: str = "generator", stems: Sequence[str] = ("synthetic",)) -> None:
    """A generator whose components hold few rows, those of the cells it drew most seldom, and its tables.

    The first column stays as it is: a rule forbids its rarest cell for half of the people.
    """
    saved = SavedGenerator.load(folder / generator)
    network: Any = saved.network
    network.logits[:, network.sizes[0] :] *= -30
    saved.save(folder / generator)
    for stem in stems:
        redraw(folder, stem=stem)


def exchanged(folder: Path) -> None:
    """Both generators of histories under each other's name."""
    (folder / "generator/people").rename(folder / "generator/other")
    (folder / "generator/following").rename(folder / "generator/people")
    (folder / "generator/other").rename(folder / "generator/following")


def linked(change: Callable[[Any], Any], stem: str) -> Plant:
    """Draw a table of histories from the generator, and change it in both files."""
    return lambda folder: redraw(folder, change, stem=stem)


def of_another(person: int) -> Callable[[Any], Any]:
    """The last event is of another person."""
    return lambda table: table.assign(pid=[*table["pid"][:-1], person])


def last_first(table: Any) -> Any:
    """The last event stands before the others."""
    return table.iloc[[-1, *range(len(table) - 1)]]


def all_in(state: str) -> Callable[[Any], Any]:
    """Each event has one state."""
    return lambda table: table.assign(
        state=table["state"].astype(str).map(lambda _: state).astype(table["state"].dtype)
    )


def of_one(table: Any) -> Any:
    """All events are of one person, on one day."""
    return all_in("well")(table).assign(pid=1, day=1)


def other_wards(table: Any) -> Any:
    """Each person is in the other ward."""
    ward = table["ward"]
    return table.assign(ward=type(ward.array).from_codes(1 - ward.cat.codes, dtype=ward.dtype))


@planted
def weights_of(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Another specification of the generator; the weights say that they were saved with it."""
    path = folder / names.WEIGHTS
    old = sha256_bytes((folder / names.SPEC).read_bytes())
    edit_json(folder / names.SPEC, change)
    new = sha256_bytes((folder / names.SPEC).read_bytes())
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))


def trained_elsewhere(folder: Path) -> None:
    """The generator was trained by a library that its method does not need."""
    where = {"torch": "9.9.9", "device": "cpu", "processor": "x86_64 AVX2", "processes": 1}
    weights_of(lambda spec: spec["provenance"].update(environment=where))(folder)


def guest(folder: Path) -> None:
    """One array more among the weights."""
    path = folder / names.WEIGHTS
    with safe_open(path, "np") as file:
        metadata = file.metadata()
    save_file({**load_file(path), "zz": np.frombuffer(NOTE.encode(), dtype=np.uint8)}, path, metadata=metadata)


def symmetric(folder: Path) -> None:
    """Second moments without the noise that makes them unsymmetric."""
    size = 30
    feature = MAPS["cosine_moments"]((8, 8), size, 1.0, 0.3)
    values = np.random.default_rng(0).integers(-(1 << 30), 1 << 30, (size, 1 + size))
    values[:, 1:] = np.triu(values[:, 1:]) + np.triu(values[:, 1:], 1).T
    replace_query(EMBEDDING, Query(EMBEDDING, "privatize", feature), values.reshape(1, -1))(folder)


def coarse(folder: Path) -> None:
    """Noise of a few steps of the lattice."""
    one = load_released(folder / names.RELEASED / f"{EMBEDDING}.safetensors").receipt
    squared = (one.noise_scale / one.noise_multiplier) ** 2
    changes = {"noise_multiplier": 1e-6, "noise_scale": 1e-6 * math.sqrt(squared), "rho": 0.5e12}
    edit_receipt(EMBEDDING, **changes)(folder)


def coarse_keys(folder: Path) -> None:
    """Counts in whole rows, where the noise is no wider than some of them."""
    one = load_released(folder / names.RELEASED / f"{KEYS}.safetensors").receipt
    edit_receipt(KEYS, lattice_bits=0, noise_scale=2 * one.noise_multiplier)(folder)


def double_keys(folder: Path) -> None:
    """Counts by class, of a release that has none."""
    path = folder / names.RELEASED / f"{KEYS}.safetensors"
    edit_values(KEYS, lambda lattice: lattice.reshape(2, 1))(folder)
    path.write_bytes(path.read_bytes().replace(b'\\"num_groups\\":1', b'\\"num_groups\\":2'))


@planted
def feature(folder: Path, query: str, drop: str = "", **changes: Any) -> None:
    """Change the specification of a map."""
    feature = load_released(folder / names.RELEASED / f"{query}.safetensors").receipt.feature
    edit_receipt(query, feature={key: value for key, value in {**feature, **changes}.items() if key != drop})(folder)


def off(query: str, *fields: str) -> list[Plant]:
    """A number of a receipt, a thousandth larger than it is."""

    def plant(field: str) -> Plant:
        def change(folder: Path) -> None:
            receipt = load_released(folder / names.RELEASED / f"{query}.safetensors").receipt
            edit_receipt(query, **{field: getattr(receipt, field) * (1 + OFF)})(folder)

        return change

    return [plant(field) for field in fields]


def swap_releases(folder: Path) -> None:
    """Two releases under each other's name."""
    first, second = (folder / names.RELEASED / f"{name}.safetensors" for name in (COUNTS, COLUMNS))
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)


def cheaper_plan(folder: Path) -> None:
    """Settings and plan of epsilon = 0.1, as the project makes them."""
    from likeness.bundle.files import Bundle
    from likeness.core.paths import json_text

    set_value(names.SETTINGS, "privacy.epsilon", 0.1)(folder)
    found = Bundle(folder)
    (folder / names.PLAN_FILE).write_text(json_text(found.project.plan.to_dict()))


def clustered(**spec: Any) -> Plant:
    """Say that the embedding sums by clusters of images, which a map assigns."""
    image = {"shape": [4, 4], "num_coefficients": 3, "bound": 1.0}
    return feature(EMBEDDING, terms="each_cluster", clusters={**image, **spec})


def field(path: str, value: Any) -> Plant:
    """Set a value of the account."""
    return set_value(names.PRIVACY, path, value)


def digits_of_a_plan(folder: Path) -> None:
    """The last digits of a noise multiplier, which are not those of the settings."""

    def change(plan: dict[str, Any]) -> None:
        plan["queries"][1]["noise_multiplier"] *= 1 + 1e-10

    edit_json(folder / names.PLAN_FILE, change)


def copied_count(folder: Path) -> None:
    """One value of a release in the place of a value of another."""
    counts = load_released(folder / names.RELEASED / f"{COUNTS}.safetensors").lattice
    edit_values("products", lambda values: np.hstack([counts[:1, :1], values[:, 1:]]))(folder)


def key_with_a_blank(folder: Path) -> None:
    """A category that no text of a row can be."""
    path = folder / names.RELEASED / f"{KEYS}.safetensors"
    path.write_bytes(path.read_bytes().replace(b'["clerk","nurse"]', b'["clerk","nurs "]'))


def keys_twice(folder: Path) -> None:
    """The same key twice."""
    path = folder / names.RELEASED / f"{KEYS}.safetensors"
    path.write_bytes(path.read_bytes().replace(b'["clerk","nurse"]', b'["clerk","clerk"]'))


def another_query(folder: Path) -> None:
    """A query more in the plan, which takes of the embedding's share."""

    def change(plan: dict[str, Any]) -> None:
        plan["queries"].append({**plan["queries"][-1], "query": "histogram"})

    edit_json(folder / names.PLAN_FILE, change)


def relations_follow(folder: Path) -> None:
    """The account states the relations of the generator that is here now, which may show other ones by chance."""
    bundle = Bundle(folder)
    generators = [SavedGenerator.load(folder / rows.generator) for rows in bundle.project.row_sets]
    field("relations", summary(bundle.project.row_sets, bundle.answers, generators))(folder)


def half_of_it(folder: Path) -> None:
    """Two releases taken away, from the account too, and their entries shown as links."""
    without(*(f"{names.RELEASED}/{query}.safetensors" for query in (COUNTS, COLUMNS)))(folder)
    hide("visitors")(folder)
    _cut = {COUNTS, COLUMNS}
    edit_json(
        folder / names.PRIVACY,
        lambda value: value.update(queries=[query for query in value["queries"] if query["query"] not in _cut]),
    )


def wider(folder: Path) -> None:
    """Counts of four classes, in a receipt of two."""
    path = folder / names.RELEASED / f"{COUNTS}.safetensors"
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + size].replace(b'"shape":[2,1],"data_offsets":[0,16]', b'"shape":[2,2],"data_offsets":[0,32]')
    path.write_bytes(len(header).to_bytes(8, "little") + header + data[8 + size :] + bytes(16))


def inner(folder: Path, **changes: Any) -> None:
    """Another size in the map that PEARL's embedding has inside."""
    receipt = load_released(folder / names.RELEASED / f"{EMBEDDING}.safetensors").receipt
    feature(EMBEDDING, inner={**receipt.feature["inner"], **changes})(folder)


def lower(folder: Path) -> None:
    """A threshold that is a hundredth too low."""
    receipt = load_released(folder / names.RELEASED / f"{KEYS}.safetensors").receipt
    assert receipt.threshold is not None
    edit_receipt(KEYS, threshold=receipt.threshold * 99 // 100)(folder)


def forget(privacy: dict[str, Any]) -> None:
    privacy["queries"].pop()


def first_hidden(folder: Path) -> None:
    """A link in the place of the ledger's first record."""

    def change(records: list[dict[str, Any]]) -> None:
        link = next(record for record in records if "content" in record)
        records[0] = dict(link)

    edit_chain(folder, change)


def renumber(folder: Path) -> None:
    """Receipts name the places where their reservations are now."""
    places = {record.body["key"]: record.seq for record in Bundle(folder).records if record.kind == "reserve"}
    for one in Bundle(folder).answers:
        edit_receipt(one.receipt.query, ledger_seq=places[one.receipt.key])(folder)


def turned_around(folder: Path) -> None:
    """The cells of each table of the embedding are in reverse order; their sums are as before."""
    parts = query_again(load_released(folder / names.RELEASED / f"{EMBEDDING}.safetensors").receipt).bounded_parts
    ends = np.cumsum([part.width for part in parts])[:-1]
    edit_values(EMBEDDING, lambda lattice: np.hstack([part[:, ::-1] for part in np.split(lattice, ends, axis=1)]))(
        folder
    )


def stripes(lattice: np.ndarray) -> np.ndarray:
    """Far more records in the cells of the first pair of columns."""
    return (np.arange(lattice.shape[1]) < 20) * (1 << 42)


def minor(records: int) -> Callable[[np.ndarray], np.ndarray]:
    """Records of two classes in each other's place, in two cells of the last column. All sums are as before."""
    steps = round(records * math.sqrt(500) * 2**24)  # of a record in a table of pairs
    return lambda lattice: lattice + np.pad([[steps, -steps], [-steps, steps]], ((0, 0), (lattice.shape[1] - 4, 2)))
