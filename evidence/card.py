"""The quality card: do its intervals cover the truth, and what does its share cost the table?

Run: ``python -m evidence.card coverage [--draws 200]`` or ``python -m evidence.card cost [--draws 3]``. Both fill
``evidence/results/card_COMMAND.csv`` with Adult. Resumable.

*Coverage.* One synthetic table; each draw has new noise on the class counts and on the card. The reference of the
distances follows the noisy number of records, as in a run. The truth is computed from the training rows, which are
public here: total variation of shares, and ratios of the exact confusion matrix.

*Cost.* The table with a card of share .03 and without, in the scores of :mod:`evidence.tables`.
"""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evidence.common import adjacent, load, score, synthesize
from evidence.pages import Results
from likeness.config.params import Card, Params
from likeness.methods.base import CLASS_COUNTS, class_counts_query, number_of_records
from likeness.pipeline.card import CONFUSION, DISTANCES, card_figures, card_queries
from likeness.pipeline.private_rows import encoded_chunks
from likeness.pipeline.project import Project
from likeness.privacy.noise import add_discrete_gaussian
from likeness.privacy.receipt import MECHANISM, Receipt
from likeness.release.distances import DistanceQuery
from likeness.release.door import noise_scale
from likeness.release.query import Query
from likeness.release.released import Released
from likeness.release.sums.lattice_sum import lattice_sum

COVERAGE = Results(Path("evidence/results/card_coverage.csv"), ["epsilon", "adjacency", "claimed"])
COST = Results(Path("evidence/results/card_cost.csv"), ["share", "draw"])
SHARE = 0.03


def with_card(params: Params, share: float, epsilon: float | None = None) -> Params:
    """Settings with a card if it has a share, and with another ε."""
    card = Card(share) if share else None
    privacy = dataclasses.replace(params.privacy, epsilon=params.privacy.epsilon if epsilon is None else epsilon)
    return dataclasses.replace(params, privacy=privacy, evaluate=dataclasses.replace(params.evaluate, card=card))


class Simulation:
    """Draws of a card about one synthetic table."""

    def __init__(self, project: Project, private: pd.DataFrame, synthetic: pd.DataFrame, claimed: float = 1.0) -> None:
        """Count both tables once.

        Args:
            project: with a card.
            private: typed training rows.
            synthetic: typed synthetic rows.
            claimed: part of the noise that receipts name; below 1 is a planted fault.
        """
        self._plan, self._context, self._claimed = project.plan, project.context, claimed
        self._counts, schema = class_counts_query(self._context), self._context.schema
        self._sums = {CLASS_COUNTS: lattice_sum(self._counts, encoded_chunks(private, schema))}
        exact = {CLASS_COUNTS: self._noisy(self._counts, self._sums[CLASS_COUNTS])}
        card = project.params.evaluate.card
        assert card is not None
        queries = card_queries(card, self._plan, self._context, exact, synthetic)
        self._distances = next(query for query in queries if isinstance(query, DistanceQuery))
        self._confusion = next(query for query in queries if isinstance(query, Query))
        self._synthetic = self._distances.counts(encoded_chunks(synthetic, schema))
        for name, query in ((DISTANCES, self._distances.cells), (CONFUSION, self._confusion)):
            self._sums[name] = lattice_sum(query, encoded_chunks(private, schema))
        self._records = len(private)

    def truth(self) -> dict[str, float]:
        """The numbers that the figures estimate."""
        exact = self._distances.about(self._synthetic, self._records)
        values = exact.distances(self._sums[DISTANCES])[0] * 2.0**-exact.lattice_bits / (2 * self._records)
        names = [f"{measure}_{order}_way" for measure, order in exact.figures]
        right = np.diag(self._sums[CONFUSION])
        recalls = right / self._sums[CONFUSION].sum(axis=1)
        accuracies = {"accuracy": right.sum() / self._sums[CONFUSION].sum(), "balanced_accuracy": recalls.mean()}
        return {"rows": self._records, **dict(zip(names, values, strict=True)), **accuracies}

    def figures(self) -> list[dict[str, Any]]:
        """The card of a new draw of all its noise."""
        counts = self._noisy(self._counts, self._sums[CLASS_COUNTS])
        about = self._distances.about(self._synthetic, number_of_records(self._context, counts))
        distances = self._noisy(about, about.distances(self._sums[DISTANCES]))
        confusion = self._noisy(self._confusion, self._sums[CONFUSION])
        return card_figures(self._context, {CLASS_COUNTS: counts, DISTANCES: distances, CONFUSION: confusion})

    def covered(self, draws: int) -> dict[str, float]:
        """Share of the draws in which each interval holds the truth."""
        truth = self.truth()
        cards = [{one["measure"]: one for one in self.figures()} for _ in range(draws)]
        return {
            name: sum(card[name]["low"] <= value <= card[name]["high"] for card in cards) / draws
            for name, value in truth.items()
        }

    def _noisy(self, query: Query | DistanceQuery, exact: NDArray[np.int64]) -> Released:
        """A release as the door makes it, at the noise of the plan."""
        scale = noise_scale(query, self._plan)
        names = ("method", "sampler", "identity", "digest", "slot", "plan", "key", "ledger_id", "change")
        receipt = Receipt(
            query=query.name, stage=query.stage, feature=query.spec(), mechanism=MECHANISM,
            adjacency=str(self._plan.adjacency), num_groups=query.num_groups, dimension=query.dimension,
            lattice_bits=query.lattice_bits, sensitivity=1.0, noise_multiplier=1.0, noise_scale=self._claimed * scale,
            rho=1.0, ledger_seq=1, **dict.fromkeys(names, ""),
        )  # fmt: skip
        return Released(add_discrete_gaussian(exact.ravel(), scale).reshape(exact.shape), receipt)


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("coverage", "cost"))
    parser.add_argument("--draws", type=int, default=0, help="200 of the coverage, 3 of the cost")
    options = parser.parse_args()
    coverage(options.draws or 200) if options.command == "coverage" else cost(options.draws or 3)


def coverage(draws: int) -> None:
    """Coverage at three ε under both adjacencies, and of receipts that claim half of the noise."""
    table = load("adult")
    synthetic = None
    for epsilon in (0.2, 1.0, 10.0):
        for adjacency in ("add_remove_one", "replace_one"):
            for claimed in (1.0, 0.5):
                if not COVERAGE.of(epsilon, adjacency, claimed).empty:
                    continue
                if synthetic is None:
                    synthetic = synthesize(table.params, table.train, 1)
                params = adjacent(with_card(table.params, SHARE, epsilon), adjacency, len(table.train))
                simulation = Simulation(Project(Path(), params), table.train, synthetic, claimed)
                widths = {f"width_{one['measure']}": one["high"] - one["low"] for one in simulation.figures()}
                found = {"draws": draws, **simulation.covered(draws), **widths}
                COVERAGE.add([epsilon, adjacency, claimed], found)


def cost(draws: int) -> None:
    """Scores of the table with a card and without, at ε = 1."""
    table = load("adult")
    for draw in range(1, draws + 1):
        for share in (0.0, SHARE):
            if not COST.of(share, draw).empty:
                continue
            synthetic = synthesize(with_card(table.params, share), table.train, draw)
            scores = score(synthetic, table)
            names = ("roc_auc_score", "accuracy", "tv_1_train", "tv_2_train", "tv_3_train")
            COST.add([share, draw], {name: scores[name] for name in names})


if __name__ == "__main__":
    main()
