"""Recipes: one file a method. A new one is a file here, a map in features, and two registry lines."""

from likeness.errors import ParamsError
from likeness.methods.base import Context, Method
from likeness.methods.hp import Hp
from likeness.methods.marginals import Marginals
from likeness.methods.merf import Merf
from likeness.methods.merf_ae import MerfAe
from likeness.methods.moments import Moments
from likeness.methods.ntk import Ntk
from likeness.methods.pearl import Pearl
from likeness.params import Params
from likeness.typed import allowed, build

METHODS: dict[str, type[Method]] = {
    "hp": Hp,
    "marginals": Marginals,
    "merf": Merf,
    "merf_ae": MerfAe,
    "moments": Moments,
    "ntk": Ntk,
    "pearl": Pearl,
}

__all__ = ["METHODS", "Context", "Method", "method_from"]


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
