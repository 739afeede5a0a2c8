"""Deep public encoders: as torch computes them, exact in integers, and a code depends on its image alone."""

import json
import pickle
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from likeness.core.errors import ArtifactError
from likeness.features.frequencies import INPUT_BITS
from likeness.methods.merf_ae.deep import (
    FORMAT,
    REACH,
    VALUE_BITS,
    DeepEncoder,
    Step,
    _each,
    facts_of,
    load_encoder,
    planes,
    run,
    save_steps,
)
from likeness.methods.merf_ae.encoded_map import ENCODER, EncodedFourier, EncodedMoments
from likeness.methods.merf_ae.encoder import Encoder
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import lattice_sum
from scripts import pack_network

SHAPE, SIZE, CODE = (6, 5), 12, 7


class Block(nn.Module):
    """What deep networks are made of: depthwise and grouped convolutions, gates, residuals, splits and pools."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.depth = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.BatchNorm2d(8), nn.Hardswish())
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 8, 1), nn.Hardsigmoid())
        self.alone, self.pool = nn.BatchNorm2d(8), nn.MaxPool2d(3, 1, 1)
        self.last = nn.Sequential(nn.Dropout(0.2), nn.Linear(12 * 9, 10), nn.ReLU6(), nn.Linear(10, 4))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        deep = self.depth(x)
        x = (self.alone(x) + deep * self.gate(deep)).relu()
        left, right = x.chunk(2, dim=1)
        x = torch.cat([left, self.pool(right), functional.avg_pool2d(left, 3, 1, 1)], dim=1)
        x = x.view(-1, 2, 6, 6, 6).transpose(1, 2).reshape(-1, 12, 6, 6)
        return self.last(functional.adaptive_avg_pool2d(x, 3).flatten(1))  # type: ignore[no-any-return]


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return with_statistics(Block())


def with_statistics(block: nn.Module) -> nn.Module:
    """A network with random statistics, as a trained one has."""
    for module in block.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.3)  # type: ignore[union-attr, operator]
            module.running_var.uniform_(0.3, 2)  # type: ignore[union-attr, operator]
    return block.eval()


def images(count: int, seed: int, shape: tuple[int, ...] = SHAPE) -> Tensor:
    """Images on the door's grid, black and white ones among them."""
    x = torch.rand(count, int(np.prod(shape)), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x[:2] = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    return torch.round(x * 2.0**INPUT_BITS) * 2.0**-INPUT_BITS


def packed(path: Path, shape: tuple[int, ...] = SHAPE, seed: int = 1) -> DeepEncoder:
    """A small network in a file, read again."""
    packer = pack_network.Packer()
    start = pack_network.prepared(packer, shape, SIZE, [0.4, 0.5, 0.6], [0.2, 0.3, 0.25])
    number = packer.network(network(seed), SIZE, start, "a block")
    features = pack_network.outputs(packer, images(40, 3, shape), shape)
    packer.add("linear", [number], pack_network.projected(features, CODE))
    save_steps(path, tuple(packer.steps), packer.weights, shape, 2.0, "shapes")
    found = load_encoder(path)
    assert isinstance(found, DeepEncoder)
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("deep") / ENCODER
    packed(file)
    return file


@pytest.fixture(scope="module")
def encoder(path: Path) -> DeepEncoder:
    return DeepEncoder.load(path)


@pytest.mark.parametrize("shape", [SHAPE, (12, 12, 3)])
def test_the_steps_are_the_network_in_the_words_of_torch(shape: tuple[int, ...], tmp_path: Path) -> None:
    found, block = packed(tmp_path / ENCODER, shape), network(1).double()
    assert isinstance(block.last, nn.Sequential)
    block.requires_grad_(False)
    block.last = block.last[:-1]  # the head is no part of the code
    x = images(30, 4, shape)
    seen = x.view(30, *shape[:2], -1).permute(0, 3, 1, 2)
    seen = functional.interpolate(seen.expand(-1, 3, -1, -1), size=(SIZE, SIZE), mode="bilinear")
    mean, deviation = torch.tensor([0.4, 0.5, 0.6]), torch.tensor([0.2, 0.3, 0.25])
    features = block((seen - mean[:, None, None]) / deviation[:, None, None])
    weights = list(found.weights.values())
    expected = features @ weights[-2].T + weights[-1]
    torch.testing.assert_close(found(x), expected, rtol=0, atol=2e-3)
    torch.testing.assert_close(found(x.float()), expected.float(), rtol=0, atol=2e-3)  # as a generator sees it
    assert float(expected.std()) > 0.5 and (found.width, found.unit, found.trained_on) == (CODE, 2.0, "shapes")


def of_integers(step: Step, inputs: list[Tensor], weights: dict[str, Tensor]) -> np.ndarray:
    """A step before rounding, from sums of whole numbers in Python's integers, as fractions."""
    bits = 26
    whole = [np.vectorize(int, otypes=[object])((one * 2.0**VALUE_BITS).numpy()) for one in inputs]
    given = [np.vectorize(int, otypes=[object])((weights[name] * 2.0**bits).numpy()) for name in step.tensors]
    if step.name == "linear":
        sums = whole[0] @ given[0].T + given[1] * 2**VALUE_BITS
    elif step.name == "affine":
        ones = (-1,) + (1,) * (whole[0].ndim - 2)
        sums = whole[0] * given[0].reshape(ones) + given[1].reshape(ones) * 2**VALUE_BITS
    elif step.name == "conv":
        (pad, _), (stride, _) = step.options["padding"], step.options["stride"]
        groups, kernel = step.options["groups"], given[0].shape[2]
        padded = np.pad(whole[0], ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
        inputs_a_group, outputs_a_group = given[0].shape[1], given[0].shape[0] // groups
        sums = np.zeros((len(padded), given[0].shape[0], *windows.shape[2:4]), dtype=object)
        for output in range(given[0].shape[0]):
            first = output // outputs_a_group * inputs_a_group
            some = windows[:, first : first + inputs_a_group]
            sums[:, output] = (some * given[0][output][None, :, None, None]).sum(axis=(1, 4, 5))
            sums[:, output] += given[1][output] * 2**VALUE_BITS if len(given) > 1 else 0
    else:
        operation: Callable[..., np.ndarray] = {"add": np.add, "mul": np.multiply}[step.name]
        scale = 2**VALUE_BITS if step.name == "add" else 1
        return np.vectorize(lambda value: Fraction(int(value), 2 ** (2 * VALUE_BITS)))(operation(*whole) * scale)
    return np.vectorize(lambda value: Fraction(int(value), 2 ** (VALUE_BITS + bits)))(sums)


def test_every_step_is_that_of_whole_numbers(encoder: DeepEncoder) -> None:
    """What the door's exactness rests on: nothing rounds before a step is settled."""
    seen = []
    for step, inputs, value in _each(encoder.steps, encoder.weights, planes(images(3, 5), SHAPE)):
        assert float(value.abs().max()) <= 2.0**REACH and bool((value * 2.0**VALUE_BITS % 1 == 0).all())
        if step.name not in ("affine", "add", "conv", "linear", "mul"):
            continue
        exact = np.clip(of_integers(step, inputs, encoder.weights), *map(Fraction, step.clamp))
        settled = np.vectorize(lambda value: float(Fraction(round(value * 2**VALUE_BITS), 2**VALUE_BITS)))(exact)
        assert np.array_equal(settled, value.numpy()), step
        seen.append(step.name)
    assert {"affine", "add", "conv", "linear", "mul"} == set(seen)


def test_weights_are_as_fine_as_exactness_allows_and_no_finer(encoder: DeepEncoder) -> None:
    """The largest sum that inputs within limits can reach has at most 53 bits."""
    for step in encoder.steps:
        if step.name in ("conv", "linear"):
            weights = encoder.weights[step.tensors[0]].flatten(1)
            scaled = next(bits for bits in range(30) if bool((weights * 2.0**bits % 1 == 0).all()))
            largest = float(weights.abs().sum(dim=1).max()) * 2.0 ** (REACH + VALUE_BITS + scaled)
            assert largest <= 2.0**53 and scaled >= 12


def test_a_code_is_the_same_alone_in_any_batch_and_order_and_at_any_thread_count(encoder: DeepEncoder) -> None:
    x, others = images(37, 6), images(1024, 7)
    places = torch.randperm(1024, generator=torch.Generator().manual_seed(8))[:37]
    others[places] = x
    codes = encoder(x)
    assert torch.equal(torch.cat([encoder(row[None]) for row in x]), codes)
    assert torch.equal(encoder(x.flip(0)).flip(0), codes)
    assert torch.equal(encoder(others)[places], codes)
    poisoned = torch.cat([torch.full_like(x[:3], torch.nan), x])
    assert torch.equal(encoder(poisoned)[3:], codes)
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    assert torch.equal(encoder(others)[places], codes)
    torch.set_num_threads(threads)
    again = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - as another process gets it
    assert torch.equal(again(x), codes)


def maps(encoder: DeepEncoder) -> list[EncodedMoments | EncodedFourier]:
    return [
        EncodedMoments(2.0, 0.3, SHAPE, CODE, REACH, encoder.sha256, network=encoder),
        EncodedFourier(30, 2.0, 1, SHAPE, CODE, REACH, encoder.sha256, network=encoder),
    ]


@pytest.mark.parametrize("place", [0, 1], ids=["moments", "fourier"])
def test_a_record_moves_the_sum_by_its_own_contribution_and_no_more(encoder: DeepEncoder, place: int) -> None:
    feature = maps(encoder)[place]
    query = Query("q", "privatize", feature, num_groups=2)
    x, labels = images(50, 9).numpy(), (np.arange(50) % 2).astype(np.int64)

    def total(rows: np.ndarray, chunk: int = 50) -> np.ndarray:
        return lattice_sum(query, [Records(x[rows[i : i + chunk]], labels[rows[i : i + chunk]])
                                   for i in range(0, len(rows), chunk)])  # fmt: skip

    rows = np.arange(50)
    whole, bound = total(rows), query.parts[0].lattice_bound_squared(query.lattice_bits)
    assert np.array_equal(total(rows[::-1]), whole) and np.array_equal(total(rows, chunk=7), whole)
    for one in (0, 1, 17, 49):
        difference = whole - total(np.delete(rows, one))  # every other row moves by one place
        assert np.array_equal(difference, total(rows[one : one + 1]))
        assert int((difference**2).sum()) <= bound
    assert np.array_equal(whole, total(rows[:20]) + total(rows[20:]))  # parts of another process


def test_codes_that_are_no_numbers_count_nothing_and_long_ones_are_clipped(encoder: DeepEncoder) -> None:
    query = Query("q", "privatize", maps(encoder)[0])
    nothing = lattice_sum(query, [Records(np.full((2, 30), np.nan), np.zeros(2, dtype=np.int64))])
    assert not nothing.any()
    feature = EncodedMoments(1e-3, 0.3, SHAPE, CODE, REACH, encoder.sha256, network=encoder)
    squares = feature(images(50, 10)).square().sum(dim=1)
    torch.testing.assert_close(squares, torch.ones(50, dtype=torch.float64), rtol=0, atol=1e-9)


def test_a_generator_gets_gradients(encoder: DeepEncoder) -> None:
    x = images(8, 11).float().requires_grad_()
    for feature in maps(encoder):
        (gradient,) = torch.autograd.grad(feature(x).square().sum(dim=0)[3], x)
        assert bool(torch.isfinite(gradient).all()) and float(gradient.abs().max()) > 0


def test_only_the_named_file_is_taken(path: Path, tmp_path: Path) -> None:
    feature = maps(DeepEncoder.load(path))[0]
    from likeness.core.errors import ReleaseError
    from likeness.methods.maps import from_spec

    again = from_spec(feature.spec())
    assert again.parts == feature.parts and again.spec() == feature.spec()
    assert isinstance(again, EncodedMoments)
    assert torch.equal(again.with_files(path.parent)(images(3, 1)), feature(images(3, 1)))  # type: ignore[operator]
    packed(tmp_path / ENCODER, seed=2)
    with pytest.raises(ReleaseError, match="not that of the release"):
        again.with_files(tmp_path)


def changed(path: Path, out: Path, steps: Callable[[list], None], **facts: str) -> None:  # type: ignore[type-arg]
    told = {**facts_of(path.read_bytes()), **facts}
    listed = json.loads(told["steps"])
    steps(listed)
    save_file(load_file(path), out, metadata={**told, "steps": json.dumps(listed)})


CONV = 3  # the place of the first convolution


@pytest.mark.parametrize(
    "spoil",
    [
        lambda steps: steps.clear(),
        lambda steps: steps[0].__setitem__(0, "sigmoid"),
        lambda steps: steps[0].__setitem__(1, [5]),  # of a later step
        lambda steps: steps[CONV].__setitem__(2, steps[CONV][2][:1] * 2),  # a tensor twice
        lambda steps: steps[CONV].__setitem__(2, ["none"]),
        lambda steps: steps[CONV][3].update(stride=[0, 0]),
        lambda steps: steps.append(["transpose", [len(steps)], [], {"first": 0, "second": 1}, [-1, 1]]),
        lambda steps: steps.append(["transpose", [len(steps)], [], {"first": -2, "second": -1}, [-1, 1]]),
        lambda steps: steps.append(["view", [len(steps)], [], {"shape": [CODE, 1]}, [-1, 1]]),
        lambda steps: steps.append(["add", [0, len(steps)], [], {}, [-1, 1]]),
        lambda steps: steps.insert(1, ["max_pool", [1], [], {"kernel_size": 2, "return_indices": True}, [-1, 1]]),
        lambda steps: steps.append(["same", [len(steps)], [], {}]),
        lambda steps: steps.append(["cat", [len(steps)], steps[CONV][2], {}, [-1, 1]]),
        lambda steps: steps.extend(["cat", [len(steps) + i] * 2, [], {}, [-1, 1]] for i in range(24)),
    ],
    ids=["none", "unknown", "later", "shared", "missing", "stride", "mix", "mix-from-behind", "no-code", "axes",
         "tuple", "no-clamp", "tensors", "huge"],
)  # fmt: skip
def test_files_with_other_steps_are_refused(path: Path, tmp_path: Path, spoil: Callable[[list], None]) -> None:  # type: ignore[type-arg]
    changed(path, tmp_path / "e.safetensors", lambda steps: None)
    assert load_encoder(tmp_path / "e.safetensors").width == CODE
    changed(path, tmp_path / "e.safetensors", spoil)
    with pytest.raises(ArtifactError, match="is no encoder of steps that this version knows"):
        load_encoder(tmp_path / "e.safetensors")


@pytest.mark.parametrize("size", [torch.nan, torch.inf, 2.0**21], ids=["nan", "inf", "large"])
def test_weights_that_no_grid_can_hold_are_refused(path: Path, tmp_path: Path, size: float) -> None:
    told, tensors = facts_of(path.read_bytes()), load_file(path)
    first = json.loads(told["steps"])[CONV][2][0]
    tensors[first][0, 0, 0, 0] = size
    save_file(tensors, tmp_path / "e.safetensors", metadata=told)
    with pytest.raises(ArtifactError, match="is no encoder of steps"):
        load_encoder(tmp_path / "e.safetensors")


@pytest.mark.parametrize("facts", [{"unit": "0"}, {"unit": "nan"}, {"trained_on": ""}])
def test_files_without_unit_or_name_are_refused(path: Path, tmp_path: Path, facts: dict[str, str]) -> None:
    changed(path, tmp_path / "e.safetensors", lambda steps: None, **facts)
    with pytest.raises(ArtifactError, match="unit or trained_on are missing"):
        load_encoder(tmp_path / "e.safetensors")


def test_convolutions_that_would_see_images_as_colors_are_refused(tmp_path: Path) -> None:
    """Torch takes three axes as one image without a batch: rows would mix."""
    steps = (Step("view", (0,), (), {"shape": [5, 6]}), Step("conv", (1,), ("w",), {"padding": [1, 1]}),
             Step("view", (2,), (), {"shape": [-1]}))  # fmt: skip
    save_steps(tmp_path / "e.safetensors", steps, {"w": torch.ones(3, 3, 3, 3)}, SHAPE, 1.0, "shapes")
    with pytest.raises(ArtifactError, match="is no encoder of steps"):
        load_encoder(tmp_path / "e.safetensors")


def test_a_bias_for_each_row_of_a_batch_is_refused(tmp_path: Path) -> None:
    weights = {"w": torch.ones(2, 30), "b": torch.arange(6.0).view(3, 2)}
    steps = (Step("view", (0,), (), {"shape": [-1]}), Step("linear", (1,), ("w", "b")))
    for bias in (weights["b"], weights["b"][0]):
        save_steps(tmp_path / "e.safetensors", steps, {**weights, "b": bias}, SHAPE, 1.0, "shapes")
        if bias.ndim == 1:
            assert load_encoder(tmp_path / "e.safetensors").width == 2
            continue
        with pytest.raises(ArtifactError, match="is no encoder of steps"):
            load_encoder(tmp_path / "e.safetensors")


def test_a_pool_that_sees_nothing_gives_a_number(tmp_path: Path) -> None:
    options = {"kernel_size": [2, 2], "stride": [1, 1], "padding": [1, 1], "dilation": [3, 3]}
    steps = (
        Step("resample", (0,), ("r", "c")),
        Step("max_pool", (1,), (), options),
        Step("view", (2,), (), {"shape": [-1]}),
    )
    weights = {"r": torch.ones(2, 6), "c": torch.ones(2, 5)}
    save_steps(tmp_path / "e.safetensors", steps, weights, SHAPE, 1.0, "shapes")
    assert bool(torch.isfinite(load_encoder(tmp_path / "e.safetensors")(images(3, 1))).all())


def test_readers_know_both_formats(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="is missing"):
        load_encoder(tmp_path / "nothing.safetensors")
    with pytest.raises(ArtifactError, match="is missing"):
        DeepEncoder.load(tmp_path / "nothing.safetensors")
    (tmp_path / "zip.safetensors").write_bytes(b"PK\3\4 not safetensors")
    with pytest.raises(ArtifactError, match="is no encoder"):
        load_encoder(tmp_path / "zip.safetensors")
    with pytest.raises(ArtifactError, match="is no encoder"):
        Encoder.load(path)
    assert facts_of(path.read_bytes())["format"] == FORMAT


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.SiLU(), nn.Flatten(), nn.Linear(400, 2)), r"aten\.silu"),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.AvgPool2d(3, ceil_mode=True), nn.Flatten()), r"aten\.avg_pool2d"),
        (nn.Sequential(nn.Flatten(), nn.Linear(3, 2)), "takes no images of 12 x 12 pixels"),
    ],
)
def test_networks_that_no_steps_can_hold_are_refused_in_words(module: nn.Module, message: str) -> None:
    packer = pack_network.Packer()
    start = pack_network.prepared(packer, SHAPE, SIZE, [0.4] * 3, [0.2] * 3)
    with pytest.raises(SystemExit, match=message):
        packer.network(module, SIZE, start, "a network")


