"""Planted lies: what a bundle may claim that is not so, and the check of ``likeness verify`` that must not believe it.

``python -m tests.campaigns.lies`` plants each in a copy of an honest bundle, seals it as a forger would
(:mod:`tests.campaigns.forgery`), and prints what the verifier says. tests/pipeline/test_lies.py runs the check of each.

Not in the table, because nothing in a bundle could show it: values that are sums of no rows, and a ledger that was made
up whole.
"""

import math
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from likeness.bundle import contents as names
from likeness.bundle.files import open_bundle
from likeness.bundle.verdict import Check
from likeness.core.errors import LikenessError
from likeness.methods import DEFAULT, METHODS
from likeness.privacy.receipt import MECHANISM
from likeness.verify import MOST_MINUTES
from likeness.verify.checks import checks_of
from tests.campaigns import forgery as f
from tests.campaigns import hostile_files as h
from tests.campaigns import lie_plants as p
from tests.campaigns.honest_bundles import IDENTITY, MADE, bundles
from tests.campaigns.ledger_lies import OF_LEDGERS

OPENED = "opened"
"""In place of a check: the bundle is refused before any check is made."""


@dataclass(frozen=True)
class Lie:
    """One planted lie.

    Attributes:
        says: what is wrong, in a sentence.
        check: the check that must not believe it, or :data:`OPENED`.
        because: words of the reason.
        plant: plants it.
        method: of the bundle.
        seal: how far the forger makes all else agree.
        retrain: whether the verifier trains again.
        map_of: the method whose map it names, if that is not the bundle's.
        verdict: None: the check cannot be made, and says so.
    """

    says: str
    check: str
    because: str
    plant: f.Plant
    method: str = "marginals"
    seal: f.Seal = f.Seal.CHAIN
    retrain: bool = False
    map_of: str = DEFAULT
    verdict: bool | None = False

    def told(self, honest: dict[str, Path], folder: Path) -> Path:
        """Plant and seal it in a copy of an honest bundle; what is to be verified."""
        copy = Path(shutil.copytree(honest[self.method], folder / "bundle"))
        elsewhere = self.plant(copy)
        if elsewhere is None:
            f.seal(copy, self.seal)
        return elsewhere or copy


