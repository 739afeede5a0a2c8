r"""Peers that no registry has, on a table of codes: dpsynth, MST on mbi, MargNet and GEM.

Clone them side by side, name the folder, and run in an environment of their own (``evidence/peers_clones.txt``)::

    PEERS_CLONES=clones python evidence/peers_clones.py --codes codes.parquet --domain domain.json \
        --method dpsynth_swift --epsilon 1 --delta 1e-5 --rows 5000 --out synthetic.parquet

The table, the report and the budget are those of ``peers.py``: all pairs of at most 10,000 cells, a model of at most
8 MB, ρ by Canonne, Kamath and Steinke 2020, Proposition 12. SWIFT adds Gaussian noise only, so that it gets exact
Gaussian accounting, as ours does. Nothing of the clones is copied here.
The authors' own AIM is :mod:`evidence.peers_mbi`.

What the programs spend, by reading them and by the scales of their measurements (``measured_share`` of the report):

* dpsynth's exponential mechanism is for errors that a row only raises. :func:`dpsynth` takes that for errors that a row
  raises or lowers.
* dpsynth's MST and SWIFT spend ρ, and so does MST on mbi, of private-pgm.
* MargNet spends at most ρ: its last round, with what is left, never runs. Its settings are those of its Adult at ε = 1.
* GEM spends ρ, four fifths of it on choosing, and is told the number of rows. In each round it measures one cell of a
  pair. Its settings are those of its Adult; 50 rounds and averaged weights are those of its authors' later example at
  ε = 1. Its script tries 30 to 200 rounds. At ε = 10, 200 are better.

SWIFT has cliques of at most 100,000 cells and 1,000 steps; its own 10,000,000 and 10,000 do not end on two cores.
"""

import contextlib
import itertools
import json
import sys
import tempfile
import time
import types
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from memory import peak_mb  # beside this script: this environment has no Likeness
from peers_shared import exact_rho, parser_of, read, rho_of, say

MAX_CELLS = 10_000
STEPS = 1_000
SWIFT_CELLS = 100_000
GEM_ROUNDS = 50


def main() -> None:
    """Read, synthesize, write, report."""
    methods = {**dict.fromkeys(DPSYNTH, dpsynth), "mst_mbi": mst_mbi, "margnet": margnet, "gem": gem}
    arguments = parser_of(__doc__, list(methods)).parse_args()
    sizes = {column: int(size) for column, size in json.loads(arguments.domain.read_text()).items()}
    codes = read(arguments.codes, sizes)
    rho = (exact_rho if arguments.method == "dpsynth_swift" else rho_of)(arguments.epsilon, arguments.delta)
    started = time.monotonic()
    synthetic, spent = methods[arguments.method](arguments, codes, sizes, rho)
    if len(synthetic) != arguments.rows:  # these programs write as many rows as they count
        synthetic = synthetic.sample(arguments.rows, replace=len(synthetic) < arguments.rows)
    seconds = time.monotonic() - started
    synthetic[list(sizes)].astype(np.int64).reset_index(drop=True).to_parquet(arguments.out)
    report = {
        "method": arguments.method,
        "epsilon": arguments.epsilon,
        "delta": arguments.delta,
        "rho": rho,
        "measured_share": None if spent is None else round(spent / rho, 3),
        "seconds": round(seconds, 1),
        "peak_mb": round(peak_mb(), 1),
        "versions": {"python": sys.version.split()[0], **{name: version(name) for name in ("numpy", "pandas")}},
    }
    say(json.dumps(report))
    print(json.dumps(report))


def pairs_of(sizes: dict[str, int]) -> list[tuple[str, str]]:
    """The workload of the published AIM."""
    return [pair for pair in itertools.combinations(sizes, 2) if sizes[pair[0]] * sizes[pair[1]] <= MAX_CELLS]


DPSYNTH = {  # class and settings
    "dpsynth_mst": ("MSTConfig", {}),
    "dpsynth_swift": ("SWIFTConfig", {"max_clique_size": SWIFT_CELLS, "pgm_iters": STEPS}),
}


def dpsynth(arguments, codes, sizes, rho):  # type: ignore[no-untyped-def]
    """One of dpsynth's mechanisms, with single columns measured first, as its ``DiscreteConfig`` does."""
    import_from(arguments.clones / "dpsynth" / "dpsynth")
    import mbi
    from dpsynth import discrete_mechanisms
    from dpsynth.discrete_mechanisms import common

    published = common.exponential_mechanism
    common.exponential_mechanism = lambda *given, **options: published(*given, **{**options, "monotonic": False})
    name, settings = DPSYNTH[arguments.method]
    if arguments.method != "dpsynth_mst":
        settings = {**settings, "workload": pairs_of(sizes), "max_marginal_size": MAX_CELLS}
    inner = getattr(discrete_mechanisms, name)(**settings)
    config = discrete_mechanisms.DiscreteConfig(mechanism=inner)
    data = mbi.Dataset({column: codes[column].to_numpy() for column in sizes}, mbi.Domain.fromdict(sizes))
    result = config.configure(zcdp_rho=rho)(np.random.default_rng(), data)
    spent = sum(0.5 / float(one.stddev) ** 2 for one in result.measurements)
    values = result.synthetic_data.to_dict()
    return pd.DataFrame({column: np.asarray(values[column]) for column in sizes}), spent


