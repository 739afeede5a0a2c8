"""What is made of noisy class counts, which may be below 0."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from toys import schema_with

from likeness.methods.base import Context, class_counts_query, class_weights, number_of_records

SCHEMA = schema_with(
    {"x": {"kind": "numeric", "lower": 0, "upper": 1}, "y": {"kind": "categorical", "categories": ["a", "b", "c"]}}, "y"
)
PROTECTED, PUBLIC = Context(SCHEMA, "add_remove_one", None, 0), Context(SCHEMA, "replace_one", 50, 0)


def counts(*values: float, noise: float = 10.0) -> Any:
    """A release of these counts."""
    return SimpleNamespace(values=np.array(values)[:, None], noise_std=noise)


def test_the_number_of_records_is_the_sum_of_all_counts_also_of_negative_ones() -> None:
    """Counts that are raised to 0 first would make every table look larger than it is."""
    assert number_of_records(PROTECTED, counts(120.0, -30.0, 10.0)) == 100
    assert number_of_records(PROTECTED, counts(0.4, 0.3, 0.1)) == 1
    assert number_of_records(PROTECTED, counts(-500.0, -30.0, 10.0)) == 1


def test_a_public_number_of_records_is_not_estimated() -> None:
    assert number_of_records(PUBLIC, counts(120.0, -30.0, 10.0)) == 50


def test_small_and_negative_counts_are_raised_to_their_noise_or_to_one() -> None:
    assert class_weights(counts(80.0, -30.0, 4.0)).tolist() == pytest.approx([0.8, 0.1, 0.1])
    assert class_weights(counts(8.0, -30.0, 0.2, noise=0.3)).tolist() == pytest.approx([0.8, 0.1, 0.1])


def test_counts_are_asked_by_class() -> None:
    assert class_counts_query(PROTECTED).num_groups == 3
