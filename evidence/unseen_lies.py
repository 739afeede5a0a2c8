"""Lies of a hostile author who had read the verifier, and no lie of :mod:`evidence.lies`.

Run: ``python -m evidence.unseen_lies [NAME ...]``. It prints a table, and exits with 1 if a lie is believed.

A lie says what a reader would rely on and what something else in the bundle contradicts, or it hides a text where
Likeness writes none. Whatever only its author can vouch for is no lie: see ``docs/howto/publish.md``.
"""

import contextlib
import json
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from evidence import forgery as f
from evidence.honest_bundles import bundles, own_ledger
from evidence.hostile_files import deflated, files_of, packed_zip
from evidence.lie_plants import field, weights_of
from evidence.lie_plants import records as ledger
from evidence.lies import campaign, judged
from likeness import Synthesizer
from likeness.bundle import contents as names
from likeness.bundle.files import Bundle
from likeness.core.errors import LikenessError
from likeness.core.hashing import sha256_json
from likeness.core.paths import Outputs, json_text
from likeness.data.schema.constrained_tables import forward_transform
from likeness.data.schema.schema import Schema
from likeness.generators.base import Compute
from likeness.inference.relations import summary
from likeness.ledger.budget import budget_of
from likeness.ledger.records import SALT
from likeness.methods.fit import fit_all
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.account import Standing, notes, privacy_json
from likeness.pipeline.card import STAGE as CARD
from likeness.pipeline.card import card_figures, card_queries
from likeness.pipeline.consistency import queries_of
from likeness.pipeline.synthetic_table import read_synthetic, sample_request
from likeness.privacy.accountant import compose
from likeness.release.partition_selection import STAGE as SELECTION
from likeness.release.request import request_in

Json = dict[str, Any]
Change = Callable[[list[Json]], object]
SECRET = "alice_has_hiv"
ASK = (SELECTION, "auxiliary", "privatize", CARD)


class Lie(NamedTuple):
    """A lie, and the honest bundle it is planted in; ``late``: it is about the account, which all else gives."""

    kind: str
    plant: f.Plant
    method: str = "marginals"
    late: bool = False
    check, retrain, verdict = "", True, None

    def told(self, honest: dict[str, Path], folder: Path) -> Path:
        """Plant it in a copy of an honest bundle, and let digests, chain, account and texts agree with it."""
        copy, elsewhere = Path(shutil.copytree(honest[self.method], folder / "bundle")), None
        if not self.late:
            try:
                self.plant(copy)
            except Exception as error:
                print(f"  (planted as far as it goes: {type(error).__name__}: {str(error)[:150]})", file=sys.stderr)
        with contextlib.suppress(Exception):  # what cannot be stated keeps its words
            f.seal(copy, f.Seal.CHAIN)
            restate(copy)
            f.seal(copy, f.Seal.TEXTS)
        if self.late:
            elsewhere = self.plant(copy)
            with contextlib.suppress(Exception):
                f.seal(copy, f.Seal.TEXTS)
        f.seal(copy, f.Seal.SUMS)
        return elsewhere or copy


# --- tools of an author who makes all else agree


def renumber(change: Change) -> f.Plant:
    """Change the ledger's records, and let commits and receipts name the new places of their reservations."""

    def plant(folder: Path) -> None:
        seqs: dict[str, int] = {}

        def again(records: list[Json]) -> None:
            change(records)
            seqs.update({r["body"]["key"]: place for place, r in enumerate(records, 1) if r.get("kind") == "reserve"})
            for record in records:
                if record.get("kind") == "commit":
                    record["body"]["reserve_seq"] = seqs[record["body"]["key"]]

        f.edit_chain(folder, again)
        for one in Bundle(folder).answers:
            f.edit_receipt(one.receipt.query, ledger_seq=seqs[one.receipt.key])(folder)

    return plant


def entry(records: list[Json], kind: str, query: str) -> int:
    """Place of the last reservation of a query, or of its commit."""
    key = [r["body"]["key"] for r in records if r.get("kind") == "reserve" and r["body"]["query"] == query][-1]
    return next(i for i, r in enumerate(records) if r.get("kind") == kind and r["body"].get("key") == key)


