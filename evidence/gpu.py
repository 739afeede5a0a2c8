"""What a GPU changes: speed, precision, memory and bits of the network methods' training. One call fills the table.

Run on a machine with a GPU: ``python -m evidence.gpu [--minutes 9] [--device cuda]``. On a CPU, at a small size:
``python -m evidence.gpu --device cpu --small``. Appends to evidence/results/gpu.csv, one row a measurement, and begins
with the cheapest. What does not fit into the minutes is named at the end and has no row.

Rows: milliseconds of a training step of each network on images of 28 × 28 and of 32 × 32 in color, in float32 and
bfloat16, as it is and with ``torch.compile``, on the device and on two cores; its peak memory on the device; whether a
second training has equal bits; and a training of one process under torchrun.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from evidence.common import Results
from likeness.config.training import TrainingSettings
from likeness.generators.base import Compute
from likeness.generators.images import ImageGenerator, ResidualImages
from likeness.generators.latent import LatentGenerator
from likeness.generators.objective import EmbeddingObjective, LatentBatches
from likeness.generators.training import environment, fit_network, train
from likeness.methods.hp.hermite_map import HermiteFeatures
from likeness.methods.hp.mehler import rho_of
from likeness.methods.merf.fourier_map import MixedFourierFeatures
from likeness.methods.ntk.tangent_map import NetworkTangent
from likeness.methods.pearl.characteristic_map import CharacteristicFunction
from likeness.methods.pearl.critic import FrequencyCritic

RESULTS = Results(Path("evidence/results/gpu.csv"), ["what", "shape", "device", "precision", "compiled"])
CLASSES, LATENT, CORES = 10, 10, 2
SHAPES: dict[str, tuple[int, ...]] = {"28 x 28": (28, 28), "32 x 32 x 3": (32, 32, 3)}
NETWORKS = ("convolutional", "residual")


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
        return HermiteFeatures(
            tuple(range(width)), (), (), *numbers, 5 if small else 20, 5 if small else 20, pairs, 0.5
        )
    widths = (20, 8) if small else (3000, 200)
    return NetworkTangent("fc_2l", widths, shape, seed=0) if len(shape) == 3 else NetworkTangent(
        "fc_1l", (20 if small else 800,), shape, seed=0
    )  # fmt: skip


def network(name: str, shape: tuple[int, ...]) -> LatentGenerator:
    """The papers' generators."""
    if name == "residual":
        return ResidualImages(shape, CLASSES, LATENT, 16)
    return ImageGenerator(shape, CLASSES, LATENT, 200, (16, 8))


