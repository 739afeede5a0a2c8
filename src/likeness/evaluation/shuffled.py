"""Two controls that tell what a score of the synthetic table means.

- the ceiling is the real training table itself: what the same classifier learns from real rows, and how far real
  training rows lie from the held-out rows by sampling alone;
- the floor is the real training table with every column permuted on its own: every 1-way marginal is exact and all
  dependence is gone. A synthetic table that does no better than the floor has learned the histograms and nothing else.

Both touch real rows: their scores are internal, and neither table is ever written to disk.
"""

import pandas as pd

from likeness.core import rng


def shuffle_columns(df: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A copy of ``df`` (n rows) whose columns are permuted independently, the label included; kinds and index are kept.

    Args:
        df: typed table.
        seed: public seed; each column has its own stream, named by the column.
    """
    columns = {
        name: df[name].take(rng.public(seed, f"evaluation.shuffle.{name}").permutation(len(df))).set_axis(df.index)
        for name in df.columns
    }
    return pd.DataFrame(columns, index=df.index, columns=df.columns)
