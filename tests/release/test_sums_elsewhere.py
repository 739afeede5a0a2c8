"""Rows that are summed where they are: what Python beside an executor gives back, and what the door makes of it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from toys import schema_with

from likeness.config.load import load_params
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import DataError, ReleaseError
from likeness.data.schema.constrained_tables import forward_transform, values_of
from likeness.data.source.databases import Database
from likeness.data.source.files import read_frame
from likeness.data.source.row_digests import _sum, row_hashes
from likeness.data.warehouse.rows import RowsThere, Sums
from likeness.data.warehouse.statements import People, Split
from likeness.methods import METHODS
from likeness.methods.base import Context
from likeness.pipeline import summed_rows
from likeness.pipeline.private_rows import encoded_chunks
from likeness.pipeline.staying_rows import later_reasons_to_come
from likeness.pipeline.summed_rows import SummedRows
from likeness.release.query import Query
from likeness.release.records import BucketPairs
from likeness.release.sums.lattice_sum import lattice_sum
from likeness.release.sums.over_parts import Partial, SumBackend, exact_sum

SCHEMA = schema_with(
    {
        "a": {"kind": "integer", "lower": -5, "upper": 9, "nullable": True},
        "x": {"kind": "numeric", "lower": 0, "upper": 1},
        "l": {"kind": "categorical", "categories": ["n", "y"]},
    },
    label="l",
    rules=[{"if": {"x": "< 0.2"}, "then": {"a": "0..3"}}],
)
CONTEXT = Context(SCHEMA.modeled, "add_remove_one", None, 0)
KEY, SECRET = b"k" * 32, "Xq7Secret"
DRAW = np.random.default_rng(4)
CELLS = {"a": pd.array(DRAW.integers(-5, 9, 300), "Int64"), "x": DRAW.random(300), "l": DRAW.choice(["n", "y"], 300)}
ROWS = read_frame(pd.DataFrame(CELLS).mask(lambda cells: cells == 3, None), SCHEMA)
HASHES, MODELED = row_hashes(ROWS, SCHEMA), forward_transform(ROWS, SCHEMA)
THERE = RowsThere(Database("spark://", "t"), SCHEMA, Split(0.0, 0))
SUMMED = SummedRows(THERE, THERE.digest(KEY, Sums(300, _sum(HASHES))), KEY)


def parts() -> list[list[pa.RecordBatch]]:
    """The rows as Spark's statement gives them, in parts of several batches, one batch and none."""
    numbers = values_of(MODELED, SCHEMA.modeled.columns)
    columns = {f"c_{k}": pa.array(values, from_pandas=True) for k, values in enumerate(numbers.values())}
    words = HASHES.view(">u4").astype(np.int64)
    table = pa.table(columns | {f"l_{k}": words[:, k] for k in range(8)})
    return [table[:200].to_batches(70), table[200:].to_batches(), []]


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark that runs a function on these parts."""

    def in_parts(_: Database, statement: str, work: FunctionType, fields: str) -> list[tuple[Any, ...]]:
        sent = [cell.cell_contents for cell in work.__closure__ or ()]
        assert not [one for one in sent if isinstance(one, SummedRows | RowsThere | bytes)]  # no key leaves
        rows = [row for part in parts() for batch in work(iter(part)) for row in batch.to_pylist()]
        assert statement == "SELECT" and fields.replace(",", "").split()[::2] == [*rows[0]]
        return [tuple(row.values()) for row in rows]

    monkeypatch.setattr(Database, "in_parts", in_parts)
    monkeypatch.setattr(RowsThere, "statement_of_rows", lambda _: "SELECT")


def query(method: str = "hp") -> Query:
    return METHODS[method]().embedding_query(CONTEXT, {})


@pytest.mark.parametrize("method", ["hp", "merf", "ntk"])
def test_sums_of_parts_elsewhere_are_the_sum_of_the_rows(spark: None, method: str) -> None:
    assert isinstance(SUMMED, SumBackend) and SUMMED.backend_of_sums(query(method)).startswith("spark ")
    SUMMED.check()
    here, there = encoded_chunks(MODELED, SCHEMA.modeled), exact_sum(query(method), SUMMED)
    assert there.records == 300 and (there.total == lattice_sum(query(method), here)).all() and there.total.any()


def test_other_rows_than_those_on_record_are_not_summed(spark: None) -> None:
    others = replace(SUMMED, digest="0" * 64)
    with pytest.raises(
        DataError, match=r"the rows changed since they were ingested\. Nothing more was spent on this query"
    ):
        others.check()
    with pytest.raises(DataError, match="Nothing was released, and the cost of this query stays on record"):
        exact_sum(query(), others)


def test_a_fault_beside_an_executor_tells_no_cell(spark: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(job: Any) -> Iterator[Partial]:
        for rows in job[1]():
            raise ValueError(f"{SECRET} {np.asarray(rows.x)}")
        yield Partial(np.zeros((2, 0), np.int64), 0)

    with pytest.raises(DataError, match=r"Spark: the Python of an executor cannot encode and sum its rows") as caught:
        SUMMED.partials(query(), broken)
    assert caught.value.__context__ is None and SECRET not in str(caught.value)
    with pytest.raises(DataError, match=r"cannot encode and sum its rows"):
        SUMMED.partials(query(), lambda job: iter([Partial(np.zeros((2, 3), np.int64), 7)]))  # which skips rows
    versions = iter([("1",), *[("2",)] * 9])
    monkeypatch.setattr(summed_rows, "_software", lambda: next(versions))
    with pytest.raises(
        DataError, match=r"an executor has another version of Python, .* Nothing more was spent on this query"
    ):
        SUMMED.check()


def test_the_door_adds_up_whole_partial_sums_only(spark: None, monkeypatch: pytest.MonkeyPatch) -> None:
    one = query()
    monkeypatch.setattr(SummedRows, "partials", lambda *_: [Partial(np.zeros((1, one.width), np.int64), 1)])
    with pytest.raises(ReleaseError, match="a partial sum has another shape than the sum"):
        exact_sum(one, SUMMED)


def test_sums_over_pairs_or_people_are_not_taken_in_parts(spark: None) -> None:
    pairs = replace(query(), contributions=BucketPairs(4))
    for ask in (SUMMED.backend_of_sums, lambda asked: exact_sum(asked, SUMMED)):
        with pytest.raises(ReleaseError, match="parts of the rows do not give a sum over bucket_pairs"):
            ask(pairs)
    people = replace(SUMMED, rows=replace(THERE, unit=People("who", 3)))
    assert THERE.sums and not people.rows.sums
    with pytest.raises(ReleaseError, match="executors do not sum rows of people with several"):
        people.backend_of_sums(query())


def test_why_rows_of_spark_have_to_come_is_said() -> None:
    params = load_params(Path(__file__).parents[2] / "params.yaml")
    of_people = PrivacyUnit("who", 3)
    for method, source, unit, words in (
        ("merf", "spark://", None, []),
        ("pearl", "spark://", None, ["query mean_pairwise_distance asks for bucket_pairs, and Spark sums rows"]),
        ("hp", "spark://", of_people, ["method hp asks for sums, and a person may have several rows"]),
        ("marginals", "spark://", of_people, []),
        ("merf", "duckdb:///t", None, ["method merf asks for more than counts of cells"]),
    ):
        asked = METHODS[method]()
        of = SimpleNamespace(source=source, unit=unit)
        given: Any = SimpleNamespace(tracking=params.tracking, evaluate=params.evaluate, method=method, ingest=of)
        assert later_reasons_to_come(given, asked.maps, lambda asked=asked: asked.planned_queries(CONTEXT)) == words
