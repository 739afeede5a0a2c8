"""train: fit the generator to the released values, on CPU, CUDA or MPS.

Reads: data/released, data/schema, params.yaml. Writes: data/models. Spends: nothing; no private file is needed.
Several processes: torchrun --nproc-per-node 2 -m stages.train (docs/scale.md).
Needs torch, numpy, safetensors and pyyaml only; where there is no ledger, set LIKENESS_LEDGER=absent.
"""

from likeness.generators.parallel import is_first
from likeness.methods.fit import fit
from likeness.pipeline.project import Project
from likeness.release.released import check_known, load_folder, load_released


def main(project: Project) -> None:
    """Train, save the generator and the loss curve."""
    paths, train = project.paths, project.params.train
    check_known(paths.released_files, *project.ledger_place)
    released = load_folder(paths.auxiliary), load_released(paths.embedding)
    beside = [load_released(path) for path in paths.category_files]
    how = project.method, project.context, *released, train.device, train.threads, train.precision, beside
    saved, losses = fit(*how)
    if not is_first():
        return
    saved.save(paths.generator)
    paths.loss.write_text("iteration,loss\n" + "".join(f"{iteration},{loss:.9g}\n" for iteration, loss in losses))
