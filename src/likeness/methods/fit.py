"""Train a method's generator against its releases, for stage, API and evidence."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from likeness.core.errors import ReleaseError
from likeness.generators.base import Compute, Generator
from likeness.methods.base import CLASS_COUNTS, Context, Method, class_weights
from likeness.methods.row_set import RowSet
from likeness.methods.saved_generator import SavedGenerator
from likeness.privacy.receipt import Receipt
from likeness.release.query import Query
from likeness.release.released import Released


def fit(
    method: Method,
    context: Context,
    auxiliary: Mapping[str, Released],
    embedding: Released,
    compute: Compute = Compute(),
    others: Sequence[Released] = (),
    named: Callable[[Query], Query] = lambda query: query,
) -> tuple[SavedGenerator, list[tuple[int, float]]]:
    """Build and train; return the generator, and its loss curve as (iteration, loss).

    On one machine, equal seed, release, and threads give equal bits. ``others`` holds other releases that
    completed the schema or are about other rows; the generator names them too. ``named`` is that of the rows
    (:class:`~likeness.methods.row_set.RowSet`).

    Raises:
        ReleaseError: the embedding answers another question than these settings ask.
    """
    query, receipt = named(method.embedding_query(context, auxiliary)), embedding.receipt
    if (dict(receipt.feature), receipt.num_groups) != (query.spec(), query.num_groups):
        raise ReleaseError(
            f"{receipt.query}: answers another question than {method.name} asks with these settings. "
            "Restore the settings of the release, or make a new one: likeness run"
        )
    generator, environment, losses = method.fit_generator(context, auxiliary, embedding, compute)
    receipts = [released.receipt for released in [*others, *auxiliary.values(), embedding]]
    return with_provenance(generator, method, auxiliary, receipts, environment), losses


def fit_all(
    method: Method, row_sets: Sequence[RowSet], released: Iterable[Released], compute: Compute = Compute()
) -> tuple[list[SavedGenerator], list[list[tuple[int, float]]]]:
    """Fit a generator to each row set; return them with the loss curve of each.

    ``released`` holds all releases of the run.

    Raises:
        ReleaseError: see :func:`fit`.
    """
    answers, generators, curves = list(released), [], []
    for rows in row_sets:
        auxiliary, embedding, others = rows.sort_releases(answers)
        generator, curve = fit(method, rows.context, auxiliary, embedding, compute, others, rows.scope)
        generators.append(generator)
        curves.append(curve)
    return generators, curves


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
