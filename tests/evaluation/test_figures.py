import io
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from likeness.data.schema.schema import Schema
from likeness.report.score_figures import correlations, query_chart, score_chart

Tables = Callable[..., pd.DataFrame]


def open_png(data: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(data))
    assert picture.format == "PNG" and len(picture.convert("RGB").getcolors(1 << 24)) > 20  # something is drawn
    return picture


@pytest.fixture
def scores() -> pd.DataFrame:
    names = ["lda", "mlp", "xgboost"]
    return pd.DataFrame(
        [(t, n, 0.5 + 0.1 * i, 0.4) for i, t in enumerate(("shuffled", "synthetic", "real")) for n in names],
        columns=["table", "classifier", "roc_auc_hard", "f1"],
    )


def test_correlations_are_drawn(schema: Schema, table_of: Tables) -> None:
    assert open_png(correlations(table_of(200, 1), table_of(100, 2), schema)).width > 1000


def test_scores_are_drawn(scores: pd.DataFrame) -> None:
    assert open_png(score_chart(scores, ["roc_auc_hard", "f1"])).height > 100
    assert open_png(score_chart(pd.DataFrame(), [])).height < 200  # no label: a sentence instead


@pytest.mark.long
def test_figures_from_real_rows_carry_fresh_random_text(scores: pd.DataFrame) -> None:
    first, second = (score_chart(scores, ["f1"]) for _ in range(2))
    salts = [open_png(data).info["Salt"] for data in (first, second)]
    assert salts[0] != salts[1] and all(len(salt) >= 64 for salt in salts)
    assert len(first) == len(second) == 1 << (len(first).bit_length() - 1) >= 1 << 16
    assert open_png(first).tobytes() == open_png(second).tobytes()  # only the text differs


@pytest.mark.long
def test_answers_to_queries_are_drawn() -> None:
    draw = np.random.default_rng(0)
    real = draw.uniform(size=50)
    tables = {name: real + draw.normal(0, 0.02, 50) for name in ("synthetic", "real", "shuffled")}
    assert open_png(query_chart(real, tables)).width > 1000
    assert open_png(query_chart(np.zeros(3), {name: np.zeros(3) for name in tables}))  # nothing is ever counted
