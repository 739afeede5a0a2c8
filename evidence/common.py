"""What the benchmarks share: public tables, one run of a method in memory, scores, results in a CSV file."""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from evidence import mixture, papers_tables
from evidence.memory import peak_mb
from likeness.config.load import params_from
from likeness.config.params import Params, Split
from likeness.core.artifacts import Artifacts
from likeness.core.hashing import json_value
from likeness.core.rng import public
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_source
from likeness.evaluation.classifiers import CLASSIFIERS
from likeness.evaluation.marginals import marginal_table
from likeness.evaluation.utility import train_on_synthetic_test_on_real
from likeness.generators.base import Compute
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods import METHODS, method_from
from likeness.methods.fit import fit
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.datasets import model_of
from likeness.pipeline.ingest import SPLIT, used_rows
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency
from likeness.release.released import Released, load_answers, load_released
from likeness.stages import STAGES
from likeness_images.distances import image_distances
from likeness_papers.measures import papers_measures

SHARED = Path("../shared/data")
METRICS = ["roc_auc_hard", "roc_auc_score", "average_precision_hard", "average_precision_score", "f1", "accuracy"]
EXAMPLES = {
    name: Path("examples") / name / "params.yaml" for name in ("mixture", "digits", "mnist", "fashion_mnist", "cifar10")
}
REBALANCED = {"adult_rebalanced": ("adult", 22_561, 0.1), "census_rebalanced": ("census", None, 0.2)}
"""Tables as the papers' code makes them: from which rows, how many of these, the share of their test rows."""
NAMES = (
    "adult", "adult_rebalanced", "census", "census_rebalanced", "covtype", *papers_tables.FILES, *EXAMPLES, "celeba"
)  # fmt: skip
ONLY_MARGINALS = ("adult_discretized",)  # tables without a label
UNSPLIT = {"covtype": 0.2, "adult_discretized": 0.0}  # share of test rows, where no column says train or test
ONLY_IMAGES = ("merf_ae", "moments")  # methods that refuse tables
_MOST_ROWS = 40_000  # of a table that classifiers see; marginals see all
_MOST_IMAGES = 60_000
_ALL_TUPLES = 10_000


@dataclasses.dataclass(frozen=True)
class Table:
    """A public table, split."""

    params: Params
    schema: Schema
    train: pd.DataFrame
    test: pd.DataFrame


def load(name: str) -> Table:
    """One of :data:`NAMES`. Adult and the digits are bundled, the mixture is drawn where it is not there; others lie in
    data/raw or beside the project.

    Raises:
        SystemExit: the file is not there, with the way to get it.
    """
    if name in REBALANCED:
        source, count, test_share = REBALANCED[name]
        return rebalanced(load(source), count, test_share)
    params = settings(name)
    if name not in ("adult", *EXAMPLES):
        column, test_fraction = None if name in UNSPLIT else "split", UNSPLIT.get(name, 0.0)
        split = dataclasses.replace(params.ingest.split, column=column, test_fraction=test_fraction)
        folder = "raw" if name in papers_tables.FILES else "schema"
        ingest = dataclasses.replace(
            params.ingest, source=f"data/raw/{name}.parquet", schema=f"data/{folder}/{name}.yaml", split=split
        )
        privacy = dataclasses.replace(params.privacy, population=name)
        params = dataclasses.replace(params, ingest=ingest, privacy=privacy)
    if name in papers_tables.FILES and not Path(params.ingest.source).exists():
        published = SHARED / "papers" / papers_tables.FILES[name]
        if published.exists():
            papers_tables.build(name, published, Path("data/raw"))
    source = Path(params.ingest.source)
    if not source.exists() and (SHARED / source.name).exists():
        source = SHARED / source.name
    if name == "mixture" and not source.exists():
        mixture.build(source)
    if not source.exists():
        raise SystemExit(
            f"{source} is missing. Put it there: images as scripts/build_images.py writes them, a table as Parquet "
            f"with the columns of {params.ingest.schema}."
        )
    schema = Project(Path(), params).schema
    table, column_values, _ = read_source(source, schema, params.ingest.split.column)
    parts = used_rows(params, schema, table, column_values)[0][SPLIT]
    return Table(params, schema, table[parts == "train"], table[parts == "test"])