S, T, N = f.Seal.SUMS, f.Seal.TEXTS, f.Seal.NONE
LIES: tuple[Lie, ...] = (
    # --- what was made from the releases
    Lie("the CSV holds other rows", "table", "is not the table of",
        lambda folder: f.redraw(folder, p.real, only_csv=True)),
    Lie("both files of the table hold other rows", "table", "more than rounding", p.table(p.real)),
    Lie("one cell in two hundred is another", "table", "more than rounding", p.table(p.moved)),
    Lie("whole numbers are the next ones", "table", "more than rounding", p.table(p.older)),
    Lie("last digits of all numbers differ", "table", "drawn again:", p.table(p.nudged), verdict=None),
    Lie("the table has other categories", "table", "other categories", p.table(p.swapped)),
    Lie("the schema has a rule that rows break", "rules", "rows of synthetic.parquet break the rule",
        f.all_of(f.edit_file(names.SCHEMA, "then: {paid: less}", "then: {paid: more}"),
                 f.edit_file(names.SCHEMA, "< 0.1", "< 0.9"))),
    Lie("the table lacks rows", "table", "other columns or rows", p.table(lambda table: table[:-1])),
    Lie("the table lacks a column", "table", "other columns or rows", p.table(lambda table: table.drop(columns="x"))),
    Lie("the table is another, and the account names another numpy", "table", "more than rounding",
        f.all_of(p.table(p.real), p.field("software.numpy", "2.0.1"))),
    Lie("the Parquet file has a note", "table", "carries more",
        p.parquet(lambda header: {**header, b"note": p.NOTE.encode()})),
    Lie("the Parquet file has a note in what pandas writes", "table", "carries more",
        p.parquet(lambda header: p.pandas(header, attributes={"note": p.NOTE}))),
    Lie("the Parquet file has a note in a version", "table", "without a version",
        p.parquet(lambda header: p.pandas(header, pandas_version=p.NOTE))),
    Lie("the Parquet file has a note beside a column", "table", "carries more", p.parquet(dict, field=True)),
    Lie("the Parquet file has bytes between its parts", "table", "carries more", p.padded),
    Lie("the Parquet file has another lineage", "table", "carries more",
        p.parquet(lambda header: {**header, b"likeness.lineage": b"{}"})),
    Lie("a table of 10^12 rows is asked for", "table", "fewer rows",
        f.set_value(names.SETTINGS, "sample.rows", 10**12)),
    Lie("the table has other rows, and the generator names another way to draw", "form", "more than a generator",
        f.all_of(p.weights_of(lambda spec: spec.update(sampler=1)), p.table(p.real))),
    Lie("a training of 10^8 steps", "training", "iterations 100,000,000",
        f.set_value(names.SETTINGS, "marginals.train.iterations", 10**8), retrain=True, verdict=None),
    Lie("a training of 10^8 rows a step", "training", "batch_size 100,000,000",
        f.all_of(f.set_value(names.SETTINGS, "pearl.train.batch_size", 10**8),
               f.set_value(names.SETTINGS, "pearl.train.iterations", 10**4)), "pearl", retrain=True, verdict=None),
    Lie("the weights hold rows", "training", "not done", f.all_of(p.memorized, p.relations_follow), verdict=None),
    Lie("the weights hold rows, trained again", "training", "other rows than the one", p.memorized, retrain=True),
    Lie("the weights have a note", "form", "more than a generator", p.metadata(names.WEIGHTS)),
    Lie("the generator has other class weights", "generator", "not the one that these settings",
        p.weights_of(lambda spec: spec.update(class_weights=[0.5, 0.5]))),
    Lie("the generator names other releases", "generator", "not the one that these settings",
        p.weights_of(lambda spec: spec["provenance"].update(releases=[p.SHA]))),
    Lie("the generator says that its releases are not private", "generator", "not the one that these settings",
        p.weights_of(lambda spec: spec["provenance"].update(private=False))),
    Lie("the generator says where it was trained, and more", "generator", "origin that is not a machine",
        p.weights_of(lambda spec: spec["provenance"]["environment"].update(processor=p.NOTE))),
    Lie("the generator names another library", "training", "another trainer", p.trained_elsewhere, retrain=True),
    Lie("the settings train on another device", "generator", "on another device than",
        f.set_value(names.SETTINGS, "train.device", "cuda"), "pearl"),
    Lie("the weights have one array more", "form", "not a generator of format", p.guest),
    Lie("the generator has an unknown key", "form", "more than a generator",
        p.weights_of(lambda spec: spec.update(note=p.NOTE))),
    Lie("the account keeps a relation that nothing measured", "account", "relations",
        p.field("relations.kept", [["age", "sex", 0.5, 0.5]]), seal=T),
    Lie("the generator has 10^9 components", "generator", "not a generator of format",
        p.weights_of(lambda spec: spec.update(num_components=10**9))),
    Lie("the statement has a note", "statement", "STATEMENT.md is not that of",
        f.edit_file(names.STATEMENT, "# Privacy statement\n", f"# Privacy statement\n\n{p.NOTE}\n"), seal=S),
    Lie("the data card has a note", "statement", "README.md is not that of",
        f.edit_file(names.CARD, "synthetic rows;", f"synthetic rows; {p.NOTE};"), seal=S),
    Lie("the statement has a note that the settings call a unit", "statement", "several lines",
        p.field("unit", f"one\n\n{p.NOTE}")),
    Lie("the account has a page in a note", "statement", "too long", p.field("notes", [p.NOTE * 100])),
    *(Lie(f"the settings have {words} in {key}", "form", because, f.set_value(names.SETTINGS, key, value), seal=S)
      for words, because, value in (("two lines", "control character U+000A", f"one\n\n{p.NOTE}"),
          ("an escape sequence", "control character U+001B", f"\x1b[2J{p.NOTE}"),
          ("a text from right to left", "control character U+202E", f"\u202e{p.NOTE}"),
          ("a page", "Write at most 200", "page " * 99)) for key in ("privacy.unit", "privacy.population", "attempt")),
    Lie("the notes of the account have one more", "account", "notes", p.field("notes", [p.NOTE]), seal=T),
    # --- people with histories
    *(Lie(f"{words}, in both files of the table", "rules", because, p.linked(change, stem), "histories")
      for words, because, stem, change in (
          ("an event is of nobody", "each event has a person", "events", p.of_another(9999)),
          ("people have other keys", "keys from 1 on", "people", lambda table: table.assign(pid=table["pid"] + 1)),
          ("events are in another order", "in the order of people", "events", p.last_first),
          ("days descend", "of a person are in order", "events", lambda table: table.assign(day=60 - table["day"])),
          ("a person has all events", "at most 3 events", "events", p.of_one),
          ("the dead come again", "follows an end", "events", p.all_in("dead")))),
    Lie("an event is of another person", "table", "other keys", p.linked(p.of_another(1), "events"), "histories"),
    Lie("people have other wards", "table", "more than rounding", p.linked(p.other_wards, "people"), "histories"),
    Lie("the generators have each other's place", "generator", "not the one that these settings", p.exchanged,
        "histories"),
    Lie("following events are drawn from other weights", "training", "other rows than the one",
        partial(p.memorized, generator="generator/following", stems=("people", "events")), "histories", retrain=True),
    Lie("a table of rows lies beside the tables", "files", "does not belong", p.file(names.TABLE), "histories"),
    Lie("the events are missing", "files", "is missing", p.without("events.csv"), "histories", seal=S),
    Lie("another choice of events counted", "plan", "answers another question",
        f.edit_file(names.SCHEMA, "which: first", "which: hash"), "histories"),
    Lie("more events of a person counted", "plan", "ingest.unit must be",
        f.set_value(names.SETTINGS, "unit.max_rows", 9), "histories"),
    Lie("the settings protect a row", "form", "is not written",
        lambda folder: f.edit_json(folder / names.SETTINGS, lambda content: content.update(unit=None)), "histories"),
    Lie("transitions are of other people", "plan", "different rows", f.edit_receipt(p.FOLLOWING, digest="1" * 64),
        "histories"),
    Lie("rows of a person are counted one by one", "plan", "answers another question",
        p.feature(p.FOLLOWING, terms="each_record"), "histories"),
    Lie("rows share a contribution, and each is a person", "sensitivity", "no person has several",
        f.edit_receipt(p.FOLLOWING, unit=None), "histories"),
    Lie("rows of a person share a contribution, where each counted", "sensitivity", "sensitivity is",
        p.feature(p.COUNTS, terms="each_person")),
    Lie("records count by cluster, and nothing assigns one", "sensitivity", "no map of cells",
        p.clustered(map="cosine_moments", first_share=0.5), map_of="moments"),
    Lie("records count by more clusters than there are sums", "sensitivity", "other groups than its clusters",
        p.clustered(map="class_halves", splits=2, directions=[0] * 6, centers=[0.0, 0.0]), map_of="moments"),
    Lie("a class stands beside inputs that people share", "sensitivity", "not those of single records",
        p.feature(p.EMBEDDING, terms="with_class", classes=2, contributions={"terms": "each_person"})),
    # --- files
    Lie("a private file lies beside the table", "files", "does not belong", p.file("table.arrow")),
    Lie("a folder has a name that says something", "files", "does not belong",
        lambda folder: (folder / p.NOTE).mkdir()),
    Lie("the plan is missing", "files", "is missing", p.without(names.PLAN_FILE), seal=S),
    Lie("a text was changed", "checksums", "was changed",
        f.edit_file(names.CARD, "none of them", "some of them"), seal=N),
    Lie("a file is not among the checksums", "checksums", "lists other files",
        p.unsealed(names.CHECKSUMS, lambda lines: lines[1:]), seal=N),
    Lie("a file is among the checksums twice", "checksums", "lists other files",
        p.unsealed(names.CHECKSUMS, lambda lines: [*lines, lines[-1]]), seal=N),
    Lie("the checksums have a note", "checksums", "lists other files",
        p.unsealed(names.CHECKSUMS, lambda lines: [*lines, p.NOTE]), seal=N),
    Lie("the account is a list", "epsilon", "does not hold a mapping", p.file(names.PRIVACY, b"[]\n"), seal=S),
    Lie("the plan names a distribution beside Likeness", "plan", "for a method of Likeness",
        f.set_value(names.PLAN_FILE, "plugin", "its 1.0")),
    Lie("nothing is released", "plan", "nothing is released",
        p.without(*(f"{names.RELEASED}/{query}.safetensors" for query in p.ALL)), seal=S),
    Lie("the settings have an unknown key", "form", "settings.json is not written",
        f.set_value(names.SETTINGS, "note", p.NOTE)),
    Lie("the settings have a key twice", "form", "settings.json is not written",
        f.edit_file(names.SETTINGS, '"attempt": "1"', f'"attempt": "{p.NOTE}", "attempt": "1"')),
    Lie("the seed of the training is a text", "form", "larger than Likeness needs",
        f.set_value(names.SETTINGS, "train.seed", int.from_bytes(p.NOTE.encode()))),
    Lie("channels that no network uses are a text", "form", "must be two numbers",
        f.set_value(names.SETTINGS, "pearl.train.channels", [*p.NOTE.encode()]), "pearl"),
    Lie("the plan has a delta that is false", "form", "of type float",
        f.set_value(names.PLAN_FILE, "queries.1.delta_keys", False)),
    Lie("the plan has an unknown key", "form", "plan.json.note is not a setting",
        f.set_value(names.PLAN_FILE, "note", p.NOTE)),
    Lie("the schema has a comment", "form", "schema.yaml is not written",
        f.edit_file(names.SCHEMA, "name: staff", f"name: staff # {p.NOTE}")),
    Lie("the schema has a dropped column with a reason", "form", "schema.yaml is not written",
        f.edit_file(names.SCHEMA, "columns:\n", f"columns:\n  id: {{kind: drop, reason: {p.NOTE}}}\n")),
    *(Lie(f"the schema has {words}", "form", because, f.edit_file(names.SCHEMA, old, new), seal=S)
      for words, because, old, new in (
          ("a page for its source", "Write at most 1,000", "source: made up", f"source: made up {'and up ' * 200}"),
          ("a page for a category", "Write at most 200", "[less, more]", f"[{'less ' * 99}, more]"),
          ("rows in its words for missing", "List at most 50", "missing_values: []",
           f"missing_values: [{', '.join(f'p{place}' for place in range(99))}]"),
          ("an escape sequence", "control character U+001B", "[less, more]", '["less\\e[2J", more]'),
          ("a category from right to left", "control character U+2067", "[less, more]", '["less\\u2067", more]'),
          ("lists in lists", "too deep", "[less, more]", "[" * 9_999 + "]" * 9_999))),
    Lie("the account has a key twice", "form", "privacy.json is not written",
        f.edit_file(names.PRIVACY, '"private": true', f'"private": "{p.NOTE}", "private": true'), seal=S),
    Lie("the account has other line ends", "form", "privacy.json is not written",
        f.edit_file(names.PRIVACY, "{\n", "{\r\n"), seal=S),
    Lie("the account is no JSON", "account", "cannot be read", p.file(names.PRIVACY, b"{"), seal=S),
    Lie("the account is no number", "form", "cannot be read", p.field("total.rho", math.nan), seal=S),
    Lie("the account has a number of 5,000 digits", "form", "cannot be read",
        f.edit_file(names.PRIVACY, '"format": 0', f'"format": 1{"0" * 5000}'), seal=S),
    Lie("the account is nested 100,000 times", "form", "cannot be read",
        p.file(names.PRIVACY, b'{"a":' * 100_000 + b"1" + b"}" * 100_000), seal=S),
    Lie("the ledger has blanks between its words", "form", "record 1 is not written",
        f.edit_file(names.LEDGER, '"kind": "genesis"', '"kind":  "genesis"'), seal=S),
    Lie("a release has a note", "form", "more than values", p.metadata(f"{names.RELEASED}/{p.COUNTS}.safetensors")),
    Lie("a receipt has an unknown key", "form", "fields of format", f.edit_receipt(p.COUNTS, note=p.NOTE), seal=S),
    Lie("two releases have each other's name", "form", "has the answer to", p.swap_releases),
    Lie("values have another shape than the receipt says", "form", "do not have the shape",
        f.edit_receipt(p.COUNTS, num_groups=1), seal=S),
    Lie("keys are not in order", "form", "not different short texts in order", p.keys_twice, seal=S),
    Lie("YAML aliases stand for 10^28 values", "plan", "has no aliases", p.file(names.SCHEMA, h.ALIASES.encode()),
        seal=S),
    *(Lie(f"the ledger has {words}", "form", "record 5 is not written", f.edit_file(names.LEDGER, old, new), seal=S)
      for words, old, new in (("an escaped letter", '"staff"', '"\\u0073taff"'),
                              ("a long number", " 10.0,", " 10.00,"))),
    Lie("the ledger has no last line end", "form", "the head is not written",
        p.unsealed(names.LEDGER, lambda lines: [*lines[:-1], lines[-1].strip()]), seal=S),
    *(Lie(f"the settings have {value} for {key}", "form", "must be of type int",
        f.set_value(names.SETTINGS, key, value), seal=S)
      for key, value in (("sample.rows", 50.0), ("sample.seed", True))),
    Lie("the checksums have capitals", "checksums", "was changed",
        p.unsealed(names.CHECKSUMS, lambda lines: [line[:64].upper() + line[64:] for line in lines]), seal=N),
    Lie("the CSV has other line ends", "table", "carries more",
        p.unsealed("synthetic.csv", lambda lines: [line.replace("\n", "\r\n") for line in lines])),
    Lie("the class weights are whole numbers", "form", "more than a generator",
        p.weights_of(lambda spec: spec.update(class_weights=[1, 0]))),
    # --- the plan
    Lie("the plan has a delta of -0", "plan", "is not the plan of",
        f.set_value(names.PLAN_FILE, "queries.1.delta_keys", -0.0)),
    Lie("the last digits of the plan are a text", "plan", "numbers of another form", p.digits_of_a_plan),
    Lie("the plan says epsilon = 0.1", "plan", "is not the plan of", f.set_value(names.PLAN_FILE, "epsilon", 0.1)),
    Lie("plan and settings say epsilon = 0.1", "plan", "another noise than the plan's", p.cheaper_plan),
    Lie("the plan has a query that was never released", "plan", "is not the plan of", p.another_query),
    Lie("the plan tells a smaller rho", "plan", "is not the plan of",
        f.set_value(names.PLAN_FILE, "queries.0.rho", 1e-9)),
    Lie("class counts and columns are shown as bare links", "plan", "but the plan has",
        p.half_of_it, seal=T),
    Lie("a release is about a cohort", "plan", "another privacy.series", f.edit_receipt(p.COUNTS, group="1-1")),
    Lie("all releases are about a cohort, and the run is about everybody", "plan", "another privacy.series",
        f.all_of(*(f.edit_receipt(one, group="1-1") for one in p.ALL))),
    Lie("releases are of different rows", "plan", "different rows", f.edit_receipt(p.COUNTS, digest="1" * 64)),
    *(Lie(f"a release is of another {word}", "plan", f"another {word} than", f.edit_receipt(p.COUNTS, **{field: value}))
      for word, field, value in (("privacy.adjacency", "adjacency", "replace_one"), ("method", "method", "merf"),
          ("privacy.population", "identity", "visitors"), ("ingest.unit", "unit", {"column": "pid", "max_rows": 3}),
          ("stage", "stage", "privatize"), ("ledger.attempt", "slot", "2"), ("noise", "noise_multiplier", 99.0))),
    Lie("a slot has a note", "plan", "another ledger.attempt than", f.edit_receipt(p.COUNTS, slot=f"1~{p.NOTE}")),
    Lie("a threshold cost less of delta than planned", "plan", "another delta than",
        f.edit_receipt(p.KEYS, delta_keys=1e-9)),
    Lie("a sampler has a note", "plan", "name of the sampler", f.edit_receipt(p.COUNTS, sampler=p.NOTE)),
    Lie("a sampler has a version with a word", "plan", "name of the sampler",
        f.edit_receipt(p.COUNTS, sampler="opendp 0_ada discrete gaussian")),
    Lie("pairs have other budgets than the products give", "plan", "answers another question",
        p.feature(p.EMBEDDING, squared_weights=[58, 1, 1])),
    Lie("the second release answers another question", "plan", "answers another question",
        p.feature(p.SECOND, squared_weights=[2, 1, 1])),
    Lie("the releases answer another question", "plan", "answers another question",
        f.set_value(names.SETTINGS, "marginals.privatize.bins", 2)),
    # --- receipts
    *(Lie(f"a receipt has another {field}", "sensitivity", field, plant)
      for field, plant in zip(("sensitivity", "noise_scale", "rho"),
                              p.off(p.EMBEDDING, "sensitivity", "noise_multiplier", "rho"), strict=True)),
    Lie("a receipt has other lattice steps", "sensitivity", "lattice_bits",
        f.edit_receipt(p.EMBEDDING, lattice_bits=30)),
    Lie("a receipt has another dimension", "sensitivity", "dimension",
        f.all_of(f.edit_receipt(p.COUNTS, dimension=4), p.wider)),
    Lie("a receipt counts another change", "sensitivity", "change is wrong",
        f.edit_receipt(p.COUNTS, change="all_replaced")),
    Lie("the noise is a few steps wide", "sensitivity", "too coarse", p.coarse),
    Lie("a receipt has another mechanism", "sensitivity", "is unknown", f.edit_receipt(p.COUNTS, mechanism="laplace")),
    Lie("a map has 10^12 frequencies", "sensitivity", "larger than any map of Likeness", method="pearl",
        plant=lambda folder: p.inner(folder, num_frequencies=10**12)),
    Lie("a map has half a frequency", "sensitivity", "not a whole number", method="pearl",
        plant=lambda folder: p.inner(folder, num_frequencies=100.5)),
    Lie("records together are two groups", "sensitivity", "are one group", p.feature(p.COUNTS, terms="all_records")),
    Lie("the terms are unknown", "sensitivity", "are unknown", p.feature(p.COUNTS, terms="no_records")),
    Lie("a map lacks a word", "sensitivity", "does not have the specification",
        p.feature(p.EMBEDDING, drop="squared_weights")),
    Lie("a map has an unknown word", "sensitivity", "cannot be read", p.feature(p.COUNTS, note=p.NOTE)),
    # --- releases of keys
    Lie("keys: another map", "sensitivity", "another map", p.feature(p.KEYS, map="names")),
    Lie("keys: a map with a note", "sensitivity", "another map", p.feature(p.KEYS, note=p.NOTE)),
    Lie("keys: another mechanism", "sensitivity", "is unknown", f.edit_receipt(p.KEYS, mechanism=MECHANISM)),
    Lie("keys: several groups", "sensitivity", "not one of a partition selection", p.double_keys),
    Lie("keys: an unknown adjacency", "sensitivity", "adjacency is unknown", f.edit_receipt(p.KEYS, adjacency="both")),
    Lie("keys: people are replaced", "sensitivity", "cannot be replaced",
        f.edit_receipt(p.KEYS, adjacency="replace_one")),
    Lie("keys: no noise", "sensitivity", "no noise", f.edit_receipt(p.KEYS, noise_scale=0.0)),
    *(Lie(f"keys: another {field}", "sensitivity", field, plant)
      for field, plant in zip(("dimension", "sensitivity", "noise_scale", "rho"),
                              p.off(p.KEYS, "dimension", "sensitivity", "noise_multiplier", "rho"), strict=True)),
    Lie("keys: another change", "sensitivity", "change is wrong", f.edit_receipt(p.KEYS, change="one_replaced")),
    Lie("keys: noise of a few rows", "sensitivity", "too coarse", p.coarse_keys),
    Lie("keys: no delta", "sensitivity", "no delta for it", f.edit_receipt(p.KEYS, delta_keys=0.0)),
    Lie("keys: a low threshold", "sensitivity", "value of one person pass", p.lower),
    Lie("keys: a category below the threshold", "sensitivity", "below the threshold",
        f.edit_values(p.KEYS, lambda lattice: np.array([[lattice[0, 0], 1]]))),
    Lie("keys: a blank behind a category", "sensitivity", "not in its normal form", p.key_with_a_blank),
    Lie("keys: more than were asked for", "sensitivity", "more keys", p.feature(p.KEYS, most=1)),
    Lie("keys: the word for all others", "sensitivity", "is not a key", p.feature(p.KEYS, other="nurse")),
    # --- epsilon and the account
    Lie("the account is at another delta", "epsilon", "another delta", p.field("total.delta", 1e-4), seal=T),
    Lie("the claim exceeds the target", "epsilon", "exceeds", p.field("total.epsilon", 1.1), seal=T),
    Lie("the claim is smaller than the noise allows", "epsilon", "below what the noise", p.field("total.epsilon", 0.5)),
    Lie("the claim forgets the lattice", "epsilon", "below what the noise", p.field("total.epsilon", 1 - 1e-4)),
    Lie("the claim is a hair smaller", "account", "total: epsilon", p.field("total.epsilon", 0.9999991)),
    Lie("the claim is larger than the noise allows", "epsilon", "not what receipts give",
        f.all_of(p.field("total.epsilon", 1.01), p.field("target.epsilon", 2.0))),
    Lie("another epsilon by Rényi orders", "epsilon", "epsilon_rdp", p.field("total.epsilon_rdp", 0.5)),
    Lie("another epsilon by Gaussians", "epsilon", "epsilon_gaussian", p.field("total.epsilon_gaussian", 0.5)),
    Lie("a release has no noise", "epsilon", "has no noise", f.edit_receipt(p.COUNTS, noise_multiplier=0.0)),
    Lie("a receipt claims twice the noise", "epsilon", "not what receipts give",
        f.edit_receipt(p.EMBEDDING, noise_multiplier=16.0)),
    Lie("thresholds cost all of delta", "epsilon", "costs all of delta", f.edit_receipt(p.KEYS, delta_keys=1e-5)),
    Lie("the account forgets what thresholds cost", "epsilon", "leaves out", p.field("total.delta_keys", None)),
    Lie("the run is not private", "account", "not private", f.set_value(names.PLAN_FILE, "epsilon", "inf")),
    Lie("the account names unknown software", "account", "unknown software", p.field("software.note", p.NOTE)),
    Lie("the account names a version that is a note", "account", "unknown software", p.field("software.numpy", p.NOTE)),
    Lie("the account names a version with a word", "account", "unknown software", p.field("software.numpy", "1_ada")),
    Lie("the ledger has no cap, says the account", "account", "no cap", f.edit_body("cap", identity="visitors")),
    *(Lie(f"the account has another {path}", "account", "is not what receipts", p.field(path, value), seal=S)
      for path, value in (("total.rho", 1e-3), ("total.epsilon", "1.0"), ("ledger.lifetime.spent_rho", 1e-3),
          ("ledger.lifetime.spent_epsilon", 0.1), ("ledger.lifetime.cap_epsilon", 0.5),
          ("ledger.lifetime.uncommitted", 1), ("ledger.id", "0" * 16), ("note", p.NOTE), ("queries.0.note", p.NOTE),
          ("queries.0.sha256", p.SHA), ("queries.0.keys", 3), ("queries.1.noise_scale", 1e3), ("rdp_curve.total", []),
          ("target.epsilon", 0.9), ("identity", "visitors"), ("unit", "one department"),
          ("rows_of_a_person.max_rows", 1), ("method", "merf"), ("sample.rows", 51), ("outputs", {}),
          ("private", False))),
    Lie("a query is forgotten", "account", "queries", lambda folder: f.edit_json(folder / names.PRIVACY, p.forget),
        seal=T),
    Lie("a file of the account is another", "account", "outputs",
        p.field("outputs", {"data/synthetic/synthetic.csv": p.SHA}), seal=S),
    # --- the chain
    Lie("a record is cut out", "ledger chain", "lead to another head",
        p.unsealed(names.LEDGER, lambda lines: lines[:1] + lines[2:]), seal=S),
    Lie("a record was edited", "ledger chain", "to another head", f.edit_file(names.LEDGER, "staff", "stuff"), seal=S),
    Lie("two records change places", "ledger chain", "to another head",
        p.unsealed(names.LEDGER, lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]]), seal=S),
    Lie("a link was edited", "ledger chain", "to another head", p.links('(?<="content": ").{8}', "0" * 8), seal=S),
    Lie("a link has an unknown key", "form", "is not written", p.links("{", f'{{"a": "{p.NOTE}", '), seal=S),
    *(Lie(f"a link has no {key}", "ledger chain", "cannot be read", p.links(f'"{key}"', '"k"'), seal=S)
      for key in ("content", "population_salt")),
    Lie("a link names people in more than a line", "ledger chain", "does not write", p.link(identity="people " * 40)),
    Lie("the body of a release has an unknown key", "ledger chain", "unknown keys",
        f.edit_body("reserve", note=p.NOTE)),
    Lie("the body of a commit lacks a key", "ledger chain", "lacks some",
        p.records(lambda records: [r for r in records if r.get("kind") == "commit"][-1]["body"].pop("reserve_seq"))),
    Lie("the body of a cap lacks a salt", "ledger chain", "cannot be read",
        f.edit_file(names.LEDGER, '"salt"', '"pepper"'), seal=S),
    Lie("a record is of an unknown kind", "ledger chain", "unknown kind", p.last("cap", kind="note")),
    Lie("a record has no time", "ledger chain", "no day until today", p.last("published", time=p.NOTE)),
    Lie("a record is earlier than the one before", "ledger chain", "before that of an earlier record",
        p.last("commit", time="2020-01-01")),
    Lie("a ledger begins twice", "ledger chain", "not the ledger's first",
        p.records(lambda records: records.append(dict(records[0])))),
    Lie("the first record is hidden", "ledger chain", "not the ledger's first", p.first_hidden, seal=N),
    Lie("a population is a note", "ledger chain", "not a digest", p.link(population_salt=p.NOTE)),
    Lie("a content is a note", "ledger chain", "not a digest", p.link(content=p.NOTE)),
    Lie("a record names software without a version", "ledger chain", "does not write",
        f.edit_body("reserve", software={"auditor": p.NOTE})),
    Lie("whoever asked has a long name", "ledger chain", "does not write",
        f.edit_body("reserve", asked_by="me " * 100)),
    Lie("whoever asked has a name of two lines", "ledger chain", "does not write",
        f.edit_body("reserve", asked_by="me\nI")),
    Lie("a digest in a record is a note", "ledger chain", "does not write", f.edit_body("commit", sha256=p.NOTE),
        seal=T),
    Lie("published files have a note for their digest", "ledger chain", "does not write",
        f.edit_body("published", files=p.NOTE), seal=T),
    Lie("a number in a record holds a text", "ledger chain", "larger than Likeness",
        f.edit_body("reserve", dimension=1 << 99)),
    # --- entries
    Lie("a release has no entry", "ledger entries", "no entry", f.edit_receipt(p.COUNTS, key=p.SHA)),
    Lie("a release names another entry", "ledger entries", "another ledger_seq",
        f.edit_receipt(p.COUNTS, ledger_seq=1)),
    Lie("a release is of another ledger", "ledger entries", "another ledger_id",
        f.edit_receipt(p.COUNTS, ledger_id="0" * 16)),
    Lie("a release has other values than were committed", "ledger entries", "other bytes",
        f.edit_values(p.COUNTS, lambda lattice: lattice + 1), seal=T),
    *(Lie(f"an entry has another {fact}", "ledger entries", f"another {fact}",
        f.edit_body("reserve", p.COUNTS, **{fact: value})) for fact, value in (("rho", 1e-9), ("plan", p.SHA),
          ("stage", "privatize"), ("method", "merf"), ("dimension", 1), ("noise_multiplier", 99.0),
          ("sensitivity", 0.5), ("change", "one_replaced"))),
    *(Lie(f"an entry of {query} was asked with another {fact}", "ledger entries", f"another {fact}",
        f.edit_request(query, **{fact: value})) for fact, query, value in (("identity", p.COUNTS, "visitors"),
          ("digest", p.COUNTS, p.SHA), ("slot", p.COUNTS, "2"), ("adjacency", p.COUNTS, "replace_one"),
          ("feature", p.COUNTS, {"map": "constant"}), ("num_groups", p.COUNTS, 3),
          ("unit", p.COUNTS, {"column": "pid", "max_rows": 1}), ("encoding", p.COUNTS, p.SHA),
          ("encoding", p.KEYS, p.SHA), ("threshold", p.KEYS, 1), ("delta_keys", p.KEYS, 1e-9))),
    Lie("the schema has its categories in another order", "ledger entries", "another encoding",
        f.edit_file(names.SCHEMA, "[less, more]", "[more, less]")),
    Lie("the ledger recorded other files", "ledger entries", "were published",
        f.edit_body("published", files=p.SHA), seal=T),
    Lie("the ledger recorded files of other releases", "ledger entries", "were published",
        f.edit_body("published", releases=[p.SHA])),
    # --- records of other releases, caps, orders, days
    *(Lie(says, check, because, plant, **dict(*rest)) for says, check, because, plant, *rest in OF_LEDGERS),
    # --- the lifetime
    Lie("an earlier run of these people is hidden", "lifetime", "by the word of the bundler",
        f.hide(), "pearl", verdict=None),
    Lie("an earlier run of these people is hidden, and opened", "lifetime", "about this population, and is hidden",
        f.hide(IDENTITY), "pearl"),
    Lie("a link is said to be about others", "ledger chain", "to another head", p.links("visitors", "guests"), seal=S),
    # --- noise
    Lie("the low bits are no noise", "noise", "low bits", method="pearl",
        plant=f.edit_values(p.EMBEDDING, lambda lattice: lattice & ~np.int64(2**20 - 1))),
    Lie("the noise of the default method is too small", "noise", "not of the scale",
        f.edit_values(p.EMBEDDING, lambda lattice: (lattice * 1e-5).astype(np.int64))),
    Lie("the noise of the default method is too large", "noise", "not of the scale",
        f.edit_values(p.EMBEDDING, lambda lattice: lattice + p.stripes(lattice))),
    Lie("a category has 600 people of another", "noise", "another number of a private category",
        f.edit_values(p.KEYS, lambda lattice: lattice + np.array([[600 << 30, -600 << 30]]))),
    Lie("all tables of pairs are turned around", "noise", "count it differently",
        p.turned_around),
    Lie("ten values of a class are those of another", "noise", "values repeat",
        f.edit_values(p.EMBEDDING, lambda values: np.hstack([np.tile(values[0, :10], (2, 1)), values[:, 10:]]))),
    Lie("all numbers of records are whole people", "noise", "multiples of one step",
        f.edit_values(p.COUNTS, lambda values: (values >> 30) << 30)),
    Lie("a hundred times the people", "noise", "counts another number of records",
        f.edit_values(p.COUNTS, lambda values: values * 100 + 12345)),
    Lie("a product is the number of records of a class, to the last bit", "noise", "repeats values", p.copied_count),
    Lie("second moments are symmetric", "noise", "smaller than the receipt", p.symmetric, map_of="moments"),
    Lie("two releases count the cells of a table differently", "noise", "count it differently",
        f.edit_values(p.EMBEDDING, p.minor(400))),
    Lie("cells of a table count fewer than no records", "noise", "do not give such sums",
        f.all_of(*(f.edit_values(one, p.minor(1500)) for one in (p.SECOND, p.EMBEDDING)))),
    *(Lie(says, "noise", "do not give such sums", f.edit_values(query, change), "pearl")
      for says, query, change in (
          ("a class has fewer than no people", p.COUNTS, lambda values: -values),
          ("an embedding is longer than its people make it", p.EMBEDDING, lambda values: 11 * values),
          ("there are more pairs than buckets", "mean_pairwise_distance", lambda values: 9 * values),
          ("categories have more people than there are", p.KEYS, lambda values: values + (1 << 43)))),
    # --- hostile files
    Lie("bytes before the first file of the zip", OPENED, "", h.zipped(h.before)),
    Lie("bytes after the last file of the zip", OPENED, "", h.zipped(lambda data: data + p.NOTE.encode())),
    Lie("bytes between files of the zip", OPENED, "beside the files", h.zipped(h.in_between)),
    Lie("bytes between the files of the zip and their list", OPENED, "beside the files", h.zipped(h.between)),
    Lie("a comment of the zip", OPENED, "beside the files", h.zipped(h.comment)),
    Lie("dates in the zip", OPENED, "beside the files", h.zipped(h.dated)),
    Lie("files of the zip in another order", OPENED, "beside the files",
        lambda folder: h.packed_zip(folder, h.files_of(folder)[::-1])),
    Lie("other bits behind the end of a packed file", OPENED, "beside the files", h.last_bits),
    Lie("bytes after the end of a packed file", OPENED, "beside the files",
        h.one_packed(lambda text: h.deflated(text) + p.NOTE.encode())),
    Lie("a packed file that is longer than it says", OPENED, "can be read",
        h.one_packed(lambda text: h.deflated(bytes(1 << 26)))),
    Lie("a packed file that is shorter than it says", OPENED, "can be read",
        h.one_packed(lambda text: h.deflated(text[:-1]))),
    Lie("a packed file that has other bytes than its checksum", OPENED, "can be read",
        h.one_packed(lambda text: h.deflated(text[::-1]))),
    Lie("a packed file that does not end", OPENED, "can be read", h.one_packed(lambda text: h.deflated(text)[:-5])),
    Lie("a name twice in the zip", OPENED, "occurs twice", h.other_zip(h.twice)),
    Lie("a name in the zip that leads elsewhere", OPENED, "does not belong",
        h.other_zip(lambda archive: archive.writestr("../escape.txt", p.NOTE))),
    Lie("a thousand times the bytes of the zip", OPENED, "than a bundle of Likeness", h.other_zip(h.bomb)),
    Lie("a thousand times the bytes of a file", OPENED, "than a file of Likeness",
        h.other_zip(partial(h.bomb, megabytes=32))),
    Lie("a pipe instead of a file", OPENED, "not a regular file", h.instead(names.PRIVACY, os.mkfifo)),
    Lie("a pipe instead of a release", OPENED, "not a regular file",
        h.instead(f"{names.RELEASED}/{p.COUNTS}.safetensors", os.mkfifo)),
    Lie("a link instead of a file", OPENED, "not a regular file",
        h.instead(names.CARD, lambda path: path.symlink_to("/etc/passwd"))),
    Lie("a link to a device instead of a file", OPENED, "not a regular file",
        h.instead(names.WEIGHTS, lambda path: path.symlink_to("/dev/zero"))),
    Lie("a link instead of a folder", OPENED, "is not a folder", h.folder_link),
    Lie("a text of a terabyte", OPENED, "longer than Likeness", h.instead(names.PRIVACY, h.sparse)),
    Lie("weights of a terabyte", OPENED, "longer than Likeness", h.instead(names.WEIGHTS, h.sparse)),
)  # fmt: skip


