"""The statements about people with histories, for Spark, which would compute a step anew for each question."""

from collections.abc import Sequence

from likeness.data.histories.statements import HistoryStatements, Steps
from likeness.data.warehouse.spark import added, given, named_limbs
from likeness.data.warehouse.statements import LIMBS, flat


class SparkHistoryStatements(HistoryStatements):
    """Each statement makes the row set that it counts, and both sets for their hashes.

    Each row gives a list, as in :class:`likeness.data.warehouse.spark.SparkStatements`.
    """

    held_steps = ""

    def sums(self) -> str:
        """As :meth:`HistoryStatements.sums`."""
        return added([self._hashes()])

    def survey(self) -> str:
        """As :meth:`HistoryStatements.survey`."""
        return added([self._written([], " UNION ALL ".join(self._beside_them())), self._hashes()])

    def _question(self, steps: Steps, start: int, tables: Sequence[Sequence[tuple[str, int]]]) -> str:  # type: ignore[override]
        rows = self._written(steps, "SELECT * FROM likeness_cells")
        cells = [(place, flat(axes), "1") for place, axes in enumerate(tables, start)]
        return added([*([given(rows, cells, "BIGINT")] if cells else []), self._hashes()])

    def _hashes(self) -> str:
        """The number of rows and the sums of limbs, as :meth:`HistoryStatements._whole`."""
        rows = self._written([], f"SELECT m, {', '.join(named_limbs())} FROM likeness_hashes")
        return given(rows, [(-2, "m", "1"), *((-1, f"{LIMBS} * m + {k}", f"l_{k}") for k in range(LIMBS))], "BIGINT")
