"""Two processes take the steps that one takes with the whole batch: weights, critic and batch normalization."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from likeness.methods.saved_generator import GENERATORS
from likeness_papers.networks.parallel import is_first, launched, size, together

ROOT = Path(__file__).parents[2]
SCRIPT = r"""
import json, sys
from pathlib import Path
import torch
from likeness.data.encoding.layout import Block, Layout
from likeness.core.errors import ParamsError
from likeness_papers.pearl.characteristic_map import CharacteristicFunction
from likeness_papers.ntk.tangent_map import NetworkTangent
from likeness_papers.pearl.critic import FrequencyCritic
from likeness_papers.networks.objective import EmbeddingObjective, LatentBatches
from likeness_papers.networks.parallel import average_gradients, is_first, join, share_of_rows, size, together
from likeness.config.training import TrainingSettings
from likeness_papers.networks.images import ImageGenerator, ResidualImages
from likeness_papers.networks.tabular import TabularGenerator
from likeness_papers.networks.training import train
from likeness_papers.pearl.modal_generator import ModalGenerator
from likeness_papers.pearl.mode import Modes

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
CPU, COUNTS = torch.device("cpu"), [7, 12]
LAYOUT = Layout((Block("a", "unit", 0, 1), Block("b", "onehot", 1, 4)), 2)
NETWORKS = {  # of the registry, with the values of a row
    "tabular": (lambda: TabularGenerator(LAYOUT, 3, [8]), 4),
    "modal": (lambda: ModalGenerator(LAYOUT, [Modes(0, False, (0.5, 0.5), (0.3, 0.7), (0.1, 0.1))], 3, [8]), 6),
    "image": (lambda: ImageGenerator((5, 6, 3), 2, 3, 8, (4, 2)), 90),
    "residual_images": (lambda: ResidualImages((5, 6), 2, 3, 4), 30),
}
RUNS = [*NETWORKS, "network", "critic"]


def made(name):
    torch.manual_seed(0 if size() == 1 else torch.distributed.get_rank())  # the first one's weights are taken
    build, values = NETWORKS[name if name in NETWORKS else "tabular"]
    feature = CharacteristicFunction(6, values, 1.0, seed=0)
    if name == "network":
        feature = NetworkTangent("fc_1l", (5,), (4,), seed=0)
    generator, width = build().to(torch.get_default_dtype()), sum(part.width for part in feature.parts)
    target = torch.linspace(-0.3, 0.3, 2 * width).view(2, width)
    critic = FrequencyCritic(feature, 0.1, 2.0, 0.01, CPU) if name == "critic" else None
    own = EmbeddingObjective(feature, target, torch.tensor([0.3, 0.7]), torch.tensor([1.0, 2.0]), critic)
    return generator, LatentBatches(own, 3, COUNTS, 0, CPU)


def results(name):
    generator, objective = made(name)
    if size() > 1:
        join(generator)
    loss = objective.loss(generator.train())
    loss.backward()
    if size() > 1:
        average_gradients(generator)
    found = [loss.detach(), *(own.grad for own in generator.parameters())]
    generator, objective = made(name)
    losses = train(generator, objective, TrainingSettings(5, 19, 0.01, "constant"), CPU, lambda *_: None)
    found += [torch.tensor(losses), *generator.state_dict().values()]
    return [value.double() for value in found]


def halves():
    torch.set_default_dtype(torch.float32)
    generator, objective = made("critic")
    losses = train(generator, objective, TrainingSettings(20, 19, 0.01), CPU, lambda *_: None, "bfloat16")
    torch.set_default_dtype(torch.float64)
    return losses[0][1], losses[-1][1]


told = {"networks": list(NETWORKS)}
if is_first():
    alone, told["half alone"] = {name: results(name) for name in RUNS}, halves()
with together(CPU):
    told["size"] = size()
    shared = {name: results(name) for name in RUNS}
    told["half"] = halves()
    told["shares"] = share_of_rows(COUNTS)[1]
    try:
        share_of_rows([1, 9])
    except ParamsError as error:
        told["refused"] = str(error)
if is_first():
    for name in RUNS:
        pairs = list(zip(alone[name], shared[name], strict=True))
        told[name] = max(float((a - b).abs().max() / a.abs().max().clamp(min=1e-6)) for a, b in pairs)
        told[name + " moved"] = float(pairs[1][0].abs().max())
    Path(sys.argv[1]).write_text(json.dumps(told))
"""


@pytest.mark.process
def test_two_processes_take_the_steps_of_one(tmp_path: Path) -> None:
    script, out = tmp_path / "script.py", tmp_path / "told.json"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "OMP_NUM_THREADS": "1"}
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script), str(out)]
    run = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    told = json.loads(out.read_text())
    assert told["size"] == 2 and told["shares"] == [4, 6]
    trained = {name for name, load in GENERATORS.items() if issubclass(load(), nn.Module)}
    assert trained == set(told["networks"])
    # Loss, gradients, five losses, weights, running statistics, in float64: relative to the largest entry of each (of
    # biases before a normalization, whose gradients are 0 but for rounding, which Adam divides by its own size).
    for name in [*told["networks"], "network", "critic"]:
        assert told[name] < 1e-7 and told[name + " moved"] > 1e-3, (name, told)
    # Products in bfloat16 round to 1 in 256.
    assert told["half"] == pytest.approx(told["half alone"], rel=0.03)
    assert "a class has 1 rows in a batch" in told["refused"]


def test_alone_nothing_is_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not launched() and is_first() and size() == 1
    with together(torch.device("cpu")) as device:
        assert device.type == "cpu" and size() == 1
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "a")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert not launched()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert launched() and not is_first()
