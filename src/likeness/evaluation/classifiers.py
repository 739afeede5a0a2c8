"""The judges of utility: the papers' twelve classifiers, and six regressors, as name -> factory(seed).

Images have a thirteenth, ``cnn`` (:mod:`likeness.evaluation.convnet`): it needs to know which pixels are neighbors.

Settings are those of table 10 in Vinaroz et al. (DP-HP, ICML 2022), written for scikit-learn 0.24 and images.
Departures, each because it had to be or because a table is no image (times: Adult, 32,561 x 108, one thread):

- logistic regression: ``multi_class`` is gone from scikit-learn; multinomial is what ``auto`` chose.
- linear SVM: squared hinge in the primal (``dual=False``) instead of hinge. The dual solver stops at its iteration
  limit without converging; the primal one converges in 8 steps (0.2 s), and its scores agree to 0.002.
- LDA: ``n_components`` is dropped (it was 10 digits - 1, and only shapes ``transform``); ``lsqr`` instead of ``eigen``:
  the same classifier at the same shrinkage, but it does not fail where a feature is constant.
- AdaBoost: 100 stages instead of 1,000 (34 s, +0.006 ROC AUC) and SAMME, since SAMME.R is gone from scikit-learn.
- MLP: 50 epochs instead of 200 (17 s, and .012 lower ROC AUC: it over-fits).
- XGBoost: the objective follows the number of classes (a binary logistic loss for two).

All estimators run on one thread: :mod:`likeness.evaluation.utility` runs several of them at a time instead.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier, XGBRegressor

from likeness.core.errors import ParamsError
from likeness.evaluation.convnet import ConvNet

Factory = Callable[[int], Any]
"""From a public seed below 2^32 to an unfitted scikit-learn estimator."""

CLASSIFIERS: Mapping[str, Factory] = {
    "logistic_regression": lambda seed: LogisticRegression(solver="lbfgs", max_iter=5000, random_state=seed),
    "gaussian_naive_bayes": lambda seed: GaussianNB(),
    "bernoulli_naive_bayes": lambda seed: BernoulliNB(binarize=0.5),
    "linear_svm": lambda seed: LinearSVC(dual=False, max_iter=10000, tol=1e-4, random_state=seed),
    "decision_tree": lambda seed: DecisionTreeClassifier(class_weight="balanced", random_state=seed),
    "lda": lambda seed: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5, tol=1e-8),
    "adaboost": lambda seed: AdaBoostClassifier(n_estimators=100, learning_rate=0.7, random_state=seed),
    "bagging": lambda seed: BaggingClassifier(max_samples=0.1, n_estimators=20, random_state=seed),
    "random_forest": lambda seed: RandomForestClassifier(
        n_estimators=100, class_weight="balanced", n_jobs=1, random_state=seed
    ),
    "gradient_boosting": lambda seed: GradientBoostingClassifier(subsample=0.1, n_estimators=50, random_state=seed),
    "mlp": lambda seed: MLPClassifier(max_iter=50, random_state=seed),
    "xgboost": lambda seed: XGBClassifier(colsample_bytree=0.1, n_estimators=50, n_jobs=1, random_state=seed),
}
"""The twelve, in the order of table 10."""

REGRESSORS: Mapping[str, Factory] = {
    "ridge": lambda seed: Ridge(alpha=1.0, random_state=seed),
    "nearest_neighbors": lambda seed: KNeighborsRegressor(n_neighbors=10),
    "random_forest": lambda seed: RandomForestRegressor(
        n_estimators=50, min_samples_leaf=5, n_jobs=1, random_state=seed
    ),
    "gradient_boosting": lambda seed: GradientBoostingRegressor(subsample=0.5, n_estimators=100, random_state=seed),
    "mlp": lambda seed: MLPRegressor(max_iter=50, random_state=seed),
    "xgboost": lambda seed: XGBRegressor(n_estimators=100, n_jobs=1, random_state=seed),
}
"""For a numeric label. The papers have none of these; settings are ordinary ones."""

IMAGE_DEFAULT = ("logistic_regression", "mlp", "cnn")
"""What images are judged by unless a list is given: the papers' two, and a network that knows what a neighbor is."""

SLOWEST_FIRST = ("cnn", "random_forest", "mlp", "adaboost", "gradient_boosting", "bagging", "xgboost")
"""Started first, so that no long fit is left alone at the end."""


def select(task: str, names: Iterable[str] | None = None, shape: tuple[int, int] | None = None) -> dict[str, Factory]:
    """The registry of a task, or the part of it that is asked for, in registry order.

    Args:
        task: ``classification`` or ``regression``, from the schema.
        names: wanted names; None means all of a table's, and :data:`IMAGE_DEFAULT` of images.
        shape: height and width if the rows are images: ``cnn`` is then in the registry too.

    Raises:
        ParamsError: a name is not in the registry, or the list is empty.
    """
    registry = dict(CLASSIFIERS if task == "classification" else REGRESSORS)
    if shape is not None and task == "classification":
        registry["cnn"] = lambda seed: ConvNet(shape, seed)
        names = IMAGE_DEFAULT if names is None else names
    if names is None:
        return registry
    wanted = list(names)
    unknown = [name for name in wanted if name not in registry]
    if unknown or not wanted:
        what = f"{unknown[0]!r} is not a known estimator" if unknown else "the list is empty"
        raise ParamsError(
            f"params.yaml: evaluate.classifiers: {what}. For {task} choose from: {', '.join(registry)}; null means "
            f"{'all' if shape is None else ', '.join(IMAGE_DEFAULT)}."
        )
    return {name: factory for name, factory in registry.items() if name in wanted}
