"""Adam on arrays: the training of a product mixture, in place and on the CPU."""

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import ParamsError
from likeness.methods.marginals.objective import MarginalObjective
from likeness.methods.settings import TrainingSettings

Float32 = NDArray[np.float32]
_BETA1 = 0.9
# A step sees the whole release: its gradient has no noise and falls by orders of magnitude during the fit. With Adam's
# usual .999 the first gradients would shorten the last steps.
_BETA2 = 0.95
_WINDOW = 20  # steps whose losses are compared by their mean: a loss trembles from one step to the next
_NEAR = 200  # steps after which a fit as near as its noise may end
_STILL = 3  # windows without gain after which the steps are too long, if the fit is not near
_MARGIN = 0.05  # part by which squares may exceed those of noise alone
_SLOWEST = 16  # part of the rate below which no step helps
_EPSILON = 1e-8  # keeps a step finite where gradients are 0


def minimize(
    objective: MarginalObjective,
    logits: Float32,
    weights: Float32,
    settings: TrainingSettings,
    progress: Callable[[int, float], None],
) -> list[tuple[int, float]]:
    """Change logits of cells and of components in place, and return (iteration, loss) a hundred times.

    The optimizer is Adam (Kingma and Ba 2015). ``progress`` is called as often. With a tolerance, the rate stays until
    the fit is as near to the releases as their noise is to the truth, and the loss stands still. Where it stands still
    far from them, steps are too long, and the rate is halved. At last the rate falls to 0, and the objective adapts its
    penalty to the fit. Without a tolerance the rate falls from the first step on. All of this reads released values.

    Raises:
        ParamsError: the loss is not finite.
    """
    moving, most = [_Adam(array) for array in (logits, weights)], settings.iterations
    every, losses = max(1, most // 100), list[tuple[int, float]]()
    pace = _Pace(settings)
    with np.errstate(over="ignore", invalid="ignore"):  # the loss says it
        for iteration in range(1, most + 1):
            loss, *slopes = objective.loss(logits, weights)
            if pace.begins_to_fall(iteration, loss, lambda: is_near(objective.misfits(logits, weights))):
                objective.adapt(logits, weights)
            for optimizer, slope in zip(moving, slopes, strict=True):
                optimizer.step(slope, pace.rate(iteration), iteration)
            if iteration % every == 0 or iteration == pace.last:
                if not math.isfinite(loss):
                    raise ParamsError(f"training diverged at step {iteration}. Lower marginals.train.kl_penalty.")
                losses.append((iteration, loss))
                progress(iteration, loss)
            if iteration == pace.last:
                break
    return losses


class _Pace:
    """The rate of each step, and the last one.

    Attributes:
        last: the last step, as far as it is known.
    """

    def __init__(self, settings: TrainingSettings) -> None:
        self._settings, self.last = settings, settings.iterations
        self._top, self._start = settings.learning_rate, 0 if settings.tolerance == 0 else settings.iterations
        self._window, self._best, self._still = 0.0, math.inf, 0

    def rate(self, iteration: int) -> float:
        """The rate of a step: the top, or less once it falls."""
        if iteration <= self._start:
            return self._top
        return self._top * (1 + math.cos(math.pi * (iteration - 1 - self._start) / (self.last - self._start))) / 2

    def begins_to_fall(self, iteration: int, loss: float, near: Callable[[], bool]) -> bool:
        """Take the loss of a step; tell whether the fit is done but for the fall of the rate.

        Args:
            iteration: the step.
            loss: at its start.
            near: tells whether the fit is as near as noise.
        """
        settings = self._settings
        if settings.tolerance == 0:
            return iteration == settings.iterations // 2
        if self._start < settings.iterations:
            return False
        self._window += loss
        ends = iteration + _fall(iteration) >= settings.iterations
        if iteration % _WINDOW and not ends:
            return False
        mean, self._window = self._window / _WINDOW, 0.0
        self._still = self._still + 1 if self._best - mean <= settings.tolerance * abs(mean) else 0
        self._best = min(self._best, mean)
        done = near() and (self._still > 0 or iteration >= _NEAR)
        if not done and self._still >= _STILL:
            self._top, self._still = self._top / 2, 0
        if done or ends or self._top < settings.learning_rate / _SLOWEST:
            self._start, self.last = iteration, iteration + _fall(iteration)
            return True
        return False


def _fall(iteration: int) -> int:
    """Steps over which the rate falls to 0, after so many at its height."""
    return min(iteration, max(_NEAR, iteration // 3))


def is_near(misfits: Mapping[str, tuple[float, float]]) -> bool:
    """Tell whether all answers together are as near to a fit as noise alone leaves them.

    A group may be farther: products without their noise are not those that were released.
    """
    squares, noise = (math.fsum(numbers) for numbers in zip(*misfits.values(), strict=True))
    return squares <= noise + max(_MARGIN * noise, 2 * math.sqrt(noise))


class _Adam:
    """One array, with running means of its slopes and of their squares."""

    def __init__(self, array: Float32) -> None:
        self._array = array
        self._mean, self._square = np.zeros_like(array), np.zeros_like(array)

    def step(self, slope: Float32, rate: float, iteration: int) -> None:
        """Move the array against its slope, which is overwritten."""
        self._mean += (1 - _BETA1) * (slope - self._mean)
        np.square(slope, out=slope)
        self._square += (1 - _BETA2) * (slope - self._square)
        np.sqrt(self._square, out=slope)
        slope *= 1 / math.sqrt(1 - _BETA2**iteration)
        slope += _EPSILON
        np.divide(self._mean, slope, out=slope)
        slope *= rate / (1 - _BETA1**iteration)
        self._array -= slope
