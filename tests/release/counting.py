"""A release of counts, which a process makes without PyTorch: it takes seconds to import."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from toys import plan_with

from likeness.features.column_marginals import Constant
from likeness.ledger.reservation import Dataset
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.records import Records

DATASET = Dataset("people", "digest")
COUNTS = Query("q", "privatize", Constant(), num_groups=2)
PLAN = plan_with([QueryShare("q", "privatize", 1.0)])


def rows() -> Iterator[Records]:
    generator = np.random.default_rng(0)
    yield Records(generator.random((100, 3)), generator.integers(0, 2, 100))


def forbidden() -> Iterator[Any]:
    raise AssertionError("private rows were opened")
