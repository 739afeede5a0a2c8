"""Every table, figure and ablation of the five papers: the rows that stand for it, a command, or why there is none.

``python -m evidence.papers --list`` prints it. Numbers of rows are counted in evidence/results/papers.csv.
"""

import math
from dataclasses import dataclass
from itertools import product

import pandas as pd

_TABLES = "adult_rebalanced census_rebalanced covtype"
_ALL = f"{_TABLES} cervical epileptic intrusion isolet credit"
_IMAGES = "mnist fashion_mnist"
_GONE = ("isolet", "credit", "celeba")  # files that could not be had
_TUNED = "best of several settings on test rows"
INF = math.inf
PAPERS: dict[tuple[str, str] | tuple[str, str, float], str] = {
    ("adult_rebalanced", "real"): "DP-MERF table 3: ROC .730, PRC .639; PEARL table 2: .765, .654; DP-HP table 2 and "
        "DP-NTK table 4: .786, .683",
    ("adult_rebalanced", "merf"): "DP-MERF table 3: ROC .650, PRC .564; run again in DP-HP table 2: .642, .524 "
        "(integer codes: 99.9 % of records exceed the noise's bound)",
    ("adult_rebalanced", "hp"): f"DP-HP table 2: ROC .688, PRC .632 (scale from private rows; {_TUNED})",
    ("adult_rebalanced", "ntk"): f"DP-NTK table 4: ROC .695, PRC .557 (exact label counts; {_TUNED})",
    ("adult_rebalanced", "ntk by cnn_2l"): "DP-NTK table 4, with this network (table 5): ROC .695, PRC .557 "
        f"({_TUNED})",
    ("adult_rebalanced", "pearl"): "PEARL table 2: ROC .721, PRC .618 (10 classifiers)",
    ("census_rebalanced", "real"): "DP-MERF table 3: ROC .747, PRC .415; DP-HP table 2 and DP-NTK table 4: .776, .433",
    ("census_rebalanced", "merf"): "DP-MERF table 3: ROC .686, PRC .358; run again in DP-HP table 2: .685, .236",
    ("census_rebalanced", "hp"): f"DP-HP table 2: ROC .699, PRC .328 (scale from private rows; {_TUNED})",
    ("census_rebalanced", "ntk"): f"DP-NTK table 4: ROC .710, PRC .424 (exact label counts; {_TUNED})",
    ("covtype", "real"): "DP-MERF table 3: F1 .643; DP-HP table 2 and DP-NTK table 4: .820",
    ("covtype", "merf"): "DP-MERF table 3: F1 .467",
    ("covtype", "hp"): "DP-HP table 2: F1 .537",
    ("covtype", "ntk"): "DP-NTK table 4: F1 .552",
    ("cervical", "real"): "DP-MERF table 3: ROC .786, PRC .493; DP-HP table 2 and DP-NTK table 4: .959, .858",
    ("cervical", "merf"): "DP-MERF table 3: ROC .545, PRC .184; run again in DP-HP table 2: .531, .176",
    ("cervical", "hp"): f"DP-HP table 2: ROC .616, PRC .312 ({_TUNED})",
    ("cervical", "ntk"): f"DP-NTK table 4: ROC .631, PRC .335 ({_TUNED})",
    ("epileptic", "real"): "DP-MERF table 3: ROC .797, PRC .617; DP-HP table 2 and DP-NTK table 4: .808, .636",
    ("epileptic", "merf"): "DP-MERF table 3: ROC .611, PRC .340; run again in DP-HP table 2: .605, .316",
    ("epileptic", "hp"): f"DP-HP table 2: ROC .609, PRC .554 ({_TUNED})",
    ("epileptic", "ntk"): f"DP-NTK table 4: ROC .648, PRC .326 ({_TUNED})",
    ("intrusion", "real"): "DP-MERF table 3: F1 .963; DP-HP table 2 and DP-NTK table 4: .971",
    ("intrusion", "merf"): "DP-MERF table 3: F1 .850",
    ("intrusion", "hp"): "DP-HP table 2: F1 .890",
    ("intrusion", "ntk"): "DP-NTK table 4: F1 .717",
    ("mixture", "real"): "DP-HP figure 2: 3.1e5 as published",
    ("mixture", "merf"): "DP-HP figure 2: 4.1e5 as published",
    ("mixture", "hp"): "DP-HP figure 2: 3.7e5 as published",
    ("mixture", "hp, 16,000 steps"): "DP-HP figure 2: 3.7e5 as published",
    ("mnist", "merf"): "DP-NTK table 2, which ran it again: .769 / .807",
    ("mnist", "hp"): "DP-NTK table 2, which ran it again: .807 / .801",
    ("mnist", "pearl"): "DP-NTK table 2: .76 / .796; PEARL table 1: FID 3.52, KID .0705, by another network",
    ("mnist", "ntk"): "DP-NTK table 2: .832 / .862",
    ("fashion_mnist", "merf"): "DP-NTK table 2, which ran it again: .728 / .738",
    ("fashion_mnist", "hp"): "DP-NTK table 2, which ran it again: .739 / .722",
    ("fashion_mnist", "pearl"): "DP-NTK table 2: .744 / .740; PEARL table 1: FID 1.92, KID .0269, by another network",
    ("fashion_mnist", "ntk"): "DP-NTK table 2: .760 / .765",
    ("adult_rebalanced", "merf", INF): "DP-MERF table 3: ROC .653, PRC .570; run again in DP-HP table 7: .642, .525",
    ("adult_rebalanced", "hp", INF): "DP-HP table 7: ROC .673, PRC .621",
    ("census_rebalanced", "merf", INF): "DP-MERF table 3: ROC .692, PRC .369; run again in DP-HP table 7: .696, .244",
    ("census_rebalanced", "hp", INF): "DP-HP table 7: ROC .707, PRC .320",
    ("covtype", "merf", INF): "DP-MERF table 3: F1 .513; run again in DP-HP table 7: .601",
    ("covtype", "hp", INF): "DP-HP table 7: F1 .580",
    ("adult_discretized", "hp", 0.3): "DP-HP table 1: .332 (3-way), .418 (4-way)",
    ("adult_discretized", "hp", 0.1): "DP-HP table 1: .377, .467",
    ("adult_discretized", "merf", 0.3): "DP-HP table 1: .405, .508",
    ("adult_discretized", "merf", 0.1): "DP-HP table 1: .480, .590",
    ("adult_discretized", "hp, γ = 0.001", 0.3): "DP-HP table 5, the discretized Census: .474, .570",
    ("adult_discretized", "hp, γ = 1", 0.3): "DP-HP table 5, the discretized Census: .474, .570",
    ("adult_discretized", "hp, γ = 1000", 0.3): "DP-HP table 5, the discretized Census: .676, .761",
    ("adult_discretized", "hp, 10 products of 2 columns"): "DP-HP table 8: .367, .466",
    ("adult_discretized", "hp, 10 products of 5 columns"): "DP-HP table 8: .340, .434",
}  # fmt: skip
"""What the papers print for a data set and a method with replace_one at ε = 1, or at the ε of the key, with its table.

The method's own paper comes first. Tables: hard ROC AUC and PRC, Covertype weighted F1; images: accuracy of logistic
regression / MLP; the discretized Adult: total variation of three columns, of four.
"""


