"""The contract of a method: what its tests call, in Likeness and in another distribution.

``check_method(MyMethod())`` is the whole of it. A broken rule is an ``AssertionError``. No ledger of the user is read.
"""

import numpy as np

from likeness.methods import Method
from likeness.privacy.adjacency import Adjacency
from likeness.testing.maps import check_map, check_neighbors
from likeness.testing.methods import Trial

__all__ = ["Trial", "check_map", "check_method", "check_neighbors"]

_FEW = 200  # records of the table whose neighbors are compared


def check_method(method: Method, image: bool = False) -> None:
    """Plan, release, train and sample toy records, and hold every map and every sum against its declared bound.

    Args:
        method: with settings that train in seconds.
        image: whether it takes images of 4 by 4 pixels, and not a table.

    Raises:
        AssertionError: saying which rule it breaks.
    """
    trial = Trial(method, image)
    for adjacency in Adjacency:
        trial.check_queries(adjacency)
        trial.check_classes(adjacency)
    auxiliary, embedding = trial.release(Adjacency.ADD_REMOVE_ONE)
    context = trial.context(Adjacency.ADD_REMOVE_ONE)
    for query in [*method.auxiliary_queries(context, auxiliary), method.embedding_query(context, auxiliary)]:
        contributions = next(iter(query.contributions.stream([trial.records[:_FEW]])))
        check_map(query.feature, np.asarray(contributions.x), method.name)
        for index in (0, _FEW // 2):
            check_neighbors(query, trial.toy_records, _FEW, 0, index)
    trial.check_question(auxiliary)
    trial.check_training(auxiliary, embedding)