def mst_mbi(arguments, codes, sizes, rho):  # type: ignore[no-untyped-def]
    """The authors' own program of MST, with the version of mbi beside it."""
    sys.path[:0] = [str(arguments.clones / "private-pgm" / folder) for folder in ("src", "mechanisms")]
    for name in ("matplotlib", "matplotlib.pyplot"):  # imported there for plots
        sys.modules[name] = types.ModuleType(name)
    import mst
    from mbi import Dataset, Domain

    return mst.MST(Dataset(codes, Domain.fromdict(sizes)), arguments.epsilon, arguments.delta).df, None


def margnet(arguments, codes, sizes, rho):  # type: ignore[no-untyped-def]
    """MargNet as its ``marggan``, on a processor instead of a graphics card."""
    sys.path.insert(0, str(arguments.clones / "margnet"))
    unused = {"tomli": "", "method.privsyn.PrivSyn.privsyn": "PrivSyn", "method.MargDL.scripts.diffusion_model": ""}
    for name, member in unused.items():  # imported there for other methods
        sys.modules[name] = types.ModuleType(name)
        setattr(sys.modules[name], member, None)
    import torch
    from method.MargDL.main import MargDLGen

    torch.cuda.reset_peak_memory_stats = torch.cuda.max_memory_allocated = lambda *_, **__: 0
    options = types.SimpleNamespace(iter=None, lr=None, batch=None, test=False, resample=False)
    train = {"selection_iterations": 200, "final_iterations": 200, "lr": 0.001, "batch_size": 512}
    config = {"train": train, "model_params": {"d_layers": [256, 256], "dropout": 0.0}}
    with tempfile.TemporaryDirectory() as folder:
        generator = MargDLGen(options, codes, sizes, "cpu", config, folder, "gan")
        with contextlib.redirect_stdout(sys.stderr):
            generator.fit_adaptive(rho)
        return pd.DataFrame(generator.model.sample(arguments.rows), columns=list(sizes)), None


def gem(arguments, codes, sizes, rho):  # type: ignore[no-untyped-def]
    """GEM on all pairs, from the weights of the second half of its rounds, averaged."""
    sys.path.insert(0, str(arguments.clones / "iterative-dp"))
    np.infty = np.inf  # of numpy 1
    for name in ("rdt", "rdt.transformers"):  # imported there for a table with other columns than codes
        sys.modules[name] = types.ModuleType(name)
    sys.modules["rdt.transformers"].OneHotEncodingTransformer = None  # type: ignore[attr-defined]
    import gem as program
    import torch

    program.util.cdp_rho = lambda *_: rho
    data = program.Dataset(codes, sys.modules["mbi"].Domain.fromdict(sizes))
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        queries = program.QueryManager(data.domain, pairs_of(sizes))
        queries.queries = queries.queries.astype(np.int64)
        each, _ = program.util.get_eps0_zCDP(arguments.epsilon, arguments.delta, GEM_ROUNDS, alpha=0.67)
        generator = program.GEM(embedding_dim=512, gen_dim=[1024, 1024], batch_size=1000, save_dir=folder)
        columns = [(size, "softmax") for size in sizes.values()]
        generator.transformer = types.SimpleNamespace(output_info=columns, output_dimensions=sum(sizes.values()))
        generator.setup_data(codes)
        generator.fit(
            GEM_ROUNDS, each, 1 / len(codes), queries, queries.get_answer(data), alpha=0.67, eta_min=None,
            save_num=GEM_ROUNDS // 2,
        )  # fmt: skip
        weights = program.get_ema_weights(generator, GEM_ROUNDS, GEM_ROUNDS // 2, 0.9, folder)
        generator.generator.load_state_dict(weights)
    rows = generator.generate_fake_data(generator.mean, generator.std)
    drawn = torch.cat([generator.get_onehot(rows) for _ in range(-(-arguments.rows // len(rows)))])
    cells = [own.argmax(1).numpy() for own in drawn.split(list(sizes.values()), dim=1)]
    return pd.DataFrame(dict(zip(sizes, cells, strict=True))), None


def import_from(folder: Path) -> None:
    """Make a package of a folder without its ``__init__``, which imports more than is needed here."""
    package = types.ModuleType(folder.name)
    package.__path__ = [str(folder)]
    sys.modules[folder.name] = package


if __name__ == "__main__":
    main()
