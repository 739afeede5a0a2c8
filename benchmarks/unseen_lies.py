"""Lies of a hostile author who had read the verifier, and no lie of :mod:`benchmarks.lies`.

Run: ``python -m benchmarks.unseen_lies [NAME ...]``. It prints a table, and exits with 1 if a lie is believed.

A lie says what a reader would rely on and what something else in the bundle contradicts, or it hides a text where
Likeness writes none. Whatever only its author can vouch for is no lie: see ``docs/howto/publish.md``.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks import forgery as f
from benchmarks.honest_bundles import bundles
from likeness import Synthesizer
from likeness.bundle import contents as names
from likeness.bundle.files import Bundle, opened
from likeness.core.errors import LikenessError
from likeness.core.hashing import sha256_json
from likeness.core.paths import Outputs, json_text
from likeness.data.schema.ruled_tables import to_model
from likeness.data.schema.schema import Schema
from likeness.generators.base import Compute
from likeness.ledger.budget import budget_of
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.records import SALT
from likeness.methods.fit import fit_all
from likeness.pipeline.account import Standing, notes, privacy_json
from likeness.pipeline.card import STAGE as CARD
from likeness.pipeline.card import card_figures, card_queries
from likeness.pipeline.consistency import queries_of
from likeness.pipeline.synthetic_table import read_synthetic, sample_request
from likeness.privacy.accountant import compose
from likeness.release.partition_selection import STAGE as SELECTION
from likeness.verify import checks_of

Json = dict[str, Any]
SECRET = "alice_has_hiv"
ASK = (SELECTION, "auxiliary", "privatize", CARD)


class Lie(NamedTuple):
    """A lie, with the honest bundle it is planted in; ``late`` changes texts that follow from all else."""

    kind: str
    bundle: str
    plant: f.Plant
    late: Callable[[Path], object] | None


LIES: dict[str, Lie] = {}


def lie(kind: str, bundle: str = "marginals", late: bool = False) -> Callable[[f.Plant], f.Plant]:
    """Register a lie; ``late``: it is about the account, which all else gives."""

    def keep(plant: f.Plant) -> f.Plant:
        LIES[plant.__name__] = Lie(kind, bundle, (lambda _: None) if late else plant, plant if late else None)
        return plant

    return keep


# --- tools of an author who makes all else agree


def renumber(folder: Path, change: Callable[[list[Json]], object]) -> None:
    """Change the ledger's records, and let commits and receipts name the new places of their reservations."""
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


def entry(records: list[Json], kind: str, query: str) -> int:
    """Place of the last reservation of a query, or of its commit."""
    key = [r["body"]["key"] for r in records if r.get("kind") == "reserve" and r["body"]["query"] == query][-1]
    return next(i for i, r in enumerate(records) if r.get("kind") == kind and r["body"].get("key") == key)


def fresh(record: Json, place: int = 7, **changes: Any) -> Json:
    """A copy of a record with salts of its own."""
    salts = {SALT: f"{place:032x}", "content_salt": f"{place + 1:032x}"}
    return {**record, "body": {**json.loads(json.dumps(record["body"])), **salts, **changes}}


def of_kind(records: list[Json], kind: str) -> list[Json]:
    """Bodies of all records of a kind."""
    return [record["body"] for record in records if record.get("kind") == kind]


def another_run(folder: Path, draws: int = 1, **changes: Any) -> None:
    """Add a reservation like that of the class counts, with its commit, right after the cap; the key follows."""

    def change(records: list[Json]) -> None:
        source, cap = records[entry(records, "reserve", "class_counts")], _cap(records)
        committed = records[entry(records, "commit", "class_counts")]
        for draw in range(draws):
            new = fresh(source, 50 + 10 * draw, **{"slot": f"before{draw}", **changes})
            new["body"]["key"] = _key(new["body"])
            pair = [new, fresh(committed, 53 + 10 * draw, key=new["body"]["key"], sha256=f"{draw + 5:064x}")]
            for one in pair:
                one["time"] = records[cap]["time"]
            records[cap + 1 : cap + 1] = pair

    renumber(folder, change)


def _cap(records: list[Json]) -> int:
    return next(place for place, record in enumerate(records) if record.get("kind") == "cap")


def _key(body: Json) -> str:
    from likeness.release.request import request_in

    return sha256_json(request_in(body))


