"""The judges of utility: the papers' twelve classifiers, and six regressors, as name -> factory(seed).

By default one of each kind judges: linear, a forest, boosted trees. A kind of data set may add estimators
(:meth:`likeness.pipeline.datasets.model.DataModel.estimators`).

Settings are those of table 10 in Vinaroz et al. (DP-HP, ICML 2022), for scikit-learn 0.24 and images. Departures, with
times on Adult (32,561 x 108, one thread):

- logistic regression: scikit-learn has no ``multi_class`` any more. Multinomial is the choice of ``auto``.
- linear SVM: squared hinge in the primal (``dual=False``) instead of hinge. The dual solver stops at its iteration
  limit; the primal one converges in 8 steps (0.2 s), and its scores agree to 0.002.
- LDA: without ``n_components``, which shapes ``transform`` only. ``lsqr`` gives the classifier of ``eigen`` at equal
  shrinkage, and works where a feature is constant.
- AdaBoost: 100 stages instead of 1,000 (34 s, +0.006 ROC AUC), and SAMME, since scikit-learn has no SAMME.R any more.
- MLP: 50 epochs instead of 200 (17 s, and 0.012 lower ROC AUC by over-fitting).
- XGBoost: the objective follows the number of classes, a binary logistic loss for two.

All estimators run on one thread: :mod:`likeness.evaluation.utility` runs several at a time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from likeness.core.errors import ParamsError
from likeness.core.extras import need

Factory = Callable[[int], Any]
"""From a public seed below 2^32 to an unfitted scikit-learn estimator."""

_LIBRARIES = {"xgboost": "xgboost"}  # those of all others are scikit-learn's


def _factory(path: str, draws: bool = True, **settings: Any) -> Factory:
    """The factory of a class, whose library is imported when it is needed. An estimator that draws takes the seed."""
    module, _, name = path.rpartition(".")

    def make(seed: int) -> Any:
        return getattr(import_module(module), name)(**settings, **({"random_state": seed} if draws else {}))

    return make


CLASSIFIERS: Mapping[str, Factory] = {
    "logistic_regression": _factory("sklearn.linear_model.LogisticRegression", solver="lbfgs", max_iter=5000),
    "gaussian_naive_bayes": _factory("sklearn.naive_bayes.GaussianNB", draws=False),
    "bernoulli_naive_bayes": _factory("sklearn.naive_bayes.BernoulliNB", draws=False, binarize=0.5),
    "linear_svm": _factory("sklearn.svm.LinearSVC", dual=False, max_iter=10000, tol=1e-4),
    "decision_tree": _factory("sklearn.tree.DecisionTreeClassifier", class_weight="balanced"),
    "lda": _factory(
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis", draws=False, solver="lsqr", shrinkage=0.5, tol=1e-8
    ),
    "adaboost": _factory("sklearn.ensemble.AdaBoostClassifier", n_estimators=100, learning_rate=0.7),
    "bagging": _factory("sklearn.ensemble.BaggingClassifier", max_samples=0.1, n_estimators=20),
    "random_forest": _factory(
        "sklearn.ensemble.RandomForestClassifier", n_estimators=100, class_weight="balanced", n_jobs=1
    ),
    "gradient_boosting": _factory("sklearn.ensemble.GradientBoostingClassifier", subsample=0.1, n_estimators=50),
    "mlp": _factory("sklearn.neural_network.MLPClassifier", max_iter=50),
    "xgboost": _factory("xgboost.XGBClassifier", colsample_bytree=0.1, n_estimators=50, n_jobs=1),
}
"""The twelve classifiers, in the order of table 10."""

REGRESSORS: Mapping[str, Factory] = {
    "ridge": _factory("sklearn.linear_model.Ridge", alpha=1.0),
    "nearest_neighbors": _factory("sklearn.neighbors.KNeighborsRegressor", draws=False, n_neighbors=10),
    "random_forest": _factory("sklearn.ensemble.RandomForestRegressor", n_estimators=50, min_samples_leaf=5, n_jobs=1),
    "gradient_boosting": _factory("sklearn.ensemble.GradientBoostingRegressor", subsample=0.5, n_estimators=100),
    "mlp": _factory("sklearn.neural_network.MLPRegressor", max_iter=50),
    "xgboost": _factory("xgboost.XGBRegressor", n_estimators=100, n_jobs=1),
}
"""Regressors for a numeric label. The papers have none; settings are common ones."""

DEFAULT: Mapping[str, Sequence[str]] = {
    "classification": ("logistic_regression", "random_forest", "gradient_boosting"),
    "regression": ("ridge", "random_forest", "gradient_boosting"),
}
"""Names of a task where the settings have none. These need scikit-learn alone."""

MOST_TABLE_ROWS = 20_000
"""Rows of a table that estimators see, unless ``evaluate.max_rows`` is set: their time grows with the rows."""

SLOWEST_FIRST = ("random_forest", "mlp", "adaboost", "gradient_boosting", "bagging", "xgboost")
"""Estimators that start first, after those of a kind of data set, so that no long fit runs alone at the end."""


def select(
    task: str,
    names: Iterable[str] | None = None,
    more: Mapping[str, Factory] | None = None,
    default: Sequence[str] | None = None,
) -> dict[str, Factory]:
    """The registry of a task, or a part of it, in registry order.

    Args:
        task: ``classification`` or ``regression``, from the schema.
        names: wanted names; None: the default.
        more: estimators that the kind of data set adds.
        default: names without a wish; None: those of :data:`DEFAULT`.

    Raises:
        ParamsError: a name is not in the registry, or the list is empty.
    """
    registry = {**(CLASSIFIERS if task == "classification" else REGRESSORS), **(more or {})}
    default = default or DEFAULT.get(task, DEFAULT["regression"])
    wanted = list(default if names is None else names)
    unknown = [name for name in wanted if name not in registry]
    if unknown or not wanted:
        fault = f"{unknown[0]!r} is not an estimator" if unknown else "the list is empty"
        remedy = f"Give some of: {', '.join(registry)}. Or null for {', '.join(default)}."
        raise ParamsError(f"params.yaml: evaluate.classifiers: {fault}. {remedy}")
    return {name: factory for name, factory in registry.items() if name in wanted}


def check_installed(estimators: Mapping[str, Factory]) -> None:
    """Refuse estimators whose library is not installed. A factory may name it as its ``library``.

    Raises:
        MissingPackageError: one is missing.
    """
    for name, factory in estimators.items():
        library = getattr(factory, "library", _LIBRARIES.get(name, "sklearn"))
        need(library, f"evaluate: estimator {name}")
