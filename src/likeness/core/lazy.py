"""Heavy packages that are imported when something of them is first used: a module may name them at its top."""

from importlib import import_module
from typing import TYPE_CHECKING, Any


class _Later:
    """A package by name, without its import."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


if TYPE_CHECKING:
    import torch as torch
else:
    torch = _Later("torch")