def pair(records: list[Json], query: str) -> list[Json]:
    """The last reservation of a query, and its commit."""
    return [records[entry(records, kind, query)] for kind in ("reserve", "commit")]


def first(records: list[Json], kind: str) -> int:
    """Place of the first record of a kind."""
    return next(place for place, record in enumerate(records) if record.get("kind") == kind)


def bodies(records: list[Json], kind: str) -> list[Json]:
    """Bodies of all records of a kind."""
    return [record["body"] for record in records if record.get("kind") == kind]


def fresh(record: Json, place: int, /, **changes: Any) -> Json:
    """A copy of a record with salts of its own; the key of a reservation follows."""
    salts = {SALT: f"{place:032x}", "content_salt": f"{place + 1:032x}"}
    body = {**json.loads(json.dumps(record["body"])), **salts, **changes}
    if record["kind"] == "reserve":
        body["key"] = sha256_json(request_in(body))
    return {**record, "body": body}


def copies(records: list[Json], query: str, sha256: str, /, **changes: Any) -> list[Json]:
    """Another reservation of a query, changed, and the commit of other bytes."""
    reserve, commit = pair(records, query)
    asked = fresh(reserve, 50, **changes)
    return [asked, fresh(commit, 53, key=asked["body"]["key"], sha256=sha256)]


def another_run(**changes: Any) -> f.Plant:
    """A reservation like that of the class counts, with its commit, right after the cap."""

    def change(records: list[Json]) -> None:
        cap = first(records, "cap")
        added = copies(records, "class_counts", f"{5:064x}", **{"slot": "before", **changes})
        records[cap + 1 : cap + 1] = [one | {"time": records[cap]["time"]} for one in added]

    return renumber(change)


def ask(query: str, **changes: Any) -> f.Plant:
    """Ask a query with another specification, under the key that belongs to it."""
    receipt = {key: value for key, value in changes.items() if key != "encoding"}
    return f.all_of(f.edit_receipt(query, **receipt), f.edit_request(query, **changes))


def refit(folder: Path) -> None:
    """Ask, train, draw and ask for the card again, as an honest run would after these values and settings."""
    for name in [query.query for query in Bundle(folder).plan.queries if query.stage != CARD]:
        bundle = Bundle(folder)
        query, encoding = queries_of(bundle.project, bundle.plan, bundle.row_sets, bundle.auxiliary)[name]
        ask(name, feature=query.spec(), encoding=encoding)(folder)
    bundle = Bundle(folder)
    trained, _ = fit_all(bundle.project.method, bundle.row_sets, bundle.training_answers, Compute("cpu", 1, "float32"))
    for rows, one in zip(bundle.row_sets, trained, strict=True):
        one.save(folder / rows.generator)
    draw_again(folder)


def draw_again(folder: Path) -> None:
    """The tables of the generator, and the questions of the card about them."""
    for stem in Bundle(folder).model.tables:
        f.redraw(folder, stem=stem)
    bundle = Bundle(folder)
    if (card := bundle.params.evaluate.card) is not None:
        table = forward_transform(read_synthetic(folder / names.TABLE, bundle.schema), bundle.schema)
        for query in card_queries(card, bundle.plan, bundle.facts, bundle.auxiliary, table):
            ask(query.name, feature=query.spec(), encoding=bundle.row_sets[0].encoding)(folder)


