"""How fast: network gradients, mean embeddings, pairs of columns, noise, training in bfloat16.

Run: ``python -m benchmarks.speed [--repetitions 5] [--quick] [--only precisions]``. What is compared runs in turns, in
one process and on one machine: the ratios are what matters, not the seconds. Appends to benchmarks/results/speed.csv;
docs/evidence/SPEED.md shows it.
"""

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.common import commit, keep
from likeness.config.training import TrainingSettings
from likeness.generators.images import ImageGenerator
from likeness.generators.objective import EmbeddingObjective
from likeness.generators.training import train
from likeness.methods.hp.hermite_map import HermiteFeatures
from likeness.methods.ntk.tangent_map import NetworkTangent
from likeness.methods.pearl.characteristic_map import CharacteristicFunction
from likeness.privacy.noise import add_discrete_gaussian
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import lattice_sum

RESULTS = Path("benchmarks/results/speed.csv")
KEYS = ["what", "size", "seconds", "ratio", "per_second", "peak_mb", "repetitions", "threads", "commit", "cores", "cpu"]
SIDE, CLASSES, WIDTH, BATCH = 28, 10, 800, 500  # of MNIST, and of the paper's network
LATENT, HIDDEN, CHANNELS = 10, 200, (16, 8)  # of examples/mnist
ROWS, DIMENSION, FEATURES = 60_000, 784, 10_000
NUMBERS, CATEGORIES, ORDER = 10, 10, 10  # of a wide table: columns of numbers, and of as many with ten categories


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, no noise beyond 1e5 coordinates")
    parser.add_argument("--only", choices=list(PARTS))
    arguments = parser.parse_args()
    rows = ROWS // 10 if arguments.quick else ROWS
    for name in [arguments.only] if arguments.only else PARTS:
        PARTS[name](rows, arguments.repetitions, arguments.quick)


def note(what: str, size: str, seconds: float, **more: float) -> None:
    """Add a row, with what it was measured on."""
    model = platform.processor() or platform.machine()
    about = Path("/proc/cpuinfo")
    if about.exists():
        model = next(
            (line.split(":", 1)[1].strip() for line in about.read_text().splitlines() if "model name" in line), model
        )
    row = {key: more.get(key, "") for key in KEYS}
    row.update(what=what, size=size, seconds=seconds, threads=torch.get_num_threads(), commit=commit())
    row.update(cores=os.cpu_count() or 1, cpu=model)
    keep(RESULTS, row, KEYS)


