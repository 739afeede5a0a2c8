"""The conventions of scikit-learn for an estimator, without scikit-learn: it need not be installed."""

from inspect import signature
from typing import Any, Self

from likeness.core.errors import NotFittedError

_LONGEST = 100  # characters of a parameter that the representation shows


class Estimator:
    """Base of a class whose constructor stores each of its parameters in an attribute of that name."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 (scikit-learn's signature)
        """The parameters of the constructor, by name."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change parameters.

        Raises:
            ValueError: the constructor has no such parameter.
        """
        names = list(signature(type(self)).parameters)
        for name, value in params.items():
            if name not in names:
                raise ValueError(f"Invalid parameter {name!r} for {type(self).__name__}. Valid: {', '.join(names)}")
            setattr(self, name, value)
        return self

    def check_fitted(self, attribute: str) -> None:
        """Refuse the use of an estimator whose fit has not set this attribute.

        Raises:
            NotFittedError: the attribute is missing.
        """
        if not hasattr(self, attribute):
            raise NotFittedError(f"This {type(self).__name__} is not fitted. Call fit first.")

    def __repr__(self) -> str:
        """The call that makes it, without defaults."""
        given, standard = self.get_params(), signature(type(self)).parameters
        words = [f"{name}={_short(value)}" for name, value in given.items() if value != standard[name].default]
        return f"{type(self).__name__}({', '.join(words)})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of an estimator in a pipeline or a search."""
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()


def _short(value: Any) -> str:
    """The value as Python writes it; of a long one, such as a schema, the name of its class."""
    text = repr(value)
    return text if len(text) <= _LONGEST and "\n" not in text else f"<{type(value).__name__}>"