def restate(folder: Path) -> None:
    """The account of the bundle as its author would compute it."""
    bundle, privacy = Bundle(folder), Bundle(folder).json(names.PRIVACY)
    answers = sorted(bundle.answers, key=lambda one: (ASK.index(one.receipt.stage), one.receipt.query))
    receipts, budget = [one.receipt for one in answers], budget_of(bundle.records, bundle.params.privacy.population)
    assert budget is not None
    places = {name: f._digest(folder, name) for name in (*bundle.released, *bundle.project.outputs.files)}
    by_key = {one.receipt.key: places[name] for name, one in bundle.released.items()}
    account = privacy_json(
        bundle.params,
        bundle.plan,
        receipts,
        compose(receipts, bundle.params.privacy.delta),
        Standing(bundle.records[0].body["ledger_id"], budget, by_key),
        sample_request(bundle.sample),
        {str(Outputs.place(name)): places[name] for name in bundle.project.outputs.files},
        notes(bundle.project.method, bundle.row_sets, bundle.auxiliary),
        {one.receipt.query: len(one.keys) for one in answers},
        bundle.schema.rules,
        card_figures(bundle.facts, {one.receipt.query: one for one in answers}),
        summary(bundle.row_sets, answers, [SavedGenerator.load(folder / rows.generator) for rows in bundle.row_sets]),
    )
    (folder / names.PRIVACY).write_text(json_text({**account, "software": privacy["software"]}))


def account(change: Callable[[Json], object]) -> f.Plant:
    """Change the account."""
    return lambda folder: f.edit_json(folder / names.PRIVACY, change)


def replan(change: Callable[[Json], object]) -> f.Plant:
    """Another plan, which all releases and reservations name that named this one."""

    def plant(folder: Path) -> None:
        old = Bundle(folder).plan.digest
        f.edit_json(folder / names.PLAN_FILE, change)
        new = {"plan": Bundle(folder).plan.digest}
        for one in Bundle(folder).answers:
            if one.receipt.plan == old:
                f.edit_receipt(one.receipt.query, **new)(folder)
        ledger(lambda records: [b.update(new) for b in bodies(records, "reserve") if b["plan"] == old])(folder)

    return plant


def values(query: str, change: Callable[[np.ndarray], np.ndarray]) -> f.Plant:
    """Other values of a release, and a training on them."""
    return f.all_of(f.edit_values(query, change), refit)


def everywhere(change: Callable[[int, Any], f.Plant]) -> f.Plant:
    """Change each receipt: its place and the receipt in, a plant out."""

    def plant(folder: Path) -> None:
        for place, one in enumerate(Bundle(folder).answers):
            change(place, one.receipt)(folder)

    return plant


def tensors(change: Callable[[Json], Json]) -> f.Plant:
    """Change the weights, and let table and card follow as far as they can."""

    def plant(folder: Path) -> None:
        path = folder / names.WEIGHTS
        with safe_open(path, "np") as file:
            metadata = file.metadata()
        save_file(change(load_file(path)), path, metadata=metadata)
        with contextlib.suppress(LikenessError):
            draw_again(folder)

    return plant


# --- plants of single lies


def plan_with_a_text_in_its_digits(plan: Json) -> None:
    """The last digits of every noise multiplier spell a text; no noise is like this one."""
    for place, query in enumerate(plan["queries"]):
        query["noise_multiplier"] *= 1 + 5e-10 * ord(SECRET[place]) / 128


def place_that_is_no_whole_number(records: list[Json]) -> None:
    """A commit names its reservation as 14.0."""
    body = records[entry(records, "commit", "embedding")]["body"]
    body["reserve_seq"] = float(body["reserve_seq"])


def copy_of_this_release(folder: Path) -> None:
    """An earlier run of another attempt committed the very bytes of this one's class counts."""
    another_run()(folder)
    key = next(one.receipt.key for one in Bundle(folder).answers if one.receipt.query == "class_counts")
    mine = {one.receipt.key: f._digest(folder, name) for name, one in Bundle(folder).released.items()}[key]
    ledger(lambda r: [b.update(sha256=mine) for b in bodies(r, "commit") if b["sha256"] == f"{5:064x}"])(folder)


def lose(query: str, then: Change = list) -> f.Plant:
    """The ledger gives a release up right after its commit."""

    def change(records: list[Json]) -> None:
        own = records[entry(records, "reserve", query)]
        body = {"key": own["body"]["key"], "identity": own["body"]["identity"]}
        gone = {"seq": 0, "time": own["time"], "kind": "lost", "previous": "", "digest": "", "body": body}
        records.insert(entry(records, "commit", query) + 1, fresh(gone, 90))
        then(records)

    return renumber(change)


