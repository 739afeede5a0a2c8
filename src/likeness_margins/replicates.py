r"""Replicates: the releases drawn again from a fitted model, and generators fitted to them (parametric bootstrap).

The model of the synthetic table gives an expected count for each released cell. A replicate adds noise of the law in
the receipt, and fits a generator to that. So replicates differ as releases of these rows would. Rows of a replicate are
as many as the table has, so an analysis of them has the usual sampling error too. Of people with histories, both
releases are drawn again, each from its own generator. A histogram that bins come from stays as it is released.

The penalty that serves synthetic rows pulls estimates towards independence, and hides how much. So replicates are
fitted without one (:meth:`likeness.methods.base.Method.drop_penalty`). So is the first model, the base, to the real
release. Noise in nearly empty cells moves base and replicates alike, because both laws have such cells. A law that was
fitted without a penalty has none left, so replicates from it would hide that error.
:func:`likeness_margins.combine.combine` takes it off.

*The noise here has a seed, and that is right.* A release needs noise without a seed, because it protects rows. Here no
row is read: everything follows from released files, so it is post-processing, and a public seed makes it repeatable.
The normal law stands for the discrete one, whose σ is thousands of lattice steps: see
:mod:`likeness.privacy.lattice_error`. A redrawn release stays in memory. It is none, and is never written.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likeness.core import rng
from likeness.core.messages import progress
from likeness.features.base import TablesMap
from likeness.methods.base import CLASS_COUNTS, Method, class_weights, number_of_records
from likeness.methods.maps import from_spec
from likeness.methods.row_set import RowSet, rows_of
from likeness.methods.saved_generator import SavedGenerator
from likeness.release.released import Released

if TYPE_CHECKING:
    from likeness.generators.base import Compute, Generator


def replicates(
    method: Method,
    row_sets: Sequence[RowSet],
    released: Iterable[Released],
    generators: Sequence[SavedGenerator],
    compute: "Compute",
    count: int,
    seed: int,
) -> Iterator[tuple[list[SavedGenerator], int]]:
    """The base, and generators fitted to releases that are drawn again, each with a public seed for its rows.

    Args:
        method: the recipe of the run.
        row_sets: that it was asked about.
        released: all releases of the run.
        generators: of each row set, fitted to these.
        compute: where to fit.
        count: how many beside the base, which comes first.
        seed: public.

    Raises:
        ParamsError: the method cannot do this.
    """
    answers = list(released)
    sources = []
    for rows, saved in zip(row_sets, generators, strict=True):
        ours = [release for release in answers if rows_of(row_sets, release.receipt.query) is rows]
        sources.append(_Source(method, rows, ours, saved, compute))
    yield [source.base() for source in sources], rng.public_seed(seed, "replicates.rows")
    with progress("replicates", count) as step:
        for index in range(count):
            models = [source.redraw(index, seed) for source in sources]
            step(index + 1, "")
            yield models, rng.public_seed(seed, f"replicates.rows.{index}")


class _Source:
    """The releases about a row set, and the generator that draws them again."""

    def __init__(
        self, method: Method, rows: RowSet, released: Sequence[Released], saved: SavedGenerator, compute: "Compute"
    ) -> None:
        parts = rows.sort_releases(released)
        self.context = replace(
            rows.context, schema=rows.context.schema.model_schema
        )  # a method sees no computed columns
        self.auxiliary, self.embedding = dict(sorted(parts.auxiliary.items())), parts.embedding
        records = number_of_records(self.context, self.auxiliary[CLASS_COUNTS])
        self.counts = records * np.array(saved.class_weights)
        self.model: Any = method.replicable(saved.network)
        self.method, self.saved, self.compute, self.prefix = method.drop_penalty(), saved, compute, rows.prefix

    def base(self) -> SavedGenerator:
        """Fitted to the real releases."""
        return self._fit(self.auxiliary, self.embedding)

    def redraw(self, index: int, seed: int) -> SavedGenerator:
        """Fitted to releases with new noise."""
        random = rng.public(seed, f"replicates.{self.prefix}{index}")
        fixed = self.method.fixed_answers(self.context)
        drawn = {
            name: redrawn(release, self.model, self.counts, random)
            for name, release in self.auxiliary.items()
            if name == CLASS_COUNTS or name not in fixed
        }
        auxiliary = {name: release if name in fixed else drawn[name] for name, release in self.auxiliary.items()}
        again = self._fit(auxiliary, redrawn(self.embedding, self.model, self.counts, random))
        return replace(again, class_weights=tuple(class_weights(drawn[CLASS_COUNTS]).tolist()))

    def _fit(self, auxiliary: Mapping[str, Released], embedding: Released) -> SavedGenerator:
        network = self.method.refit(self.context, auxiliary, embedding, self.saved.network, self.compute)
        return replace(self.saved, network=network)


def redrawn(answer: Released, model: "Generator", counts: NDArray[np.float64], random: np.random.Generator) -> Released:
    """A release with the model's expected counts and new noise, in place of its values.

    Args:
        answer: the release; its map has tables, or knows what it expects of them.
        model: fitted to it.
        counts: number of records of each class.
        random: public.
    """
    spec = dict(answer.receipt.feature)
    together = spec.pop("terms") == "all_records"
    feature: Any = from_spec(spec)
    if isinstance(feature, TablesMap):
        parts = zip(feature.axes, feature.bounded_parts, strict=True)
        tables = [model.table(columns).reshape(len(counts), -1) * part.unit for columns, part in parts]
        values = np.concatenate(tables, axis=1) * counts[:, None]
    else:
        values = feature.expected_means(model.table) * counts[:, None]
    values = values.sum(axis=0, keepdims=True) if together else values
    values += answer.noise_std * random.standard_normal(values.shape)
    return replace(answer, lattice=np.rint(values * 2.0**answer.receipt.lattice_bits).astype(np.int64))
