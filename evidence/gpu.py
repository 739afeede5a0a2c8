"""What a GPU changes: speed, precision, memory and bits of the network methods' training. One call fills the table.

Run on a machine with a GPU: ``python -m evidence.gpu [--minutes 9] [--device cuda]``. On a CPU, at a small size:
``python -m evidence.gpu --device cpu --small``. Appends to evidence/results/gpu.csv, one row a measurement. A row that
is there is not measured again. What does not fit into the minutes is named at the end and has no row. ``--page`` writes
the table of evidence/RESULTS.md, and measures nothing.

Rows: milliseconds of a training step of each network on images of 28 × 28 and of 32 × 32 in color, with the flags that
the product sets, in float32 and bfloat16, as it is and with ``torch.compile``, on the device and on two cores; its peak
memory on the device; whether a second training has equal bits; what ``verify --retrain`` says.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from evidence.pages import Results, markdown, on_page, processor
from likeness import Ledger, Synthesizer
from likeness.generators.base import Compute
from likeness.methods.settings import TrainingSettings
from likeness.verify import verify
from likeness_papers.hp.hermite_map import HermiteFeatures
from likeness_papers.hp.mehler import rho_of
from likeness_papers.merf.fourier_map import MixedFourierFeatures
from likeness_papers.networks.images import ImageGenerator, ResidualImages
from likeness_papers.networks.latent import LatentGenerator
from likeness_papers.networks.objective import EmbeddingObjective, LatentBatches
from likeness_papers.networks.training import environment, fit_network
from likeness_papers.ntk.tangent_map import NetworkTangent
from likeness_papers.pearl.characteristic_map import CharacteristicFunction
from likeness_papers.pearl.critic import FrequencyCritic

RESULTS = Results(Path("evidence/results/gpu.csv"), ["what", "shape", "device", "precision", "compiled"])
PAGE = Path("evidence/RESULTS.md")
CLASSES, LATENT, CORES, WARM = 10, 10, 2, 3
SHAPES: dict[str, tuple[int, ...]] = {"28 x 28": (28, 28), "32 x 32 x 3": (32, 32, 3)}
METHODS = ("merf", "pearl", "pearl without critic", "hp", "ntk")
NETWORKS = ("convolutional", "residual")
COMPILED = ("merf, convolutional", "ntk, residual")
Numbers = dict[str, float | str]


def features(method: str, width: int, shape: tuple[int, ...], small: bool) -> object:
    """The papers' map of a method at the papers' size, or a small one."""
    count = 50 if small else 1000
    if method == "merf":
        return MixedFourierFeatures(count, 10.0, 0, tuple(range(width)), (), 0)
    if method.startswith("pearl"):
        return CharacteristicFunction(count, width, 0.1, seed=0)
    if method == "hp":
        pairs = tuple((2 * place, 2 * place + 1) for place in range(10))
        numbers = (rho_of(0.071),) * width, (4.0,) * width
        order = 5 if small else 20
        return HermiteFeatures(tuple(range(width)), (), (), *numbers, order, order, pairs, 0.5)
    if len(shape) == 3:
        return NetworkTangent("fc_2l", (20, 8) if small else (3000, 200), shape, seed=0)
    return NetworkTangent("fc_1l", (20 if small else 800,), shape, seed=0)


def network(name: str, shape: tuple[int, ...]) -> LatentGenerator:
    """The papers' generators."""
    if name == "residual":
        return ResidualImages(shape, CLASSES, LATENT, 16)
    return ImageGenerator(shape, CLASSES, LATENT, 200, (16, 8))