def test_torchvision_s_networks_become_steps(tmp_path: Path) -> None:
    models = pytest.importorskip("torchvision.models", exc_type=ImportError)
    for name in ("shufflenet_v2_x0_5", "mobilenet_v3_small"):
        found = with_statistics(models.get_model(name, weights=None))
        packer = pack_network.Packer()
        start = pack_network.prepared(packer, SHAPE, 32, [0.4] * 3, [0.2] * 3)
        packer.network(found, 32, start, name)
        x = images(8, 2)
        seen = run(tuple(packer.steps[:start]), packer.weights, planes(x, SHAPE)).float()
        pack_network.check(found, packer, x, SHAPE, seen)


@pytest.mark.parametrize("weights", [False, True])
def test_the_script_packs_learned_and_given_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], weights: bool
) -> None:
    draws, out, given = np.random.default_rng(1), tmp_path / "out.safetensors", tmp_path / "given.safetensors"
    labels = draws.integers(0, 4, 600)
    shades = (draws.integers(0, 90, (600, 6, 5)) + 50 * labels[:, None, None]).astype(np.uint8)
    np.savez(tmp_path / "shades.npz", x_train=shades, y_train=labels)
    save_file(network(3).state_dict(), given)
    monkeypatch.setattr(pack_network, "drawn_network", lambda name, classes: network(2 if classes == 4 else 1))
    command = ["torchvision:block", str(tmp_path / "shades.npz"), "letters,shades", "--out", str(out), "--code", "5"]
    command += ["--shape", "6", "5", "--size", "12", "--epochs", "2"]
    monkeypatch.setattr("sys.argv", ["pack_network.py", *command, *(["--weights", str(given)] if weights else [])])
    pack_network.main()
    encoder, said = load_encoder(out), capsys.readouterr().out
    assert (encoder.width, encoder.shape, encoder.trained_on) == (5, SHAPE, "letters,shades")
    assert said.split()[-1] == encoder.sha256 and ("accuracy" in said) is not weights
    codes = encoder(torch.from_numpy(shades / 255).flatten(1))
    torch.testing.assert_close(torch.cov(codes.T).diag(), torch.ones(5, dtype=torch.float64), rtol=0.3, atol=0)
    assert encoder.unit == pytest.approx(10**0.5, rel=0.2)  # two independent codes of five numbers of variance 1


