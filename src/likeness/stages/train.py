"""train: fit the generator to the released values, on CPU, CUDA or MPS.

No private file is needed. It needs numpy, safetensors, threadpoolctl and pyyaml only, and PyTorch for networks; without
the packages of the ledger, set LIKENESS_LEDGER=absent.
"""

from likeness.generators.base import Compute
from likeness.methods.fit import fit_all
from likeness.pipeline.project import Project
from likeness.release.released import load_released


def main(project: Project) -> None:
    """Train, save the generator and the loss curve."""
    paths, train = project.paths, project.params.train
    project.check_known(paths.released_files)
    released = [load_released(path) for path in paths.released_files]
    compute = Compute(train.device, train.threads, train.precision)
    if project.frames is None:  # this may be another machine than that of the plan, which asked, too
        project.method.check_device(compute.device)
    generators, curves = fit_all(project.method, project.row_sets, released, compute)
    for folder, saved in zip(map(project.output, project.outputs.generators), generators, strict=True):
        saved.save(folder)
    names = ["loss"] if len(curves) == 1 else [f"loss_{table}" for table in project.outputs.tables]
    lines = [",".join(["iteration", *names])]
    for index, curve in enumerate(curves):  # one column each, empty where another is trained
        before, after = "," * (index + 1), "," * (len(curves) - index - 1)
        lines += [f"{iteration}{before}{loss:.9g}{after}" for iteration, loss in curve]
    paths.loss.write_bytes("".join(f"{line}\n" for line in lines).encode())