def refit(folder: Path) -> None:
    """Ask, train, draw and ask for the card again, as an honest run would after these values and settings."""
    for name in [query.query for query in Bundle(folder).plan.queries if query.stage != CARD]:
        bundle = Bundle(folder)
        query, encoding = queries_of(bundle.project, bundle.plan, bundle.row_sets, bundle.auxiliary)[name]
        _ask(folder, name, feature=query.spec(), encoding=encoding)
    bundle = Bundle(folder)
    trained, _ = fit_all(bundle.project.method, bundle.row_sets, bundle.training_answers, Compute("cpu", 1, "float32"))
    for rows, one in zip(bundle.row_sets, trained, strict=True):
        one.save(folder / rows.generator)
    draw_again(folder)


def draw_again(folder: Path) -> None:
    """The tables of the generator, and the questions of the card about them."""
    for stem in Bundle(folder).tables:
        f.redraw(folder, stem=stem)
    bundle = Bundle(folder)
    if (card := bundle.params.evaluate.card) is not None:
        table = to_model(read_synthetic(folder / names.TABLE, bundle.schema), bundle.schema)
        for query in card_queries(card, bundle.plan, bundle.facts, bundle.auxiliary, table):
            _ask(folder, query.name, feature=query.spec(), encoding=bundle.row_sets[0].encoding)


def _ask(folder: Path, name: str, **changes: Any) -> None:
    """Ask a query with another specification, under the key that belongs to it."""
    receipt = {key: value for key, value in changes.items() if key != "encoding"}
    f.edit_receipt(name, **receipt)(folder)
    old = next(one.receipt.key for one in Bundle(folder).answers if one.receipt.query == name)
    path, new = folder / names.LEDGER, ""

    def change(records: list[Json]) -> None:
        nonlocal new
        body = records[entry(records, "reserve", name)]["body"]
        body.update(changes)
        new = _key(body)

    f.edit_chain(folder, change)
    f.edit_receipt(name, key=new)(folder)
    path.write_text(path.read_text().replace(old, new))
    trained = sorted(one.receipt.key for one in Bundle(folder).training_answers)
    for spec in Bundle(folder).project.outputs.generators:
        f.edit_json(folder / spec / "spec.json", lambda value: value["provenance"].update(releases=trained))
    f.edit_chain(folder, lambda records: of_kind(records, "published")[-1].update(releases=trained))


def settle(folder: Path, late: Callable[[Path], object] | None) -> None:
    """Let digests, chain, account and texts agree with the rest; then the late change, and what follows from it."""
    with contextlib.suppress(Exception):  # what cannot be stated keeps its words
        f.seal(folder, f.Seal.CHAIN)
        restate(folder)
    if late is not None:
        late(folder)
    with contextlib.suppress(Exception):
        f.seal(folder, f.Seal.TEXTS)
    f.seal(folder, f.Seal.SUMS)


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
    )
    (folder / names.PRIVACY).write_text(json_text({**account, "software": privacy["software"]}))


def account_says(**changes: Any) -> Callable[[Path], None]:
    """Change numbers of the account's total."""
    return lambda folder: f.edit_json(folder / names.PRIVACY, lambda value: value["total"].update(changes))


def replan(folder: Path, change: Callable[[Json], object]) -> None:
    """Another plan, which all releases and reservations name that named this one."""
    old = Bundle(folder).plan.digest
    f.edit_json(folder / names.PLAN_FILE, change)
    new = Bundle(folder).plan.digest
    for one in Bundle(folder).answers:
        if one.receipt.plan == old:
            f.edit_receipt(one.receipt.query, plan=new)(folder)

    def rename(records: list[Json]) -> None:
        for body in of_kind(records, "reserve"):
            body["plan"] = new if body["plan"] == old else body["plan"]

    f.edit_chain(folder, rename)


def receipts_say(folder: Path, query: str, **changes: Any) -> None:
    """Change facts of a receipt and of its reservation."""
    f.edit_body("reserve", query, **changes)(folder)
    f.edit_receipt(query, **changes)(folder)


def ledger(change: Callable[[list[Json]], object]) -> f.Plant:
    """A plant that changes the ledger's records alone."""
    return lambda folder: f.edit_chain(folder, change)


# --- the account: less cost


@lie("account", late=True)
def gaussian_epsilon_a_little_less(folder: Path) -> None:
    """Exact composition gives an epsilon that is 0.09 % smaller than it is."""
    account_says(epsilon_gaussian=Bundle(folder).json(names.PRIVACY)["total"]["epsilon_gaussian"] * 0.9991)(folder)


