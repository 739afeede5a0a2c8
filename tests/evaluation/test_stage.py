"""The stage ``evaluate``: which rows are the training rows, and which the held-out ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from pytest import MonkeyPatch

from likeness.core.errors import ArtifactError
from likeness.core.paths import ProjectPaths
from likeness.data.private_tables import write_private
from likeness.data.schema.schema import Schema
from likeness.data.schema.yaml import schema_text
from likeness.pipeline.project import Project
from likeness.stages import evaluate

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("held_out", [True, False])
def test_each_part_of_the_table_has_its_place_and_nothing_stands_beside_the_columns(
    tmp_path: Path, monkeypatch: MonkeyPatch, schema: Schema, table_of: Callable[..., pd.DataFrame], held_out: bool
) -> None:
    """Without held-out rows, halves of all rows stand in their places."""
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["ingest"]["schema"] = "schema.yaml"
    content["ingest"]["split"] |= {} if held_out else {"column": None}
    Path("params.yaml").write_text(yaml.safe_dump(content))
    Path("schema.yaml").write_text(schema_text(schema))
    rows, synthetic = table_of(40, 1), table_of(30, 2)
    parts = np.where((np.arange(40) % 4 == 0) & held_out, "test", "train")
    ProjectPaths.table.parent.mkdir(parents=True)
    ProjectPaths.synthetic.parent.mkdir(parents=True)
    write_private(rows.assign(__split__=parts, __person__=np.arange(40)), ProjectPaths.table, {})
    synthetic.to_parquet(ProjectPaths.synthetic)
    given: list[Any] = []
    monkeypatch.setattr("likeness.report.internal.evaluate", lambda *tables: given.extend(tables))
    monkeypatch.setattr(evaluate, "write_internal", lambda *_: None)
    ProjectPaths.internal.mkdir(parents=True, mode=0o755)  # as a checkout makes it
    evaluate.main(Project.load())
    assert ProjectPaths.internal.stat().st_mode & 0o777 == 0o700
    train, test, drawn, _, _, folder, _, halved = given
    assert halved is not held_out
    if not held_out:
        assert len(train) == len(test) == 20 and sorted([*train.index, *test.index]) == list(range(40))
        parts = np.where(np.isin(np.arange(40), test.index), "test", "train")
    for found, expected in ((train, rows[parts == "train"]), (test, rows[parts == "test"]), (drawn, synthetic)):
        pd.testing.assert_frame_equal(found.reset_index(drop=True), expected.reset_index(drop=True))
    assert folder == ProjectPaths.evaluation


@pytest.mark.long
@pytest.mark.parametrize("people", [1, 2])
def test_a_night_with_few_people_ends_like_any_other(
    tmp_path: Path, monkeypatch: MonkeyPatch, schema: Schema, table_of: Callable[..., pd.DataFrame], people: int
) -> None:
    """A run that failed would show how few came, so a page says that there is nothing to compare."""
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["ingest"] |= {"schema": "schema.yaml", "split": {"column": None}, "unit": {"column": "pid", "max_rows": 1}}
    content["privacy"] |= {"series": "growing", "unit": "one person"}
    content["evaluate"] = {"classifiers": ["logistic_regression"]}
    Path("params.yaml").write_text(yaml.safe_dump(content))
    Path("schema.yaml").write_text(schema_text(schema))
    for path in (ProjectPaths.table, ProjectPaths.synthetic, ProjectPaths.evaluation / "metrics.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
    (ProjectPaths.evaluation / "metrics.json").write_text("{}")  # of another night
    Path("dvc.yaml").write_text((ROOT / "dvc.yaml").read_text())
    rows = table_of(40, 1).head(people)
    write_private(rows.assign(__split__="train", __person__=np.arange(people)), ProjectPaths.table, {})
    table_of(30, 2).to_parquet(ProjectPaths.synthetic)
    tracked = []
    for _ in range(2):
        evaluate.main(Project.load())
        compared = (ProjectPaths.evaluation / "scores.csv").exists()
        assert ProjectPaths.internal_metrics.exists()  # which stage `track` may read
        assert compared or "too few people" in ProjectPaths.internal_report.read_text()
        tracked.append(ProjectPaths.compared.read_bytes())
    assert tracked[0] != tracked[1] and len(tracked[0]) == len(tracked[1])
    old = Path("dvc.yaml").read_text().replace("internal/done.json", "internal/evaluation")
    Path("dvc.yaml").write_text(old)
    with pytest.raises(ArtifactError, match=r"dvc.yaml records hashes .* likeness new \. --upgrade"):
        evaluate.main(Project.load())
