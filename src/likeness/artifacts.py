"""Where every artifact of a run lies, and how the stages read and write them."""

import hmac
import json
import os
import subprocess
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
from likeness.privacy.plan import Plan, make_plan

if TYPE_CHECKING:
    from likeness.data.databases import Database
    from likeness.privacy.ledger import Ledger

SOURCE = Path("data/private/source.json")
TABLE = Path("data/private/table.parquet")
PLAN = Path("data/plan/plan.json")
ENCODED = Path("data/private/encoded.parquet")
WORKERS = Path("data/private/workers")
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
    """Write a JSON artifact; the same value gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n")


def load_schema(params: Params) -> Schema:
    """The public schema that params.yaml names."""
    return _checked(params, Schema.load(Path(params.ingest.schema)))


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


def plan_of(params: Params, schema: Schema | None = None) -> Plan:
    """The plan, from public settings alone; refused where a later stage could not answer it."""
    recipe = method_from(params)
    recipe.check(context(params, schema))
    return make_plan(
        method=params.method,
        identity=params.privacy.identity,
        shares=recipe.shares(),
        epsilon=params.privacy.epsilon,
        delta=params.privacy.delta,
        adjacency=Adjacency(params.privacy.adjacency),
        num_records=params.privacy.num_records,
        unit=params.ingest.unit,
    )


def open_ledger(params: Params) -> "Ledger":
    """The ledger of this machine or team, verified."""
    from likeness.privacy.home import locate
    from likeness.privacy.ledger import Ledger

    return Ledger.open(locate(params.ledger.home, params.ledger.url))


def open_ledger_to_spend(params: Params) -> "Ledger":
    """The ledger, with the identity's caps on record: for the stages that ask the door.

    Raises:
        LedgerError: git remembers a longer or another ledger of that id: this one is an old copy.
    """
    from likeness.privacy.witness import check_witnesses, git_witnesses

    ledger, cap = open_ledger(params), params.ledger.cap
    own = [witness for witness in git_witnesses(Path()) if witness.ledger_id == ledger.id]
    check_witnesses(ledger.records(), own)
    adjacency, unit = Adjacency(params.privacy.adjacency), params.ingest.unit
    person = None if unit is None else unit.column
    ledger.declare_identity(params.privacy.identity, adjacency, cap.epsilon, cap.delta, person)
    ledger.declare_limits(params.privacy.identity, limits(params))
    return ledger


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
