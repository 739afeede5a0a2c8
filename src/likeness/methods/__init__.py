"""Recipes: one folder a method, and a line in :data:`METHODS`, the only list of them."""

from likeness.config.params import Params
from likeness.config.typed import allowed, build
from likeness.core.errors import ParamsError
from likeness.methods.base import Context, Method
from likeness.methods.hp.method import Hp
from likeness.methods.marginals.method import Marginals
from likeness.methods.merf.method import Merf
from likeness.methods.merf_ae.method import MerfAe
from likeness.methods.moments.method import Moments
from likeness.methods.ntk.method import Ntk
from likeness.methods.pearl.method import Pearl

METHODS: dict[str, type[Method]] = {kind.name: kind for kind in (Hp, Marginals, Merf, MerfAe, Moments, Ntk, Pearl)}
DEFAULT = Marginals.name

__all__ = ["DEFAULT", "METHODS", "Context", "Method", "method_from"]


def method_from(params: Params) -> Method:
    """The method that params.yaml chooses, from its own section.

    Raises:
        ParamsError: the method is not known, or its section is missing or wrong.
    """
    allowed("method", params.method, METHODS)
    if params.method not in params.sections:
        raise ParamsError(f"params.yaml: section '{params.method}' is missing; the method needs its settings there")
    unknown = sorted(set(params.sections) - set(METHODS))
    if unknown:
        raise ParamsError(f"params.yaml: {unknown[0]} is not a section. Methods: {', '.join(METHODS)}")
    return build(METHODS[params.method], params.sections[params.method], params.method)
