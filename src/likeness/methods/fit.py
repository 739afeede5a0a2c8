"""Train a method's generator against its releases: the sentence that stage, API and benchmarks share."""

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
    """Build and train; deterministic on one machine for the same seed, release and number of threads and processes.

    Args:
        precision: see :func:`~likeness.generators.training.train`.
        beside: other releases that the schema was completed with; the generator names them too.

    Under ``torchrun``, every process makes its share of each batch (:mod:`likeness.generators.parallel`).

    Returns:
        the generator, and its loss curve as (iteration, loss).

    Raises:
        ReleaseError: the embedding answers another question than these settings ask, so that its values mean another
            thing.
    """
    query, receipt = method.embedding_query(context, auxiliary), embedding.receipt
    if (dict(receipt.feature), receipt.num_groups) != (query.spec(), query.num_groups):
        raise ReleaseError(
            f"{receipt.query}: answers another question than {method.name} asks with these settings. Train with those "
            "of the release, or make it again: dvc repro"
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
    """A generator as it is before training: all of its specification, and weights from torch's seed.

    Args:
        method: the recipe.
        context: public facts.
        auxiliary: answers of the auxiliary stage, by the name of their query.
        receipts: of all releases that the generator is trained on.
        where: see :func:`likeness.generators.training.environment`.
    """
    provenance = {
        "method": method.name,
        "releases": sorted(receipt.key for receipt in receipts),
        "private": all(receipt.private for receipt in receipts),
        "environment": dict(where),
    }
    weights = class_weights(auxiliary[CLASS_COUNTS])
    return SavedGenerator(method.build_generator(context, auxiliary), tuple(weights.tolist()), provenance)
