"""What later stages would refuse of their settings, told from public settings alone and before anything is spent."""

from likeness.core.errors import ParamsError
from likeness.methods import METHODS
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import conditions


def refusals(project: Project) -> list[ParamsError]:
    """What ``sample`` and ``evaluate`` would say, in their words.

    Private categories are not known yet: what is asked of such a column is left to ``sample``.

    Raises:
        SchemaError: the schema cannot be read.
    """
    params, schema = project.params, project.written_schema
    found = []
    private = {column.name for column in schema.open_columns}
    method = METHODS.get(params.method)  # that it is none is told by whoever builds it
    for name, value in params.sample.where.items():
        if method is not None and not method.any_category and name in schema.names and name != schema.label:
            able = ", ".join(other for other, kind in METHODS.items() if kind.any_category)
            words = f"method {params.method} can be asked for a class only, {able} for any category"
            found.append(ParamsError(f"sample.where.{name}: {words}"))
            continue
        if name in private:
            continue
        try:
            conditions({name: value}, schema)
        except ParamsError as error:
            found.append(error)
    if params.evaluate.classifiers is not None and schema.task != "none":
        from likeness.evaluation.classifiers import select

        try:
            select(schema.task, params.evaluate.classifiers, schema.image)
        except ParamsError as error:
            found.append(error)
    return found


def check_ahead(project: Project) -> None:
    """Refuse with the first of :func:`refusals`, before the door is asked for anything."""
    for error in refusals(project):
        raise error
