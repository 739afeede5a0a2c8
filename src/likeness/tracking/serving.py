"""The generator as an MLflow model: a script that MLflow copies beside the generator's files and runs to load it.

"Models from code": nothing is pickled. Where the model is loaded, likeness must be installed; no ledger, no private
file and no network is needed, and rows cost no privacy.
"""

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow.pyfunc.model import PythonModel, PythonModelContext


class Generator(PythonModel):
    """``predict(rows)`` draws a typed table; ``params``: ``where``, a list of COLUMN=CATEGORY, and ``seed``."""

    def load_context(self, context: PythonModelContext) -> None:
        """Read generator and schema."""
        from likeness.data.schema.schema import Schema
        from likeness.methods.saved_generator import SavedGenerator

        self.saved = SavedGenerator.load(Path(context.artifacts["generator"]))
        self.schema = Schema.load(Path(context.artifacts["schema"]))

    def predict(
        self, context: PythonModelContext, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """Draw rows.

        Args:
            context: unused.
            model_input: a table with one row and a column ``rows``, or simply how many.
            params: ``where``, as for ``likeness sample``; ``seed``, public: the same seed gives the same rows.

        Returns:
            a DataFrame with the schema's columns, kinds and categories.

        Raises:
            ParamsError: naming what cannot be asked for, and what can.
        """
        from likeness.pipeline.synthetic_table import draw, pairs

        wishes = params or {}
        given = pairs([str(text) for text in wishes.get("where", [])])
        return draw(self.saved, self.schema, _rows(model_input), int(wishes.get("seed", 0)), given)


def _rows(model_input: Any) -> int:
    """How many rows: a number, or what a table or mapping says in its column ``rows``."""
    from likeness.core.errors import ParamsError

    try:
        value = model_input["rows"] if hasattr(model_input, "keys") else model_input
        (number,) = value if hasattr(value, "__len__") else (value,)
        rows = int(number)
    except (KeyError, TypeError, ValueError):
        raise ParamsError("give a number of rows, or a table with one row and the column 'rows'") from None
    if rows < 1 or rows != number:
        raise ParamsError(f"rows must be a whole number, at least 1, got {number!r}")
    return rows


mlflow.models.set_model(Generator())
