"""Intervals cover the truth as often as they say, and planted faults show: see ``toy_release`` for the odds.

``likeness estimate`` in three forms, from public files only; what nobody has has no mean in any of them.
"""

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import toy_release as toy
from toy_release import ROWS, SCHEMA, covered, drawn, exact, read_draws, squared, table, without_noise
from toys import schema_with
from typer.testing import CliRunner

from likeness.bundle.contents import CHECKSUMS
from likeness.bundle.files import sums
from likeness.cli.app import app
from likeness.core.errors import LikenessError, ParamsError, ReleaseError
from likeness.core.format import FORMAT
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.data.schema.yaml import schema_text
from likeness.data.source.files import read_frame
from likeness.inference.axes import Axis
from likeness.inference.estimates import Answers, Question, estimate
from likeness.inference.intervals import Ratio
from likeness.inference.measurements import measurements
from likeness.release.released import Released, to_bytes
from likeness.report.released_numbers import print_numbers
from likeness.synthesizer.published import SAVED

Fault = Callable[[Released], Released]


def truth(question: Question) -> pd.DataFrame:
    """Counts and shares of the exact sums; the reader of cells is checked against the rows elsewhere."""
    return estimate(SCHEMA, [without_noise(one) for one in exact()], question, ROWS)


def asked(question: Question, draws: int = toy.FEW, total: float | None = None) -> toy.Frames:
    return [Answers(measured).frame(question) for measured in read_draws(toy.DRAWS, total)[:draws]]


SHARES = Question(("c",), ("y",))


@pytest.mark.long
@pytest.mark.parametrize("total", [None, ROWS])
def test_shares_are_covered_as_often_as_they_say(total: int | None) -> None:
    frames, true = asked(SHARES, toy.DRAWS, total), truth(SHARES).estimate
    assert (covered(frames, true) >= toy.FEWEST).all() and covered(frames, true).mean() <= toy.MOST
    assert ((squared(frames, true) > toy.LEAST) & (squared(frames, true) < toy.LARGEST)).all()


def dropped(one: Released) -> Released:
    """The first pair, c and d, without its counts."""
    if one.receipt.query != "embedding":
        return one
    lattice = one.lattice.copy()
    lattice[:, :9] = 0  # of 3 categories, and 2 with missing
    return replace(one, lattice=lattice)


@pytest.mark.long
@pytest.mark.parametrize("fault", [toy.understated, dropped])
def test_coverage_shows_a_wrong_receipt_and_a_lost_pair(fault: Fault) -> None:
    """The least of six numbers is seven deviations below 47: fails with probability below 1e-9."""
    frames = [estimate(SCHEMA, map(fault, draw), SHARES) for draw in drawn(toy.DRAWS)[: toy.FEW]]
    assert (covered(frames, truth(SHARES).estimate) < toy.FEWEST_OF_FEW).any()