def objective(method: str, shape: tuple[int, ...], batch: int, device: torch.device, small: bool) -> LatentBatches:
    """Batches against an embedding of noise: its numbers change no time."""
    feature = features(method, int(torch.tensor(shape).prod()), shape, small)
    size = sum(part.width for part in feature.parts)  # type: ignore[attr-defined]
    target = torch.randn(CLASSES, size, generator=torch.Generator().manual_seed(0)) * 1e-3
    critic = FrequencyCritic(feature, 0.01, 1.05, 0.5, device) if method == "pearl" else None  # type: ignore[arg-type]
    shares = torch.full((CLASSES,), 1 / CLASSES)
    own = EmbeddingObjective(feature, target, shares, torch.ones(CLASSES), critic).to(device)  # type: ignore[arg-type]
    return LatentBatches(own, LATENT, [batch // CLASSES] * CLASSES, 0, device)


def step(
    method: str, name: str, shape: tuple[int, ...], device: torch.device, precision: str, compiled: bool, small: bool
) -> dict[str, float]:
    """Milliseconds of a step after a warm-up, and peak memory on the device."""
    batch, steps = (20, 2) if small else (500, 20 if device.type == "cuda" else 3)
    torch.set_num_threads(1 if small else CORES)
    generator: nn.Module = network(name, shape).to(device)
    generator = torch.compile(generator) if compiled else generator  # type: ignore[assignment]
    batches = objective(method, shape, batch, device, small)

    def run(count: int) -> float:
        started = time.perf_counter()
        train(generator, batches, TrainingSettings(count, batch, 1e-3), device, lambda *_: None, precision)
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - started

    run(2)
    generator.to(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    found = {"milliseconds": 1000 * run(steps) / steps, "batch": batch}
    if device.type == "cuda":
        found["device_mb"] = torch.cuda.max_memory_allocated() / 2**20
    return found


def twice(name: str, shape: tuple[int, ...], device: torch.device, small: bool) -> dict[str, float]:
    """Whether two whole trainings have equal bits, as ``verify --retrain`` asks."""
    settings = TrainingSettings(3 if small else 50, 20 if small else 500, 1e-3)

    def once() -> bytes:
        trained = fit_network(
            "merf",
            lambda: network(name, shape),
            lambda own: objective("merf", shape, settings.batch_size, own, small),
            settings,
            0,
            Compute(device.type, 1, "float32"),
        )
        return b"".join(array.tobytes() for array in trained.generator.arrays().values())

    return {"equal_bits": float(once() == once())}


_TORCHRUN = "import sys; from evidence.gpu import together; together(sys.argv[1], sys.argv[2] == 'True')"


def together(device: str, small: bool) -> None:
    """One process of several: train a few steps."""
    settings = TrainingSettings(3 if small else 20, 20 if small else 500, 1e-3)
    shape = SHAPES["28 x 28"]
    fit_network(
        "merf",
        lambda: network("convolutional", shape),
        lambda own: objective("merf", shape, settings.batch_size, own, small),
        settings,
        0,
        Compute(device, 1, "float32"),
    )


def torchrun(device: torch.device, small: bool, folder: Path) -> dict[str, float]:
    """Seconds of a training that torchrun starts: one process on a GPU, two on cores."""
    script = folder / "together.py"
    script.write_text(_TORCHRUN)
    processes = "1" if device.type == "cuda" else "2"
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", processes, str(script)]
    paths = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *words, device.type, str(small)], env={**os.environ, "PYTHONPATH": paths}, check=True
    )
    return {"seconds": time.perf_counter() - started, "processes": float(processes)}


def measurements(
    device: torch.device, small: bool, folder: Path
) -> Iterator[tuple[list[str], Callable[[], dict[str, float]]]]:
    """Every measurement with its keys, the cheapest first."""
    devices = [device] if device.type == "cpu" else [device, torch.device("cpu")]
    for shape_name, shape in SHAPES.items():
        for name in NETWORKS:
            keys = [f"equal bits, {name}", shape_name, device.type, "float32", "no"]
            yield keys, lambda name=name, shape=shape: twice(name, shape, device, small)  # type: ignore[misc]
    yield ["torchrun", "28 x 28", device.type, "float32", "no"], lambda: torchrun(device, small, folder)
    for compiled in (False, True):
        for precision in ("float32", "bfloat16"):
            for own in devices:
                for shape_name, shape in SHAPES.items():
                    for name in NETWORKS:
                        slow = own.type == "cpu" and (name == "residual" or compiled) and not small
                        for method in ("merf", "pearl", "pearl without critic", "hp", "ntk") if not slow else ():
                            if name == "residual" and method != "ntk":
                                continue
                            keys = [f"{method}, {name}", shape_name, own.type, precision, "yes" if compiled else "no"]
                            given = (method, name, shape, own, precision, compiled, small)
                            yield keys, lambda given=given: step(*given)  # type: ignore[misc]


def main() -> None:
    """Measure until the minutes are over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="small maps and batches, without torch.compile")
    parser.add_argument("--results", type=Path, default=RESULTS.path)
    arguments = parser.parse_args()
    results, device = replace(RESULTS, path=arguments.results), torch.device(arguments.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise SystemExit("this machine has no CUDA. Try: python -m evidence.gpu --device cpu --small")
    results.path.parent.mkdir(parents=True, exist_ok=True)
    ends, left = time.monotonic() + 60 * arguments.minutes, []
    where = {name: str(value) for name, value in environment(device).items() if name not in ("device", "processes")}
    for keys, measure in measurements(device, arguments.small, results.path.parent):
        if not results.of(*keys).empty or (arguments.small and keys[-1] == "yes"):
            continue
        if time.monotonic() > ends:
            left.append(", ".join(keys))
            continue
        try:
            results.add(keys, {**where, **measure()})
        except (RuntimeError, subprocess.CalledProcessError) as error:  # one that fails hides no other
            results.add(keys, {**where, "failed": str(error).splitlines()[0][:200]})
    print("\n".join(["not measured, the minutes were over:", *left]) if left else "all measured")


if __name__ == "__main__":
    main()
