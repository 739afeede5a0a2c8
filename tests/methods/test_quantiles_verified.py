"""Learned bins in a synthesizer, and as a verifier sees them: the query is made again from released counts."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from toy_numbers import LEARNED, SCHEMA, section, table

from likeness import Synthesizer
from likeness.core.errors import ReleaseError
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods.base import EMBEDDING
from likeness.methods.marginals.quantiles import QUANTILES
from likeness.pipeline.consistency import auxiliary_of, queries_of
from likeness.pipeline.project import Project
from likeness.release.request import check_answer


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Synthesizer, Path]:
    """A synthesizer with quantiles, and what it saved."""
    folder = tmp_path_factory.mktemp("quantiles")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIKENESS_HOME", str(folder / "ledger"))
        patch.setenv("LIKENESS_ANCHOR", str(folder / "anchor"))
        Ledger.create(locate())
        own = Synthesizer(schema=SCHEMA, population="people", epsilon=5.0, settings=section(columns="all"))
        own.fit(table(4_000)).save(folder / "saved")
    return own, folder / "saved"


def test_the_synthesizer_draws_from_learned_bins_and_says_so(fitted: tuple[Synthesizer, Path]) -> None:
    synthesizer, _ = fitted
    amounts = synthesizer.sample(4_000)["wide"]
    # In eight bins of equal width, all amounts but the zeros would be spread over 125,000.
    assert np.quantile(amounts[amounts > 0], 0.8) < 1_000_000 / 256
    assert f"- {LEARNED}" in synthesizer.statement.splitlines()


def test_bins_from_elsewhere_are_another_query(fitted: tuple[Synthesizer, Path]) -> None:
    """Edges that follow the rows would be learned for free. The query, made again, has those of the histogram."""
    synthesizer, _ = fitted
    released, project = synthesizer.releases_, Project(Path(), synthesizer.params(), SCHEMA)
    plan, auxiliary = project.plan, auxiliary_of(released.values())
    queries = queries_of(project, plan, project.row_sets, auxiliary)
    embedding, histogram = released[EMBEDDING], released[QUANTILES]
    check_answer(*queries[EMBEDDING], embedding, "embedding")
    check_answer(*queries[QUANTILES], histogram, "quantiles")
    for one in (embedding, histogram):
        feature = json.loads(json.dumps(one.receipt.feature))
        column = next(column for column in feature["columns"] if column["edges"])
        column["edges"][-1] += 1e-6
        moved = dataclasses.replace(one, receipt=dataclasses.replace(one.receipt, feature=feature))
        with pytest.raises(ReleaseError, match="answers another question"):
            check_answer(*queries[one.receipt.query], moved, one.receipt.query)
    hidden = dataclasses.replace(histogram, lattice=histogram.lattice // 1_000)  # nothing but noise
    others = queries_of(project, plan, project.row_sets, {**auxiliary, QUANTILES: hidden})
    with pytest.raises(ReleaseError, match="answers another question"):
        check_answer(*others[EMBEDDING], embedding, "embedding")
