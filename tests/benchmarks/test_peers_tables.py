"""Ours beside peers: they get the cells of the shipped method, of which they know no more."""

from pathlib import Path

import pytest

from benchmarks.tables import peer_columns
from likeness.artifacts import context
from likeness.methods import method_from
from likeness.params import load_params

ROOT = Path(__file__).parents[2]


def test_peers_get_the_cells_of_the_pairs_and_nothing_within_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    params = load_params()
    columns = peer_columns(params)
    asked = method_from(params).foreseen_queries(context(params))[-1].feature
    assert [column.cells for column in columns] == list(asked.columns)  # type: ignore[attr-defined]
    assert not any(column.firsts or column.shares for column in columns)
