"""Utility by hand; dependence of columns: marginals, Cramér's V, and the shuffled table that has none."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from likeness.core.errors import DataError, ParamsError
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.evaluation import marginals, utility
from likeness.evaluation.classifiers import CLASSIFIERS, REGRESSORS, SLOWEST_FIRST, select
from likeness.evaluation.marginals import cells, cramers_v, marginal_table, total_variation, tuples
from likeness.evaluation.utility import (
    CLASSIFICATION_METRICS,
    REGRESSION_METRICS,
    classification_scores,
    decision_scores,
    features_and_label,
    one_vs_rest,
    shuffle_columns,
    train_on_synthetic_test_on_real,
)

Tables = Callable[..., pd.DataFrame]


def test_hard_scores_see_predictions_only_and_score_scores_see_the_ranking() -> None:
    truth = np.array([0, 0, 0, 1])
    predicted = np.zeros(4, int)
    ranking = np.array([0.1, 0.2, 0.3, 0.4])
    scores = classification_scores(truth, predicted, np.stack([1 - ranking, ranking], axis=1))
    assert scores["roc_auc_score"] == scores["average_precision_score"] == 1.0
    assert (scores["roc_auc_hard"], scores["average_precision_hard"]) == (0.5, 0.25)
    assert (scores["f1"], scores["accuracy"]) == (0.0, 0.75)


def test_the_positive_class_is_the_last_one() -> None:
    truth = np.array([0, 1, 1, 1])
    scores = classification_scores(truth, np.array([0, 1, 1, 0]), np.eye(2)[[0, 1, 1, 0]])
    assert scores["f1"] == pytest.approx(0.8)  # of class 0 it would be 2/3


def test_several_classes_are_averaged_over_those_present() -> None:
    truth = np.array([0, 0, 1, 1, 3])  # class 2 does not occur
    ranking = np.random.default_rng(1).uniform(size=(5, 4))
    expected = np.mean([roc_auc_score(truth == label, ranking[:, label]) for label in (0, 1, 3)])
    assert one_vs_rest(truth, ranking, roc_auc_score) == pytest.approx(expected)
    assert one_vs_rest(np.zeros(5, int), ranking, roc_auc_score) == 0.5


def test_with_several_classes_f1_is_weighted_by_how_often_each_occurs() -> None:
    """Class 0: precision 3/4, recall 1, F1 6/7. Class 1: precision 1, recall 1/2, F1 2/3. Class 2 does not occur."""
    truth, predicted = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 0, 0, 1])
    scores = classification_scores(truth, predicted, np.eye(3)[predicted])
    assert scores["f1"] == pytest.approx(3 / 5 * 6 / 7 + 2 / 5 * 2 / 3)


def test_errors_of_a_regression_by_hand() -> None:
    """Nine labels are too few to fit, so their mean .5 is predicted: errors .3 and .1."""
    few, test = (np.zeros((9, 1)), np.linspace(0.1, 0.9, 9)), (np.zeros((2, 1)), np.array([0.8, 0.4]))
    scores = utility.fit_and_score(REGRESSORS["ridge"], 0, few, test, 0)
    assert scores["rmse"] == pytest.approx((0.1 / 2) ** 0.5) and scores["r2"] == pytest.approx(1 - 0.1 / 0.08)


def test_a_class_never_seen_gets_the_least_score() -> None:
    x = np.array([[0.0], [1.0]] * 10, np.float32)
    model = CLASSIFIERS["linear_svm"](0).fit(x, np.array([0, 1] * 10))
    scores = decision_scores(model, x, np.array([0, 2]), 3)
    assert (scores[:, 1] <= scores.min(axis=1)).all() and (scores[x[:, 0] == 1].argmax(axis=1) == 2).all()


@pytest.mark.parametrize("num_classes", [2, 3])
def test_naive_bayes_ranks_rows_whose_probabilities_round_to_one(num_classes: int) -> None:
    draw = np.random.default_rng(3)
    y = draw.integers(0, num_classes, 600)
    x = (0.3 * y[:, None] + draw.normal(size=(600, 1)) * np.ones(200)).astype(
        np.float32
    )  # one column, two hundred times
    model = CLASSIFIERS["gaussian_naive_bayes"](0).fit(x, y)
    probabilities = model.predict_proba(x)
    assert np.mean(probabilities[:, -1] == 1) > 0.2, "nothing is rounded here"
    classes = np.arange(num_classes)
    scores = decision_scores(model, x, classes, num_classes)
    assert len(np.unique(scores[:, -1])) > 590 > len(np.unique(probabilities[:, -1]))
    assert (scores.argmax(axis=1) == model.predict(x)).all()
    exact = np.argsort(scores[:, -1])
    assert (np.diff(probabilities[exact, -1]) >= 0).all()  # the same ranking, where the probabilities have one
    if num_classes == 2:
        assert roc_auc_score(y, scores[:, -1]) == pytest.approx(roc_auc_score(y, x[:, 0]), abs=1e-3)


def test_naive_bayes_ranks_rows_that_no_training_row_is_like() -> None:
    """A category that the training rows do not have: its variance is next to none, and logarithms are huge."""
    draw, y = np.random.default_rng(4), np.arange(400) % 2
    signal = y + draw.normal(size=400)
    x = np.stack([signal, np.zeros(400)], axis=1).astype(np.float32)
    model = CLASSIFIERS["gaussian_naive_bayes"](0).fit(x, y)
    x[:, 1] = 1
    assert np.abs(model.predict_joint_log_proba(x)).min() > 1e7
    scores = decision_scores(model, x, np.arange(2), 2)
    assert roc_auc_score(y, scores[:, 1]) == pytest.approx(roc_auc_score(y, signal), abs=0.02)


@pytest.mark.long
def test_one_row_per_classifier_with_the_promised_columns(schema: Schema, table_of: Tables) -> None:
    ended: list[str] = []
    rows = train_on_synthetic_test_on_real(
        table_of(300, 1), table_of(200, 2), schema, 5, CLASSIFIERS, progress=ended.append
    )
    assert list(rows.columns) == ["classifier", *CLASSIFICATION_METRICS, "seconds"]
    assert list(rows["classifier"]) == list(CLASSIFIERS) and sorted(ended) == sorted(CLASSIFIERS)
    assert rows[list(CLASSIFICATION_METRICS)].apply(lambda column: column.between(0, 1)).all(axis=None)
    assert rows["roc_auc_score"].median() > 0.9


@pytest.mark.long
def test_equal_seeds_give_equal_scores_whatever_the_number_of_workers(schema: Schema, table_of: Tables) -> None:
    names = ["random_forest", "mlp", "decision_tree"]
    one, two, other = (
        train_on_synthetic_test_on_real(
            table_of(150, 1), table_of(100, 2), schema, seed, select("classification", names), workers
        ).drop(columns="seconds")
        for seed, workers in ((5, 1), (5, 2), (6, 2))
    )
    pd.testing.assert_frame_equal(one, two)
    assert not one.equals(other)


def test_labels_without_meaning_give_chance(schema: Schema, table_of: Tables) -> None:
    train = table_of(2000, 1)
    train["sick"] = train["sick"].sample(frac=1, random_state=0).array
    rows = train_on_synthetic_test_on_real(
        train, table_of(1000, 2), schema, 0, select("classification", ["decision_tree"])
    )
    assert abs(rows["roc_auc_hard"].item() - 0.5) < 0.1  # standard error .02; with meaning it is above .9


@pytest.mark.parametrize("label", ["no", "yes"])
def test_one_class_only_gives_chance_and_no_crash(schema: Schema, table_of: Tables, label: str) -> None:
    train, test = table_of(100, 1), table_of(100, 2)
    train["sick"] = pd.Categorical([label] * 100, ["no", "yes"])
    rows = train_on_synthetic_test_on_real(train, test, schema, 0, CLASSIFIERS)
    share = float((test["sick"] == "yes").mean())
    assert (rows[["roc_auc_hard", "roc_auc_score"]] == 0.5).all(axis=None)
    assert rows["average_precision_score"].to_numpy() == pytest.approx(share)
    assert rows["accuracy"].to_numpy() == pytest.approx(share if label == "yes" else 1 - share)


@pytest.mark.long
@pytest.mark.parametrize("rows", [1, 2, 12])
def test_tiny_and_constant_tables_do_not_crash(schema: Schema, table_of: Tables, rows: int) -> None:
    train = pd.concat([table_of(500, 1).groupby("sick", observed=True).head(1)] * 6).head(rows)
    assert len(train_on_synthetic_test_on_real(train, table_of(50, 2), schema, 0, CLASSIFIERS)) == len(CLASSIFIERS)


@pytest.mark.long
def test_several_classes_end_to_end_with_one_missing_from_training(table_of: Tables) -> None:
    columns = Column("height", "numeric", 0.0, 8.0), Column("kind", "categorical", categories=("a", "b", "c"))
    schema = Schema("t", "made up", "classification", "kind", columns)
    height = np.random.default_rng(0).uniform(0, 8, 300)
    kind = pd.Categorical.from_codes((height / 2.7).astype(int), ["a", "b", "c"])
    test = pd.DataFrame({"height": height, "kind": kind})
    train = test[test["kind"] != "b"]
    names = ["linear_svm", "lda", "random_forest", "xgboost"]
    full = train_on_synthetic_test_on_real(test, test, schema, 0, select("classification", names)).set_index(
        "classifier"
    )
    part = train_on_synthetic_test_on_real(train, test, schema, 0, select("classification", names)).set_index(
        "classifier"
    )
    assert full.loc["random_forest", "f1"] > 0.95
    assert full.loc["random_forest", "roc_auc_score"] > part.loc["random_forest", "roc_auc_score"] > 0.5
    assert 0.6 < part.loc["random_forest", "accuracy"] < 0.75  # two classes of three, under their own names


def test_a_numeric_label_is_not_among_the_features(schema_of: Callable[[str], Schema], table_of: Tables) -> None:
    x, y = features_and_label(table_of(50, 1, "regression"), schema_of("regression"))
    assert x.shape == (50, 10) and x.dtype == np.float32
    assert not any(np.allclose(x[:, column], y) for column in range(x.shape[1])) and y.min() >= 0 and y.max() <= 1


@pytest.mark.long
def test_regression_learns_and_is_scored_in_units_of_the_range(
    schema_of: Callable[[str], Schema], table_of: Tables
) -> None:
    schema = schema_of("regression")
    train, test = table_of(600, 1, "regression"), table_of(300, 2, "regression")
    rows = train_on_synthetic_test_on_real(train, test, schema, 0, REGRESSORS)
    assert list(rows.columns) == ["classifier", *REGRESSION_METRICS, "seconds"]
    assert list(rows["classifier"]) == list(REGRESSORS) and rows["r2"].median() > 0.7 and rows["rmse"].max() < 0.15
    few = train_on_synthetic_test_on_real(train.head(5), test, schema, 0)
    assert (few["r2"] <= 0).all()


def test_refusals_name_the_rule(schema_of: Callable[[str], Schema], table_of: Tables) -> None:
    table, schema = table_of(20, 1), schema_of("classification")
    with pytest.raises(DataError, match="no rows"):
        train_on_synthetic_test_on_real(table.head(0), table, schema, 0)
    with pytest.raises(DataError, match="no label to learn"):
        train_on_synthetic_test_on_real(table_of(20, 1, "none"), table_of(20, 1, "none"), schema_of("none"), 0)


def test_an_error_of_a_library_is_told_without_its_text(
    schema: Schema, table_of: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        def fit(self, x: object, y: object) -> None:
            raise ValueError("row 7 holds 4711")

    monkeypatch.setattr(utility, "select", lambda *_: {"failing": lambda seed: Failing()})
    with pytest.raises(DataError, match=r"failing failed.*ValueError") as caught:
        train_on_synthetic_test_on_real(table_of(50, 1), table_of(50, 2), schema, 0)
    assert "4711" not in str(caught.value) and caught.value.__cause__ is None and caught.value.__suppress_context__


@pytest.mark.parametrize("registry", [CLASSIFIERS, REGRESSORS])
def test_every_estimator_keeps_its_seed_and_one_thread(registry: dict) -> None:
    seeded = 0
    for factory in registry.values():
        settings = factory(17).get_params()
        assert settings.get("n_jobs", 1) in (None, 1)
        seeded += settings.get("random_state") == 17
    assert seeded >= len(registry) - 3  # the two naive Bayes and LDA draw nothing; so do nearest neighbors


def test_select_takes_the_registry_of_the_task_in_its_order() -> None:
    assert list(select("classification", ["xgboost", "lda"])) == ["lda", "xgboost"]
    assert list(select("classification", CLASSIFIERS)) == list(CLASSIFIERS) and len(CLASSIFIERS) == 12
    assert set(SLOWEST_FIRST) <= set(CLASSIFIERS) | set(REGRESSORS)
    assert list(select("regression", REGRESSORS)) == list(REGRESSORS)


@pytest.mark.parametrize(("task", "linear"), [("classification", "logistic_regression"), ("regression", "ridge")])
def test_by_default_one_of_each_kind_judges_(task: str, linear: str) -> None:
    assert list(select(task)) == [linear, "random_forest", "gradient_boosting"]


@pytest.mark.parametrize("names", [["perceptron"], []])
def test_select_refuses_by_name_and_lists_what_is_allowed(names: list[str]) -> None:
    with pytest.raises(ParamsError, match=r"evaluate\.classifiers.*gradient_boosting"):
        select("classification", names)


def pair(first: list[int], second: list[int]) -> np.ndarray:
    return np.stack([np.array(first), np.array(second)], axis=1)


def test_total_variation_by_hand() -> None:
    a, b = pair([0, 0, 1, 1], [0, 1, 0, 1]), pair([0, 0, 0, 1], [0, 1, 1, 1])
    assert total_variation(a, b, [2, 2], [0]) == 0.25  # (1/2, 1/2) against (3/4, 1/4)
    assert total_variation(a, b, [2, 2], [1]) == 0.25
    assert total_variation(a, b, [2, 2]) == 0.25  # (1,1,1,1)/4 against (1,2,0,1)/4: half of (0 + 1 + 1 + 0)/4
    assert total_variation(pair([0], [0]), pair([1], [1]), [2, 2]) == 1.0


def test_tables_of_different_size_compare_by_share() -> None:
    a = pair([0, 1], [0, 1])
    assert total_variation(a, np.concatenate([a, a, a]), [2, 2]) == 0.0


def test_joint_cells_are_not_confused() -> None:
    # Equal 1-way marginals, opposite dependence: only the pair tells them apart.
    same, crossed = pair([0, 1, 2], [0, 1, 2]), pair([0, 1, 2], [1, 2, 0])
    assert total_variation(same, crossed, [3, 3], [0]) == total_variation(same, crossed, [3, 3], [1]) == 0.0
    assert total_variation(same, crossed, [3, 3]) == pytest.approx(1)


def test_sparse_counting_equals_dense_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    a, b = draw.integers(0, 7, (400, 4)), draw.integers(0, 5, (300, 4))
    dense = total_variation(a, b, [7] * 4)
    monkeypatch.setattr(marginals, "MOST_DENSE_CELLS", 1)
    assert total_variation(a, b, [7] * 4) == pytest.approx(dense, abs=1e-12) and 0.1 < dense < 1


def test_cells_come_from_public_bounds_and_missing_is_its_own(schema: Schema) -> None:
    table = pd.DataFrame(
        {
            "height": [0.0, 0.49, 0.51, 8.0, math.nan],
            "visits": np.array([0, 1, 9, 99, 99], "int64"),
            "color": pd.Categorical(["red", "green", "blue", None, "red"], ["red", "green", "blue"]),
            "size": pd.Categorical(["s", "m", "l", "s", "s"], ["s", "m", "l"], ordered=True),
            "sick": pd.Categorical(["no", "yes", "no", "no", "no"], ["no", "yes"]),
        }
    )
    codes, sizes = cells(table, schema, 16)
    assert sizes == [17, 17, 4, 3, 2] and codes[:, 0].tolist() == [0, 0, 1, 15, 16]
    assert codes[:, 1].tolist() == [0, 2, 8, 15, 15]  # floor(16 log(1 + x) / log 100)
    assert codes[:, 2].tolist() == [0, 1, 2, 3, 0] and codes[:, 3].tolist() == [0, 1, 2, 0, 0]
    assert codes[:, 4].tolist() == [0, 1, 0, 0, 0]


def test_all_pairs_and_the_label_are_in_the_table(schema: Schema, table_of: Tables) -> None:
    rows = marginal_table(table_of(50, 1), table_of(60, 2), schema)
    assert list(rows.columns) == ["order", "columns", "total_variation"]
    assert rows["order"].value_counts().to_dict() == {1: 5, 2: 10, 3: 10}
    assert {"sick", "size × sick", "height × color × sick"} <= set(rows["columns"])
    assert rows["total_variation"].between(0, 1).all()


def test_equal_tables_are_at_zero_and_more_columns_are_farther(schema: Schema, table_of: Tables) -> None:
    table = table_of(300, 1)
    assert marginal_table(table, table, schema)["total_variation"].max() == 0.0
    means = marginal_table(table, table_of(300, 2), schema).groupby("order")["total_variation"].mean()
    assert means[1] < means[2] < means[3]


def test_high_orders_are_a_public_sample(schema: Schema) -> None:
    drawn = tuples(30, 3, 50, 7)
    assert drawn == tuples(30, 3, 50, 7) != tuples(30, 3, 50, 8)
    assert len(set(drawn)) == 50 and all(len(set(chosen)) == 3 for chosen in drawn)
    assert len(tuples(30, 2, 50, 7)) == 435 and len(tuples(5, 3, 50, 7)) == 10


def test_a_table_without_rows_is_refused(schema: Schema, table_of: Tables) -> None:
    with pytest.raises(DataError, match="no rows"):
        marginal_table(table_of(5, 1), table_of(5, 1).head(0), schema)


def test_a_column_and_its_copy_have_one_and_strangers_none() -> None:
    draw = np.random.default_rng(0)
    a, b = draw.integers(0, 5, 5000), draw.integers(0, 30, 5000)
    matrix = cramers_v(np.stack([a, (a + 2) % 5, b], axis=1), [5, 5, 30])
    assert matrix[0, 1] == pytest.approx(1, abs=1e-3)
    assert matrix[0, 2] < 0.06  # uncorrected it would be about sqrt(29 / 5000) = .076 on average
    assert np.array_equal(matrix, matrix.T) and np.array_equal(np.diag(matrix), np.ones(3))


def test_two_by_two_by_hand() -> None:
    # 40 30 / 10 20: chi² = n (ad - bc)² / (70 · 30 · 50 · 50) = 4.7619; V² = (chi²/n - 1/99) / (2 - 1/99 - 1)
    codes = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [40, 30, 10, 20], axis=0)
    assert cramers_v(codes, [2, 2])[0, 1] == pytest.approx(((0.047619 - 1 / 99) / (1 - 1 / 99)) ** 0.5, rel=1e-4)


def test_constant_columns_and_single_rows_have_none() -> None:
    codes = np.stack([np.zeros(50, int), np.arange(50) % 2], axis=1)
    assert cramers_v(codes, [3, 2])[0, 1] == 0 and cramers_v(codes[:1], [3, 2])[0, 1] == 0


def test_the_floor_keeps_every_column_and_no_dependence(schema: Schema, table_of: Tables) -> None:
    real = table_of(4000, 1)
    floor = shuffle_columns(real, 3)
    assert marginal_table(real, floor, schema, orders=(1,))["total_variation"].max() == 0.0
    label, size = schema.names.index("sick"), schema.names.index("size")
    before, after = (cramers_v(*cells(table, schema)) for table in (real, floor))
    assert before[label, size] > 0.5  # power: the dependence is there, and would be seen
    assert (after - np.eye(len(after))).max() < 0.08  # bias-corrected; about five times 1/sqrt(4000)


def test_kinds_and_index_are_kept_and_the_original_is_untouched(table_of: Tables) -> None:
    real = table_of(50, 1).set_axis(range(100, 150))
    copy = real.copy(deep=True)
    floor = shuffle_columns(real, 0)
    pd.testing.assert_frame_equal(real, copy)
    assert floor.dtypes.equals(real.dtypes) and floor.index.equals(real.index)


def test_the_seed_is_public_and_each_column_has_its_own_order(table_of: Tables) -> None:
    real = table_of(200, 1)
    real["twin"] = real["visits"]
    floor = shuffle_columns(real, 0)
    assert floor.equals(shuffle_columns(real, 0)) and not floor.equals(shuffle_columns(real, 1))
    assert not floor["twin"].equals(floor["visits"])