_WORDS = {0: "BELIEVED", 1: "wrong", 3: "not everything tested"}
TOLD = [lie for lie in LIES if lie.method in MADE and lie.map_of in METHODS]
"""The lies that can be told here."""
BY_NAME = {f"{lie.says} ({lie.check})": lie for lie in TOLD}


def judged(lie: Any, honest: dict[str, Path]) -> list[Check]:
    """What the whole verifier says of a lie; a bundle that is refused is one wrong check."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with open_bundle(lie.told(honest, Path(folder))) as place:
                return list(checks_of(place, lie.retrain, MOST_MINUTES))
        except LikenessError as refusal:
            return [Check(OPENED, False, str(refusal))]


def main() -> int:
    """Tell all lies, and print what the verifier says of each; 1 if one is believed."""
    believed = 0
    print("| lie | verdict | check | what it says |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        honest = bundles(Path(folder))
        for name, lie in BY_NAME.items():
            checks = judged(lie, honest)
            passed = {check.passed for check in checks}
            code = 1 if False in passed else 3 if None in passed else 0
            believed += code not in ((1,) if lie.verdict is False else (1, 3))
            # A bundle with files that do not belong is looked at no further.
            worst = min(checks, key=lambda one: (False, None, True).index(one.passed))
            check = next((one for one in checks if one.name == lie.check and one.passed is lie.verdict), worst)
            print(f"| {name} | {_WORDS[code]} | {check.name} | {check.text[:120]} |", flush=True)
    print(f"\n{len(BY_NAME)} lies, {believed} believed")
    return int(believed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
