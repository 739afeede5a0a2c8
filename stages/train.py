"""train: fit the generator to the released values, on CPU, CUDA or MPS.

Reads: data/released, data/schema, params.yaml. Writes: data/models. Spends: nothing; no private file is needed.
Several processes: torchrun --nproc-per-node 2 -m stages.train (docs/scale.md).
Needs torch, numpy, safetensors and pyyaml only; where there is no ledger, set LIKENESS_LEDGER=absent.
"""

from likeness.config.params import Params
from likeness.core.paths import AUXILIARY, EMBEDDING, GENERATOR, LOSS
from likeness.generators.parallel import is_first
from likeness.methods.fit import fit
from likeness.pipeline.project import context, method
from likeness.pipeline.released import category_files, released_files
from likeness.pipeline.run_stage import run_stage
from likeness.release.released import check_known, load_folder, load_released


def main(params: Params) -> None:
    """Train, save the generator and the loss curve."""
    check_known(released_files(), params.ledger.home, params.ledger.url)
    released = load_folder(AUXILIARY), load_released(EMBEDDING)
    beside = [load_released(path) for path in category_files()]
    own = params.train
    saved, losses = fit(method(params), context(params), *released, own.device, own.threads, own.precision, beside)
    if not is_first():
        return
    saved.save(GENERATOR)
    LOSS.write_text("iteration,loss\n" + "".join(f"{iteration},{loss:.9g}\n" for iteration, loss in losses))


if __name__ == "__main__":
    run_stage("train", main)
