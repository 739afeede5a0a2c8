"""Settings of the training loop. Reading them loads no tensor library."""

from dataclasses import dataclass

SAMPLING = ("argmax", "categorical")
"""How a category is chosen, see :class:`likeness.generators.tabular.TabularGenerator`."""


@dataclass(frozen=True)
class TrainingSettings:
    """How to train.

    Attributes:
        iterations: gradient steps; 0 for a closed form.
        batch_size: rows a step.
        learning_rate: of Adam.
        schedule: ``constant`` (the papers) or ``cosine`` decay to zero.
        tolerance: part of the loss; see :func:`likeness.methods.marginals.training.minimize`. 0: all iterations.
    """

    iterations: int
    batch_size: int
    learning_rate: float
    schedule: str = "constant"
    tolerance: float = 0.0
