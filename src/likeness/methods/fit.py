"""Train a method's generator against its releases, for stage, API and benchmarks."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from likeness.core.errors import ReleaseError
from likeness.core.messages import progress
from likeness.core.rng import public_seed
from likeness.generators.parallel import is_first, together
from likeness.generators.training import choose_device, environment, train
from likeness.methods.base import CLASS_COUNTS, Context, Method, class_weights
from likeness.methods.saved_generator import SavedGenerator
from likeness.privacy.receipt import Receipt
from likeness.release.released import Released


def fit(
    method: Method,
    context: Context,
    auxiliary: Mapping[str, Released],
    embedding: Released,
    device: str = "auto",
    threads: int = 1,
    precision: str = "float32",
    beside: Sequence[Released] = (),
) -> tuple[SavedGenerator, list[tuple[int, float]]]:
    """Build and train; return the generator, and its loss curve as (iteration, loss).

    On one machine, equal seed, release, threads and processes give equal bits. ``beside`` holds other releases that
    completed the schema; the generator names them too. For precision see :func:`~likeness.generators.training.train`.
    Under ``torchrun``, every process makes its share of each batch (:mod:`likeness.generators.parallel`).

    Raises:
        ReleaseError: the embedding answers another question than these settings ask.
    """
    query, receipt = method.embedding_query(context, auxiliary), embedding.receipt
    if (dict(receipt.feature), receipt.num_groups) != (query.spec(), query.num_groups):
        raise ReleaseError(
            f"{receipt.query}: answers another question than {method.name} asks with these settings. "
            "Restore the settings of the release, or make a new one: dvc repro"
        )
    torch.set_num_threads(threads)
    torch.manual_seed(public_seed(context.seed, "train.weights"))
    with together(choose_device(device)) as chosen:
        receipts = [released.receipt for released in [*beside, *auxiliary.values(), embedding]]
        saved = untrained(method, context, auxiliary, receipts, environment(chosen))
        network = saved.network
        method.start(context, auxiliary, embedding, network)
        objective = method.build_objective(context, auxiliary, embedding, chosen)
        settings = method.training
        with progress(f"train {method.name}", settings.iterations if is_first() else 0) as step:
            losses = train(
                method.trained(network),
                objective,
                settings,
                chosen,
                lambda iteration, _, loss: step(iteration, f"loss {loss:.5g}"),
                precision,
            )
    network.eval()
    return saved, losses


def untrained(
    method: Method,
    context: Context,
    auxiliary: Mapping[str, Released],
    receipts: Sequence[Receipt],
    where: Mapping[str, Any],
) -> SavedGenerator:
    """A generator before training: its whole specification, and weights from torch's seed.

    ``receipts`` are those of all releases it is trained on; ``where`` is that of
    :func:`likeness.generators.training.environment`.
    """
    provenance = {
        "method": method.name,
        "releases": sorted(receipt.key for receipt in receipts),
        "private": all(receipt.private for receipt in receipts),
        "environment": dict(where),
    }
    weights = class_weights(auxiliary[CLASS_COUNTS])
    return SavedGenerator(method.build_generator(context, auxiliary), tuple(weights.tolist()), provenance)
