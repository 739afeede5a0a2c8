"""The small table of the evaluation's tests."""

from collections.abc import Callable

import pandas as pd
import pytest
from tiny_tables import make_schema, make_table

from likeness.data.schema.schema import Schema


@pytest.fixture
def schema() -> Schema:
    return make_schema()


@pytest.fixture
def table_of() -> Callable[..., pd.DataFrame]:
    """Typed table by number of rows, seed and task."""
    return make_table