@lie("account", late=True)
def renyi_epsilon_a_little_less(folder: Path) -> None:
    """Rényi composition gives an epsilon that is 0.09 % smaller than it is."""
    account_says(epsilon_rdp=Bundle(folder).json(names.PRIVACY)["total"]["epsilon_rdp"] * 0.9991)(folder)


@lie("account", late=True)
def epsilon_below_one(folder: Path) -> None:
    """The statement's epsilon is 0.999999 and not 1."""
    account_says(epsilon=0.9999991)(folder)


@lie("account", late=True)
def interval_from_minus_zero(folder: Path) -> None:
    """An interval of the card begins at -0: a sign where Likeness writes none."""

    def change(value: Json) -> None:
        min(value["card"], key=lambda figure: figure["low"]).update(low=-0.0)

    f.edit_json(folder / names.PRIVACY, change)


@lie("account", late=True)
def software_with_a_diagnosis(folder: Path) -> None:
    """The account names a version of numpy that is a sentence about a person."""
    f.set_value(names.PRIVACY, "software.numpy", "1_" + SECRET)(folder)


# --- settings and plan in other spellings


@lie("settings")
def delta_that_is_false(folder: Path) -> None:
    """A plan whose delta for a query is a truth value."""
    replan(folder, lambda plan: plan["queries"][1].update(delta_keys=False))


@lie("settings")
def delta_below_zero_by_sign(folder: Path) -> None:
    """A plan with a delta of -0.0: a sign that hides a bit in each query."""
    replan(folder, lambda plan: [query.update(delta_keys=-0.0) for query in plan["queries"][1:]])


@lie("settings", "images")
def number_of_people_as_float(folder: Path) -> None:
    """The public number of records is 800.0: the plan writes another type than its settings."""
    replan(folder, lambda plan: plan.update(num_records=800.0))


@lie("settings")
def plan_with_a_text_in_its_digits(folder: Path) -> None:
    """The last digits of every noise multiplier spell a text; no noise is like this one."""

    def change(plan: Json) -> None:
        for place, query in enumerate(plan["queries"]):
            query["noise_multiplier"] *= 1 + 5e-10 * ord(SECRET[place]) / 128

    replan(folder, change)


@lie("settings")
def cost_a_hair_less(folder: Path) -> None:
    """Each receipt costs half a billionth less than its noise: digits that spell a text."""
    for place, one in enumerate(Bundle(folder).answers):
        rho = one.receipt.rho * (1 - 8e-10 * ord(SECRET[place]) / 128)
        receipts_say(folder, one.receipt.query, rho=rho)


@lie("settings")
def settings_with_two_attempts(folder: Path) -> None:
    """A second key 'epsilon' of 0.1 stands before the first."""
    f.edit_file(names.SETTINGS, '  "epsilon": 1.0', '  "epsilon": 0.1,\n  "epsilon": 1.0')(folder)


@lie("settings")
def epsilon_beyond_floats(folder: Path) -> None:
    """The target is 1e400, read as infinity."""
    f.edit_file(names.SETTINGS, '  "epsilon": 1.0', '  "epsilon": 1e400')(folder)


@lie("settings", "pearl")
def trained_on_another_device(folder: Path) -> None:
    """The settings ask for a training on CUDA, and the generator was trained on a processor."""
    f.set_value(names.SETTINGS, "train.device", "cuda")(folder)


@lie("settings")
def seed_that_is_a_letter(folder: Path) -> None:
    """A training seed of 400 digits: a letter in a number. All is made again with it."""
    f.set_value(names.SETTINGS, "train.seed", int.from_bytes((SECRET * 12).encode(), "big"))(folder)
    refit(folder)


@lie("settings", "pearl")
def channels_nobody_uses(folder: Path) -> None:
    """The settings have channels for a network of images, and each is a letter of a text."""
    f.set_value(names.SETTINGS, "pearl.train.channels", [ord(letter) for letter in SECRET])(folder)


# --- other records about the same people


@lie("records", "pearl")
def stage_of_another_run_is_a_sentence(folder: Path) -> None:
    """An earlier reservation is of a stage that Likeness does not have, and that says something."""
    another_run(folder, stage=SECRET)


