import io
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.report import style
from likeness.report.histograms import _landmarks, _shares, histograms

Tables = Callable[..., pd.DataFrame]


def test_every_column_is_drawn(schema: Schema, table_of: Tables) -> None:
    picture = Image.open(io.BytesIO(histograms(table_of(200, 1), table_of(100, 2), schema)))
    assert picture.width > 1000 and picture.height > 400
    seen = {color[:3] for _, color in picture.convert("RGB").getcolors(1 << 24)}
    assert tuple(int(style.SYNTHETIC[i : i + 2], 16) for i in (1, 3, 5)) in seen


def test_shares_by_hand() -> None:
    number = Column("x", "numeric", 0.0, 1.0, nullable=True)
    assert _shares(np.array([0.0, 0.49, 1.0, np.nan]), number, 2).tolist() == [0.5, 0.25, 0.25]
    category = Column("c", "categorical", categories=("a", "b"), nullable=True)
    assert _shares(np.array([0, 0, 2, 1]), category, 9).tolist() == [0.5, 0.25, 0.25]


def test_bins_of_integers_hold_equally_many() -> None:
    column = Column("k", "integer", 1.0, 16.0)
    values = (np.arange(1, 17) - 1) / 15
    assert _shares(values, column, 24).tolist() == pytest.approx([1 / 16] * 16)
    assert _shares(values, column, 8).tolist() == pytest.approx([1 / 8] * 8)


def test_ticks_are_values_of_the_public_range(schema: Schema) -> None:
    landmarks = _landmarks(Encoder(schema), schema)
    assert landmarks["height"].tolist() == pytest.approx([0, 4, 8])
    assert landmarks["visits"].tolist() == [0, 9, 99]  # log(1 + x): the middle of 0..99 is 9


@pytest.mark.long
def test_wide_tables_are_cut(monkeypatch: pytest.MonkeyPatch, schema: Schema, table_of: Tables) -> None:
    whole = Image.open(io.BytesIO(histograms(table_of(20, 1), table_of(20, 2), schema)))
    monkeypatch.setattr("likeness.report.histograms.MOST_COLUMNS", 2)
    part = Image.open(io.BytesIO(histograms(table_of(20, 1), table_of(20, 2), schema)))
    assert part.height < whole.height
