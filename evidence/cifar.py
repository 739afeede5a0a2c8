"""DP-NTK on CIFAR-10 at its paper's settings: 98 million coordinates, and a residual network that needs a GPU.

Run: ``python -m evidence.cifar release FOLDER``, then ``train FOLDER`` on a machine with a GPU, then ``score FOLDER``.
The release takes 10 GB of memory, minutes of many cores, and 0.8 GB of disk. ``score`` needs the generator and
cost.json alone, a few megabytes, and adds a row to evidence/results/papers.csv.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path

import pandas as pd
import torch

from evidence import common
from evidence.papers import RESULTS, picture, settings
from likeness.config.params import Params
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.project import Project
from likeness.release.released import from_bytes, to_bytes

DATA, METHOD, EPSILON, ADJACENCY, DRAW = "cifar10", "ntk by a residual network", 10.0, "replace_one", 1
RECORDS = 50_000  # training images, which replace_one makes public
COUNTS, EMBEDDING, COST = "class_counts", "embedding", "cost.json"


def parameters(iterations: int | None, precision: str) -> Params:
    """The paper's settings, perhaps with fewer steps."""
    params = common.settings(DATA)
    no_rows = common.Table(params, Project(Path(), params).schema, pd.DataFrame(index=range(RECORDS)), pd.DataFrame())
    params = settings(no_rows, METHOD, EPSILON, ADJACENCY)
    if iterations is not None:
        params.sections["ntk"]["train"]["iterations"] = iterations
    return dataclasses.replace(params, train=dataclasses.replace(params.train, precision=precision))


def release(params: Params, folder: Path) -> dict[str, object]:
    """Draw both statistics once, through the door; return the seconds."""
    rows = common.load(DATA).train
    started = time.monotonic()
    auxiliary, embedding = common.releases(params, rows, DRAW)
    for name, released in {**auxiliary, EMBEDDING: embedding}.items():
        (folder / name).write_bytes(to_bytes(released))
    return {"release_seconds": time.monotonic() - started}


def train(params: Params, folder: Path) -> dict[str, object]:
    """Train on what was released, save the generator, and return seconds, steps and machine."""
    counts, embedding = (from_bytes((folder / name).read_bytes(), name) for name in (COUNTS, EMBEDDING))
    started = time.monotonic()
    saved = common.fitted(params, {COUNTS: counts}, embedding)
    seconds, where = time.monotonic() - started, saved.provenance["environment"]
    saved.save(folder / "generator")
    memory = torch.cuda.max_memory_allocated() / 2**20 if where["device"] == "cuda" else None
    machine = {
        "trained_on": where.get("gpu", where["processor"]),
        "device_mb": memory,
        "precision": params.train.precision,
    }
    return {"train_seconds": seconds, "iterations": params.sections["ntk"]["train"]["iterations"], **machine}


def score(params: Params, folder: Path) -> None:
    """Draw images from the saved generator, and add their scores to the results."""
    cost, table = json.loads((folder / COST).read_text()), common.load(DATA)
    saved = SavedGenerator.load(folder / "generator")
    synthetic = common.draw_rows(saved, table.schema, params.sample.rows, params.sample.seed)
    picture(DATA, METHOD, synthetic, table)
    seconds = cost.pop("release_seconds") + cost.pop("train_seconds")
    keys = [DATA, METHOD, EPSILON, ADJACENCY, DRAW]
    RESULTS.add(keys, {"seconds": seconds, **cost, **common.score(synthetic, table)})


def main() -> None:
    """One of the three steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("release", "train", "score"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--iterations", type=int, help="fewer than the paper's 40,000")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    params, cost = parameters(arguments.iterations, arguments.precision), arguments.folder / COST
    if arguments.step == "score":
        score(params, arguments.folder)
        return
    facts = {"release": release, "train": train}[arguments.step](params, arguments.folder)
    cost.write_text(json.dumps({**(json.loads(cost.read_text()) if cost.exists() else {}), **facts}))
    print(facts, flush=True)


if __name__ == "__main__":
    main()
