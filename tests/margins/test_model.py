"""Tables of the fitted model beside rows that it draws, releases drawn again from it, and the pooling of these.

A fit and what it saved give the same; where this package is not installed, the core refuses it by name.
"""

from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_synthesizer import ledger, rows, small  # noqa: F401
from toy_release import ROWS, SCHEMA, exact, method, without_noise
from typer.testing import CliRunner

import likeness
from likeness import Synthesizer, combine
from likeness.cli.app import app
from likeness.core import rng
from likeness.core.errors import LikenessError, MissingPackageError, ParamsError
from likeness.generators.base import Compute, Generator
from likeness.inference.estimates import Answers, Question
from likeness.inference.measurements import measurements
from likeness.methods import METHODS
from likeness.methods.base import Context
from likeness.methods.fit import fit
from likeness.methods.maps import from_spec
from likeness.methods.marginals.method import Marginals
from likeness.methods.row_set import RowSet
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.drawn_rows import DrawnRows
from likeness.release.released import Released
from likeness.synthesizer.published import MARGINS, Published
from likeness_margins import model
from likeness_margins.model import FittedModel
from likeness_margins.replicates import _Source, redrawn, replicates

CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)
ROW_SETS = (RowSet(CONTEXT, ""),)


@cache
def released_model() -> tuple[dict[str, Released], SavedGenerator]:
    released = {one.receipt.query: one for one in exact()}
    auxiliary = {name: one for name, one in released.items() if name != "embedding"}
    return released, fit(method(), CONTEXT, auxiliary, released["embedding"])[0]


def fitted() -> FittedModel:
    return FittedModel(SCHEMA, released_model()[1])


@pytest.mark.parametrize("names", [("c",), ("c", "y"), ("y", "age", "c")])
def test_shares_are_those_of_drawn_rows(names: tuple[str, ...]) -> None:
    """Each share of 20,000 rows within .02. The order of the names is that of the index, label or not."""
    shares, missing = fitted().marginal(names), fitted().marginal("d")
    assert missing.equals(fitted().marginal(["d"])) and list(missing.index.isna()) == [False, False, True]
    ages = fitted().marginal("age").index
    ends = [-1, *(int(label.split("..")[-1]) for label in ages)]
    rows = DrawnRows(fitted().saved, SCHEMA).draw_where(20_000, 0, {})
    rows["age"] = pd.cut(rows.age, ends, labels=ages)
    drawn = rows.groupby(list(names), observed=False).size() / len(rows)
    assert list(shares.index.names) == list(names) and shares.sum() == pytest.approx(1)
    assert len(shares) == len(drawn) and shares.to_numpy() == pytest.approx(drawn[shares.index].to_numpy(), abs=0.02)


@pytest.mark.parametrize(
    ("names", "message"),
    [(("c", "c"), "different names"), ((), "at least one"), (("height",), "one of y, c.*got .height")],
)
def test_a_wrong_question_is_refused(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        fitted().marginal(names)


def test_too_many_cells_and_a_model_without_tables_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "MOST_CELLS", 11)
    assert len(fitted().marginal(["c", "y"])) == 6
    with pytest.raises(ParamsError, match=r"age, c have 12 cells, more than 11\. Name fewer columns"):
        fitted().marginal(["age", "c"])
    saved: SavedGenerator = fitted().saved
    monkeypatch.setattr(type(saved.network), "table_cells", Generator.table_cells)
    other = replace(fitted(), saved=replace(saved, provenance={**saved.provenance, "method": "merf"}))
    with pytest.raises(ParamsError, match=r"merf has no tables.*Use method marginals"):
        other.marginal("c")


def test_a_release_is_drawn_again_as_the_model_expects_it() -> None:
    """Rows that the model draws have the numbers of a redrawn release without noise, within three per cent points."""
    released, saved = released_model()
    counts, random = ROWS * np.array(saved.class_weights), rng.public(0, "test")
    again = [
        redrawn(without_noise(one), saved.network, counts, random) for name, one in released.items() if name != "steps"
    ]
    answers = Answers(measurements(SCHEMA, again))
    rows = DrawnRows(saved, SCHEMA).draw_where(20_000, 0, {})
    for name, by in (("c", "y"), ("d", "c")):
        shares = answers.frame(Question((name,), (by,))).estimate.drop(index=np.nan, level=name, errors="ignore")
        drawn = pd.crosstab(rows[name].cat.add_categories("-").fillna("-"), rows[by], normalize="columns")
        expected = [drawn.loc[cell, group] for cell, group in shares.index]
        assert shares.to_numpy() == pytest.approx(expected, abs=0.03)
    cells, ages = answers.frame(Question(("c",), ("age",), "count")).estimate, [-1, *answers.measured.axes["age"].highs]
    drawn = pd.crosstab(rows.c, pd.cut(rows.age, ages)).to_numpy().reshape(-1) * ROWS / len(rows)
    assert cells.to_numpy() == pytest.approx(drawn, abs=0.02 * ROWS)
    terms = answers.measured.terms
    for name, histogram in terms.histograms.items():  # fine cells add up to coarse ones
        sums = np.add.reduceat(histogram.counts, histogram.firsts)
        assert sums == pytest.approx(terms.linear({name: np.eye(len(sums))}), rel=1e-4, abs=1e-3)
    means = answers.frame(Question(("age", "money", "amount"), statistic="mean"))
    for name, mean in rows[["age", "money", "amount"]].mean().items():
        one = means.loc[name]
        assert one.low - 0.03 * one.estimate <= mean <= one.high + 0.03 * one.estimate


