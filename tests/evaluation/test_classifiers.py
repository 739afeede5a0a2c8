import pytest

from likeness.core.errors import ParamsError
from likeness.evaluation.classifiers import CLASSIFIERS, REGRESSORS, SLOWEST_FIRST, select


def test_the_papers_twelve_are_there() -> None:
    assert list(CLASSIFIERS) == [
        "logistic_regression",
        "gaussian_naive_bayes",
        "bernoulli_naive_bayes",
        "linear_svm",
        "decision_tree",
        "lda",
        "adaboost",
        "bagging",
        "random_forest",
        "gradient_boosting",
        "mlp",
        "xgboost",
    ]


@pytest.mark.parametrize("registry", [CLASSIFIERS, REGRESSORS])
def test_every_estimator_keeps_its_seed_and_one_thread(registry: dict) -> None:
    seeded = 0
    for factory in registry.values():
        settings = factory(17).get_params()
        assert settings.get("n_jobs", 1) in (None, 1)
        seeded += settings.get("random_state") == 17
    assert seeded >= len(registry) - 3  # the two naive Bayes and LDA draw nothing; so do nearest neighbors


def test_settings_of_the_papers_table_hold() -> None:
    forest, boosting, bagging = (
        CLASSIFIERS[n](0).get_params() for n in ("random_forest", "gradient_boosting", "bagging")
    )
    assert (forest["n_estimators"], forest["class_weight"]) == (100, "balanced")
    assert (boosting["subsample"], boosting["n_estimators"]) == (0.1, 50)
    assert (bagging["max_samples"], bagging["n_estimators"]) == (0.1, 20)
    assert CLASSIFIERS["bernoulli_naive_bayes"](0).get_params()["binarize"] == 0.5
    assert CLASSIFIERS["xgboost"](0).get_params()["colsample_bytree"] == 0.1


def test_select_takes_the_registry_of_the_task_in_its_order() -> None:
    assert list(select("classification", ["xgboost", "lda"])) == ["lda", "xgboost"]
    assert list(select("classification")) == list(CLASSIFIERS)
    assert list(select("regression")) == list(REGRESSORS)


@pytest.mark.parametrize("names", [["perceptron"], []])
def test_select_refuses_by_name_and_lists_what_is_allowed(names: list[str]) -> None:
    with pytest.raises(ParamsError, match=r"evaluate\.classifiers.*gradient_boosting"):
        select("classification", names)


def test_slow_ones_are_known() -> None:
    assert set(SLOWEST_FIRST) <= set(CLASSIFIERS) | set(REGRESSORS) | {"cnn"}