def settings(name: str) -> Params:
    """Settings of a table, with the sections of all methods that are meant for it written out."""
    example = EXAMPLES.get("cifar10" if name == "celeba" else name, Path("params.yaml"))
    files = [example, *filter(Path.exists, [example.with_name("methods.yaml")])]
    content = {key: value for file in files for key, value in yaml.safe_load(file.read_text()).items()}
    params = params_from(content)
    names = METHODS if example.parent == Path() else {*params.sections, params.method}
    sections = {name: json_value(method_from(dataclasses.replace(params, method=name))) for name in names}
    return dataclasses.replace(params, sections=sections)


def rebalanced(table: Table, count: int | None, test_share: float) -> Table:
    """Training rows with 40 % of the first class, and test rows that are a part of these, as the papers take them.

    The published code of DP-MERF, from which the others have their tables, keeps these of the larger class before it
    splits what is left, and never reads the tables' own test rows (its file data/tab_dataloader.py). That needs no
    privacy there and none here: the tables are public. Elsewhere it would tell who has which label.

    Args:
        count: of training rows, by a public draw, that are looked at; None: all.
    """
    schema, rows = table.schema, table.train
    order = public(0, "benchmarks.rebalanced").permutation(len(rows))[:count]
    first = (rows[schema.label].iloc[order] == schema.classes[0]).to_numpy()
    kept = np.sort(np.concatenate([order[~first], order[first][: round(0.4 * first.sum())]]))
    parts = public(0, "benchmarks.rebalanced.split").permutation(len(kept)) < test_share * len(kept)
    privacy = dataclasses.replace(table.params.privacy, population=f"{table.params.privacy.population}-rebalanced")
    params = dataclasses.replace(table.params, privacy=privacy)
    return Table(params, schema, rows.iloc[kept[~parts]], rows.iloc[kept[parts]])