@lie("records", "pearl")
def query_of_another_run_is_a_sentence(folder: Path) -> None:
    """An earlier reservation is of a query that no method asks, and that says something."""
    another_run(folder, query=SECRET)


@lie("records")
def digests_of_many_tables(folder: Path) -> None:
    """An earlier run read 40 tables: hexadecimal texts in a list of any length."""
    another_run(folder, rows_digests=[f"{place:032x}:{SECRET.encode().hex():0>64}" for place in range(40)])


@lie("records")
def unit_with_blanks(folder: Path) -> None:
    """An earlier run names the column of people with blanks behind it: their number says something."""
    another_run(folder, unit={"column": "pid" + " " * ord("h"), "max_rows": 2})


@lie("records")
def place_that_is_no_whole_number(folder: Path) -> None:
    """A commit names its reservation as 14.0."""

    def change(records: list[Json]) -> None:
        body = records[entry(records, "commit", "embedding")]["body"]
        body["reserve_seq"] = float(body["reserve_seq"])

    f.edit_chain(folder, change)


@lie("records")
def receipt_of_a_place_with_a_point(folder: Path) -> None:
    """A receipt names its entry as 14.0, and so does the statement."""
    f.edit_receipt("embedding", ledger_seq=14.0)(folder)


@lie("records")
def ledger_of_another_format(folder: Path) -> None:
    """The ledger is of format 75274, which no Likeness writes."""
    ledger(lambda records: of_kind(records, "genesis")[0].update(format=75274))(folder)


@lie("records")
def one_salt_for_all(folder: Path) -> None:
    """All records share one salt, a text, so that whoever knows it finds these people in every ledger."""
    salts = dict.fromkeys((SALT, "content_salt"), (SECRET + "...").encode().hex())
    ledger(lambda records: [record["body"].update(salts) for record in records if "body" in record])(folder)


@lie("records")
def earlier_delta_below_zero(folder: Path) -> None:
    """An earlier reservation took a delta of -0.0."""
    another_run(folder, delta_keys=-0.0)


@lie("records")
def earlier_copy_of_this_release(folder: Path) -> None:
    """An earlier run of another attempt committed the very bytes of this one's class counts."""
    another_run(folder)

    def change(records: list[Json]) -> None:
        commits = of_kind(records, "commit")
        own = records[entry(records, "commit", "class_counts")]["body"]["key"]
        mine = {one.receipt.key: f._digest(folder, name) for name, one in Bundle(folder).released.items()}
        next(b for b in commits if b["sha256"] == f"{5:064x}")["sha256"] = mine[own]

    f.edit_chain(folder, change)


@lie("records")
def embedding_by_a_method_that_has_none(folder: Path) -> None:
    """The embedding is a release of an earlier plan of ``ntk``, which never asks for pairs of columns."""
    receipts_say(folder, "embedding", method="ntk", plan="ab" * 32)


# --- history of the ledger: draws, losses, order


@lie("history")
def seventh_draw_without_six_losses(folder: Path) -> None:
    """The embedding is the seventh draw after six lost ones, and the ledger has no lost one: it forgot six costs."""
    _ask(folder, "embedding", slot="1~7")
    refit(folder)


def _lose(folder: Path, query: str, then: Callable[[list[Json], Json], object] = lambda *_: None) -> None:
    def change(records: list[Json]) -> None:
        own = records[entry(records, "reserve", query)]
        body = {"key": own["body"]["key"], "identity": own["body"]["identity"]}
        gone = {"seq": 0, "time": own["time"], "kind": "lost", "previous": "", "digest": "", "body": body}
        place = entry(records, "commit", query)
        records.insert(place + 1, fresh(gone, 90))
        then(records, own)

    renumber(folder, change)


@lie("history")
def published_what_was_lost(folder: Path) -> None:
    """The ledger says that nobody has the embedding any more, and the bundle publishes it."""
    _lose(folder, "embedding")


@lie("history")
def drawn_twice_and_the_better_one_kept(folder: Path) -> None:
    """The embedding was given up and drawn again, and the bundle has the draw that was given up."""

    def again(records: list[Json], own: Json) -> None:
        place = next(i for i, r in enumerate(records) if r.get("kind") == "lost")
        second = fresh(own, 95, slot="1~2")
        second["body"]["key"] = _key(second["body"])
        first = next(r for r in records if r.get("kind") == "commit" and r["body"]["key"] == own["body"]["key"])
        records[place + 1 : place + 1] = [second, fresh(first, 97, key=second["body"]["key"], sha256="c" * 64)]

    _lose(folder, "embedding", again)