def objective(method: str, shape: tuple[int, ...], batch: int, device: torch.device, small: bool) -> LatentBatches:
    """Batches against an embedding of noise: its numbers change no time."""
    feature = features(method, int(torch.tensor(shape).prod()), shape, small)
    size = sum(part.width for part in feature.bounded_parts)  # type: ignore[attr-defined]
    target = torch.randn(CLASSES, size, generator=torch.Generator().manual_seed(0)) * 1e-3
    critic = FrequencyCritic(feature, 0.01, 1.05, 0.5, device) if method == "pearl" else None  # type: ignore[arg-type]
    shares = torch.full((CLASSES,), 1 / CLASSES)
    distance = EmbeddingObjective(feature, target, shares, torch.ones(CLASSES), critic).to(device)  # type: ignore[arg-type]
    return LatentBatches(distance, LATENT, [batch // CLASSES] * CLASSES, 0, device)


class Clock:
    """An objective that reads the clock when its steps begin: after the warm steps, and before the last."""

    def __init__(self, batches: LatentBatches, steps: int, device: torch.device) -> None:
        self._batches, self._device, self._last = batches, device, WARM + steps
        self._step, self._start, self.seconds = 0, 0.0, 0.0

    def loss(self, generator: nn.Module) -> Tensor:
        """The loss of a batch."""
        if self._step in (WARM, self._last):
            if self._device.type == "cuda":
                torch.cuda.synchronize()
            self.seconds = time.perf_counter() - self._start
            self._start = time.perf_counter()
        self._step += 1
        return self._batches.loss(generator)


def step(
    method: str, name: str, shape: tuple[int, ...], device: torch.device, precision: str, compiled: bool, small: bool
) -> Numbers:
    """Milliseconds of a step after the warm ones, seconds until these are over, and peak memory on the device."""
    batch, steps = (20, 2) if small else (500, 300 if device.type == "cuda" else 3)
    generator = network(name, shape)
    clocks: list[Clock] = []

    def build_objective(place: torch.device) -> Clock:
        clocks.append(Clock(objective(method, shape, batch, place, small), steps, place))
        return clocks[0]

    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    fit_network(
        method,
        lambda: torch.compile(generator) if compiled else generator,  # type: ignore[return-value]
        build_objective,
        TrainingSettings(WARM + steps + 1, batch, 1e-3),
        0,
        Compute(device.type, 1 if small else CORES, precision),
    )
    memory: Numbers = {"device_mb": torch.cuda.max_memory_allocated() / 2**20} if device.type == "cuda" else {}
    return {"milliseconds": 1000 * clocks[0].seconds / steps, "batch": batch, **memory}


def trained(name: str, shape: tuple[int, ...], device: torch.device, small: bool) -> bytes:
    """The weights of a short training of ``merf``."""
    settings = TrainingSettings(3 if small else 50, 20 if small else 500, 1e-3)
    result = fit_network(
        "merf",
        lambda: network(name, shape),
        lambda place: objective("merf", shape, settings.batch_size, place, small),
        settings,
        0,
        Compute(device.type, 1, "float32"),
    )
    return b"".join(array.tobytes() for array in result.generator.arrays().values())


def twice(name: str, shape: tuple[int, ...], device: torch.device, small: bool) -> Numbers:
    """Whether two trainings have equal bits, as ``verify --retrain`` asks."""
    return {"equal_bits": float(trained(name, shape, device, small) == trained(name, shape, device, small))}


def retrained(method: str, name: str, device: torch.device, small: bool, folder: Path) -> Numbers:
    """What ``verify --retrain`` says of a bundle of digits that the product made on the device.

    The bundle stays in the folder, so another machine may verify it too.
    """
    images, labels = load_digits(return_X_y=True)
    rows = pd.DataFrame(np.rint(images * 255 / 16).astype(int), columns=[f"pixel_{place}" for place in range(1, 65)])
    bundle = folder / f"digits_{method}_{name}_{device.type}.zip"
    bundle.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ.update({"LIKENESS_HOME": f"{home}/ledger", "LIKENESS_ANCHOR": f"{home}/anchor"})
        Ledger.start()
        Synthesizer(
            method=method,
            epsilon=1.0,
            schema="data/schema/digits.yaml",
            population="uci-digits-1998",
            settings={"train": {"iterations": 5 if small else 200, "network": name, "hidden": [200]}},
            device=device.type,
        ).fit(rows.assign(digit=labels)).bundle(bundle, n=100)
    checks = {check.name: check for check in verify(bundle, retrain=True)}
    wrong = [check.name for check in checks.values() if check.passed is False]
    training = checks["training"]
    return {"equal_bits": float(training.passed is True), "verdict": f"{training.text}; failed: {wrong}"}


def measurements(device: torch.device, small: bool, folder: Path) -> Iterator[tuple[list[str], Callable[[], Numbers]]]:
    """Every measurement with its keys, the cheapest first."""
    plain = "float32", "no"
    for shape_name, shape in SHAPES.items():
        for name in NETWORKS:
            keys = [f"equal bits, {name}", shape_name, device.type, *plain]
            yield keys, partial(twice, name, shape, device, small)
    for method, name in (("merf", "convolutional"), ("ntk", "residual")):
        keys = [f"verify --retrain, {method}, {name}", "8 x 8", device.type, *plain]
        yield keys, partial(retrained, method, name, device, small, folder)
    steps = [(method, name, shape) for shape in SHAPES for name in NETWORKS for method in METHODS]
    shown = [each for each in steps if each[1] == "convolutional" or each[0] == "ntk"]
    for place, precision, compiled in _runs(device):
        for method, name, shape_name in shown:
            what = f"{method}, {name}"
            slow = place.type == "cpu" and name == "residual" and not small
            if slow or (compiled and what not in COMPILED):
                continue
            keys = [what, shape_name, place.type, precision, "yes" if compiled else "no"]
            yield keys, partial(step, method, name, SHAPES[shape_name], place, precision, compiled, small)


def _runs(device: torch.device) -> Iterator[tuple[torch.device, str, bool]]:
    """Devices, precisions, and whether the network is compiled."""
    for precision in ("float32", "bfloat16"):
        yield device, precision, False
    if device.type != "cpu":
        yield torch.device("cpu"), "float32", False
    for precision in ("float32", "bfloat16"):
        yield device, precision, True


def write_page(rows: pd.DataFrame) -> None:
    """Put the table of steps on the page, the device beside two cores."""
    steps, keys = rows[rows["milliseconds"].notna()], ["what", "shape"]
    cores = steps[(steps["device"] == "cpu") & (steps["compiled"] == "no")].set_index(keys)["milliseconds"]
    numbers = ("two cores", "float32", "ratio", "bfloat16", "compiled", "compiled, bfloat16", "memory")
    heads, lines = ("method, network", "image", *(f"{number}:" for number in numbers)), []
    for (what, shape), group in steps[steps["device"] == "cuda"].groupby(keys, sort=False):
        times = group.set_index(["precision", "compiled"])["milliseconds"]
        plain, fast, half, fast_half = (times.get(key) for key in product(("float32", "bfloat16"), ("no", "yes")))
        slow = cores.get((what, shape))
        ratio = f"**{slow / plain:.0f}**" if slow else ""
        before, after = _texts(slow, plain), _texts(half, fast, fast_half)
        memory = f"{group['device_mb'].iloc[0]:,.0f} MB"
        lines.append([what, shape, *before, ratio, *after, memory])
    on_page(PAGE, {"gpu": markdown(heads, lines)})


def _texts(*milliseconds: float | None) -> list[str]:
    return ["" if number is None else f"{number:.1f}" for number in milliseconds]


def main() -> None:
    """Measure until the minutes are over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="small maps and batches, without torch.compile")
    parser.add_argument("--results", type=Path, default=RESULTS.path)
    parser.add_argument("--page", action="store_true", help="write the table and measure nothing")
    arguments = parser.parse_args()
    results, device = replace(RESULTS, path=arguments.results), torch.device(arguments.device)
    if arguments.page:
        write_page(results.rows)
        return
    if device.type == "cuda" and not torch.cuda.is_available():
        raise SystemExit("this machine has no CUDA. Try: python -m evidence.gpu --device cpu --small")
    folder = results.path.parent
    folder.mkdir(parents=True, exist_ok=True)
    ends, left = time.monotonic() + 60 * arguments.minutes, []
    facts = {name: str(value) for name, value in environment(device).items() if name != "device"}
    facts["cores"] = processor()
    for keys, measure in measurements(device, arguments.small, folder):
        if not results.of(*keys).empty or (arguments.small and keys[-1] == "yes"):
            continue
        if time.monotonic() > ends:
            left.append(", ".join(keys))
            continue
        started = time.monotonic()
        try:
            numbers = measure()
        except Exception as error:  # one that fails hides no other
            numbers = {"failed": f"{type(error).__name__}: {error}".replace("\n", " ")[:300]}
        results.add(keys, {**facts, "took": time.monotonic() - started, **numbers})
    print("\n".join(["not measured, the minutes were over:", *left]) if left else "all measured")


if __name__ == "__main__":
    main()