@pytest.mark.long
def test_coverage_shows_dependent_counts_that_are_taken_as_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least mean square is .41 with a deviation of .034: above ``LEAST`` with probability below 1e-6."""
    sound = Ratio.__init__

    def faulty(self: Ratio, x: Any, y: Any, noise: Any, sampling: Any = (0.0, 0.0, 0.0)) -> None:
        sound(self, x, y, (noise[0], 0 * noise[1], noise[2]), sampling)

    monkeypatch.setattr(Ratio, "__init__", faulty)
    question = Question(("y",), ("c",))
    frames, true = asked(question, toy.DRAWS), truth(question).estimate
    assert squared(frames, true).min() < toy.LEAST


@pytest.mark.long
def test_means_and_quantiles_are_covered_at_least_as_often() -> None:
    numbers = ("age", "money", "amount")
    means, rows = asked(Question(numbers, statistic="mean")), table()[[*numbers]]
    assert (covered(means, rows.mean().to_numpy()) >= toy.FEWEST_OF_FEW).all()
    alone = asked(Question(("age",), statistic="mean"), toy.DRAWS)  # each cell of its histogram holds one number
    assert covered(alone, rows.age.mean())[0] >= toy.FEWEST and alone[0].cell_error["age"] == 0
    age = alone[0].loc["age"]
    assert (age.high - age.low) / (2 * age.noise_error) == pytest.approx(1.96, rel=0.01)
    medians = asked(Question(numbers, statistic="quantile"))
    assert (covered(medians, rows.quantile(0.5, interpolation="lower").to_numpy()) >= toy.FEWEST_OF_FEW).all()


@pytest.mark.long
def test_a_pair_with_more_weight_has_less_noise() -> None:
    """The mean over 12 cells of 60 squared errors each; its deviation is .06: outside with probability below 2e-5."""
    question = Question(("c",), ("age",), "count")
    assert 0.7 < squared(asked(question), truth(question).estimate).mean() < 1.4


@pytest.mark.long
def test_samples_of_a_population_are_covered() -> None:
    """200 samples of 30,000 rows, of a population in which a share is .1; a false alarm has probability 3e-6."""
    generator, question = np.random.default_rng(0), Question(("c",), sampling=True)
    (counts, *_), answers = exact(), []
    for draw in drawn(toy.DRAWS):
        sample = generator.binomial(10 * ROWS, 0.1)
        totals = np.array([[10 * ROWS - sample], [sample]]) << counts.receipt.lattice_bits
        noisy = replace(draw[0], lattice=draw[0].lattice - counts.lattice + totals)
        answers.append(estimate(SCHEMA, [noisy], replace(question, columns=("y",))).loc["Yes"])
    every = pd.DataFrame(answers)
    assert ((every.low <= 0.1) & (every.high >= 0.1)).sum() >= toy.FEWEST
    error = np.hypot(every.noise_error, every.sampling_error)
    assert toy.LEAST < np.square((every.estimate - 0.1) / error).mean() < toy.LARGEST
    assert ((every.high - every.low) / (2 * error)).to_numpy() == pytest.approx(1.96, rel=0.01)


@pytest.mark.long
def test_exact_sums_give_the_numbers_of_the_table() -> None:
    rows = table()
    counts = truth(Question(("c", "d"), ("y",), "count"))
    for (c, d, y), count in counts.estimate.items():
        same = rows.d.isna() if pd.isna(d) else rows.d == d
        assert count == pytest.approx(int(((rows.c == c) & same & (rows.y == y)).sum()), abs=1e-3)
    assert len(counts) == 18 and (counts.noise_error == 0).all()
    within = truth(Question(("c",), ("d",))).estimate
    assert within["u", "left"] == pytest.approx(float((rows.c[rows.d == "left"] == "u").mean()))
    assert truth(Question(("age",), statistic="mean")).estimate["age"] == pytest.approx(rows.age.mean())
    assert truth(Question(("age",), statistic="quantile", quantile=0.9)).estimate["age"] == rows.age.quantile(0.9)
    money = truth(Question(("money",), statistic="mean")).loc["money"]
    assert money.low <= rows.money.mean() <= money.high and money.cell_error > 1


def test_cells_are_named_in_units_of_the_column() -> None:
    """Bins of the embedding follow from released histograms, and every value is encoded into the bin of its name."""
    measured = measurements(SCHEMA, exact())
    axes, encoder = measured.axes, Encoder(SCHEMA)
    assert axes["d"].labels == ("left", "right", None) and list(axes) == ["y", "c", "d", "age", "money", "amount"]
    assert axes["money"].labels[0] == "0" and axes["money"].labels[-1] is None
    assert axes["amount"].labels[0] == "0" and axes["amount"].highs[-1] == 5000
    for name in ("age", "money", "amount"):
        axis, cells = axes[name], measured.cells[name]
        for values in (axis.lows, axis.highs):
            rows = pd.concat([table().iloc[:1]] * len(values)).assign(**{name: values.astype(table()[name].dtype)})
            places = cells.cell_indices(encoder.expand(encoder.encode(rows)))
            # A range's end is written as the next one's beginning.
            assert (np.abs(places - np.arange(len(values))) <= (values is axis.highs)).all()
        assert axis.lows[0] == 0 and 4 <= len(axis.lows) <= 6


def test_a_release_of_class_counts_answers_for_classes_only() -> None:
    counts = exact()[:1]
    assert estimate(SCHEMA, counts, Question(("y",))).estimate.sum() == pytest.approx(1)
    with pytest.raises(ReleaseError, match=r"counts no cells of 'c'.*It counts cells of: y.*with method marginals"):
        estimate(SCHEMA, counts, Question(("c",)))


def test_a_table_without_classes_has_a_number_of_records() -> None:
    schema = replace(SCHEMA, columns=SCHEMA.columns[:-1], label=None, task="none")
    counts = exact()[0]
    one = replace(counts, lattice=counts.lattice.sum(axis=0)[None], receipt=replace(counts.receipt, num_groups=1))
    assert measurements(schema, [one]).terms.total == ROWS


def test_a_pair_that_was_not_released_is_refused_by_name() -> None:
    with pytest.raises(ReleaseError, match="no joint counts of c, d, age"):
        estimate(SCHEMA, exact(), Question(("c", "d", "age")))


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        *(({"columns": "z"}, "columns must be one of"), ({"columns": "c", "by": "c"}, "different names")),
        *(({"columns": ()}, "different names"), ({"columns": "c", "statistic": "mode"}, "statistic must be one of")),
        ({"columns": "c", "statistic": "mean"}, "has categories and no mean"),
        ({"columns": "c", "level": 95}, "level must be between 0 and 1"),
        ({"columns": "age", "statistic": "quantile", "quantile": 1}, "quantile must be between 0 and 1"),
        ({"columns": "c", "max_cv": 0}, "max_cv must be above 0"),
    ],
)
def test_a_question_that_nobody_can_answer_is_refused(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(ParamsError, match=rule):
        estimate(SCHEMA, exact(), Question.from_columns(**given))


def test_a_ratio_of_an_empty_group_may_be_anything() -> None:
    one = np.ones(1)
    low, high = Ratio(3 * one, 0.5 * one, (one, 0 * one, one)).interval(1.96)
    assert (low[0], high[0]) == (-np.inf, np.inf)
    low, high = Ratio(30 * one, 60 * one, (one, 0 * one, one)).interval(1.96)
    assert 0.45 < low[0] < 0.5 < high[0] < 0.55


@pytest.mark.parametrize("by", [(), ("y",)])
@pytest.mark.parametrize("statistic", ["share", "count"])
def test_numbers_that_noise_hides_are_possible_marked_and_beside_the_unbiased_ones(
    statistic: str, by: tuple[str, ...]
) -> None:
    measured = measurements(SCHEMA, map(toy.noisier, drawn(1)[0]))
    frame = Answers(measured).frame(Question(("c", "d"), by, statistic))
    most = 1.0 if statistic == "share" else np.inf
    assert frame.unbiased.min() < 0 and frame.unreliable.any()
    total = max(measured.terms.total, 1.0) if statistic == "count" else 1.0
    sums = frame.estimate.groupby(level=list(by)).sum() if by and statistic == "share" else frame.estimate.sum()
    assert np.nan_to_num(sums, nan=total) == pytest.approx(total)
    shown = frame[frame.estimate.notna()]
    assert ((shown.low >= 0) & (shown.low <= shown.estimate) & (shown.estimate <= shown.high)).all()
    assert (shown.high <= most).all()


def test_means_that_noise_hides_lie_within_the_bounds_and_quality_is_for_the_office_to_set() -> None:
    measured = measurements(SCHEMA, map(toy.noisier, drawn(1)[0]))
    for by in ((), ("y",)):
        frame = Answers(measured).frame(Question(("age", "money", "amount"), by, "mean"))
        for name, rows in frame.groupby(level="column"):
            lower, upper = SCHEMA.column(str(name)).bounds
            for key in ("estimate", "low", "high"):
                assert rows[key].dropna().between(lower, upper).all()
    answers = Answers(measurements(SCHEMA, drawn(1)[0]))
    strict, usual = (answers.frame(Question(("c",), ("y",), max_cv=cv)) for cv in (1e-4, 0.3))
    assert strict.unreliable.all() and (usual.unreliable == (usual.cv > 0.3)).all() and 0 < usual.unreliable.sum() < 6
    large = usual[usual.unbiased > 0.1]
    assert large.cv.to_numpy() == pytest.approx((large.noise_error / large.estimate).to_numpy(), rel=0.05)


def test_an_index_never_has_the_name_of_a_result() -> None:
    columns = [
        replace(column, name={"d": "low", "c": "column"}.get(column.name, column.name)) for column in SCHEMA.columns
    ]
    schema = replace(SCHEMA, columns=tuple(columns))
    assert next(iter(estimate(schema, exact(), Question(("low",))).reset_index())) == "column:low"
    means = estimate(schema, exact(), Question(("age",), ("column",), "mean"))
    assert means.index.names == ["column", "column:column"]


def test_files_of_another_schema_are_refused() -> None:
    other = replace(SCHEMA, columns=SCHEMA.columns[1:])
    with pytest.raises(ReleaseError, match="about another schema"):
        estimate(other, exact(), Question(("d",)))
    axis = Axis.from_column(SCHEMA.column("y"))
    assert axis.labels == ("No", "Yes") and axis.size == 2


DAYS = {"lower": "2000-01-01", "upper": "2009-12-31", "nullable": True}
DATED = schema_with(
    {
        "age": {"kind": "integer", "lower": 0, "upper": 39},
        "died": {"kind": "date", **DAYS},
        "moved": {"kind": "datetime", **DAYS},
        "paid": {"kind": "numeric", "lower": 0, "upper": 9, "nullable": True},
        "y": {"kind": "categorical", "categories": ["No", "Yes"]},
    },
    "y",
)
DATES = ("died", "moved")


@pytest.fixture(scope="module")
def released() -> tuple[Released, ...]:
    """Nobody has died or paid, and of class Yes nobody moved."""
    rows: dict[str, Any] = {"age": np.arange(60) % 40, "died": [None] * 60, "paid": [None] * 60}
    rows |= {"moved": ["2001-02-03 04:05:06"] * 30 + [None] * 30, "y": ["No"] * 30 + ["Yes"] * 30}
    return toy.sums_of(DATED, read_frame(pd.DataFrame(rows), DATED))


@pytest.mark.parametrize("statistic", ["mean", "quantile"])
def test_its_mean_and_quantiles_are_missing(released: tuple[Released, ...], statistic: str) -> None:
    answer = estimate(DATED, released, Question(("died", "moved", "paid"), (), statistic))
    assert answer.estimate.isna().tolist() == [True, False, True]
    assert (answer.low["died"], answer.high["died"]) == ("2000-01-01", "2009-12-31")
    by_class = estimate(DATED, released, Question(DATES, ("y",), statistic))
    assert by_class.estimate.isna().tolist() == [True, True, False, True]


def test_noise_moves_no_date_out_of_its_bounds(released: tuple[Released, ...]) -> None:
    few = [one.lattice * 0 + (np.arange(one.lattice.size).reshape(one.lattice.shape) % 7 - 3) for one in released]
    noisy = [replace(one, lattice=lattice) for one, lattice in zip(released, few, strict=True)]
    answer = estimate(DATED, noisy, Question(DATES, ("y",), "mean"))
    present = [one for one in answer.estimate if one is not None]
    assert all("2000-01-01" <= one <= "2009-12-31 23:59:59" for one in present)


def test_a_report_shows_a_dash(released: tuple[Released, ...]) -> None:
    fewer = [replace(one, lattice=-one.lattice - 1) for one in released]
    numbers = print_numbers(DATED, Answers(measurements(DATED, fewer)), None)
    assert "–" in str(numbers) and "nan" not in str(numbers).lower()


def saved(folder: Path, schema: Schema, released: Sequence[Released]) -> Path:
    """The public files that an estimate needs."""
    (folder / "released").mkdir()
    for one in released:
        (folder / f"released/{one.receipt.query}.safetensors").write_bytes(to_bytes(one))
    (folder / "schema.yaml").write_text(schema_text(schema), encoding="utf-8")
    privacy = {"format": FORMAT, "adjacency": "add_remove_one", "num_records": None}
    (folder / "privacy.json").write_text(json.dumps(privacy))
    (folder / SAVED).write_text(json.dumps({"frames": {}, "params": {"cap": None, "epsilon": 1}}))
    (folder / CHECKSUMS).write_text(sums(folder))
    return folder


def output(folder: Path, *words: str) -> str:
    result = CliRunner().invoke(app, ["estimate", str(folder), *words])
    assert result.exit_code == 0, result.exception
    return str(result.stdout)


def test_the_command_says_it_in_all_forms(released: tuple[Released, ...], tmp_path: Path) -> None:
    words = (saved(tmp_path, DATED, released), "--columns", "died,paid", "--statistic", "mean")
    assert [line.split()[:2] for line in output(*words).splitlines()[1:]] == [["died", "-"], ["paid", "-"]]
    assert output(*words, "--csv").splitlines()[1].startswith("died,,")
    assert [row["estimate"] for row in json.loads(output(*words, "--json"))["rows"]] == [None, None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path, SCHEMA, exact())


def test_all_three_forms_have_the_numbers_of_python(folder: Path) -> None:
    expected = estimate(SCHEMA, exact(), Question(("d",), ("y",), sampling=True))
    words = ("--columns", "d", "--by", "y", "--sampling")
    table = pd.read_csv(io.StringIO(output(folder, *words, "--csv")))
    errors = ["noise_error", "sampling_error", "low", "high", "cv", "unreliable"]
    assert list(table) == ["d", "y", "estimate", "unbiased", *errors]
    assert table.estimate.to_numpy() == pytest.approx(expected.estimate.to_numpy())
    answer = json.loads(output(folder, *words, "--json"))
    assert [row["cell"] for row in answer["rows"]][-1] == {"d": None, "y": "Yes"}
    assert [row["low"] for row in answer["rows"]] == pytest.approx(expected.low.tolist())
    text = output(folder, *words).splitlines()
    assert text[0].split() == list(table) and len(text) == 7 and text[5].split()[:2] == ["-", "No"]
    text = output(folder, "--columns", "age, money", "--statistic", "mean", "--level", "0.9").splitlines()
    assert [line.split()[0] for line in text] == ["column", "age", "money"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--columns", "d", "--csv", "--json"], "--csv and --json"),
        (["--columns", "nothing"], "columns must be one of c, d"),
        (["--columns", "d,c,age"], "no joint counts of d, c, age"),
    ],
)
def test_refusals(folder: Path, words: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["estimate", str(folder), *words])
    assert isinstance(result.exception, LikenessError) and message in str(result.exception)