@dataclass(frozen=True)
class Entry:
    """One experiment of a paper.

    Attributes:
        paper: its name.
        place: table or figure.
        what: it shows.
        data: names of data sets whose rows stand for it, separated by blanks; empty: none.
        methods: of these rows, separated by " | ".
        reason: why it is not, or not all, here, and what differs.
        command: makes it, where no row of evidence.papers stands for it.
        hours: of one core, for a draw that has no row: by timed steps, or by rows of equal size.
        epsilons: of the rows; empty: any.
    """

    paper: str
    place: str
    what: str
    data: str = ""
    methods: str = ""
    reason: str = ""
    command: str = ""
    hours: float = 0
    epsilons: tuple[float, ...] = ()

    def line(self, rows: pd.DataFrame) -> str:
        """One line for a person: the number of rows, the command, the reason, and what has no row."""
        count, gone, absent = 0, [], []
        for data, method, epsilon in product(self.data.split(), self.methods.split(" | "), self.epsilons or (None,)):
            own = (rows["data"] == data) & (rows["method"] == method) & (epsilon is None or rows["epsilon"] == epsilon)
            count += own.sum()
            if data in _GONE:
                gone.append(data)
            elif not own.any():
                absent.append(f"{method} on {data}" + (f" at ε = {epsilon:g}" if epsilon else ""))
        parts = [
            f"{count} rows ({self.data}: {self.methods})" if self.data else "no row",
            self.command,
            self.reason,
            f"not obtainable here, loaders are tested on made files: {', '.join(dict.fromkeys(gone))}" if gone else "",
            f"not run, about {self.hours:g} hours of one core each: {', '.join(absent)}" if absent else "",
        ]
        return f"{self.paper}, {self.place}: {self.what}: " + "; ".join(part for part in parts if part)


