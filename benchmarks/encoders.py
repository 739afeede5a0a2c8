"""DP-MERF on pixels, and on codes of a random encoder or of encoders trained on other, public images.

Run: ``python -m benchmarks.encoders [--draws 2]``. Resumable: a row that is in the CSV is not run again. Some minutes.

The bundled digits at ε = 1, δ = 1e-5, add_remove_one, with the settings of examples/digits but 800 training steps;
public encoders are those that ``scripts/train_encoder.py --shape 8 8 --hidden 200 --code 48`` makes of MNIST and of
Fashion-MNIST (data/raw, or beside the project); without the files they are left out. Scores: those of
benchmarks.hp_sensitivity.
"""

import argparse
import copy
import dataclasses
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.common import SHARED, keep, load, on_choices, read_results, synthesize
from benchmarks.hp_sensitivity import score
from likeness.config.params import Params

RESULTS = Path("benchmarks/results/encoders.csv")
KEYS = ["encoder", "draw"]
STEPS = 800
PIXELS, RANDOM, PUBLIC = "none: pixels", "random", ("mnist", "fashion_mnist")


def settings(params: Params, encoder: str, folder: Path) -> Params | None:
    """The example's settings for merf, or for merf_ae with an encoder; None where its images are not there."""
    method = "merf" if encoder == PIXELS else "merf_ae"
    section = copy.deepcopy(dict(params.sections[method]))
    section["train"]["iterations"] = STEPS
    if encoder in PUBLIC:
        found = [path for path in (Path(f"data/raw/{encoder}.npz"), SHARED / f"{encoder}.npz") if path.exists()]
        if not found:
            return None
        out = folder / f"{encoder}.safetensors"
        command = [sys.executable, "scripts/train_encoder.py", str(found[0]), encoder, "--out", str(out)]
        command += ["--shape", "8", "8", "--hidden", "200", "--code", "48"]
        told = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ).stdout
        section["privatize"] |= {"encoder": str(out), "encoder_sha256": told.split()[-1]}
    one_thread = dataclasses.replace(params.train, threads=1)
    return dataclasses.replace(params, method=method, sections={**params.sections, method: section}, train=one_thread)


def main() -> None:
    """Run what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2)
    draws = parser.parse_args().draws
    table = load("digits")
    with tempfile.TemporaryDirectory() as folder:
        chosen = {name: settings(table.params, name, Path(folder)) for name in (PIXELS, RANDOM, *PUBLIC)}
        for draw in range(1, draws + 1):
            for name, params in chosen.items():
                rows = read_results(RESULTS, KEYS)
                if params is not None and not (rows[KEYS] == [name, draw]).all(axis=1).any():
                    synthetic = synthesize(params, table.train, draw)
                    keep(RESULTS, {"encoder": name, "draw": draw, **score(synthetic, table)}, KEYS)
    on_choices("encoders", read_results(RESULTS, KEYS), ["encoder"], ["accuracy", "tv_2"])


if __name__ == "__main__":
    main()