@lie("history")
def lost_after_it_was_published(folder: Path) -> None:
    """The ledger gives the class counts up on the last line, and the bundle has them."""

    def change(records: list[Json], own: Json) -> None:
        place = next(i for i, r in enumerate(records) if r.get("kind") == "lost")
        records.insert(len(records) - 1, records.pop(place))

    _lose(folder, "class_counts", change)


@lie("history")
def card_of_the_best_of_many_tables(folder: Path) -> None:
    """The settings allow a card of one table, and the ledger has two of this plan: the better one is shown."""

    def change(records: list[Json]) -> None:
        place = entry(records, "reserve", "card_confusion")
        pair = records[place], records[entry(records, "commit", "card_confusion")]
        new = fresh(pair[0], 60)
        new["body"]["feature"] = {**new["body"]["feature"], "scores": new["body"]["feature"]["scores"][::-1]}
        new["body"]["key"] = _key(new["body"])
        records[place:place] = [new, fresh(pair[1], 63, key=new["body"]["key"], sha256="d" * 64)]

    renumber(folder, change)


@lie("history")
def card_before_the_table(folder: Path) -> None:
    """The ledger answered the question about the table before it had the releases that the table was made from."""

    def change(records: list[Json]) -> None:
        cards = [records[entry(records, kind, "card_distances")] for kind in ("reserve", "commit")]
        for one in cards:
            records.remove(one)
        place = _cap(records)
        records[place + 1 : place + 1] = cards

    renumber(folder, change)


@lie("history")
def a_day_that_is_none(folder: Path) -> None:
    """The last record is of the 30th of February."""
    ledger(lambda records: records[-1].update(time="2027-02-30"))(folder)


@lie("history")
def cap_after_the_release(folder: Path) -> None:
    """The cap was set when two releases had been made."""

    def change(records: list[Json]) -> None:
        records.insert(_cap(records) + 4, records.pop(_cap(records)))

    renumber(folder, change)


# --- identities


def _twin(folder: Path, name: str) -> None:
    """The earlier run of these people was about people of another name, and is hidden."""
    f.hide(name)(folder)

    def keep(records: list[Json]) -> None:
        for record in records:
            if record.get("identity") == name:
                record["population"] = sha256_json([record[SALT], name])

    renumber_hidden(folder, keep)


def renumber_hidden(folder: Path, change: Callable[[list[Json]], object]) -> None:
    """Change links, and state the lifetime without them."""
    f.edit_chain(folder, change)
    f.follow(folder)


def _own_alone(folder: Path, name: str) -> None:
    """Split the run's cost: an earlier attempt of these people is hidden as that of a twin."""
    another_run(folder)
    _twin(folder, name)


@lie("identity")
def cyrillic_twin(folder: Path) -> None:
    """An earlier run is about 'st\u0430ff' with a Cyrillic letter, which nobody can tell from these people."""
    _own_alone(folder, "st\u0430ff")


@lie("identity")
def ligature_twin(folder: Path) -> None:
    """An earlier run is about 'staff' whose last letters are one sign."""
    _own_alone(folder, "sta\ufb00")


@lie("identity")
def latin_lookalike(folder: Path) -> None:
    """An earlier run is about 'st\u0251ff' with the letter alpha of the Latin alphabet."""
    _own_alone(folder, "st\u0251ff")


@lie("identity")
def invisible_letter(folder: Path) -> None:
    """An earlier run is about 'staff' with a filler of Hangul, a letter that has no ink."""
    _own_alone(folder, "sta\u3164ff")


# --- released values


@lie("values")
def noise_of_coarse_steps(folder: Path) -> None:
    """The class counts have no low bits: whoever drew them used steps of 2**30, whole people."""
    f.edit_values("class_counts", lambda values: (values >> 30) << 30)(folder)
    refit(folder)


@lie("values")
def whole_people_everywhere(folder: Path) -> None:
    """Every release of the card has no low bits."""
    for query, bits in (("card_distances", 24), ("card_confusion", 30)):
        f.edit_values(query, lambda values, bits=bits: (values >> bits) << bits)(folder)  # type: ignore[misc]