@contextlib.contextmanager
def temporary_ledger() -> Iterator[None]:
    """A new ledger for this process, which is forgotten at the end."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({"LIKENESS_HOME": f"{folder}/ledger", "LIKENESS_ANCHOR": f"{folder}/anchor"})
        Ledger.create(locate())
        yield


def adjacent(params: Params, adjacency: str, rows: int) -> Params:
    """The same settings under an adjacency; these tables are public, so their number of rows may be."""
    own = rows if adjacency == Adjacency.REPLACE_ONE else None
    return dataclasses.replace(
        params, privacy=dataclasses.replace(params.privacy, adjacency=adjacency, num_records=own)
    )


def synthesize(params: Params, train: pd.DataFrame, draw: int) -> pd.DataFrame:
    """One noise draw: release, train, sample, in a ledger of its own. As many rows as params ask."""
    return rows_from(params, *releases(params, train, draw))


def releases(params: Params, train: pd.DataFrame, draw: int) -> tuple[dict[str, Released], Released]:
    """Auxiliary statistics and embedding of one noise draw, in a ledger of its own."""
    cap = dataclasses.replace(params.ledger.cap, epsilon=params.privacy.epsilon, delta=params.privacy.delta)
    ledger = dataclasses.replace(params.ledger, attempt=str(draw), cap=cap)
    ingest = dataclasses.replace(params.ingest, split=Split())
    params = dataclasses.replace(params, ledger=ledger, ingest=ingest)
    project = Project(Path(), params, frames={"synthetic": train}, artifacts=Artifacts())
    with temporary_ledger():
        for stage in STAGES:
            if stage.name in ("ingest", "plan", "categories", "preprocess", "auxiliary", "privatize"):
                stage.run(project)
        return load_answers(project.paths.auxiliary_files), load_released(project.paths.embedding)


def rows_from(params: Params, auxiliary: dict[str, Released], embedding: Released) -> pd.DataFrame:
    """Synthetic rows of what was released."""
    saved = fitted(params, auxiliary, embedding)
    return draw_rows(saved, Project(Path(), params).schema, params.sample.rows, params.sample.seed)


def draw_rows(saved: SavedGenerator, schema: Schema, rows: int, seed: int) -> pd.DataFrame:
    """Rows of a generator in their dtypes."""
    return model_of(schema).draw([saved], rows, seed, {})["synthetic"]


def fitted(params: Params, auxiliary: dict[str, Released], embedding: Released) -> SavedGenerator:
    """A generator trained on what was released."""
    compute = Compute(params.train.device, params.train.threads, params.train.precision)
    project = Project(Path(), params)
    saved, _ = fit(project.method, project.context, auxiliary, embedding, compute)
    return saved


def score(synthetic: pd.DataFrame, table: Table) -> dict[str, float]:
    """Tables: mean of the papers' 12 classifiers on the test rows, and mean total variation by order.

    Of the ROC AUC also the median of the classifiers, and each one's.

    Images: accuracy of each usual classifier on the test images; FID and KID against them. The mixture: its own
    likelihood, which is known.
    """
    if table.schema.name == "mixture":
        return mixture.score(synthetic)
    schema, settings, shape = table.schema, table.params.evaluate, table.schema.image
    if table.schema.name in ONLY_MARGINALS:
        rows = marginal_table(table.train, synthetic, schema, (3, 4), settings.bins, _ALL_TUPLES, settings.seed)
        means = rows.groupby("order")["total_variation"].mean()
        return {f"tv_{order}_train": float(value) for order, value in means.items()}
    most = _MOST_ROWS if shape is None else _MOST_IMAGES
    scores = train_on_synthetic_test_on_real(
        _at_most(synthetic, settings.seed, most),
        _at_most(table.test, settings.seed, most),
        schema,
        settings.seed,
        CLASSIFIERS if shape is None else model_of(schema).estimators(settings),
        max_workers=2,
    )
    if shape is not None:
        accuracy = dict(zip(scores["classifier"], scores["accuracy"].astype(float), strict=True))
        return {**accuracy, **image_distances(table.test, {"own": synthetic}, schema, shape, settings.seed)["own"]}
    found = {metric: float(scores[metric].mean()) for metric in METRICS}
    found |= {f"{metric}_median": float(scores[metric].median()) for metric in METRICS[:2]}
    found |= {f"auc_{own.classifier}": float(own.roc_auc_score) for own in scores.itertuples()}
    found |= {f"hard_{own.classifier}": float(own.roc_auc_hard) for own in scores.itertuples()}
    for name, real in (("train", table.train), ("test", table.test)):
        rows = marginal_table(real, synthetic, schema, (1, 2, 3), settings.bins, settings.max_tuples, settings.seed)
        means = rows.groupby("order")["total_variation"].mean()
        found.update({f"tv_{order}_{name}": float(value) for order, value in means.items()})
    return {**found, **papers_measures(table.test, synthetic, schema, seed=settings.seed)}


def _at_most(table: pd.DataFrame, seed: int, most: int) -> pd.DataFrame:
    if len(table) <= most:
        return table
    return table.iloc[sorted(public(seed, "benchmarks.rows").choice(len(table), most, replace=False))]


def in_a_process(module: str, *options: object) -> tuple[pd.DataFrame, dict[str, float]]:
    """Rows and costs of ``python -m MODULE OPTIONS FOLDER``, which calls :func:`measured` with that folder."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", module, *map(str, options), folder], check=True)
        cost: dict[str, float] = json.loads((Path(folder) / "cost.json").read_text())
        return pd.read_parquet(Path(folder) / "synthetic.parquet"), cost


def measured(params: Params, train: pd.DataFrame, draw: int, folder: Path) -> None:
    """Synthesize once, and note seconds and peak memory."""
    started = time.monotonic()
    synthetic = synthesize(params, train, draw)
    cost = {"seconds": time.monotonic() - started}
    synthetic.to_parquet(folder / "synthetic.parquet")
    (folder / "cost.json").write_text(json.dumps({**cost, "peak_mb": peak_mb()}))