def test_products_are_those_of_drawn_rows_and_noise_is_that_of_the_receipt() -> None:
    """The mean square of 826 coordinates in units of σ; outside of .7 ... 1.3 with probability below 1e-6."""
    released, saved = released_model()
    counts, one = ROWS * np.array(saved.class_weights), released["products"]
    again = redrawn(without_noise(one), saved.network, counts, rng.public(0, "test")).values / ROWS
    feature = from_spec({key: value for key, value in one.receipt.feature.items() if key != "terms"})
    assert again[0] == pytest.approx(feature(saved.draw(20_000, 0)[0]).mean(axis=0), abs=0.03)
    one = released["embedding"]
    noisy, other = (redrawn(one, saved.network, counts, rng.public(seed, "test")).values for seed in (1, 2))
    smooth = redrawn(without_noise(one), saved.network, counts, rng.public(1, "test")).values
    assert 0.7 < np.square((noisy - smooth) / one.noise_std).mean() < 1.3 and not (other == noisy).any()


def models() -> list[SavedGenerator]:
    """The base and replicates."""
    released, saved = released_model()
    return [model for (model,), _ in replicates(method(), ROW_SETS, released.values(), [saved], Compute(), 2, 7)]


def test_replicates_are_repeatable_and_scatter() -> None:
    first, again = ([model.network.arrays()["logits"] for model in models()] for _ in range(2))
    assert np.array_equal(first[0], again[0]) and np.array_equal(first[1], again[1])
    assert not np.array_equal(first[0], first[1]) and not np.array_equal(first[1], first[2]) and len(first) == 3