def test_the_script_refuses_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match=r"is no network. Write torchvision:NAME or timm:NAME"):
        pack_network.drawn_network("resnet18", None)
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(SystemExit, match=r"timm:x needs timm. Run: pip install timm"):
        pack_network.drawn_network("timm:x", None)
    state = network(1).state_dict()
    state.pop("first.0.weight")
    save_file(state, tmp_path / "less.safetensors")
    with pytest.raises(SystemExit, match=r'holds another network: .*Missing key.* "first\.0\.weight"'):
        pack_network.loaded(network(1), tmp_path / "less.safetensors")
    (tmp_path / "zip.safetensors").write_bytes(b"PK")
    with pytest.raises(SystemExit, match="is no readable safetensors file"):
        pack_network.loaded(network(1), tmp_path / "zip.safetensors")


def test_values_that_serve_as_weights_are_refused(tmp_path: Path) -> None:
    """A linear step of two inputs would give the products of each image with the first ones of its batch."""
    view = Step("view", (0,), (), {"shape": [-1]})
    products = (view, Step("linear", (1, 1), ("w",)), Step("slice", (2,), (), {"start": 0, "stop": 3}))
    kernels = (Step("conv", (0, 0), ("k",)), Step("view", (1,), (), {"shape": [-1]}))
    for steps, weights in ((products, {"w": torch.ones(1, 1)}), (kernels, {"k": torch.ones(3, 1, 1, 1)})):
        save_steps(tmp_path / "e.safetensors", steps, weights, SHAPE, 1.0, "shapes")
        with pytest.raises(ArtifactError, match="is no encoder of steps"):
            load_encoder(tmp_path / "e.safetensors")


def test_convolutions_of_one_pixel_are_refused(tmp_path: Path) -> None:
    """Without values torch takes a dilation of 0, and refuses it only at the first image."""
    for dilation in (0, [1, 0], 1):
        steps = (Step("conv", (0,), ("k",), {"dilation": dilation}), Step("view", (1,), (), {"shape": [-1]}))
        save_steps(tmp_path / "e.safetensors", steps, {"k": torch.ones(3, 1, 3, 3)}, SHAPE, 1.0, "shapes")
        if dilation == 1:
            assert load_encoder(tmp_path / "e.safetensors").width == 3 * 4 * 3
            continue
        with pytest.raises(ArtifactError, match="is no encoder of steps"):
            load_encoder(tmp_path / "e.safetensors")


def test_a_header_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    header = b'{"__metadata__":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    (tmp_path / "e.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ArtifactError):
        load_encoder(tmp_path / "e.safetensors")
