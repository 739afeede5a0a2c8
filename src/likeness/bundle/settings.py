"""The settings of a run as a file of the bundle, and their way back."""

import math
from collections.abc import Mapping
from typing import Any

from likeness.bundle.contents import SCHEMA, SETTINGS
from likeness.config.params import Params
from likeness.config.typed import build
from likeness.core.errors import ParamsError
from likeness.core.format import FORMAT, RECIPE, check_known
from likeness.core.hashing import json_value
from likeness.methods import method_from
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import sample_request

_NO_CAP = {"epsilon": math.inf, "delta": 0.5}  # the ledger of the bundle says the cap

_OF_CSV = ("separator", "decimal", "quote")  # keys of ingest.format by which a table is written


def settings_of(project: Project) -> dict[str, Any]:
    """The settings of the run as JSON, without places of a machine."""
    params = project.params
    value: dict[str, Any] = json_value(
        {
            "format": FORMAT,
            "recipe": RECIPE,
            "requires": [],
            "method": params.method,
            "privacy": params.privacy,
            "attempt": params.ledger.attempt,
            "unit": project.complete_params.ingest.unit,
            "csv": {key: getattr(params.ingest.format, key) for key in _OF_CSV},
            "categories": params.categories,
            "train": params.train,
            "sample": sample_request(params.sample),
            params.method: method_from(params),
        }
    )
    return value


def params_of(settings: Mapping[str, Any]) -> Params:
    """Inverse of :func:`settings_of`: the settings of a bundle, places relative to its folder.

    Raises:
        ParamsError: a setting is unknown, missing or out of range, or another version wrote them.
        KeyError: a section is missing.
    """
    check_known(settings, ("format", "recipe"), SETTINGS, ParamsError)
    name = settings["method"]
    sections = {
        **{key: settings[key] for key in ("method", "privacy", "train", "sample", "categories")},
        "ledger": {"attempt": settings["attempt"], "cap": _NO_CAP},
        "ingest": {"source": "", "schema": SCHEMA, "unit": settings["unit"], "format": settings["csv"]},
        "sections": {name: settings[name]},
    }
    return build(Params, sections, "")