def drawn_again(records: list[Json]) -> None:
    """The embedding that was given up was drawn again."""
    place = first(records, "lost") + 1
    records[place:place] = copies(records, "embedding", "c" * 64, slot="1~2")


def card_of_the_best_of_many_tables(records: list[Json]) -> None:
    """The settings allow a card of one table, and the ledger has two of this plan: the better one is shown."""
    feature = pair(records, "card_confusion")[0]["body"]["feature"]
    more = copies(records, "card_confusion", "d" * 64, feature={**feature, "scores": feature["scores"][::-1]})
    place = entry(records, "reserve", "card_confusion")
    records[place:place] = more


def card_before_the_table(records: list[Json]) -> None:
    """The ledger answered the question about the table before it had the releases that the table was made from."""
    cards = pair(records, "card_distances")
    for one in cards:
        records.remove(one)
    place = first(records, "cap") + 1
    records[place:place] = cards


def split_over(twin: str) -> f.Plant:
    """An earlier run of these people was about people of another name, and is hidden."""

    def keep(records: list[Json]) -> None:
        for record in records:
            if record.get("identity") == twin:
                record["population"] = sha256_json([record[SALT], twin])

    return f.all_of(another_run(), f.hide(twin), ledger(keep), f.follow)


def copy_of_another_release(folder: Path) -> None:
    """The first product of two columns is the number of records of a class, to the last bit of the noise."""
    counts = next(one for one in Bundle(folder).answers if one.receipt.query == "class_counts").lattice

    def change(products: np.ndarray) -> np.ndarray:
        copied = products.copy()
        copied[0, 0] = counts[0, 0]
        return copied

    f.edit_values("products", change)(folder)


def names_of_people_as_categories(folder: Path) -> None:
    """A released category is written in a form that Likeness never writes: with a blank behind it."""
    path = folder / names.RELEASED / "categories_1.safetensors"
    one = f.load_released(path)
    path.write_bytes(f.to_bytes(f.Released(one.lattice, one.receipt, ("clerk ", *one.keys[1:]))))
    refit(folder)


