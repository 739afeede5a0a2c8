"""What was made from the releases: texts for people, generator, table."""

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from likeness import bundle as names
from likeness.canonical import sha256_bytes
from likeness.data.schema import Schema
from likeness.statement import statement
from likeness.verifier.files import Bundle
from likeness.verifier.verdict import Untestable, require

_ROUNDING = 0.01  # share of cells that another processor may draw otherwise


def texts(bundle: Bundle) -> str:
    """The texts for people say what the account for machines says, to the letter."""
    privacy = bundle.json(names.PRIVACY)
    require(bundle.text(names.STATEMENT) == statement(privacy), f"{names.STATEMENT} is not that of {names.PRIVACY}")
    expected = names.data_card(privacy, Schema.load(bundle.folder / names.SCHEMA))
    require(bundle.text(names.CARD) == expected, f"{names.CARD} is not that of {names.PRIVACY}")
    return "statement and data card as written from the account"


def generator(bundle: Bundle) -> str:
    """Trained, as it says, on exactly these releases; loads without code of its own."""
    from likeness.generators.saved import SavedGenerator

    saved = SavedGenerator.load(bundle.folder / "generator")
    keys = sorted(one.receipt.key for one in bundle.released().values())
    require(saved.provenance["releases"] == keys, "the generator names other releases")
    require(saved.provenance["method"] == bundle.json(names.PRIVACY)["method"], "the generator names another method")
    outputs = {Path(path).name: digest for path, digest in bundle.json(names.PRIVACY)["outputs"].items()}
    for name in (names.SPEC, names.WEIGHTS, names.TABLE, names.TABLE_CSV):
        digest = sha256_bytes((bundle.folder / name).read_bytes())
        require(outputs[Path(name).name] == digest, f"the statement is about another {name}")
    return f"method {saved.provenance['method']}, {len(keys)} releases"


def table(bundle: Bundle) -> str:
    """The table is what the generator draws with the public seed: nothing else went into it."""
    import pandas as pd

    told = pd.read_parquet(bundle.folder / names.TABLE)
    sample = bundle.json(names.PRIVACY)["sample"]
    again = draw(bundle.folder, int(sample["rows"]), int(sample["seed"]), sample["where"])
    require(list(told.columns) == list(again.columns) and len(told) == len(again), "other columns or rows")
    if not told.equals(again):
        changed = sum((~_same(told[name], again[name])).sum() for name in told.columns) / told.size
        made, here = str(bundle.json(names.PRIVACY)["software"]["torch"]), version("torch")
        text = f"{changed:.2%} of the cells are drawn otherwise here"
        # Another processor may round a probability otherwise, and a row in ten thousand falls on the other side. Where
        # rows exchange values that row would change others; probabilities are float64 there, and all else integers.
        require(made.split("+")[0] != here.split("+")[0] or changed < _ROUNDING, text)
        raise Untestable(f"{text}, with torch {here}; the table was made with torch {made}")
    return f"{len(told):,} rows, drawn again from the generator and equal"


def draw(folder: Path, rows: int, seed: int, where: Mapping[str, Any]) -> Any:
    """Rows from the generator of a bundle, or of a project's folder, as a typed pandas DataFrame."""
    from likeness import synthetic
    from likeness.artifacts import CATEGORIES, GENERATOR, completed_by
    from likeness.generators.saved import SavedGenerator
    from likeness.params import load_params
    from likeness.release.keys import STAGE

    generator, schema, released = folder / "generator", folder / names.SCHEMA, folder / names.RELEASED
    if not generator.exists() and (folder / "params.yaml").exists():
        generator, schema = folder / GENERATOR, folder / load_params(folder / "params.yaml").ingest.schema
        released = folder / CATEGORIES
    own = completed_by(Schema.load(schema), sorted(released.glob(f"{STAGE}_*.safetensors")))
    return synthetic.draw(SavedGenerator.load(generator), own, rows, seed, where)


def _same(a: Any, b: Any) -> Any:
    """Equal cells, missing ones included."""
    return (a == b).fillna(False).astype(bool) | (a.isna() & b.isna())
