"""Adam on arrays: the training of a product mixture, in place and on the CPU."""

import math
from collections.abc import Callable

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
_WHILE = 20  # steps between two looks at the loss: it trembles from one step to the next
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
    the loss stands still, then falls over as many steps again. There, or after half of all steps, the objective adapts
    its penalty to the fit. The loss reads released values only.

    Raises:
        ParamsError: the loss is not finite.
    """
    moving = [_Adam(array) for array in (logits, weights)]
    every, losses = max(1, settings.iterations // 100), []
    steady, last, before = 0, settings.iterations, math.inf  # steps at the full rate, last step, loss of a while ago
    turn = last // 2
    if settings.tolerance > 0:
        steady = turn
    with np.errstate(over="ignore", invalid="ignore"):  # the loss says it
        for iteration in range(1, settings.iterations + 1):
            loss, *slopes = objective.loss(logits, weights)
            if iteration % _WHILE == 0 and iteration < steady:
                if before - loss <= settings.tolerance * abs(loss):
                    turn, steady, last = iteration, iteration, 2 * iteration
                before = loss
            if iteration == turn:
                objective.adapt(logits, weights)
            rate = settings.learning_rate
            if iteration > steady:
                rate *= (1 + math.cos(math.pi * (iteration - 1 - steady) / (last - steady))) / 2
            for optimizer, slope in zip(moving, slopes, strict=True):
                optimizer.step(slope, rate, iteration)
            if iteration % every == 0 or iteration == last:
                if not math.isfinite(loss):
                    raise ParamsError(f"training diverged at step {iteration}. Lower marginals.train.kl_penalty.")
                losses.append((iteration, loss))
                progress(iteration, loss)
            if iteration == last:
                break
    return losses


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
