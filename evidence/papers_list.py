"""Every table, figure and ablation of the five papers: the rows that stand for it, a command, or why there is none.

``python -m evidence.papers --list`` prints it. Numbers of rows are counted in evidence/results/papers.csv.
"""

import math
from dataclasses import dataclass

import pandas as pd

_TABLES = "adult_rebalanced census_rebalanced covtype"
_GONE = "not obtainable here: the file could not be had; a loader is tested on a made file"
_CLASSIFIERS = "three classifiers"
_OTHERS = "GANs, PrivBayes and other works are not built here"


INF = math.inf
_TUNED = "best of several settings on test rows"
PAPERS: dict[tuple[str, str] | tuple[str, str, float], str] = {
    ("adult_rebalanced", "real"): "DP-MERF table 3: ROC .730, PRC .639; PEARL table 2: .765, .654; DP-HP table 2 and "
    "DP-NTK table 4: .786, .683",
    (
        "adult_rebalanced",
        "merf",
    ): "DP-MERF table 3: ROC .650, PRC .564; run again in DP-HP table 2: .642, .524 (integer "
    "codes: 99.9 % of records exceed the noise's bound)",
    ("adult_rebalanced", "hp"): f"DP-HP table 2: ROC .688, PRC .632 (scale from private rows; {_TUNED})",
    ("adult_rebalanced", "ntk"): f"DP-NTK table 4: ROC .695, PRC .557 (exact label counts; {_TUNED})",
    (
        "adult_rebalanced",
        "ntk by cnn_2l",
    ): f"DP-NTK table 4, with this network (table 5): ROC .695, PRC .557 ({_TUNED})",
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
}
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
        methods: of these rows.
        command: makes it, or what is missing of it.
        reason: why it is not, or not all, here.
        hours: of one core, for a draw that has no row: by timed steps, or by rows of equal size.
        epsilon: of the rows; None: any.
    """

    paper: str
    place: str
    what: str
    data: str = ""
    methods: str = ""
    command: str = ""
    reason: str = ""
    hours: float = 0
    epsilon: float | None = None

    def line(self, rows: pd.DataFrame) -> str:
        """One line for a person, with the number of rows, and what has none."""
        if self.epsilon is not None:
            rows = rows[rows["epsilon"] == self.epsilon]
        pairs = [(data, method) for data in self.data.split() for method in self.methods.split(" | ")]
        counts = [((rows["data"] == data) & (rows["method"] == method)).sum() for data, method in pairs]
        absent = [f"{method} on {data}" for (data, method), count in zip(pairs, counts, strict=True) if not count]
        parts = [
            f"{sum(counts)} rows ({self.data}: {self.methods})" if self.data else "no row",
            self.command,
            self.reason,
            f"not run: {', '.join(absent)}, about {self.hours:g} hours of one core each" if absent else "",
        ]
        return f"{self.paper}, {self.place}: {self.what}: " + "; ".join(part for part in parts if part)


def _run(data: str, method: str, more: str = "") -> str:
    return f"python -m evidence.papers --data {data} --method {method} --adjacency replace_one{more}"


ENTRIES = (
    Entry("DP-MERF", "table 1", "sizes of tables", reason="facts of the data, not a result"),
    Entry("DP-MERF", "table 2, 3", "Intrusion by twelve classifiers", "intrusion", "real | merf",
          _run("intrusion", "merf"), hours=0.15),
    Entry("DP-MERF", "table 3", "Adult, Census, Covertype", _TABLES, "real | merf"),
    Entry("DP-MERF", "table 3", "Cervical", "cervical", "real | merf"),
    Entry("DP-MERF", "table 3", "Epileptic", "epileptic", "real | merf", _run("epileptic", "merf"), hours=0.1),
    Entry("DP-MERF", "table 3", "Isolet, Credit", "", "", _run("isolet", "merf"), _GONE),
    Entry("DP-MERF", "table 3", "without privacy", _TABLES, "merf", _run("covtype", "merf", " --epsilon inf"),
          hours=0.1, epsilon=math.inf),
    Entry(
        "DP-MERF", "table 4", "MNIST and Fashion-MNIST by twelve classifiers at ε = 1.3, 2.9, 9.6",
        "mnist fashion_mnist", "merf", _run("mnist", "merf", " --epsilon 1.3 --judges ..."),
        "these rows have three classifiers and ε = .2, 1, 10; not run: twelve classifiers, about 0.2 hours a draw",
    ),
    Entry(
        "DP-MERF", "table 4", "MERF+AE, its encoder without privacy", "mnist fashion_mnist", "merf_ae", "",
        "its (ε, δ) does not hold, so the encoder here is public. A private one would cost DP-SGD through every "
        "private row and step of its training, composed with the embedding; its noise would come from torch",
    ),
    Entry("DP-MERF", "figure 1", "samples at ε = 9.6", reason="docs/img/grid_mnist_merf.png has ε = 1"),
    Entry("DP-HP", "figure 1, 5", "approximation error of Hermite and random features", "", "",
          "python -m evidence.hermite_error", "a table of evidence/RESULTS.md; figure 5 draws these features"),
    Entry(
        "DP-HP", "figure 2", "the mixture", "mixture",
        "real | hp | hp, 4,000 steps | hp, 16,000 steps | hp, 64,000 steps | merf",
        _run("mixture", "'hp, 16,000 steps'"), _OTHERS, 0.2,
    ),
    Entry(
        "DP-HP", "table 1, 4", "α-way marginals of the discretized Adult at ε = .3, .1", "adult_discretized",
        "hp | merf | marginals", _run("adult_discretized", "hp", " --epsilon 0.3"),
        "the discretized Census could not be had",
    ),
    Entry("DP-HP", "table 2", "Adult, Census, Covertype", _TABLES, "real | hp"),
    Entry("DP-HP", "table 2", "Cervical", "cervical", "real | hp"),
    Entry("DP-HP", "table 2", "Epileptic, Intrusion", "epileptic intrusion", "real | hp", _run("epileptic", "hp"),
          hours=0.4),
    Entry("DP-HP", "table 2", "Credit, Isolet", "", "", _run("isolet", "hp"), _GONE),
    Entry(
        "DP-HP", "figure 3", "accuracy by number of synthetic images", "mnist",
        " | ".join(f"{method}, {count} images" for method in ("merf", "hp", "moments")
                   for count in ("60", "600", "6,000", "60,000")),
        _run("mnist", "'merf, 60,000 images'"), "one run makes the rows of all numbers", 0.2,
    ),
    Entry("DP-HP", "figure 4", "images", reason="docs/img/grid_mnist_hp.png, grid_fashion_mnist_hp.png at ε = 1"),
    Entry("DP-HP", "table 5", "γ from .001 to 1,000", "adult_discretized", "hp, γ = 0.001 | hp, γ = 1 | hp, γ = 1000",
          _run("adult_discretized", "'hp, γ = 1000'", " --epsilon 0.3"),
          "Adult in place of Census, which could not be had", 0.05),
    Entry("DP-HP", "table 3, 6, 9, 10", "sizes and settings", reason="docs/hermite.md names what differs"),
    Entry("DP-HP", "table 7", "tables, ε = ∞", _TABLES, "hp | merf", _run("covtype", "hp", " --epsilon inf"),
          hours=0.15, epsilon=math.inf),
    Entry("DP-HP", "table 8", "dimension of products 2, 5", "adult_discretized",
          "hp, 10 products of 2 columns | hp, 10 products of 5 columns",
          _run("adult_discretized", "'hp, 10 products of 5 columns'"), hours=0.1),
    Entry("DP-HP", "table 8", "dimension of products 7", reason="not run: 10 products of one-hot columns have "
          "2,398,264 cells, 59 times those of dimension 5; about 2.5 hours of one core a draw"),
    Entry("DP-HP", "figure 6", "twelve classifiers on images", "mnist fashion_mnist", "hp | merf", "", _CLASSIFIERS),
    Entry(
        "DP-HP preprint", "all", "an earlier version of DP-HP", reason="its tables and figures are those above",
    ),
    Entry("PEARL", "figure 1, 2", "drawings of the method", reason="no experiment"),
    Entry(
        "PEARL", "figure 3, 5 to 8", "images at ε = .2, 1, 10, ∞", reason="docs/img/grid_mnist_pearl.png has ε = 1",
    ),
    Entry(
        "PEARL", "table 1", "FID and KID of MNIST and Fashion-MNIST", "mnist fashion_mnist", "pearl | merf", "",
        "another network gives features, because the paper's is not published; its GANs are not built here",
    ),
    Entry("PEARL", "table 1, figure 8", "without critic", "digits mnist", "pearl without critic"),
    Entry("PEARL", "table 2, 4", "Adult, 10 classifiers", "adult_rebalanced", "pearl | merf", "", "twelve classifiers"),
    Entry("PEARL", "table 3", "Adult: range queries, 2-way marginals, MMD", "adult_rebalanced", "pearl | merf", "",
          "2-way total variation is half of its L1; ranges and MMD are in each run's report"),
    Entry("PEARL", "table 3", "Credit", "", "", _run("credit", "pearl"), _GONE),
    Entry("PEARL", "figure 4, 9, 10", "histograms of Adult", "", "", "likeness run", "each run's report draws them"),
    Entry("DP-NTK", "table 1, figure 1", "widths 100 to 1,000 at ε = 10", "mnist",
          "ntk, width 100 | ntk, width 400 | ntk | ntk, width 1,000",
          "python -m evidence.papers --data mnist --method 'ntk, width 100' --epsilon 10",
          "width 800 is the default", 0.1, 10.0),
    Entry("DP-NTK", "figure 2", "images", reason="docs/img/grid_mnist_ntk.png"),
    Entry("DP-NTK", "table 2", "MNIST at ε = .2, 1, 10", "mnist", "ntk | pearl | hp | merf"),
    Entry("DP-NTK", "table 2", "Fashion-MNIST at ε = 1", "fashion_mnist", "ntk | pearl | hp | merf"),
    Entry("DP-NTK", "table 2", "Fashion-MNIST at ε = .2, 10", "", "", _run("fashion_mnist", "ntk", " --epsilon 10"),
          "not run: four methods at two ε, about 0.1 hours of one core each"),
    Entry("DP-NTK", "table 3", "beside DP-MEPF", reason="DP-MEPF needs features of a network of ImageNet"),
    Entry("DP-NTK", "figure 3", "CelebA, 32 × 32", "", "",
          "python scripts/build_images.py celeba FOLDER data/raw/celeba.parquet", _GONE),
    Entry("DP-NTK", "figure 4", "CIFAR-10 at ε = 10", "cifar10", "ntk | ntk by a residual network | merf",
          "python -m evidence.cifar release FOLDER", "4,703 of 40,000 steps; another FID; JPEG copies"),
    Entry("DP-NTK", "table 4, 5", "Adult, Census, Covertype", _TABLES, "real | ntk"),
    Entry("DP-NTK", "table 4, 5", "Adult by the paper's network cnn_2l 30_200", "adult_rebalanced", "ntk by cnn_2l",
          _run("adult_rebalanced", "'ntk by cnn_2l'"), hours=0.1),
    Entry("DP-NTK", "table 4", "Cervical", "cervical", "real | ntk"),
    Entry("DP-NTK", "table 4", "Epileptic, Intrusion", "epileptic intrusion", "real | ntk", _run("epileptic", "ntk"),
          hours=0.2),
    Entry("all", "no table", "the methods at their best", "adult_rebalanced",
          "merf, best | hp, best | pearl, best | ntk, best", _run("adult_rebalanced", "'merf, best'"), hours=0.1),
    Entry("DP-NTK", "table 4", "Credit, Isolet", "", "", _run("isolet", "ntk"), _GONE),
)  # fmt: skip


def listing(rows: pd.DataFrame) -> str:
    """All of them, one a line."""
    return "\n".join(entry.line(rows) for entry in ENTRIES)
