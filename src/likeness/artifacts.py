"""Where every artifact of a run lies, and how the stages read and write them."""

import hmac
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness import __version__
from likeness.canonical import sha256_json
from likeness.data.column import SPLIT_COLUMN
from likeness.data.layout import Layout
from likeness.data.schema import Schema
from likeness.errors import ArtifactError, DataError
from likeness.methods import Context, Method, method_from
from likeness.params import Params
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import Plan, make_plan

if TYPE_CHECKING:
    from numpy import str_
    from numpy.typing import NDArray
    from pandas import DataFrame, Series

    from likeness.privacy.ledger import Ledger
    from likeness.release.door import Dataset
    from likeness.release.terms import Records

SOURCE = Path("data/private/source.json")
TABLE = Path("data/private/table.parquet")
IDENTITY = Path("data/private/identity.json")
PLAN = Path("data/plan/plan.json")
ENCODED = Path("data/private/encoded.parquet")
AUXILIARY = Path("data/released/auxiliary")
EMBEDDING = Path("data/released/embedding.safetensors")
GENERATOR = Path("data/models/generator")
LOSS = Path("data/models/loss.csv")
SYNTHETIC = Path("data/synthetic/synthetic")
INTERNAL = Path("reports/internal")
PRIVACY = Path("reports/privacy.json")
STATEMENT = Path("reports/PRIVACY_STATEMENT.md")
REPORT = Path("reports/index.html")
SPLIT = SPLIT_COLUMN
_ENCODER_VERSION = 1  # raise it when the encoder gives other vectors for the same schema and rows
_CHUNK_ROWS = 65_536


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
    return Schema.load(Path(params.ingest.schema))


def context(params: Params) -> Context:
    """Public facts for the method's recipe."""
    layout = Layout.from_schema(load_schema(params))
    return Context(layout, params.privacy.adjacency, params.privacy.num_records, params.train.seed)


def plan_of(params: Params) -> Plan:
    """The plan, from public settings alone."""
    return make_plan(
        method=params.method,
        identity=params.privacy.identity,
        shares=method_from(params).shares(),
        epsilon=params.privacy.epsilon,
        delta=params.privacy.delta,
        adjacency=Adjacency(params.privacy.adjacency),
        num_records=params.privacy.num_records,
    )


def open_ledger(params: Params) -> "Ledger":
    """The ledger of this machine, with the identity's cap on record."""
    from likeness.privacy.home import locate
    from likeness.privacy.ledger import Ledger

    ledger = Ledger.open(locate(params.ledger.home))
    adjacency, cap = Adjacency(params.privacy.adjacency), params.ledger.cap
    ledger.declare_identity(params.privacy.identity, adjacency, cap.epsilon, cap.delta)
    return ledger


def source_path(params: Params) -> Path:
    """The private source.

    Raises:
        DataError: it does not exist.
    """
    path = Path(params.ingest.source)
    if not path.exists():
        raise DataError(f"params.yaml: ingest.source {path} does not exist. Give a .csv, .csv.gz or .parquet file.")
    return path


def fingerprint(path: Path, key: bytes) -> str:
    """Keyed hash of a file, so that DVC can notice a change without publishing a hash of private bytes."""
    digest = hmac.new(key, digestmod="sha256")
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def split_parts(params: Params, schema: Schema, table: "DataFrame", column: "Series[str] | None") -> "NDArray[str_]":
    """``train`` or ``test`` for each row, by the rule that fits the adjacency."""
    from likeness.data.split import split_by_column, split_by_content, split_by_position

    split = params.ingest.split
    if column is not None:
        return split_by_column(column, split.train, split.test)
    if params.privacy.adjacency == Adjacency.REPLACE_ONE:
        return split_by_position(len(table), split.test_fraction, split.seed)
    return split_by_content(table, schema, split.test_fraction, split.seed)


def identity_card(params: Params, digest: str, num_records: int) -> dict[str, Any]:
    """What later stages may know of the training rows without opening them; their number only where it is public."""
    public = params.privacy.adjacency == Adjacency.REPLACE_ONE
    return {
        "identity": params.privacy.identity,
        "adjacency": params.privacy.adjacency,
        "digest": digest,
        "num_records": num_records if public else None,
    }


def dataset(params: Params) -> "Dataset":
    """Identity and keyed digest of the training rows, without opening them."""
    from likeness.release.door import Dataset

    identity = read_json(IDENTITY)
    if (identity["identity"], identity["adjacency"]) != (params.privacy.identity, params.privacy.adjacency):
        raise ArtifactError(f"{IDENTITY} was written under another identity or adjacency. Run: dvc repro ingest")
    if identity["num_records"] != params.privacy.num_records:
        raise DataError(
            f"privacy.num_records is {params.privacy.num_records}, the training table has {identity['num_records']} "
            "rows. Under replace_one the number of records is public and must be right; correct params.yaml."
        )
    encoding = encoding_digest(load_schema(params))
    return Dataset(identity["identity"], identity["digest"], params.ledger.slot, encoding)


def encoding_digest(schema: Schema) -> str:
    """Digest of all that shapes encoded rows: change a bound or the label, and it is another release."""
    columns = [{"name": column.name, **column.to_dict()} for column in schema.columns]
    label = schema.label if schema.task == "classification" else None
    return sha256_json({"version": _ENCODER_VERSION, "columns": columns, "label": label})


def training_records(schema: Schema) -> Callable[[], Iterator["Records"]]:
    """A function that opens the encoded training rows; the door calls it once the cost is on record."""

    def read() -> Iterator["Records"]:
        from likeness.data.encoding import Encoder
        from likeness.data.tables import iter_private
        from likeness.release.terms import Records

        encoder = Encoder(schema)
        for chunk in iter_private(ENCODED, None, _CHUNK_ROWS):
            codes = chunk[(chunk[SPLIT] == "train").to_numpy()]
            yield Records(encoder.expand(codes), encoder.labels(codes))

    return read


def provenance() -> dict[str, Any]:
    """Who asks, from which commit: public facts for the ledger."""
    import getpass

    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container without a passwd entry
        user = f"uid {os.getuid()}"
    return {"asked_by": user, "git_commit": commit or "none", "likeness": __version__}


def method(params: Params) -> Method:
    """The recipe that params.yaml chooses."""
    return method_from(params)