@lie("values")
def a_hundred_times_the_people(folder: Path) -> None:
    """The class counts are a hundred times those that every other release adds up to."""
    f.edit_values("class_counts", lambda values: values * 100 + 12345)(folder)
    refit(folder)


@lie("values")
def classes_exchanged(folder: Path) -> None:
    """All people but a few are of the first class: other releases say half of them."""
    f.edit_values("class_counts", lambda values: np.array([[values.sum() + 991], [99_991]]))(folder)
    refit(folder)


@lie("values", "pearl")
def one_class_copied(folder: Path) -> None:
    """The embedding of the second class is that of the first, to the last bit of its noise."""
    f.edit_values("embedding", lambda values: np.repeat(values[:1], 2, axis=0))(folder)
    refit(folder)


@lie("values")
def all_noise_and_nobody(folder: Path) -> None:
    """The embedding is zero everywhere."""
    f.edit_values("embedding", np.zeros_like)(folder)
    refit(folder)


@lie("values", "histories")
def copy_of_another_release(folder: Path) -> None:
    """The number of histories with a second event is that of the people, to the last bit of the noise."""
    first = next(one for one in Bundle(folder).answers if one.receipt.query == "class_counts").lattice
    f.edit_values("next_class_counts", lambda _: first.copy())(folder)
    refit(folder)


@lie("values")
def third_axis(folder: Path) -> None:
    """The class counts have an axis more than Likeness writes."""
    f.edit_values("class_counts", lambda values: values.reshape(2, 1, 1))(folder)


@lie("values", "images")
def number_of_pictures(folder: Path) -> None:
    """The public number of images is a thousand times that of the released counts."""
    f.set_value(names.SETTINGS, "privacy.num_records", 800_000)(folder)
    replan(folder, lambda plan: plan.update(num_records=800_000))
    f.set_value(names.PRIVACY, "num_records", 800_000)(folder)
    refit(folder)


@lie("values")
def names_of_people_as_categories(folder: Path) -> None:
    """A released category is written in a form that Likeness never writes: with a blank behind it."""
    _rename_keys(folder, "clerk ")


def _rename_keys(folder: Path, first: str) -> None:
    path = folder / names.RELEASED / "categories_1.safetensors"
    one = f.load_released(path)
    path.write_bytes(f.to_bytes(f.Released(one.lattice, one.receipt, (first, *one.keys[1:]))))
    refit(folder)


# --- generator and tables


@lie("generator")
def trained_by_another_library(folder: Path) -> None:
    """A generator that numpy trains is said to come from torch on CUDA, by 64 processes."""
    where = {"torch": "9.9.9", "device": "cuda", "processor": "x86_64 " + SECRET, "processes": 64}
    _spec(folder, lambda spec: spec["provenance"].update(environment=where))


@lie("generator", "pearl")
def latent_of_a_truth(folder: Path) -> None:
    """Every 1 in the specification is written as true."""
    _spec(folder, _truths)


def _truths(value: Any) -> Any:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict | list):
            _truths(item)
        elif type(item) is int and item in (0, 1) and key not in ("format", "processes"):
            value[key] = bool(item)
        elif type(item) is float and item == 0:
            value[key] = -0.0


@lie("generator")
def weights_of_another_sign(folder: Path) -> None:
    """A weight is the next float: the table stays as it is."""
    _tensors(folder, lambda tensors: {k: np.nextafter(v, np.inf, dtype=v.dtype) for k, v in tensors.items()})


@lie("generator")
def weights_with_a_guest(folder: Path) -> None:
    """A tensor of letters lies beside the weights."""
    _tensors(folder, lambda tensors: {**tensors, "zz": np.frombuffer(SECRET.encode(), dtype=np.uint8)})


def _tensors(folder: Path, change: Callable[[Json], Json]) -> None:
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file

    path = folder / names.WEIGHTS
    with safe_open(path, "np") as file:
        metadata = file.metadata()
    save_file(change(load_file(path)), path, metadata=metadata)
    with contextlib.suppress(LikenessError):
        draw_again(folder)


def _spec(folder: Path, change: Callable[[Json], object]) -> None:
    """Change a specification, and let weights, tables and card follow."""
    from likeness.core.hashing import sha256_bytes

    path = folder / names.SPEC
    f.edit_json(path, change)
    weights = folder / names.WEIGHTS
    data = weights.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    old, new = header["__metadata__"]["spec_sha256"], sha256_bytes(path.read_bytes())
    weights.write_bytes(data.replace(old.encode(), new.encode()))
    draw_again(folder)


