r"""Private-PGM's mirror descent on plain arrays: dpmm's own arithmetic, ten times as fast.

dpmm keeps every array in a factor with a domain, and goes over the cells of the junction tree many times a step. Here a
step goes over them as often as the method asks: a message :math:`\log \sum \exp(b_i - m_{ji})` is
:math:`\log \sum \exp(b_i) - m_{ji}`, because :math:`m_{ji}` is constant along what is summed; a scalar product with a
gradient is one of the measured marginals; and several measurements of a marginal are one, with their weights added.
Nothing is left out: the same steps, step sizes and line search, and the same estimate up to rounding: run as a program,
this compares both on made-up tables; ``peers.py --inference dpmm`` runs the original. Source: McKenna, Sheldon and
Miklau 2019, arXiv:1901.09136.
"""

import math
import time
from itertools import combinations

import numpy as np
from dpmm.models.base.matrix import Identity
from dpmm.models.base.mbi import CliqueVector, Domain, Factor, FactoredInference
from numpy.typing import NDArray

Array = NDArray[np.float64]
_MOST_HALVINGS = 25
_TINY = 1e-200  # sums below would lose digits: they are made again, each from its own largest term


def mirror_descent(self, measurements, total=None, stepsize=None, callback=None):
    """In place of ``FactoredInference.mirror_descent``, where it is given no step size: with an Armijo line search.

    Every measurement must be of a marginal's cells one by one (its matrix diagonal), as those of MST and AIM are.
    """
    assert stepsize is None and callback is None and self.metric == "L2"
    self._setup(measurements, total)
    model = self.model
    tree, seen = _Tree(model), _merged(self.groups, model)
    potentials = [model.potentials[clique].values for clique in model.cliques]
    marginals = tree.marginals(potentials)
    answers, loss = _compare(seen, marginals)
    alpha = 1.0 / model.total**2
    for _ in range(self.iters):
        slopes = [own.weights * (answer - own.answer) for own, answer in zip(seen, answers, strict=True)]
        slope = [np.zeros_like(values) for values in potentials]
        for own, part in zip(seen, slopes, strict=True):
            slope[own.place] += part.reshape(own.shape)
        before, old_answers, old_loss = potentials, answers, loss
        alpha *= 2
        for _ in range(_MOST_HALVINGS):
            potentials = [values - alpha * part for values, part in zip(before, slope, strict=True)]
            marginals = tree.marginals(potentials)
            answers, loss = _compare(seen, marginals)
            moved = sum(
                float(np.vdot(part, old - new)) for part, old, new in zip(slopes, old_answers, answers, strict=True)
            )
            if old_loss - loss >= 0.5 * alpha * moved:
                break
            alpha *= 0.5
    model.potentials, model.marginals = (
        CliqueVector(
            {
                clique: Factor(self.domain.project(clique), values)
                for clique, values in zip(model.cliques, found, strict=True)
            }
        )
        for found in (potentials, marginals)
    )


class _Tree:
    """Belief propagation along a junction tree."""

    def __init__(self, model):
        places = {clique: place for place, clique in enumerate(model.cliques)}
        self._log_total = np.log(model.total)
        self._edges = []
        for i, j in model.message_order:
            kept = model.sep_axes[(i, j)]
            summed = tuple(axis for axis, name in enumerate(i) if name not in kept)
            shape = tuple(model.domain[name] if name in kept else 1 for name in j)
            # Cliques are in the order of the domain, so that what is left of one is in the order of the other.
            assert [name for name in i if name in kept] == [name for name in j if name in kept]
            self._edges.append((places[i], places[j], summed, shape))

    def marginals(self, potentials: list[Array]) -> list[Array]:
        """Marginals of all cliques, which sum to the number of records."""
        beliefs = [values.copy() for values in potentials]
        messages: dict[tuple[int, int], Array] = {}
        for i, j, summed, shape in self._edges:
            message = _log_sum(beliefs[i], summed)
            if (j, i) in messages:
                message = message - messages[j, i]
            messages[i, j] = message
            beliefs[j] += message.reshape(shape)
        whole = _log_sum(beliefs[0], tuple(range(beliefs[0].ndim)))
        for belief in beliefs:
            belief += self._log_total - whole
            np.exp(belief, out=belief)
        return beliefs


