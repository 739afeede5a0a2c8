r"""SWIFT of Google's dpsynth, which no registry has, on a table of codes.

Clone dpsynth, name the folder around it, and run in an environment of its own (``evidence/peers_swift.txt``)::

    PEERS_CLONES=clones python evidence/peers_swift.py --codes codes.parquet --domain domain.json \
        --method dpsynth_swift --epsilon 1 --delta 1e-5 --rows 5000 --out synthetic.parquet

The table and the report are those of ``peers.py``: all pairs of at most 10,000 cells. SWIFT adds Gaussian noise only,
so that it gets exact Gaussian accounting, as ours does. By reading it and by the scales of its measurements
(``measured_share`` of the report) it spends ρ. It has cliques of at most 100,000 cells and 1,000 steps: its own
10,000,000 and 10,000 do not end on two cores. Nothing of the clone is copied here.
"""

import itertools
import json
import sys
import time
import types
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from memory import peak_mb  # beside this script: this environment has no Likeness
from peers_shared import exact_rho, parser_of, read, say

MAX_CELLS, SWIFT_CELLS, STEPS = 10_000, 100_000, 1_000


def main() -> None:
    """Read, synthesize, write, report."""
    arguments = parser_of(__doc__, ["dpsynth_swift"]).parse_args()
    sizes = {column: int(size) for column, size in json.loads(arguments.domain.read_text()).items()}
    codes, rho = read(arguments.codes, sizes), exact_rho(arguments.epsilon, arguments.delta)
    started = time.monotonic()
    synthetic, spent = swift(arguments.clones, codes, sizes, rho)
    if len(synthetic) != arguments.rows:  # it writes as many rows as it counts
        synthetic = synthetic.sample(arguments.rows, replace=len(synthetic) < arguments.rows)
    seconds = time.monotonic() - started
    synthetic[list(sizes)].astype(np.int64).reset_index(drop=True).to_parquet(arguments.out)
    report = {
        "method": arguments.method,
        "epsilon": arguments.epsilon,
        "delta": arguments.delta,
        "rho": rho,
        "measured_share": round(spent / rho, 3),
        "seconds": round(seconds, 1),
        "peak_mb": round(peak_mb(), 1),
        "versions": {"python": sys.version.split()[0], **{name: version(name) for name in ("numpy", "pandas")}},
    }
    say(json.dumps(report))
    print(json.dumps(report))


def swift(clones: Path, codes: pd.DataFrame, sizes: dict[str, int], rho: float) -> tuple[pd.DataFrame, float]:
    """Rows of SWIFT, with single columns measured first, as dpsynth's ``DiscreteConfig`` does; and what it spent."""
    package = types.ModuleType("dpsynth")  # without its ``__init__``, which imports more than is needed here
    package.__path__ = [str(clones / "dpsynth" / "dpsynth")]
    sys.modules["dpsynth"] = package
    import mbi
    from dpsynth import discrete_mechanisms

    pairs = [pair for pair in itertools.combinations(sizes, 2) if sizes[pair[0]] * sizes[pair[1]] <= MAX_CELLS]
    limits = {"max_clique_size": SWIFT_CELLS, "pgm_iters": STEPS, "max_marginal_size": MAX_CELLS}
    inner = discrete_mechanisms.SWIFTConfig(workload=pairs, **limits)
    config = discrete_mechanisms.DiscreteConfig(mechanism=inner)
    data = mbi.Dataset({column: codes[column].to_numpy() for column in sizes}, mbi.Domain.fromdict(sizes))
    result = config.configure(zcdp_rho=rho)(np.random.default_rng(), data)
    values = result.synthetic_data.to_dict()
    spent = sum(0.5 / float(one.stddev) ** 2 for one in result.measurements)
    return pd.DataFrame({column: np.asarray(values[column]) for column in sizes}), spent


if __name__ == "__main__":
    main()