def truths(value: Any) -> None:
    """Every 1 in a specification is written as true, every 0.0 as -0.0."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict | list):
            truths(item)
        elif type(item) is int and item in (0, 1) and key not in ("format", "processes"):
            value[key] = bool(item)
        elif type(item) is float and item == 0:
            value[key] = -0.0


def events_of_others(table: pd.DataFrame) -> pd.DataFrame:
    """Two people have exchanged their events."""
    column = table.columns[0]
    low, high = table[column].min(), table[column].max()
    changed = table.assign(**{column: table[column].replace({low: high, high: low})})
    return changed.sort_values(column, kind="stable", ignore_index=True)


def empty_blocks_that_spell(content: bytes) -> bytes:
    """Before the bytes of a packed file stand empty blocks, as many as letters have bits."""
    bits = "".join(f"{ord(letter):08b}" for letter in SECRET)
    return b"".join(b"\0\0\0\xff\xff" * (1 + int(bit)) for bit in bits) + deflated(content)


def last_bits_of_a_stream(content: bytes) -> bytes:
    """The bits behind the end of a packed file, up to its last byte, spell a text."""
    packed, again = deflated(content), zlib.decompressobj(-15)
    high = packed[:-1] + bytes([packed[-1] | 0x80])
    return high if again.decompress(high) == content and again.eof else packed


TRAINED_ELSEWHERE = {"torch": "9.9.9", "device": "cpu", "processor": "x86_64 " + SECRET, "processes": 1}
ONE_SALT = dict.fromkeys((SALT, "content_salt"), (SECRET + "...").encode().hex())
LETTER = int.from_bytes((SECRET * 12).encode(), "big")
NO_PLAN = {"method": "ntk", "plan": "ab" * 32}
OF_PEARL, OF_IMAGES, OF_HISTORIES = {"method": "pearl"}, {"method": "images"}, {"method": "histories"}
LATE = {"late": True}
LIES: dict[str, Lie] = {name: Lie(kind, plant, **dict(*rest)) for kind, name, plant, *rest in (
    # --- the account: less cost, another sign, a text
    *(("account", f"{total}_a_little_less",
       account(lambda value, total=total: value["total"].update({total: 0.9991 * value["total"][total]})), LATE)
      for total in ("epsilon_gaussian", "epsilon_rdp")),
    ("account", "epsilon_below_one", field("total.epsilon", 0.9999991), LATE),
    ("account", "interval_from_minus_zero",
     account(lambda value: min(value["card"], key=lambda figure: figure["low"]).update(low=-0.0)), LATE),
    ("account", "software_with_a_diagnosis", field("software.numpy", "1_" + SECRET), LATE),
    # --- settings and plan in other spellings
    ("settings", "delta_that_is_false", replan(lambda plan: plan["queries"][1].update(delta_keys=False))),
    ("settings", "delta_below_zero_by_sign",
     replan(lambda plan: [query.update(delta_keys=-0.0) for query in plan["queries"][1:]])),
    ("settings", "number_of_people_as_float", replan(lambda plan: plan.update(num_records=800.0)), OF_IMAGES),
    ("settings", "plan_with_a_text_in_its_digits", replan(plan_with_a_text_in_its_digits)),
    ("settings", "cost_a_hair_less", everywhere(lambda place, receipt: f.edit_both(
        receipt.query, rho=receipt.rho * (1 - 8e-10 * ord(SECRET[place]) / 128)))),
    ("settings", "trained_on_another_device", f.set_value(names.SETTINGS, "train.device", "cuda"), OF_PEARL),
    ("settings", "seed_that_is_a_letter", f.all_of(f.set_value(names.SETTINGS, "train.seed", LETTER), refit)),
    ("settings", "channels_nobody_uses",
     f.set_value(names.SETTINGS, "pearl.train.channels", [ord(letter) for letter in SECRET]), OF_PEARL),
    # --- other records about the same people
    ("records", "query_of_another_run_is_a_sentence", another_run(query=SECRET), OF_PEARL),
    ("records", "unit_with_blanks", another_run(unit={"column": "pid" + " " * ord("h"), "max_rows": 2})),
    ("records", "place_that_is_no_whole_number", ledger(place_that_is_no_whole_number)),
    ("records", "receipt_of_a_place_with_a_point", f.edit_receipt("embedding", ledger_seq=14.0)),
    ("records", "one_salt_for_all", ledger(lambda r: [one["body"].update(ONE_SALT) for one in r if "body" in one])),
    ("records", "earlier_delta_below_zero", another_run(delta_keys=-0.0)),
    ("records", "earlier_copy_of_this_release", copy_of_this_release),
    ("records", "embedding_by_a_method_that_has_none", f.edit_both("embedding", **NO_PLAN)),
    # --- history of the ledger: draws, losses, order
    ("history", "seventh_draw_without_six_losses", f.all_of(ask("embedding", slot="1~7"), refit)),
    ("history", "published_what_was_lost", lose("embedding")),
    ("history", "drawn_twice_and_the_better_one_kept", lose("embedding", drawn_again)),
    ("history", "lost_after_it_was_published",
     lose("class_counts", lambda r: r.insert(len(r) - 1, r.pop(first(r, "lost"))))),
    ("history", "card_of_the_best_of_many_tables", renumber(card_of_the_best_of_many_tables)),
    ("history", "card_before_the_table", renumber(card_before_the_table)),
    # --- identities: another letter, one sign for two, an alpha, a letter without ink
    *(("identity", name, split_over(twin)) for name, twin in (
        ("cyrillic_twin", "st\u0430ff"), ("ligature_twin", "sta\ufb00"), ("latin_lookalike", "st\u0251ff"),
        ("invisible_letter", "sta\u3164ff"))),
    # --- released values
    ("values", "whole_people_everywhere", f.all_of(
        f.edit_values("card_distances", lambda values: (values >> 24) << 24),
        f.edit_values("card_confusion", lambda values: (values >> 30) << 30))),
    ("values", "a_hundred_times_the_people", values("class_counts", lambda values: values * 100 + 12345)),
    ("values", "classes_exchanged", values("class_counts", lambda values: np.array([[values.sum() + 991], [99_991]]))),
    ("values", "all_noise_and_nobody", values("embedding", np.zeros_like)),
    ("values", "copy_of_another_release", copy_of_another_release),
    ("values", "third_axis", f.edit_values("class_counts", lambda values: values.reshape(2, 1, 1))),
    ("values", "number_of_pictures", f.all_of(
        f.set_value(names.SETTINGS, "privacy.num_records", 800_000),
        replan(lambda plan: plan.update(num_records=800_000)), field("num_records", 800_000), refit), OF_IMAGES),
    ("values", "names_of_people_as_categories", names_of_people_as_categories),
    # --- generator and tables
    ("generator", "trained_by_another_library", f.all_of(
        weights_of(lambda spec: spec["provenance"].update(environment=TRAINED_ELSEWHERE)), draw_again)),
    ("generator", "latent_of_a_truth", f.all_of(weights_of(truths), draw_again), OF_PEARL),
    ("generator", "weights_of_another_sign",
     tensors(lambda found: {name: np.nextafter(v, np.inf, dtype=v.dtype) for name, v in found.items()})),
    ("generator", "weights_with_a_guest",
     tensors(lambda found: {**found, "zz": np.frombuffer(SECRET.encode(), dtype=np.uint8)})),
    ("table", "events_of_others", lambda folder: f.redraw(folder, events_of_others, stem="events"), OF_HISTORIES),
    # --- schema
    ("schema", "word_for_missing", f.edit_file(names.SCHEMA, "missing_values: []", f"missing_values: [{SECRET}]")),
    # --- zip files
    ("zip", "order_that_spells", lambda folder: packed_zip(folder, files_of(folder)[::-1]), LATE),
    *(("zip", pack.__name__, lambda folder, pack=pack: packed_zip(folder, files_of(folder), pack), LATE)
      for pack in (empty_blocks_that_spell, last_bits_of_a_stream)),
    # --- texts for machines that people read
    ("provenance", "sampler_with_a_diagnosis", everywhere(lambda _, receipt: f.edit_receipt(
        receipt.query, sampler=f"opendp 0_{SECRET} discrete gaussian"))),
    ("provenance", "ledger_software_with_a_diagnosis",
     ledger(lambda r: [body["software"].update(pandas=f"3_{SECRET}") for body in bodies(r, "reserve")])),
    ("ledgers", "split_over_two_identities", f.all_of(ask("class_counts", identity="others"), refit)),
    ("ledgers", "both_row_sets_of_two_tables", f.all_of(
        *(ask(f"next_{query}", digest="12" * 32)
          for query in ("class_counts", "histograms", "finer_histograms", "columns", "embedding")),
        refit), OF_HISTORIES),
)}  # fmt: skip


def images(folder: Path) -> dict[str, Path]:
    """An honest bundle of images whose number is public."""
    with own_ledger(folder):
        columns = {"digit": {"kind": "categorical", "categories": ["a", "b"]}}
        of = {"name": "images", "source": "made up", "task": "classification", "label": "digit"}
        schema = Schema.from_dict({**of, "image": {"shape": [4, 4]}, "columns": columns}, "schema")
        random = np.random.default_rng(1)
        pixels = {name: random.integers(0, 256, 800) for name in schema.names if name != "digit"}
        table = pd.DataFrame({**pixels, "digit": random.choice(["a", "b"], 800)})
        whose: Json = {"population": "drawings", "adjacency": "replace_one", "num_records": 800}
        model = Synthesizer(schema=schema, method="moments", **whose)
        model.fit(table).bundle(folder / "images", n=40, open_others=True)
        return {"images": folder / "images"}


def main() -> int:
    """Plant each lie, and print what the verifier says."""
    chosen = {name: LIES[name] for name in sys.argv[1:] or LIES}
    with tempfile.TemporaryDirectory() as temporary:
        (three := Path(temporary, "three")).mkdir()
        made = {**bundles(three), **images(Path(temporary))}
        for name in made:
            assert {check.passed for check in judged(Lie("honest", lambda _: None, name), made)} == {True}, name
        return campaign(chosen, made)


if __name__ == "__main__":
    sys.exit(main())
