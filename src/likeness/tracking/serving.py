"""The generator as an MLflow model: a script that MLflow copies beside the generator's files and runs to load it.

Nothing is pickled ("models from code"). A machine that loads the model needs likeness installed. It needs no ledger, no
private file and no network, and rows cost no privacy.
"""

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow.pyfunc.model import PythonModel, PythonModelContext

from likeness.core.errors import ParamsError
from likeness.core.text import excerpt
from likeness.data.histories.schema import read_schema
from likeness.pipeline.datasets import model_of
from likeness.pipeline.datasets.model import alone
from likeness.pipeline.where import pairs

MOST_ROWS = 1_000_000
"""Of one request: a server holds all rows of a request in memory."""


class Generator(PythonModel):
    """``predict(rows)`` draws a typed table, or both of people with histories by name.

    ``params``: ``where``, a list of COLUMN=VALUE, and ``seed``.
    """

    def load_context(self, context: PythonModelContext) -> None:
        """Read generator and schema."""
        self.model = model_of(read_schema(context.artifacts["schema"], aliases=False))
        self.saved = self.model.saved(Path(context.artifacts["generator"]))

    def predict(
        self,
        context: PythonModelContext,  # noqa: ARG002 (MLflow gives it)
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,
    ) -> pd.DataFrame | dict[str, pd.DataFrame]:
        """Draw rows: a DataFrame with the schema's columns, kinds and categories, or two of people with histories.

        ``model_input`` is a number up to :data:`MOST_ROWS`, or a table with one row and a column ``rows``. ``params``
        holds ``where``, as for ``likeness sample``, and the public ``seed``.

        Raises:
            ParamsError: naming the impossible wish, and what is possible.
        """
        wishes = params or {}
        given = pairs([str(text) for text in wishes.get("where", [])])
        tables = self.model.draw(self.saved, _rows(model_input), int(wishes.get("seed", 0)), given)
        return alone(tables)


def _rows(model_input: Any) -> int:
    """The number of rows: a number, or the value in the column ``rows`` of a table or mapping."""
    try:
        value = model_input["rows"] if hasattr(model_input, "keys") else model_input
        (number,) = value if hasattr(value, "__len__") else (value,)
        rows = int(number)
    except (KeyError, OverflowError, TypeError, ValueError):
        raise ParamsError("the input must be a number of rows, or a table with one row and the column 'rows'") from None
    if not 1 <= rows <= MOST_ROWS or rows != number:
        words = f"rows must be a whole number from 1 to {MOST_ROWS:,}"
        raise ParamsError(f"{words} in one request, got {excerpt(number)}. For more, ask again with another seed.")
    return rows


mlflow.models.set_model(Generator())
