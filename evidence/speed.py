"""How fast: gradients, steps of embeddings, means, pairs of columns, the mixture and its steps, noise, bfloat16.

Run: ``python -m evidence.speed [--repetitions 5] [--quick] [--only precisions]``. What is compared runs in turns, in
one process and on one machine: the ratios are what matters, not the seconds. Peak memory is that of a process of its
own. Appends to evidence/results/speed.csv; evidence/SPEED.md shows it.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from evidence.common import load, releases
from evidence.memory import peak_mb
from evidence.pages import Results, processor
from likeness import Ledger, Synthesizer
from likeness.core.rng import public
from likeness.generators.base import Compute
from likeness.methods import method_from
from likeness.methods.marginals.method import Marginals
from likeness.methods.marginals.objective import CountedTable, MarginalObjective, Measurement, Singles
from likeness.methods.settings import TrainingSettings
from likeness.pipeline.project import Project
from likeness.privacy.noise import add_discrete_gaussian
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import lattice_sum
from likeness_papers.hp.hermite_map import HermiteFeatures
from likeness_papers.merf.fourier_map import MixedFourierFeatures
from likeness_papers.networks.images import ImageGenerator
from likeness_papers.networks.objective import EmbeddingObjective
from likeness_papers.networks.training import train
from likeness_papers.ntk.tangent_map import NetworkTangent
from likeness_papers.pearl.characteristic_map import CharacteristicFunction
from likeness_papers.pearl.critic import FrequencyCritic

RESULTS = Results(Path("evidence/results/speed.csv"), ["what", "size"])
SIDE, CLASSES, WIDTH, BATCH = 28, 10, 800, 500  # of MNIST, and of the paper's network
LATENT, HIDDEN, CHANNELS = 10, 200, (16, 8)  # of examples/mnist
ROWS, DIMENSION, FEATURES = 60_000, 784, 10_000
CELLS = [16, 10, 16, 17, 7, 16, 6, 5, 2, 17, 17, 16, 43]  # of Adult's columns: their order does not matter
NUMBERS, CATEGORIES, ORDER = 10, 10, 10  # of a wide table: columns of numbers, and of as many with ten categories


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, no noise beyond 1e5 coordinates")
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--peak", choices=list(EMBEDDINGS), help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, default=ROWS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    rows = arguments.rows // 10 if arguments.quick else arguments.rows
    if arguments.peak:
        EMBEDDINGS[arguments.peak](rows)
        print(peak_mb())
        return
    for name in [arguments.only] if arguments.only else PARTS:
        PARTS[name](rows, arguments.repetitions, arguments.quick)


def note(what: str, size: str, seconds: float, **more: float) -> None:
    """Add a row, with what it was measured on."""
    machine = {"threads": torch.get_num_threads(), "cores": os.cpu_count() or 1, "cpu": processor()}
    RESULTS.add([what, size], {"seconds": seconds, **more, **machine})


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
    """Loss and its gradient in the generated images: the closed form against a gradient a record, as published."""
    feature = NetworkTangent("fc_1l", (WIDTH,), (SIDE * SIDE,), seed=0)
    counts = [BATCH // CLASSES] * CLASSES
    stream = torch.Generator().manual_seed(0)
    x = torch.rand(BATCH, SIDE * SIDE, generator=stream, dtype=torch.float64)
    target = torch.randn(CLASSES, feature.bounded_parts[0].width, generator=stream, dtype=torch.float64) * 1e-4
    scale = torch.full((CLASSES,), 1 / CLASSES, dtype=torch.float64)

    # In training the target is there once for all steps; so it is here, for both.
    targets, scales = ({dtype: own.to(dtype) for dtype in (torch.float32, torch.float64)} for own in (target, scale))
    objectives = {
        dtype: EmbeddingObjective(feature, targets[dtype], scales[dtype], torch.ones(CLASSES, dtype=dtype))
        for dtype in targets
    }

    def ours(dtype: torch.dtype) -> tuple[float, Tensor]:
        given = x.to(dtype).requires_grad_()
        loss = objectives[dtype].loss(given, counts)
        (gradient,) = torch.autograd.grad(loss, given)
        return float(loss.detach()), gradient

    def by_record(dtype: torch.dtype) -> tuple[float, Tensor]:
        weights = [own.to(dtype).requires_grad_() for own in (feature.network.dense[0].weights, feature.network.output)]
        given = x.to(dtype).requires_grad_()
        means = []
        for part, count in zip(given.split(counts), counts, strict=True):
            total = torch.zeros(target.shape[1], dtype=dtype)
            for row in part:
                value = weights[1] @ (weights[0][:, :-1] @ row + weights[0][:, -1]).relu()
                own = torch.cat([d.flatten() for d in torch.autograd.grad(value, weights, create_graph=True)])
                total = total + own / own.norm()
            means.append(total / count)
        loss = (targets[dtype] - scales[dtype][:, None] * torch.stack(means)).square().sum()
        (gradient,) = torch.autograd.grad(loss, given)
        return float(loss.detach()), gradient

    (loss, gradient), (expected, slope) = ours(torch.float64), by_record(torch.float64)
    apart = max(abs(loss / expected - 1), float((gradient - slope).norm() / slope.norm()))
    if apart > 1e-5:
        raise SystemExit(f"the closed form is not the gradient by record: {apart:.2g} apart")
    print(f"value and gradient of both in float64: {apart:.2g} apart")
    found = in_turns({"ours": lambda: ours(torch.float32), "record": lambda: by_record(torch.float32)}, repetitions)
    size = f"batch {BATCH}, width {WIDTH}, {SIDE} x {SIDE}"
    more = {"repetitions": repetitions}
    note("ntk step, autograd a record", size, found["record"], per_second=BATCH / found["record"], **more)
    ratio = found["record"] / found["ours"]
    note("ntk step, ours", size, found["ours"], ratio=ratio, per_second=BATCH / found["ours"], **more)


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


def embedding_steps(repetitions: int, shape: tuple[int, ...] = (64, 64, 3), batch: int = 100) -> None:
    """Loss and gradient in images: of `merf`, of `pearl`, and of `pearl` with its critic, which also moves."""
    width, counts = int(np.prod(shape)), [batch // CLASSES] * CLASSES
    x = torch.rand(batch, width, generator=torch.Generator().manual_seed(0)).requires_grad_()
    waves = CharacteristicFunction(1000, width, 0.1, seed=0)
    fourier = MixedFourierFeatures(1000, 10.0, 0, tuple(range(width)), (), 0)
    critic = FrequencyCritic(waves, 0.01, 1.05, 0.5, torch.device("cpu"))
    target, shares = torch.zeros(CLASSES, 2000), torch.full((CLASSES,), 1 / CLASSES)
    objectives = {
        "merf": EmbeddingObjective(fourier, target, shares, torch.ones(CLASSES)),
        "pearl": EmbeddingObjective(waves, target, shares, torch.ones(CLASSES)),
        "pearl with its critic": EmbeddingObjective(waves, target, shares, torch.ones(CLASSES), critic),
    }

    def step(objective: EmbeddingObjective) -> None:
        torch.autograd.grad(objective.loss(x, counts), x)

    found = in_turns({name: lambda own=own: step(own) for name, own in objectives.items()}, repetitions)
    for name, seconds in found.items():
        note(f"{name} step without a network", f"batch {batch}, {shape}", seconds, repetitions=repetitions)


def mixture_step(repetitions: int, steps: int = 10) -> None:
    """Loss and gradient of the mixture of ``marginals`` on arrays, and by automatic differentiation in PyTorch."""
    generator, ends = np.random.default_rng(0), np.cumsum(CELLS)
    pairs_of_columns = combinations(range(len(CELLS)), 2)
    counted = [CountedTable((i, j), generator.normal(10, 40, (2, CELLS[i], CELLS[j])), 1) for i, j in pairs_of_columns]
    shares = np.array([0.75, 0.25])
    single = Singles(np.repeat(1 / np.array(CELLS), CELLS), np.full(ends[-1], np.inf))
    objective = MarginalObjective(Measurement(CELLS, shares, 32_000.0, 40.0, 0.025), counted, single, 1.5)
    given = [generator.standard_normal(shape, dtype=np.float32) for shape in ((1000, ends[-1]), (2, 1000))]
    pairs, weights = objective._pairs, torch.from_numpy(shares.astype(np.float32))
    assert pairs is not None
    target, precision, expected = map(torch.from_numpy, (pairs._target, pairs._precision, objective._log_expected))

    def by_pytorch() -> tuple[float, list[Tensor]]:
        logits, components = (torch.from_numpy(one).requires_grad_() for one in given)
        cells = torch.cat([torch.softmax(part, dim=1) for part in torch.split(logits, CELLS, dim=1)], dim=1)
        by_class = torch.softmax(components, dim=1)
        nats = by_class * (torch.xlogy(cells, cells).sum(dim=1) - expected @ cells.T)
        joint = torch.stack([(cells * share[:, None]).T @ cells for share in by_class])
        squares = (target - weights[:, None, None] * joint).square() * precision
        loss = squares.sum() + objective._penalty * (weights @ nats.sum(dim=1))
        return float(loss.detach()), list(torch.autograd.grad(loss, (logits, components)))

    (loss, *slopes), (other, gradients) = objective.loss(*given), by_pytorch()
    pairs_of_slopes = zip(slopes, gradients, strict=True)
    apart = max(abs(loss / other - 1), *(np.abs(a - b.numpy()).max() / np.abs(a).max() for a, b in pairs_of_slopes))
    if apart > 1e-4:
        raise SystemExit(f"loss or gradient of the mixture are not those of PyTorch: {apart:.2g} apart")
    torch.set_num_threads(1)
    with threadpool_limits(1):
        actions = {
            "numpy": lambda: [objective.loss(*given) for _ in range(steps)],
            "pytorch": lambda: [by_pytorch() for _ in range(steps)],
        }
        seconds = in_turns(actions, repetitions)
    for name, taken in seconds.items():
        what, size = f"mixture step, {name}", f"1000 components, {ends[-1]} cells, 2 classes"
        note(what, size, taken / steps, ratio=seconds["pytorch"] / taken, repetitions=repetitions)


def mixture_fits(rows: int) -> None:
    """Steps of ``marginals`` until the loss stands still, against all of them, on one release of rows of Adult."""
    for count in (700, 5_000, rows):
        table, steps = load("adult"), {}
        chosen = public(0, "benchmarks.small").choice(len(table.train), min(count, len(table.train)), replace=False)
        rows_of_it = table.train.iloc[np.sort(chosen)]
        method = method_from(table.params)
        assert isinstance(method, Marginals)
        auxiliary, embedding = releases(table.params, rows_of_it, 1)
        context, compute = Project(Path(), table.params).context, Compute("cpu", 1, "float32")
        for tolerance in (0.0, 0.001):
            fitting = replace(method, train=replace(method.train, tolerance=tolerance))
            started = time.perf_counter()
            losses = fitting.fit_generator(context, auxiliary, embedding, compute).losses
            seconds = time.perf_counter() - started
            steps[tolerance], loss = losses[-1]
            size = f"{len(rows_of_it)} rows, {steps[tolerance]} steps to the loss {loss:.5g}"
            note(f"fit of marginals, tolerance {tolerance:g}", size, seconds, ratio=steps[0.0] / steps[tolerance])


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
        self.feature, self.bounded_parts, self.spec = feature, feature.bounded_parts, feature.spec

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


def ours_embedding(rows: int) -> object:
    """The door's sum of 10,000 features: exact integers, clipped, any order of rows."""
    feature = CharacteristicFunction(FEATURES // 2, DIMENSION, 0.1, seed=0)
    return lattice_sum(Query("embedding", "privatize", feature), (Records(c.x, c.labels * 0) for c in chunks(rows)))


def loop_embedding(rows: int) -> object:
    """A record at a time, in floating point."""
    frequencies = np.random.default_rng(0).normal(scale=0.1, size=(FEATURES // 2, DIMENSION))
    total = np.zeros(FEATURES)
    for chunk in chunks(rows):
        for row in chunk.x:
            angles = frequencies @ row
            total += np.concatenate([np.cos(angles), np.sin(angles)])
    return total / rows


def sklearn_embedding(rows: int) -> object:
    """scikit-learn's features of all rows, then their mean."""
    from sklearn.kernel_approximation import RBFSampler

    x = np.concatenate([chunk.x for chunk in chunks(rows)])
    return RBFSampler(gamma=0.005, n_components=FEATURES, random_state=0).fit_transform(x).mean(axis=0)


EMBEDDINGS: dict[str, Callable[[int], object]] = {
    "ours": ours_embedding, "loop": loop_embedding, "sklearn RBFSampler": sklearn_embedding
}  # fmt: skip


def mean_embeddings(rows: int, repetitions: int) -> None:
    """10,000 random Fourier features of all rows; the loop on a twentieth of them. Memory also for a tenth."""
    found = in_turns(
        {name: lambda name=name: EMBEDDINGS[name](rows // 20 if name == "loop" else rows) for name in EMBEDDINGS},
        repetitions,
    )
    found["loop"] *= 20
    for name, seconds in found.items():
        for own in (rows // 10, rows):
            if name == "loop":
                continue
            note(f"memory, {name}", f"{own} x {DIMENSION}, {FEATURES} features", 0.0, peak_mb=peak(name, own))
        ratio = {} if name == "ours" else {"ratio": seconds / found["ours"]}
        size = f"{rows} x {DIMENSION}, {FEATURES} features"
        note(f"mean embedding, {name}", size, seconds, per_second=rows / seconds, repetitions=repetitions, **ratio)


def peak(name: str, rows: int) -> float:
    """Peak memory in MB of a process that does nothing else."""
    command = [sys.executable, "-m", "evidence.speed", "--peak", name, "--rows", str(rows)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1])


def noise(quick: bool) -> None:
    """The door's noise for more and more coordinates."""
    for count in (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000, 6_000_000):
        seconds = timed(lambda count=count: add_discrete_gaussian(np.zeros(count, dtype=np.int64), 3.7 * 2**30))
        note("noise", f"{count} coordinates", seconds, per_second=count / seconds)


def wide_fit(columns: int) -> None:
    """The defaults fitted to a table of numbers and of columns with ten categories, in a process with one thread."""
    rows, half, stream = min(20_000, 200 * columns), columns // 2, np.random.default_rng(0)
    hidden = stream.normal(size=rows)
    names = [f"v{number}" for number in range(CATEGORIES)]
    kinds: dict[str, dict[str, object]] = {f"n{n}": {"kind": "numeric", "lower": -4, "upper": 4} for n in range(half)}
    kinds |= {f"c{number}": {"kind": "categorical", "categories": names} for number in range(columns - half - 1)}
    kinds["y"] = {"kind": "categorical", "categories": ["no", "yes"]}
    cells = {name: np.clip(hidden / 2 + stream.normal(size=rows), -4, 4) for name in kinds if name.startswith("n")}
    drawn = {name: (stream.random(rows) ** 2 + 0.1 * (hidden > 1)) / 1.1 for name in kinds if name.startswith("c")}
    texts = {name: np.array(names)[(share * CATEGORIES).astype(int)] for name, share in drawn.items()}
    label = np.where(hidden + stream.normal(size=rows) > 0, "yes", "no")
    schema = {"name": "wide", "source": "made up", "task": "classification", "label": "y", "columns": kinds}
    with tempfile.TemporaryDirectory() as home, threadpool_limits(1):
        os.environ.update({"LIKENESS_HOME": f"{home}/ledger", "LIKENESS_ANCHOR": f"{home}/anchor"})
        Ledger.start()
        synthesizer = Synthesizer(epsilon=1.0, schema=schema, population="made up")
        frame, before = pd.DataFrame({**cells, **texts, "y": label}), time.process_time()
        seconds = timed(lambda: synthesizer.fit(frame))
        found = {"cpu_seconds": time.process_time() - before, "fit_seconds": seconds}
        found |= {"sample_seconds": timed(lambda: synthesizer.sample(rows)), "peak_mb": peak_mb()}
    Results(Path("evidence/results/wide.csv"), ["rows", "columns"]).add([rows, columns], found)


PARTS: dict[str, Callable[[int, int, bool], object]] = {
    "step": lambda _, repetitions, __: network_step(repetitions),
    "embeddings": lambda _, repetitions, __: embedding_steps(repetitions),
    "mixture": lambda _, repetitions, __: mixture_step(repetitions),
    "fits": lambda rows, _, __: mixture_fits(min(rows, 32_561)),
    "precisions": lambda _, repetitions, __: precisions(repetitions),
    "sum": lambda rows, _, __: network_sum(rows),
    "pairs": lambda rows, repetitions, _: paired_sum(rows // 10, repetitions),
    "means": lambda rows, repetitions, _: mean_embeddings(rows, max(1, repetitions // 2)),
    "noise": lambda _, __, quick: noise(quick),
    "wide": lambda *_: [wide_fit(columns) for columns in (61, 101, 301)],
}

if __name__ == "__main__":
    main()