@lie("table")
def parquet_of_another_writer(folder: Path) -> None:
    """The Parquet file has a key of metadata more."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / names.TABLE)
    table = table.replace_schema_metadata({**table.schema.metadata, b"note": SECRET.encode()})
    pq.write_table(table, folder / names.TABLE)


@lie("table", "histories")
def events_of_others(folder: Path) -> None:
    """Two people have exchanged their events."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        changed = table.copy()
        column = changed.columns[0]
        low, high = changed[column].min(), changed[column].max()
        changed[column] = changed[column].replace({low: high, high: low})
        return changed.sort_values(column, kind="stable", ignore_index=True)

    f.redraw(folder, change, stem="events")


# --- schema


@lie("schema")
def rule_that_nobody_kept(folder: Path) -> None:
    """A rule more, which the table breaks and no release knows."""
    f.edit_file(names.SCHEMA, "rules:\n", "rules:\n- if: {years: < 40}\n  then: {paid: more}\n")(folder)


@lie("schema", "histories")
def most_events(folder: Path) -> None:
    """The schema takes the three events with the smallest hashes; the releases took the first."""
    f.edit_file(names.SCHEMA, "which: first", "which: hash")(folder)


@lie("schema")
def word_for_missing(folder: Path) -> None:
    """A word for missing that is a sentence; no release knows it."""
    f.edit_file(names.SCHEMA, "missing_values: []", f"missing_values: [{SECRET}]")(folder)


# --- zip files


def zipped(folder: Path, order: list[str], pack: Callable[[bytes], bytes] | None = None) -> Path:
    """A zip file that has the headers of Likeness."""
    import struct

    from likeness.bundle.files import _headers

    target, data, directory = folder.with_suffix(".zip"), b"", b""
    for name in order:
        content, info = (folder / name).read_bytes(), zipfile.ZipInfo(name)
        squeeze = zlib.compressobj(wbits=-15)
        packed = squeeze.compress(content) + squeeze.flush() if pack is None else pack(content)
        info.CRC, info.compress_size, info.file_size = zlib.crc32(content), len(packed), len(content)
        info.header_offset = len(data)
        head, entry_ = _headers(info)
        data, directory = data + head + packed, directory + entry_
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(order), len(order), len(directory), len(data), 0)
    target.write_bytes(data + directory + end)
    return target


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@lie("zip", late=True)
def order_that_spells(folder: Path) -> Path:
    """The files of a zip file stand in another order, which spells a text."""
    f.seal(folder, f.Seal.TEXTS)
    return zipped(folder, files_of(folder)[::-1])


@lie("zip", late=True)
def empty_blocks_that_spell(folder: Path) -> Path:
    """Between the bytes of a packed file stand empty blocks, as many as letters have bits."""
    f.seal(folder, f.Seal.TEXTS)

    def pack(content: bytes) -> bytes:
        bits = "".join(f"{ord(letter):08b}" for letter in SECRET)
        blocks = b"".join(b"\0\0\0\xff\xff" * (1 + int(bit)) for bit in bits)
        squeeze = zlib.compressobj(wbits=-15)
        return blocks + squeeze.compress(content) + squeeze.flush()

    return zipped(folder, files_of(folder), pack)


@lie("zip", late=True)
def last_bits_of_a_stream(folder: Path) -> Path:
    """The bits behind the end of a packed file, up to its last byte, spell a text."""
    f.seal(folder, f.Seal.TEXTS)

    def pack(content: bytes) -> bytes:
        squeeze = zlib.compressobj(wbits=-15)
        packed = squeeze.compress(content) + squeeze.flush()
        high = bytes([packed[-1] | 0x80])
        again = zlib.decompressobj(-15)
        return packed[:-1] + high if again.decompress(packed[:-1] + high) == content and again.eof else packed

    return zipped(folder, files_of(folder), pack)


# --- texts for machines that people read


@lie("provenance")
def sampler_with_a_diagnosis(folder: Path) -> None:
    """The noise comes from a version of OpenDP that is a sentence about a person."""
    for one in Bundle(folder).answers:
        f.edit_receipt(one.receipt.query, sampler=f"opendp 0_{SECRET} discrete gaussian")(folder)


