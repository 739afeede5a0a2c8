"""One whole person, through ingestion, encoding and every query of every method: the sums move as far as is declared.

The chain is the one of a run: typed rows with their people are split and bounded, encoded, and summed exactly.
"""

from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from method_examples import ONLY_IMAGES, SMALL
from test_every_method import context, small

from likeness.config.load import load_params
from likeness.config.params import Params, Split
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import PlanError
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.pipeline.ingest import PERSON, SPLIT, used_rows
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import BucketPairs, Records
from likeness.release.sums.lattice_sum import lattice_sum
from likeness.testing.methods import IMAGES, TABLE

ADD = Adjacency.ADD_REMOVE_ONE
UNIT = PrivacyUnit("pid", 3)


@pytest.fixture(scope="module")
def params() -> Params:
    shipped = load_params(Path(__file__).parents[2] / "params.yaml")
    ingest = replace(shipped.ingest, unit=UNIT, split=Split(test_fraction=0.2))
    return replace(shipped, privacy=replace(shipped.privacy, unit="one person"), ingest=ingest)


def table(schema: Schema, equal: bool) -> tuple[pd.DataFrame, "pd.Series[str]"]:
    """120 visits of 40 people in random order, and seven of one more, all of them equal or all different."""
    generator = np.random.default_rng(1)
    count = 120
    own = pd.DataFrame(
        {
            "a": generator.random(count + 7),
            "b": pd.array(generator.integers(0, 10, count + 7), dtype="Int64"),
            "c": generator.choice(["u", "v", "w"], count + 7),
            "y": generator.choice(["no", "yes"], count + 7),
        }
    )
    if schema.image is not None:
        names = [column.name for column in schema.feature_columns]
        own = pd.DataFrame(generator.integers(0, 256, (count + 7, len(names))), columns=names).assign(y=own["y"])
    people = [f"p{n % 40}" for n in range(count)] + ["z"] * 7
    if equal:
        own = own.iloc[[*range(count), *[count] * 7]]
    order = generator.permutation(count + 7)
    own = own.iloc[order].reset_index(drop=True)
    for column in schema.columns:
        if column.is_categorical:
            own[column.name] = own[column.name].astype(pd.CategoricalDtype(list(column.categories)))
    return own[list(schema.names)], pd.Series([people[place] for place in order], dtype="str")


def training(params: Params, schema: Schema, rows: pd.DataFrame, people: "pd.Series[str]") -> Records:
    """The training rows as the door sees them."""
    used, _ = used_rows(params, schema, rows, None, people)
    own = used[used[SPLIT] == "train"]
    encoder = Encoder(schema)
    codes = encoder.encode(own)
    return Records(encoder.expand(codes), encoder.labels(codes), own[PERSON].to_numpy())


def total(query: Query, records: Records) -> np.ndarray:
    """The exact sum. Every record keeps its secret die in both tables: by content, and by copy of equal ones."""
    if isinstance(query.contributions, BucketPairs):
        seen: Counter[bytes] = Counter()
        dice = []
        for row in records.x:
            seen[row.tobytes()] += 1
            dice.append(sha256(row.tobytes() + bytes([seen[row.tobytes()]])).digest()[:8])
        thrown = np.frombuffer(b"".join(dice), dtype="<u8")
        query = replace(query, contributions=BucketPairs(16, lambda count: thrown))
    return lattice_sum(query, iter([records])).astype(object)


@pytest.mark.long
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "different"])
@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_person_moves_every_sum_no_farther_than_declared(params: Params, name: str, equal: bool) -> None:
    schema = IMAGES if name.startswith(ONLY_IMAGES) else TABLE
    rows, people = table(schema, equal)
    stays = (people != "z").to_numpy()
    whole = training(params, schema, rows, people)
    without = training(params, schema, rows[stays].reset_index(drop=True), people[stays].reset_index(drop=True))
    assert len(whole.x) - len(without.x) == UNIT.max_rows  # seven rows, of which three are used
    farther = []
    for query in small(name).planned_queries(context(ADD, name)):
        one, several = query.sensitivity_squared(ADD), query.sensitivity_squared(ADD, UNIT)
        assert several == UNIT.max_rows**2 * one
        distance = int(((total(query, whole) - total(query, without)) ** 2).sum())
        assert distance <= several, query.name
        farther.append(distance > one)
    if equal:
        assert all(farther[:1])  # three equal rows move the class counts by three: the sensitivity of one would not do


@pytest.mark.parametrize("name", sorted(SMALL))
def test_no_query_of_several_rows_is_answered_under_replacement(name: str) -> None:
    for query in small(name).planned_queries(context(Adjacency.REPLACE_ONE, name)):
        with pytest.raises(PlanError, match=r"needs privacy\.adjacency: add_remove_one"):
            query.sensitivity_squared(Adjacency.REPLACE_ONE, UNIT)
