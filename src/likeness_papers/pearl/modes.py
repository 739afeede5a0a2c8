"""DP-EM: Gaussian mixtures of single numbers, with one release a step (Park et al. 2017)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from likeness.core.errors import PlanError
from likeness.core.typed import Section, build, require, setting
from likeness.data.encoding.layout import Block
from likeness.methods.base import Context, together
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.released import Released
from likeness_papers.pearl.mode import Modes
from likeness_papers.pearl.mode_statistics_map import SCALE, ModeStatistics

_KEY = "pearl.auxiliary.mixture"
_MOST_COMPONENTS = 64
_MOST_ITERATIONS = 1000
_LEAST_DEVIATION = 0.01  # public: one hundredth of a column's range
_MEAN_SCALE = 1 / 4  # of a window: the expected step of a mean, two deviations
_VARIANCE_SCALE = 1 / 64  # of a window, squared: the current variance


@dataclass(frozen=True)
class Mixture(Section):
    """Section ``pearl.auxiliary.mixture``."""

    components: int = setting(
        1,
        "modes a column; 1: no mixture, and shares.mixture 0",
        least=1,
        most=_MOST_COMPONENTS,
        rule=f"1 (no mixture) to {_MOST_COMPONENTS}",
    )
    iterations: int = setting(8, "steps, a release each", least=1, most=_MOST_ITERATIONS)
    columns: tuple[str, ...] | None = setting(None, "names of numeric columns; null: every one")

    def __post_init__(self) -> None:
        """Check ranges."""
        super().__post_init__()
        columns = self.columns
        unique = columns is None or len(set(columns)) == len(columns) >= 1
        require(unique, f"{_KEY}.columns", columns, "null for all, or a list of different names")

    @property
    def is_on(self) -> bool:
        """Tell whether there is a mixture at all."""
        return self.components > 1

    def check(self, context: Context) -> None:
        """Refuse data that no mixture fits.

        Raises:
            PlanError: naming the column, or an image.
        """
        if not self.is_on:
            return
        if context.schema.image is not None:
            raise PlanError(f"{_KEY}.components is {self.components}, but pixels have no modes. Set it to 1.")
        numbers = [block.column for block in _units(context)]
        for name in self.columns or ():
            if name not in numbers:
                raise PlanError(f"{_KEY}.columns: '{name}' is no numeric feature column. There are: {_list(numbers)}.")
        if not numbers:
            raise PlanError(f"{_KEY}.components is {self.components}, but the schema has no numeric feature column.")

    def shares(self, share: float) -> list[QueryShare]:
        """An equal part of ``share`` for every step."""
        steps = self.iterations if self.is_on else 0
        return [QueryShare(name, "auxiliary", share / self.iterations) for name in map(_name, range(1, steps + 1))]

    def queries(self, context: Context, released: Mapping[str, Released]) -> Iterator[Query]:
        """One query a step, about the modes of the earlier releases."""
        modes = self.start(context)
        for step in range(1, self.iterations + 1) if modes else ():
            yield _query(step, context, modes)
            modes = maximize(released[_name(step)])

    def plan_queries(self, context: Context) -> list[Query]:
        """The queries with the public starting modes in every step: bounds do not depend on modes."""
        start = self.start(context)
        return [_query(step, context, start) for step in range(1, self.iterations + 1) if start]

    def modes(self, released: Mapping[str, Released]) -> tuple[Modes, ...]:
        """The modes after the last step; none where there is no mixture."""
        return maximize(released[_name(self.iterations)]) if self.is_on else ()

    def start(self, context: Context) -> tuple[Modes, ...]:
        """Public modes to start from: evenly spaced, overlapping, of one size; none where there is no mixture."""
        if not self.is_on:
            return ()
        count = self.components
        means = tuple(round((k + 0.5) / count, 6) for k in range(count))
        missing = {block.column for block in context.layout.blocks if block.kind == "indicator"}
        return tuple(
            Modes(block.start, block.column in missing, (1 / count,) * count, means, (round(0.5 / count, 6),) * count)
            for block in _units(context)
            if self.columns is None or block.column in self.columns
        )


def _query(step: int, context: Context, modes: tuple[Modes, ...]) -> Query:
    return Query(_name(step), "auxiliary", ModeStatistics(modes), contributions=together(context))


def maximize(released: Released) -> tuple[Modes, ...]:
    """The maximization step: modes from noisy statistics; post-processing.

    The receipt holds the modes of the query. In the window of each mode, N is the noisy count, u the mean and v the
    variance; s is the standard deviation of one sum's noise. N is raised to its noise √2·s, and to 1; u is clipped to
    [0, 1] and v to [0, 1/4]. Then both are shrunk towards their current values (1/2 and 1/64) by ``a²/(a² + e²)``. Here
    e is the error (s/N for u, s/2N for v, both at the middle of the window or above) and a the expected change. A mode
    with few records stays in place with a small weight. Without noise this is expectation-maximization.
    """
    noise, modes, start = released.noise_std, [], 0
    for mapping in released.receipt.feature["columns"]:
        column = build(Modes, mapping, "modes")
        sums = released.values[0, start : start + 3 * column.size].reshape(3, column.size)
        start += sums.size
        means, variances, counts = [], [], []
        for above, below, spread in sums.T.tolist():
            count = max(above + below, 2**0.5 * noise, 1.0)
            mean = min(1.0, max(0.0, above / count))
            variance = min(0.25, max(0.0, mean * (1 - mean) - spread / (SCALE * count)))
            means.append(_toward(0.5, mean, _MEAN_SCALE, noise / count))
            variances.append(_toward(_VARIANCE_SCALE, variance, _VARIANCE_SCALE, noise / (2 * count)))
            counts.append(count)
        modes.append(column.shift(means, variances, counts, _LEAST_DEVIATION))
    return tuple(modes)


def _toward(current: float, measured: float, expected: float, error: float) -> float:
    return current + (measured - current) * expected**2 / (expected**2 + error**2)


def _name(step: int) -> str:
    return f"mixture_{step}"


def _units(context: Context) -> list[Block]:
    return [block for block in context.layout.blocks if block.kind == "unit"]


def _list(names: list[str]) -> str:
    return ", ".join(names) or "none"
