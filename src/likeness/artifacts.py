"""Where every artifact of a run lies, and how the stages read and write them."""

import hmac
import json
import math
import os
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness import __version__
from likeness.canonical import sha256_json
from likeness.data.schema import Schema
from likeness.engine import Engine, open_engine
from likeness.errors import ArtifactError, DataError, SchemaError
from likeness.methods import Context, Method, method_from
from likeness.params import Params
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import rho_for
from likeness.privacy.plan import KeyShares, Plan, make_plan
from likeness.release.keys import STAGE as KEY_STAGE
from likeness.release.keys import completed, query_name
from likeness.release.released import check_known, load_released

if TYPE_CHECKING:
    from likeness.data.databases import Database
    from likeness.privacy.ledger import Ledger

SOURCE = Path("data/private/source.json")
TABLE = Path("data/private/table.parquet")
PLAN = Path("data/plan/plan.json")
ENCODED = Path("data/private/encoded.parquet")
WORKERS = Path("data/private/workers")
CATEGORIES = Path("data/released/categories")
AUXILIARY = Path("data/released/auxiliary")
EMBEDDING = Path("data/released/embedding.safetensors")
GENERATOR = Path("data/models/generator")
LOSS = Path("data/models/loss.csv")
SYNTHETIC = Path("data/synthetic/synthetic")
INTERNAL = Path("reports/internal")
PRIVACY = Path("reports/privacy.json")
STATEMENT = Path("reports/PRIVACY_STATEMENT.md")
REPORT = Path("reports/index.html")
FIGURES = Path("reports/figures")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON artifact.

    Raises:
        ArtifactError: it is missing or not JSON.
    """
    try:
        value: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing. Run: dvc repro") from None
    except ValueError:
        raise ArtifactError(f"{path} is not valid JSON. Run: dvc repro") from None
    return value


def write_json(path: Path, value: Any) -> None:
    """Write a JSON artifact."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json_text(value))


def json_text(value: Any) -> str:
    """A JSON artifact as text. The same value gives the same bytes."""
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n"


def open_schema(params: Params) -> Schema:
    """The public schema that params.yaml names, as it is written: columns may be open."""
    return _checked(params, Schema.load(Path(params.ingest.schema)))


def load_schema(params: Params) -> Schema:
    """The same with the categories of open columns as they were released.

    Raises:
        ArtifactError: they were not yet, or for another schema.
    """
    return completed_by(open_schema(params), category_files())


def completed_by(schema: Schema, files: Sequence[Path]) -> Schema:
    """A schema whose open columns have the categories of these released files."""
    if not schema.open_columns:
        return schema
    return completed(schema, [load_released(path) for path in files])


def category_files() -> list[Path]:
    """Released files of open columns."""
    return sorted(CATEGORIES.glob("*.safetensors"))


def check_categories(params: Params) -> None:
    """Refuse released categories that the ledger does not know."""
    check_known(category_files(), params.ledger.home, params.ledger.url)


def released_files() -> list[Path]:
    """Every released file of a run, in the order of its stages."""
    return [*category_files(), *sorted(AUXILIARY.glob("*.safetensors")), EMBEDDING]


def _checked(params: Params, schema: Schema) -> Schema:
    """Refuse to synthesize the column that says who somebody is."""
    unit = params.ingest.unit
    if unit is not None and unit.column in schema.names:
        raise SchemaError(
            f"column '{unit.column}' is ingest.unit.column, whose values name people: it is never released. In the "
            "schema give it kind drop with a reason, or leave it out."
        )
    return schema


def context(params: Params, schema: Schema | None = None) -> Context:
    """Public facts for the method's recipe. ``schema``: instead of the one that params.yaml names."""
    schema = load_schema(params) if schema is None else _checked(params, schema)
    return Context(schema, params.privacy.adjacency, params.privacy.num_records, params.train.seed)


def foreseen(params: Params, schema: Schema | None = None) -> Schema:
    """The schema before anything is released: stand-ins for as many categories as an open column may get.

    Args:
        schema: instead of the one that params.yaml names.
    """
    schema = open_schema(params) if schema is None else schema
    return schema.foreseen(params.categories.most)


def plan_of(params: Params, schema: Schema | None = None) -> Plan:
    """The plan, from public settings alone; refused where a later stage could not answer it.

    Args:
        schema: instead of the one that params.yaml names; as it is written.
    """
    recipe, schema = method_from(params), open_schema(params) if schema is None else schema
    facts = context(params, foreseen(params, schema))
    recipe.check(facts)
    own, names = params.categories, tuple(query_name(place) for place, _ in enumerate(schema.open_columns, start=1))
    return make_plan(
        method=params.method,
        identity=params.privacy.identity,
        shares=recipe.shares(facts),
        epsilon=params.privacy.epsilon,
        delta=params.privacy.delta,
        adjacency=Adjacency(params.privacy.adjacency),
        num_records=params.privacy.num_records,
        unit=params.ingest.unit,
        keys=KeyShares(names, KEY_STAGE, own.share, own.delta_share) if names else None,
    )


def load_plan() -> Plan:
    """The plan as it was written.

    Raises:
        ArtifactError: it was not.
    """
    return Plan.from_dict(read_json(PLAN))


