"""Train a method's generator against its releases, for stage, API and benchmarks."""

from collections.abc import Mapping, Sequence
from typing import Any

from likeness.core.errors import ReleaseError
from likeness.generators.base import Compute, Generator
from likeness.methods.base import CLASS_COUNTS, Context, Method, class_weights
from likeness.methods.saved_generator import SavedGenerator
from likeness.privacy.receipt import Receipt
from likeness.release.released import Released


def fit(
    method: Method,
    context: Context,
    auxiliary: Mapping[str, Released],
    embedding: Released,
    compute: Compute = Compute(),
    beside: Sequence[Released] = (),
) -> tuple[SavedGenerator, list[tuple[int, float]]]:
    """Build and train; return the generator, and its loss curve as (iteration, loss).

    On one machine, equal seed, release, threads and processes give equal bits. ``beside`` holds other releases that
    completed the schema; the generator names them too.

    Raises:
        ReleaseError: the embedding answers another question than these settings ask.
    """
    query, receipt = method.embedding_query(context, auxiliary), embedding.receipt
    if (dict(receipt.feature), receipt.num_groups) != (query.spec(), query.num_groups):
        raise ReleaseError(
            f"{receipt.query}: answers another question than {method.name} asks with these settings. "
            "Restore the settings of the release, or make a new one: dvc repro"
        )
    generator, environment, losses = method.fit_generator(context, auxiliary, embedding, compute)
    receipts = [released.receipt for released in [*beside, *auxiliary.values(), embedding]]
    return with_provenance(generator, method, auxiliary, receipts, environment), losses


def with_provenance(
    generator: Generator,
    method: Method,
    auxiliary: Mapping[str, Released],
    receipts: Sequence[Receipt],
    environment: Mapping[str, Any],
) -> SavedGenerator:
    """The generator of a method with the public facts of its origin.

    ``receipts`` are those of all releases it is trained on; for ``environment`` see
    :class:`~likeness.generators.base.Trained`.
    """
    provenance = {
        "method": method.name,
        "releases": sorted(receipt.key for receipt in receipts),
        "private": all(receipt.private for receipt in receipts),
        "environment": dict(environment),
    }
    weights = class_weights(auxiliary[CLASS_COUNTS])
    return SavedGenerator(generator, tuple(weights.tolist()), provenance)
