"""Preflight check of the settings of later stages, from public settings alone and before anything is spent."""

from functools import partial

from likeness.config.params import STAY
from likeness.core.errors import LikenessError, MissingPackageError, ParamsError
from likeness.core.refusals import refusals_of
from likeness.evaluation.classifiers import check_installed
from likeness.methods import METHODS, known_methods
from likeness.pipeline.project import Project
from likeness.pipeline.where import conditions, conditions_by_name


def refusals(project: Project) -> list[LikenessError]:
    """The refusals of ``train``, ``sample`` and ``evaluate``, in their words.

    Nobody knows private categories yet, so ``sample`` checks the settings of such a column.
    """
    params, schema = project.params, project.written_schema
    refused: list[LikenessError] = []
    private = {column.name for column in schema.open_columns}
    method = known_methods().get(params.method)  # building a method refuses an unknown one
    able = project.written_model.conditions
    for name, value in conditions_by_name(params.sample.where).items():
        if able is not None and name not in able:
            text = f"a column of people: {', '.join(able) or 'there is none'}"
            refused.append(ParamsError(f"sample.where.{name} must be {text}. Correct it."))
            continue
        is_class = name == schema.label and schema.task == "classification"
        if method is not None and not method.any_category and name in schema.names and not is_class:
            others = ", ".join(other for other, kind in METHODS.items() if kind.any_category)
            text = f"method {params.method} can draw rows of a class only, {others} of any value"
            refused.append(ParamsError(f"sample.where.{name}: {text}"))
            continue
        if name in private:
            continue
        refused += refusals_of(partial(conditions, {name: value}, schema), ParamsError)
    if params.evaluate.classifiers is not None and schema.task != "none":
        refused += refusals_of(lambda: project.written_model.estimators(params.evaluate), ParamsError)
    if params.ingest.rows == STAY and method is not None:
        try:
            maps = [kind for kind in project.method.maps if kind not in project.method.row_maps]
            if reasons := [*project.backend.later_reasons(maps), *project.method.reasons_for_rows()]:
                text = f"ingest.rows is stay, but {'; '.join(reasons)}. Change that, or set it to come."
                refused.append(ParamsError(text))
        except MissingPackageError as error:
            refused.append(error)
    device = params.train.device
    if method is not None and device not in ("auto", "cpu"):  # which every machine has
        refused += refusals_of(lambda: project.method.check_device(device), ParamsError)
    return refused


def check_ahead(project: Project) -> None:
    """Refuse with the first of :func:`refusals`, before the door spends anything."""
    for error in refusals(project):
        raise error


def check_estimators(project: Project) -> None:
    """Refuse an evaluation whose estimators are not installed, before a run starts.

    Raises:
        MissingPackageError: the library of one is missing.
    """
    if project.written_schema.task != "none":
        check_installed(project.written_model.estimators(project.params.evaluate))