def timed(action: Callable[[], object]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def in_turns(actions: dict[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """Median seconds of each, one after the other in every round, after a round to warm up."""
    for action in actions.values():
        action()
    rounds = [{name: timed(action) for name, action in actions.items()} for _ in range(repetitions)]
    return {name: statistics.median(own[name] for own in rounds) for name in actions}


def network_step(repetitions: int) -> None:
    """Loss and its gradient in the generated images."""
    feature = NetworkTangent("fc_1l", (WIDTH,), (SIDE * SIDE,), seed=0)
    counts = [BATCH // CLASSES] * CLASSES
    stream = torch.Generator().manual_seed(0)
    x = torch.rand(BATCH, SIDE * SIDE, generator=stream).requires_grad_()
    target = torch.randn(CLASSES, feature.parts[0].width, generator=stream) * 1e-4
    objective = EmbeddingObjective(feature, target, torch.full((CLASSES,), 1 / CLASSES), torch.ones(CLASSES))
    steps = {"ours": lambda: torch.autograd.grad(objective.loss(x, counts), x)}
    seconds = in_turns(steps, repetitions)["ours"]
    size = f"batch {BATCH}, width {WIDTH}, {SIDE} x {SIDE}"
    note("ntk step, ours", size, seconds, per_second=BATCH / seconds, repetitions=repetitions)


def precisions(repetitions: int, steps: int = 3) -> None:
    """Steps of the image network of examples/mnist in both types, with a loss that costs next to nothing."""
    labels = torch.arange(BATCH) % CLASSES
    stream = torch.Generator().manual_seed(0)
    target = torch.rand(BATCH, SIDE * SIDE, generator=stream)

    class Distance:
        def loss(self, generator: nn.Module) -> Tensor:
            rows = generator(torch.randn(BATCH, LATENT, generator=stream), labels)
            return (rows - target).square().mean()

    def own(precision: str) -> None:
        network = ImageGenerator((SIDE, SIDE), CLASSES, LATENT, HIDDEN, CHANNELS)
        settings = TrainingSettings(steps, BATCH, 1e-3)
        train(network, Distance(), settings, torch.device("cpu"), lambda *_: None, precision)

    found = in_turns({name: lambda name=name: own(name) for name in ("float32", "bfloat16")}, repetitions)
    for name, seconds in found.items():
        what, ratio = f"image network step, {name}", found["float32"] / seconds
        note(what, f"batch {BATCH}, {SIDE} x {SIDE}", seconds / steps, ratio=ratio, repetitions=repetitions)


def chunks(rows: int, width: int = DIMENSION) -> Iterator[Records]:
    """Made-up rows, in chunks as the door reads them."""
    for start in range(0, rows, 4_096):
        generator = np.random.default_rng(start)
        count = min(4_096, rows - start)
        yield Records(generator.random((count, width), dtype=np.float32).astype(np.float64), np.arange(count) % CLASSES)


def network_sum(rows: int) -> None:
    """The door's integer sum of the network gradients of all rows."""
    feature = NetworkTangent("fc_1l", (WIDTH,), (SIDE * SIDE,), seed=0)
    query = Query("embedding", "privatize", feature, num_groups=CLASSES)
    reading = timed(lambda: sum(len(chunk.x) for chunk in chunks(rows)))
    seconds = timed(lambda: lattice_sum(query, chunks(rows))) - reading
    note("ntk sum in the door", f"{rows} rows, {query.dimension} coordinates", seconds, per_second=rows / seconds)


class _WholeVectors:
    """A map without what makes its sums fast."""

    def __init__(self, feature: HermiteFeatures) -> None:
        self.feature, self.parts, self.spec = feature, feature.parts, feature.spec

    def __call__(self, x: Tensor) -> Tensor:
        return self.feature(x)


def paired_sum(rows: int, repetitions: int) -> None:
    """The door's sum of all products of pairs of columns, as a matrix product and by whole vectors."""
    width, count = NUMBERS + CATEGORIES * CATEGORIES, NUMBERS + CATEGORIES
    blocks = tuple((start, start + CATEGORIES) for start in range(NUMBERS, width, CATEGORIES))
    pairs = tuple(combinations(range(count), 2))
    feature = HermiteFeatures(
        tuple(range(NUMBERS)), (), blocks, (0.7,) * NUMBERS, (6.0,) * NUMBERS, 2 * ORDER, ORDER, pairs, 0.8
    )
    generator = np.random.default_rng(0)
    x = np.zeros((rows, width))
    x[:, :NUMBERS] = generator.random((rows, NUMBERS))
    for start, stop in blocks:
        x[np.arange(rows), generator.integers(start, stop, rows)] = 1
    records = Records(x, np.arange(rows) % 2)
    maps = {"ours": feature, "vectors": _WholeVectors(feature)}
    queries = {name: Query("embedding", "privatize", own, num_groups=2) for name, own in maps.items()}
    found = in_turns({name: lambda own=own: lattice_sum(own, [records]) for name, own in queries.items()}, repetitions)
    size = f"{rows} rows, {queries['ours'].dimension} coordinates"
    for name, seconds in found.items():
        ratio = found["vectors"] / seconds
        more = {"per_second": rows / seconds, "ratio": ratio, "repetitions": repetitions}
        note(f"pairs of {count} columns in the door, {name}", size, seconds, **more)


def mean_embeddings(rows: int, repetitions: int) -> None:
    """The door's sum of 10,000 random Fourier features of all rows."""
    feature = CharacteristicFunction(FEATURES // 2, DIMENSION, 0.1, seed=0)
    query = Query("embedding", "privatize", feature)
    sums = {"ours": lambda: lattice_sum(query, (Records(c.x, c.labels * 0) for c in chunks(rows)))}
    seconds = in_turns(sums, repetitions)["ours"]
    size = f"{rows} x {DIMENSION}, {FEATURES} features"
    note("mean embedding, ours", size, seconds, per_second=rows / seconds, repetitions=repetitions)


def noise(quick: bool) -> None:
    """The door's noise for more and more coordinates."""
    for count in (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000, 6_000_000):
        seconds = timed(lambda count=count: add_discrete_gaussian(np.zeros(count, dtype=np.int64), 3.7 * 2**30))
        note("noise", f"{count} coordinates", seconds, per_second=count / seconds)


PARTS: dict[str, Callable[[int, int, bool], None]] = {
    "step": lambda _, repetitions, __: network_step(repetitions),
    "precisions": lambda _, repetitions, __: precisions(repetitions),
    "sum": lambda rows, _, __: network_sum(rows),
    "pairs": lambda rows, repetitions, _: paired_sum(rows // 10, repetitions),
    "means": lambda rows, repetitions, _: mean_embeddings(rows, max(1, repetitions // 2)),
    "noise": lambda _, __, quick: noise(quick),
}

if __name__ == "__main__":
    main()