def test_base_and_replicates_are_fitted_without_a_penalty_from_the_model_of_the_synthetic_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The penalty serves synthetic rows. The bias of replicates is the distance from the table, not from the base.

    A histogram that is drawn again would make other bins than those whose records the release counts.
    """
    released, saved = released_model()
    asked, sources, starts, penalties = set(), [], [], []
    refit = Marginals.refit

    def redraw(one: Released, model: Any, *given: Any) -> Released:
        asked.add(one.receipt.query)
        sources.append(model)
        return redrawn(one, model, *given)

    def start(self: Marginals, *given: Any) -> Any:
        starts.append(given[3])
        penalties.append(self.train.kl_penalty)
        return refit(self, *given)

    monkeypatch.setattr("likeness_margins.replicates.redrawn", redraw)
    monkeypatch.setattr(Marginals, "refit", start)
    base, *_ = models()
    assert len(sources) == 8 and all(model is saved.network for model in [*sources, *starts])
    assert base.network is not saved.network
    assert asked == {"class_counts", "products", "second", "embedding"} < set(released)
    assert penalties == [0] * 3 and method().train.kl_penalty > 0


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"marginals"}))
def test_a_method_whose_model_gives_no_counts_is_refused(name: str) -> None:
    released, saved = released_model()
    with pytest.raises(ParamsError, match=f"{name} makes no replicates.*Use method marginals"):
        next(replicates(METHODS[name](), ROW_SETS, released.values(), [saved], Compute(), 2, 0))


def test_rubins_rules_by_hand() -> None:
    """Estimates 1, 2, 3 with variances 1: within 1, between 1, total 1 + 4/3, 2 (1 + 3/4)^2 degrees of freedom."""
    pooled = combine([1, 2, 3], [1, 1, 1]).iloc[0]
    assert pooled.estimate == 2 and pooled.standard_error == pytest.approx((7 / 3) ** 0.5)
    assert pooled.df == pytest.approx(2 * 1.75**2)
    assert pooled.high - 2 == pytest.approx(2.4535 * (7 / 3) ** 0.5, rel=0.01)
    only_noise = combine([1, 2, 3]).iloc[0]
    assert only_noise.standard_error == pytest.approx((4 / 3) ** 0.5) and only_noise.df == 2
    # Replicates lie .5 below the table that they are drawn from, so the base lies .5 below the truth too.
    biased = combine([1, 2, 3], [1, 1, 1], base=4, table=2.5).iloc[0]
    assert biased.estimate == 4.5 and biased.standard_error == pytest.approx((2 + 4 / 3) ** 0.5)
    series = combine([pd.Series({"a": 1.0, "b": 5.0}), pd.Series({"a": 2.0, "b": 5.0})])
    assert list(series.index) == ["a", "b"] and series.loc["b", "low"] == series.loc["b", "high"] == 5


def test_pooled_intervals_cover_where_the_rules_hold() -> None:
    """400 draws of a normal estimate, with 20 replicates around it; outside of 360 ... 396 with probability 1e-5."""
    random, inside = np.random.default_rng(0), 0
    for _ in range(400):
        noisy = random.normal(random.normal(0, 1.0), 2.0)  # a sample of variance 1, noise of variance 4
        interval = combine(random.normal(noisy, 2.0, 20), np.ones(20)).iloc[0]
        inside += bool(interval.low <= 0 <= interval.high)
    assert 360 <= inside <= 396


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *((([1.0],), "at least two replicates"), (([1.0, 2.0], [1.0]), "shape of estimates")),
        *((([1.0, 2.0], [1.0, -1.0]), "be 0 or more"), (([1.0, [2.0, 3.0]],), "vector of equal length")),
        (([1.0, float("nan")],), "finite numbers"),
        (([1.0, 2.0], None, [1.0, 2.0], 1.0), "base must be an estimate as each"),
        (([1.0, 2.0], None, 1.0, [1.0, 2.0]), "table must be an estimate as each"),
        (([1.0, 2.0], None, 1.0), "base and table go together"),
        (([1.0, 2.0], None, None, None, 95), "level must be between 0 and 1"),
    ],
)
def test_what_cannot_be_pooled_is_refused(given: tuple, message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        combine(*given)


def test_both_row_sets_of_histories_get_their_own_noise() -> None:
    """With one stream, the noise of people would come back in their transitions."""
    released, saved = released_model()
    noise = []
    for prefix in ("", "next_"):
        source = _Source(method(), ROW_SETS[0], list(released.values()), saved, Compute())
        source.prefix = prefix
        noise.append(source.redraw(0, 7).network.arrays()["logits"])
    assert not np.array_equal(noise[0], noise[1])


@pytest.mark.long
@pytest.mark.usefixtures("ledger")
def test_a_saved_fit_is_the_same_and_a_missing_wing_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = small().fit(rows())
    fitted.save(tmp_path / "saved")
    loaded = Synthesizer.load(tmp_path / "saved")
    assert loaded.model_.marginal(["c", "y"]).equals(fitted.model_.marginal(["c", "y"]))
    line = fitted.regression("y", ["c"], "Yes", sampling=True)
    assert loaded.regression("y", "c", "Yes", sampling=True).equals(line) and (line.noise_error > 0).all()
    tables, again = fitted.sample(99, replicates=2), loaded.sample(99, replicates=2)
    assert all(one.equals(other) for one, other in zip(tables, again, strict=True)) and not tables[0].equals(tables[1])
    written = list(Published.read(tmp_path / "saved").replicates(99, 0, {}, 2))  # as `likeness sample` does
    assert all(one.equals(other["synthetic"]) for one, other in zip(tables, written, strict=True))
    words = ["sample", str(tmp_path / "saved"), "--rows", "99", "--replicates", "2", "--out", str(tmp_path / "r.csv")]
    assert CliRunner().invoke(app, words).stdout.count("99 rows") == 3
    drawn = [pd.read_csv(tmp_path / f"r_{place}.csv") for place in (0, 1, 2)]
    assert [one.a.tolist() for one in drawn] == [pytest.approx(one.a.tolist()) for one in tables]
    with pytest.raises(LikenessError, match="needs more memory than there is"):
        fitted.sample(10**12, where={"c": "u"}, replicates=2)
    monkeypatch.setattr("likeness.core.wings.find_spec", lambda name: None if "margins" in name else find_spec(name))
    monkeypatch.setitem(vars(MARGINS), "_names", [])
    uses = {
        "Synthesizer.regression": lambda: fitted.regression("y", "c", "Yes"),
        "Synthesizer.model_": lambda: fitted.model_,
        "A sample with replicates": lambda: fitted.sample(9, replicates=2),
        "A sample with replicates ": lambda: CliRunner().invoke(app, words, catch_exceptions=False),
        "likeness.combine": lambda: likeness.combine([1, 2]),
    }
    remedy = "is that of a part of Likeness. likeness_margins is not installed here. Run: pip install"
    for subject, use in uses.items():
        with pytest.raises(MissingPackageError, match=f"^{subject.strip()} {remedy}"):
            use()
    assert len(fitted.sample(9)) == 9