@lie("provenance")
def ledger_software_with_a_diagnosis(folder: Path) -> None:
    """The entries name a version of pandas that is a sentence about a person."""
    ledger(lambda r: [body["software"].update(pandas=f"3_{SECRET}") for body in of_kind(r, "reserve")])(folder)


@lie("ledgers")
def receipts_of_two_ledgers(folder: Path) -> None:
    """The class counts were paid in another ledger."""
    f.edit_receipt("class_counts", ledger_id="0123456789abcdef")(folder)


@lie("ledgers")
def split_over_two_identities(folder: Path) -> None:
    """The class counts were paid by other people."""
    _ask(folder, "class_counts", identity="others")
    refit(folder)


@lie("ledgers", "histories")
def both_row_sets_of_two_tables(folder: Path) -> None:
    """The transitions are of another version of the rows than the people."""
    for query in ("next_class_counts", "next_quantiles", "next_embedding"):
        _ask(folder, query, digest="12" * 32)
    refit(folder)


# --- the campaign


def honest(folder: Path) -> dict[str, Path]:
    """The honest bundles, and one of images whose number is public."""
    (folder / "three").mkdir()
    made = bundles(folder / "three")
    places = {"LIKENESS_HOME": str(folder / "ledger"), "LIKENESS_ANCHOR": str(folder / "anchor")}
    before = dict(os.environ)
    os.environ.update(places)
    try:
        Ledger.create(locate())
        columns = {"digit": {"kind": "categorical", "categories": ["a", "b"]}}
        of = {"name": "images", "source": "made up", "task": "classification", "label": "digit"}
        schema = Schema.from_dict({**of, "image": {"shape": [4, 4]}, "columns": columns}, "schema")
        random = np.random.default_rng(1)
        pixels = {name: random.integers(0, 256, 800) for name in schema.names if name != "digit"}
        table = pd.DataFrame({**pixels, "digit": random.choice(["a", "b"], 800)})
        whose: Json = {"population": "drawings", "adjacency": "replace_one", "num_records": 800}
        model = Synthesizer(schema=schema, method="moments", **whose)
        model.fit(table).bundle(folder / "images", n=40, open_others=True)
        return {**made, "images": folder / "images"}
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def planted(one: Lie, folder: Path) -> Iterator[Path]:
    """A copy of an honest bundle with a lie in it, as a folder."""
    place: list[Path] = [folder]
    try:
        one.plant(folder)
    except Exception as error:
        print(f"  (planted as far as it goes: {type(error).__name__}: {str(error)[:150]})", file=sys.stderr)

    def late(where: Path) -> None:
        if one.late is not None:
            place.append(one.late(where) or where)  # type: ignore[arg-type]

    settle(folder, late)
    with opened(place[-1]) as given:
        yield given


def told(one: Lie, folder: Path) -> tuple[int, str]:
    """Exit code of the verifier about a lie, and the checks that did not pass."""
    try:
        with planted(one, folder) as given:
            checks = list(checks_of(given, retrain=True))
    except LikenessError as error:
        return 2, str(error).rpartition("/")[2][:120]
    wrong = [f"{check.name}: {check.text}" for check in checks if check.passed is False]
    open_ = [f"{check.name} not tested: {check.text}" for check in checks if check.passed is None]
    code = 1 if wrong else 3 if open_ else 0
    return code, "; ".join(wrong or open_)


def main() -> int:
    """Plant each lie, and print what the verifier says."""
    chosen = {name: LIES[name] for name in sys.argv[1:] or LIES}
    believed = 0
    with tempfile.TemporaryDirectory() as temporary:
        made = honest(Path(temporary))
        for name, where in made.items():
            code, words = told(
                Lie("honest", name, lambda _: None, None), Path(shutil.copytree(where, f"{temporary}/h_{name}"))
            )
            assert code == 0, (name, words)
        print("| lie | kind | exit | what the verifier says |\n| --- | --- | ---: | --- |")
        for name, one in chosen.items():
            folder = Path(shutil.copytree(made[one.bundle], Path(temporary) / "lie" / name))
            code, words = told(one, folder)
            believed += code == 0
            print(f"| {name} | {one.kind} | {code} | {words[:150] or '**BELIEVED**'} |", flush=True)
            shutil.rmtree(folder)
    print(f"\n{len(chosen)} lies of {len({one.kind for one in chosen.values()})} kinds; {believed} believed")
    return int(believed > 0)


if __name__ == "__main__":
    sys.exit(main())
