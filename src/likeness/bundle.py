"""The release bundle: everything that may be published about a run, in one folder or zip file, and nothing else."""

import json
import math
import shutil
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from likeness.artifacts import (
    GENERATOR,
    PLAN,
    SYNTHETIC,
    method,
    open_ledger,
    read_json,
    released_files,
    write_json,
)
from likeness.bounds import Unit
from likeness.canonical import canonical_json, sha256_bytes
from likeness.data.schema import Schema, schema_text
from likeness.errors import ArtifactError, ReleaseError
from likeness.features.encoded import RANDOM
from likeness.methods.merf_ae import ENCODER as ENCODER
from likeness.params import (
    Cap,
    Categories,
    Evaluate,
    Ingest,
    LedgerSettings,
    Params,
    Privacy,
    Sample,
    Schedule,
    Tracking,
    Train,
)
from likeness.privacy.chain import Record
from likeness.privacy.plan import Plan
from likeness.privacy.records import SALT, content_of, population_of
from likeness.statement import account, statement
from likeness.synthetic import sample_request
from likeness.typed import build

PRIVACY, STATEMENT, CARD, SCHEMA = "privacy.json", "PRIVACY_STATEMENT.md", "README.md", "schema.yaml"
SETTINGS, PLAN_FILE, LEDGER, CHECKSUMS = "settings.json", "plan.json", "ledger.jsonl", "SHA256SUMS"
TABLE, TABLE_CSV = "synthetic.parquet", "synthetic.csv"
SPEC, WEIGHTS = "generator/spec.json", "generator/weights.safetensors"
RELEASED = "released"
PUBLISHED = (SCHEMA, SETTINGS, PLAN_FILE, SPEC, WEIGHTS, TABLE, TABLE_CSV)
"""The files whose SHA-256 the ledger records. All others but the releases follow from these and from the ledger."""
ALWAYS = (PRIVACY, STATEMENT, CARD, LEDGER, CHECKSUMS, *PUBLISHED)
"""Every name that a bundle has, beside ``released/QUERY.safetensors``, and the public encoder of merf_ae if a file."""


def allowed_name(name: str) -> bool:
    """Whether a bundle may hold a file of that name."""
    path = Path(name)
    return name in (*ALWAYS, ENCODER) or (
        path.parent == Path(RELEASED) and path.suffix == ".safetensors" and path.stem.isidentifier()
    )


