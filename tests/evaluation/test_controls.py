from collections.abc import Callable

import numpy as np
import pandas as pd

from likeness.data.schema.schema import Schema
from likeness.evaluation.marginals import cells, cramers_v, marginal_table
from likeness.evaluation.utility import shuffle_columns

Tables = Callable[..., pd.DataFrame]


def test_the_floor_keeps_every_column_and_no_dependence(schema: Schema, table_of: Tables) -> None:
    real = table_of(4000, 1)
    floor = shuffle_columns(real, 3)
    assert marginal_table(real, floor, schema, orders=(1,))["total_variation"].max() == 0.0
    label, size = schema.names.index("sick"), schema.names.index("size")
    before, after = (cramers_v(*cells(table, schema)) for table in (real, floor))
    assert before[label, size] > 0.5  # power: the dependence is there, and would be seen
    assert (after - np.eye(len(after))).max() < 0.08  # bias-corrected; about five times 1/sqrt(4000)


def test_kinds_and_index_are_kept_and_the_original_is_untouched(table_of: Tables) -> None:
    real = table_of(50, 1).set_axis(range(100, 150))
    copy = real.copy(deep=True)
    floor = shuffle_columns(real, 0)
    pd.testing.assert_frame_equal(real, copy)
    assert floor.dtypes.equals(real.dtypes) and floor.index.equals(real.index)


def test_the_seed_is_public_and_each_column_has_its_own_order(table_of: Tables) -> None:
    real = table_of(200, 1)
    real["twin"] = real["visits"]
    floor = shuffle_columns(real, 0)
    assert floor.equals(shuffle_columns(real, 0)) and not floor.equals(shuffle_columns(real, 1))
    assert not floor["twin"].equals(floor["visits"])
