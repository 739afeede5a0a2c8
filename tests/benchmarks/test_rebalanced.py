"""Tables as the papers' code makes them: all of the rarer class, 40 % of the other, test rows among them."""

import pandas as pd

from benchmarks.common import load, rebalanced


def test_the_rarer_class_is_kept_and_two_fifths_of_the_other() -> None:
    table = load("adult")
    label, rows = table.schema.label, 5_000
    own = type(table)(table.params, table.schema, table.train.iloc[:rows], table.test)
    found = rebalanced(own, None, 0.1)
    counts = own.train[label].value_counts()
    both = pd.concat([found.train, found.test])
    assert both[label].value_counts().to_dict() == {"<=50K": round(0.4 * counts["<=50K"]), ">50K": counts[">50K"]}
    assert both.index.is_unique and both.index.isin(own.train.index).all()
    assert len(found.test) == -(-len(both) // 10)
    again = rebalanced(own, None, 0.1)
    pd.testing.assert_frame_equal(found.train, again.train)  # a public draw: the same for all methods
    few = rebalanced(own, 1_000, 0.1)
    assert 490 < len(few.train) + len(few.test) < 600  # 544 at Adult's shares; six deviations are 50
    assert found.params.privacy.population != table.params.privacy.population