def write_bundle(params: Params, target: Path, open_others: bool = False) -> list[str]:
    """Write the bundle of the run in the working folder; a target that ends in .zip becomes a zip file.

    The account is made anew, so that nothing is bundled that does not belong together or that the ledger does not know.
    The ledger records the SHA-256 of what is published, once for the same files.

    Args:
        params: settings of the run.
        target: a new folder or a new .zip file.
        open_others: tell the names of other populations in the ledger, see :func:`chain_extract`.

    Returns:
        names of the files in it.

    Raises:
        ReleaseError: the run is not private, or its files do not belong together.
        ArtifactError: the target exists, or a file is missing.
    """
    if target.exists():
        raise ArtifactError(f"{target} exists. Delete it, or give another name.")
    ledger = open_ledger(params)
    plan = Plan.from_dict(read_json(PLAN))
    privacy = account(params, plan, ledger)
    if not privacy["private"]:
        raise ReleaseError("epsilon is inf: the run is NOT PRIVATE, there is nothing that may be published.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".bundle") as temporary:
        folder = Path(temporary) / "bundle"
        _copy(params, folder)
        _check_encoder(privacy, folder)
        schema = Schema.load(params.ingest.schema)
        (folder / SCHEMA).write_text(schema_text(schema))  # without comments: they are nobody's to check
        write_json(folder / SETTINGS, settings_of(params))
        write_json(folder / PLAN_FILE, plan.to_dict())
        write_json(folder / PRIVACY, privacy)
        (folder / STATEMENT).write_text(statement(privacy))
        (folder / CARD).write_text(data_card(privacy, schema))
        files = {name: sha256_bytes((folder / name).read_bytes()) for name in PUBLISHED}
        ledger.publish(params.privacy.identity, files, read_json(GENERATOR / "spec.json")["provenance"]["releases"])
        extract = chain_extract(ledger.records(), params.privacy.identity, open_others)
        (folder / LEDGER).write_text(chain_text(extract))
        names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        stray = [name for name in names if not allowed_name(name)]
        if stray:
            raise ReleaseError(f"{stray[0]} may not be in a bundle")
        sums = "".join(f"{sha256_bytes((folder / name).read_bytes())}  {name}\n" for name in names)
        (folder / CHECKSUMS).write_text(sums)
        names = sorted([*names, CHECKSUMS])
        if target.suffix == ".zip":
            packed = Path(temporary) / "bundle.zip"
            _zip(folder, names, packed)
            packed.replace(target)
        else:
            folder.replace(target)
    return names


def settings_of(params: Params) -> dict[str, Any]:
    """The settings that the run follows from, as JSON. No place of a machine is in them.

    A public file beside the settings has its name in the bundle.
    """
    recipe = method(params)
    names = {str(path): name for name, path in recipe.public_files().items()}
    unit = params.ingest.unit
    value = {
        "format": 1,
        "method": params.method,
        "privacy": asdict(params.privacy),
        "slot": params.ledger.slot,
        "unit": None if unit is None else unit.to_dict(),
        "categories": asdict(params.categories),
        "train": asdict(params.train),
        "sample": sample_request(params.sample),
        params.method: _renamed(asdict(recipe), names),  # type: ignore[call-overload]
    }
    plain: dict[str, Any] = json.loads(canonical_json(value))
    return plain


def params_of(settings: Mapping[str, Any], folder: Path) -> Params:
    """Inverse of :func:`settings_of`: the settings of a bundle in a folder.

    Raises:
        ParamsError: a setting is unknown, missing or out of range.
        KeyError: a section is missing.
    """
    name, unit = settings["method"], settings["unit"]
    section = _renamed(settings[name], {ENCODER: str(folder / ENCODER)})
    return Params(
        method=name,
        privacy=build(Privacy, settings["privacy"], "privacy"),
        ledger=LedgerSettings(Cap(math.inf, 0.5), slot=str(settings["slot"])),
        ingest=Ingest("", str(folder / SCHEMA), unit=None if unit is None else build(Unit, unit, "unit")),
        train=build(Train, settings["train"], "train"),
        sample=build(Sample, settings["sample"], "sample"),
        evaluate=Evaluate(),
        tracking=Tracking(""),
        schedule=Schedule(""),
        sections={name: section},
        categories=build(Categories, settings["categories"], "categories"),
    )


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A JSON value in which texts that are names of files have other names."""
    if isinstance(value, Mapping):
        return {key: _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def chain_extract(records: Sequence[Record], identity: str, open_others: bool = False) -> list[dict[str, Any]]:
    """The chain for a verifier: records about these people whole, of all others only their links.

    The digests prove that nothing was left out between them, without telling what else the ledger holds. A link has
    the digests of population and content too, where the record has them: see :func:`digest_of`.

    Args:
        records: all records of the ledger.
        identity: the people of the bundle.
        open_others: a link tells its population by name, with the salt. So a verifier sees that it is another one.
    """
    own = {str(r.body["key"]) for r in records if r.kind == "reserve" and r.body["identity"] == identity}
    found = []
    for record in records:
        body = record.body
        ours = record.kind == "genesis" or body.get("identity") == identity or body.get("key") in own
        parts: dict[str, Any] = {}
        if ours:
            parts = {"time": record.time, "kind": record.kind, "body": body}
        elif SALT in body:
            parts = {"population": population_of(body), "content": content_of(record)}
            if open_others:
                parts |= {"identity": body.get("identity", ""), SALT: body[SALT]}
        found.append({"seq": record.seq, "previous": record.previous, "digest": record.digest, **parts})
    return found


def chain_text(extract: Sequence[Mapping[str, Any]]) -> str:
    """Records of an extract, a line each."""
    return "".join(json.dumps(record, sort_keys=True) + "\n" for record in extract)


def _copy(params: Params, folder: Path) -> None:
    """Copy the artifacts that may be published."""
    sources = {
        TABLE: SYNTHETIC.with_suffix(".parquet"),
        TABLE_CSV: SYNTHETIC.with_suffix(".csv"),
        SPEC: GENERATOR / "spec.json",
        WEIGHTS: GENERATOR / "weights.safetensors",
        **method(params).public_files(),
        **{f"{RELEASED}/{path.name}": path for path in released_files()},
    }
    for name, source in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)
        (folder / name).chmod(0o644)  # the ledger's store is read-only, and so would be its copy


def _check_encoder(privacy: dict[str, Any], folder: Path) -> None:
    """The public encoder is still the file that the release names."""
    for query in privacy["queries"]:
        named = query["map"].get("encoder", RANDOM)
        if named != RANDOM and sha256_bytes((folder / ENCODER).read_bytes()) != named:
            raise ReleaseError(f"the encoder is not the file that was released with, whose SHA-256 is {named}")


def _zip(folder: Path, names: Sequence[str], target: Path) -> None:
    """The same files give the same zip file: no times, fixed order."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), (folder / name).read_bytes(), zipfile.ZIP_DEFLATED)


def data_card(privacy: dict[str, Any], schema: Schema) -> str:
    """A data card in the conventions of Hugging Face: YAML front matter, then Markdown."""
    rows = privacy["sample"]["rows"]
    sizes = [(10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M")]
    size = next((name for most, name in sizes if rows < most), "n>10M")
    total = privacy["total"]
    lines = [
        "---",
        f"pretty_name: {json.dumps(f'{schema.name} (synthetic, differentially private)')}",
        "tags: [synthetic, tabular, differential-privacy]",
        f"size_categories: [{json.dumps(size)}]",
        "configs:",
        "- config_name: default",
        f"  data_files: {TABLE}",
        "---",
        "",
        f"# {schema.name}: synthetic rows",
        "",
        f"{rows:,} synthetic rows; none of them is a person. Made by the method `{privacy['method']}` of Likeness from "
        f"{len(privacy['queries'])} noisy statistics, ε = {total['epsilon']:.6g} at δ = {total['delta']:g} "
        f"({privacy['adjacency']}, unit: {privacy['unit']}). [{STATEMENT}]({STATEMENT}) says what that promises and "
        "what it does not.",
        "",
        f"Source of the public schema: {schema.source}",
        "",
        "| file | what |",
        "| --- | --- |",
        f"| `{TABLE}`, `{TABLE_CSV}` | the table |",
        "| `generator/` | the generator: `likeness sample` draws more rows, at no cost of privacy |",
        "| `released/` | the noisy statistics, each with its receipt |",
        f"| `{PRIVACY}`, `{PLAN_FILE}`, `{SETTINGS}` | the account, the plan and the settings, for machines |",
        f"| `{LEDGER}` | the ledger's chain: entries about these people (who asked, which day); of others the links |",
        f"| `{CHECKSUMS}` | `sha256sum --check {CHECKSUMS}` |",
        "",
        "Do not trust this bundle: recompute it with `likeness verify --retrain`. Exit code 0 says that everything was "
        "recomputed.",
        "",
    ]
    return "\n".join(lines)
