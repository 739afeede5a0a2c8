"""Methods: one folder each, and one entry in :data:`METHODS`, their only list."""

from typing import Any

from likeness.config.explain import plain
from likeness.config.params import Params
from likeness.config.typed import allowed, build, merged
from likeness.core.errors import ParamsError
from likeness.core.text import did_you_mean, normal_texts
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

__all__ = ["DEFAULT", "METHODS", "Context", "Method", "method_from", "resolved"]


def method_from(params: Params) -> Method:
    """The method that params.yaml chooses, from its section; a missing key or section takes the defaults.

    Raises:
        ParamsError: no method has that name, or its section is wrong.
    """
    allowed("method", params.method, METHODS)
    unknown = sorted(set(params.sections) - set(METHODS))
    if unknown:
        close = did_you_mean(str(unknown[0]), METHODS)
        raise ParamsError(
            f"params.yaml: {unknown[0]} is not a section.{close or ' Remove it.'} Methods: {', '.join(METHODS)}"
        )
    kind = METHODS[params.method]
    section = normal_texts(params.sections.get(params.method) or {})  # it may name columns
    return build(kind, merged(kind, section) if "expert" in section else section, params.method)


def resolved(params: Params) -> dict[str, Any]:
    """All settings of a run as YAML holds them, defaults included: the shared sections, and that of the method.

    Raises:
        ParamsError: the method's section is wrong.
    """
    values: dict[str, Any] = plain(params)
    del values["sections"]
    return {**values, params.method: plain(method_from(params))}