def open_ledger(params: Params) -> "Ledger":
    """The ledger of this machine or team, verified."""
    from likeness.privacy.home import locate
    from likeness.privacy.ledger import Ledger

    return Ledger.open(locate(params.ledger.home, params.ledger.url))


def open_ledger_to_spend(params: Params, schema: Schema | None = None) -> "Ledger":
    """The ledger, with the identity's caps on record: for the stages that ask the door.

    Args:
        schema: as it is written, instead of the one that params.yaml names.

    Raises:
        LedgerError: git remembers a longer or another ledger of that id: this one is an old copy.
    """
    from likeness.privacy.witness import check_witnesses, git_witnesses

    ledger, cap = open_ledger(params), params.ledger.cap
    own = [witness for witness in git_witnesses(Path()) if witness.ledger_id == ledger.id]
    check_witnesses(ledger.records(), own)
    adjacency, unit = Adjacency(params.privacy.adjacency), params.ingest.unit
    person = None if unit is None else unit.column
    keys = delta_for_keys(params, open_schema(params) if schema is None else schema)
    ledger.declare_identity(params.privacy.identity, adjacency, cap.epsilon, cap.delta, person, keys)
    ledger.declare_limits(params.privacy.identity, limits(params))
    return ledger


def delta_for_keys(params: Params, schema: Schema) -> float:
    """The part of a lifetime cap's δ that is kept for thresholds, where these people are not on record yet.

    As much as runs with these settings need until they have used the cap's ρ, but at most half, and enough for one:
    half of δ leaves nearly all of ρ (95 % at ε = 10). ``likeness ledger cap`` changes it on record.
    """
    cap, privacy = params.ledger.cap, params.privacy
    if not schema.open_columns:
        return 0.0
    one, half = privacy.delta * params.categories.delta_share, cap.delta / 2
    if one >= cap.delta or not math.isfinite(privacy.epsilon):
        return half
    runs = rho_for(cap.epsilon, cap.delta) / rho_for(privacy.epsilon, privacy.delta)
    return max(one, min(one * math.floor(runs), half) if math.isfinite(runs) else half)


def limits(params: Params) -> dict[str, tuple[float, float]]:
    """Caps beside the lifetime cap that params.yaml asks for, from scope to (ε, δ)."""
    caps = params.ledger.caps
    found = {"project": caps.project, "user": caps.user, "month": caps.month}
    return {scope: (cap.epsilon, cap.delta) for scope, cap in found.items() if cap is not None}


def source_path(params: Params) -> Path:
    """The private source.

    Raises:
        DataError: it does not exist.
    """
    path = Path(params.ingest.source)
    if not path.exists():
        raise DataError(
            f"params.yaml: ingest.source {path} does not exist. Give a .csv, .csv.gz or .parquet file, or a folder of "
            ".parquet files."
        )
    return path


def fingerprint(path: Path, key: bytes) -> str:
    """Keyed hash of a file, so that DVC can notice a change without publishing a hash of private bytes.

    Of a folder: of its files' names and hashes.
    """
    digest = hmac.new(key, digestmod="sha256")
    if path.is_dir():
        files = {file.name: fingerprint(file, key) for file in sorted(path.iterdir()) if file.is_file()}
        digest.update(json.dumps(files, sort_keys=True).encode())
        return digest.hexdigest()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def source_digest(params: Params, key: bytes) -> str:
    """Keyed hash of the source: of a file's bytes, or of the rows that a database gives.

    Raises:
        DataError: there is no such file, or the database cannot be read.
    """
    found = database(params)
    return fingerprint(source_path(params), key) if found is None else found.fingerprint(key)


def database(params: Params) -> "Database | None":
    """The source, if it is a database."""
    from likeness.data.databases import Database

    return Database(params.ingest.source, params.ingest.query or "") if params.ingest.from_database else None


def engine(params: Params) -> AbstractContextManager[Engine]:
    """Where the passes over rows are worked on."""
    own = params.engine
    return open_engine(own.kind, own.workers, own.scheduler, WORKERS)


def provenance(params: Params | None = None) -> dict[str, Any]:
    """Who asks, for which project, from which commit, with which settings and software: public facts for the ledger."""
    import getpass
    import platform
    from importlib.metadata import version

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container without a passwd entry
        user = f"uid {os.getuid()}"
    software = {name: version(name) for name in ("numpy", "opendp", "pandas", "sqlalchemy")}
    facts = {
        "asked_by": user,
        "git_commit": _git("rev-parse", "--verify", "--quiet", "HEAD") or "none",
        "git_changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "likeness": __version__,
        "software": {"python": platform.python_version(), **software},
    }
    if params is not None:
        facts |= {"project": params.ledger.project or "", "params_sha256": sha256_json(public_settings(params))}
    return facts


def public_settings(params: Params) -> dict[str, Any]:
    """params.yaml without places, which differ from machine to machine and may hold a password."""
    from dataclasses import asdict

    value = asdict(params)
    del value["engine"]  # nor how work is divided, which changes nothing
    for section, key in (("ingest", "source"), ("ledger", "home"), ("ledger", "url"), ("tracking", "uri")):
        del value[section][key]
    return value


def _git(*words: str) -> str:
    """What git says; nothing where there is no git, or no repository."""
    try:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""


def method(params: Params) -> Method:
    """The recipe that params.yaml chooses."""
    return method_from(params)