class _Seen:
    """Measurements of one marginal: the mean of each cell by weights, which are the inverse of variances."""

    def __init__(self, names, clique, place, domain):
        # A marginal of a clique has the clique's order of columns, in which measurements are too.
        assert tuple(name for name in clique if name in names) == tuple(names)
        self.place = place
        self.summed = tuple(axis for axis, name in enumerate(clique) if name not in names)
        self.shape = tuple(domain[name] if name in names else 1 for name in clique)
        self.weights, self.answer = np.zeros((2, *(domain[name] for name in names)))

    def add(self, answer: Array, weights: Array) -> None:
        """One more."""
        self.weights += weights.reshape(self.weights.shape)
        self.answer += (weights.reshape(self.answer.shape) / self.weights) * (
            answer.reshape(self.answer.shape) - self.answer
        )


def _merged(groups, model) -> list[_Seen]:
    """What was measured, one for each marginal."""
    found: dict[tuple[str, ...], _Seen] = {}
    for place, clique in enumerate(model.cliques):
        for matrix, answer, noise, names in groups[clique]:
            factors, counted = matrix @ np.ones(answer.size), np.arange(1.0, 1 + answer.size)
            assert (factors > 0).all() and np.allclose(matrix @ counted, factors * counted), "not cell by cell"
            own = found.setdefault(tuple(names), _Seen(names, clique, place, model.domain))
            own.add(answer / factors, (factors / noise) ** 2)
    return list(found.values())


def _compare(seen: list[_Seen], marginals: list[Array]) -> tuple[list[Array], float]:
    """The model's answers, and half of the weighted squared distance to what was measured, but for a constant."""
    answers = [_sum(marginals[own.place], own.summed) for own in seen]
    return answers, sum(
        0.5 * float((own.weights * np.square(answer - own.answer)).sum())
        for own, answer in zip(seen, answers, strict=True)
    )


def _log_sum(values: Array, axes: tuple[int, ...]) -> Array:
    """``log(sum(exp(values)))`` along axes, safe from overflow."""
    top = values.max()
    found = _sum(np.exp(values - top), axes)
    if found.min() > _TINY:
        return np.log(found) + top
    top = values.max(axis=axes, keepdims=True)
    return np.log(_sum(np.exp(values - top), axes)) + top.squeeze(axis=axes)


def _sum(values: Array, axes: tuple[int, ...]) -> Array:
    """``values.sum(axes)``, one axis after the other as matrix products: numpy's own is ten times as slow here."""
    for axis in sorted(axes, reverse=True):
        shape, ones = values.shape, np.ones(values.shape[axis])
        blocks = values.reshape(-1, shape[axis], math.prod(shape[axis + 1 :]))
        flat = blocks[:, :, 0] @ ones if blocks.shape[2] == 1 else ones @ blocks
        values = flat.reshape(shape[:axis] + shape[axis + 1 :])
    return values


def compare(sizes: list[int], pairs: list[tuple[int, int]]) -> None:
    """Print seconds of either way, and by how much their marginals of all pairs differ, in records of 5,000."""
    generator, names = np.random.default_rng(0), [f"c{place}" for place in range(len(sizes))]
    rows = np.stack([generator.choice(size, 5_000, p=generator.dirichlet(np.ones(size))) for size in sizes], axis=1)
    measured = []
    for own in [*((place,) for place in range(len(sizes))), *pairs, *pairs[:2]]:
        shape = [sizes[place] for place in own]
        exact = np.bincount(np.ravel_multi_index(rows[:, own].T, shape), minlength=math.prod(shape))
        noisy = exact + generator.normal(0, 20, len(exact))
        measured.append((Identity(len(exact)), noisy, 20.0, tuple(names[place] for place in own)))
    found, seconds = [], []
    for method in (FactoredInference.mirror_descent, mirror_descent):
        engine = FactoredInference(Domain(names, sizes), iters=1_000)
        engine.mirror_descent = method.__get__(engine)
        started = time.perf_counter()
        model = engine.estimate(measured, options={})
        seconds.append(time.perf_counter() - started)
        found.append(np.concatenate([model.project(pair).datavector() for pair in combinations(names, 2)]))
    print(f"{model.size} cells: {seconds[0]:.2f} and {seconds[1]:.2f} s, largest difference", end=" ")
    print(f"{np.abs(found[0] - found[1]).max():.1g} records")


if __name__ == "__main__":
    compare([5, 7, 3, 9, 4, 6], [(0, 1), (1, 2), (0, 2), (3, 4), (2, 5)])
    compare([16, 17, 16, 16, 16, 7], [(0, 1), (1, 2), (0, 2), (0, 3), (3, 4), (2, 5), (2, 3), (1, 3), (1, 4)])