_COUNTS = ("60", "600", "6,000", "60,000")
ENTRIES = (
    Entry("DP-MERF", "table 1", "sizes of tables", reason="facts of the data, not a result"),
    Entry("DP-MERF", "table 2, 3", "tables by twelve classifiers", _ALL, "real | merf", hours=0.1),
    Entry("DP-MERF", "table 3", "tables without privacy", _ALL, "merf", hours=0.1, epsilons=(INF,)),
    Entry("DP-MERF", "table 4", "images by twelve classifiers", _IMAGES, "merf",
          "other rows have three classifiers; --judges names twelve", hours=0.2, epsilons=(1.3, 2.9, 9.6)),
    Entry("DP-MERF", "table 4", "MERF+AE, its encoder without privacy", _IMAGES, "merf_ae",
          "its (ε, δ) does not hold, so the encoder here is public. A private one would cost DP-SGD through every "
          "private row and step of its training, composed with the embedding; its noise would come from torch"),
    Entry("DP-MERF", "figure 1", "samples at ε = 9.6", reason="docs/img/grid_mnist_merf.png has ε = 1"),
    Entry("DP-HP", "figure 1, 5", "approximation error of Hermite and random features",
          "", "", "a table of evidence/RESULTS.md; figure 5 draws these features", "python -m evidence.hermite_error"),
    Entry("DP-HP", "figure 2", "the mixture", "mixture",
          "real | hp | hp, 4,000 steps | hp, 16,000 steps | hp, 64,000 steps | merf",
          "not at rest: 256,000 steps take 0.7 hours of one core; GANs, PrivBayes and other works are not built here"),
    Entry("DP-HP", "table 1, 4", "α-way marginals", "adult_discretized", "hp | merf | marginals",
          "the discretized Census could not be had", hours=0.05, epsilons=(0.1, 0.3)),
    Entry("DP-HP", "table 2", "tables by twelve classifiers", _ALL, "real | hp", hours=0.4),
    Entry("DP-HP", "figure 3", "accuracy by number of images", "mnist",
          " | ".join(f"{method}, {count} images" for method in ("merf", "hp", "moments") for count in _COUNTS),
          "one run of 60,000 makes the rows of all numbers", hours=0.2),
    Entry("DP-HP", "figure 4", "images", reason="docs/img/grid_mnist_hp.png, grid_fashion_mnist_hp.png at ε = 1"),
    Entry("DP-HP", "table 5", "γ from .001 to 1,000", "adult_discretized", "hp, γ = 0.001 | hp, γ = 1 | hp, γ = 1000",
          "Adult in place of Census, which could not be had", hours=0.05),
    Entry("DP-HP", "table 3, 6, 9, 10", "sizes and settings", reason="docs/hermite.md names what differs"),
    Entry("DP-HP", "table 7", "tables without privacy", _ALL, "hp | merf", hours=0.15, epsilons=(INF,)),
    Entry("DP-HP", "table 8", "dimension of products 2, 5", "adult_discretized",
          "hp, 10 products of 2 columns | hp, 10 products of 5 columns", hours=0.1),
    Entry("DP-HP", "table 8", "dimension of products 7", reason="not run: 10 products of one-hot columns have "
          "2,398,264 cells, 59 times those of dimension 5; about 2.5 hours of one core a draw"),
    Entry("DP-HP", "figure 6", "twelve classifiers on images", _IMAGES, "hp | merf", "three classifiers"),
    Entry("DP-HP preprint", "all", "an earlier version of DP-HP", reason="its tables and figures are those above"),
    Entry("PEARL", "figure 1, 2", "drawings of the method", reason="no experiment"),
    Entry("PEARL", "figure 3, 5 to 8", "images at ε = .2, 1, 10, ∞", reason="docs/img/grid_mnist_pearl.png has ε = 1"),
    Entry("PEARL", "table 1", "FID and KID of images", _IMAGES, "pearl | merf",
          "another network gives features, because the paper's is not published; its GANs are not built here"),
    Entry("PEARL", "table 1, figure 8", "without critic", "digits mnist", "pearl without critic"),
    Entry("PEARL", "table 2, 4", "Adult, 10 classifiers", "adult_rebalanced", "pearl | merf", "twelve classifiers"),
    Entry("PEARL", "table 3", "range queries, 2-way marginals, MMD", "adult_rebalanced credit", "pearl | merf",
          "2-way total variation is half of its L1; ranges and MMD are in new rows"),
    Entry("PEARL", "figure 4, 9, 10", "histograms of Adult", "", "", "each run's report draws them", "likeness run"),
    Entry("DP-NTK", "table 1, figure 1", "widths 100 to 1,000 at ε = 10", "mnist",
          "ntk, width 100 | ntk, width 400 | ntk | ntk, width 1,000", "width 800 is the default",
          hours=0.1, epsilons=(10.0,)),
    Entry("DP-NTK", "figure 2", "images", reason="docs/img/grid_mnist_ntk.png"),
    Entry("DP-NTK", "table 2", "images", _IMAGES, "ntk | pearl | hp | merf", hours=0.1, epsilons=(0.2, 1.0, 10.0)),
    Entry("DP-NTK", "table 3", "beside DP-MEPF", reason="DP-MEPF needs features of a network of ImageNet"),
    Entry("DP-NTK", "figure 3", "CelebA, 32 × 32", "celeba", "ntk",
          command="python scripts/build_images.py celeba FOLDER data/raw/celeba.parquet"),
    Entry("DP-NTK", "figure 4", "CIFAR-10 at ε = 10", "cifar10", "ntk | ntk by a residual network | merf",
          "4,703 of 40,000 steps; another FID; JPEG copies", "python -m evidence.cifar release FOLDER"),
    Entry("DP-NTK", "table 4, 5", "tables by twelve classifiers", _ALL, "real | ntk", hours=0.2),
    Entry("DP-NTK", "table 5", "Adult by the paper's network cnn_2l 30_200", "adult_rebalanced", "ntk by cnn_2l",
          hours=0.2),
    Entry("all", "no table", "the methods at their best", "adult_rebalanced",
          "merf, best | hp, best | pearl, best | ntk, best", hours=0.1),
)  # fmt: skip


def listing(rows: pd.DataFrame) -> str:
    """All of them, one a line, and how a draw without a row is run."""
    command = "A row: python -m evidence.papers --data NAME --method METHOD --adjacency replace_one [--epsilon inf]"
    return "\n".join([*(entry.line(rows) for entry in ENTRIES), command])
