"""Errors raised on purpose: each message names the file, the key, the rule and the remedy, never a private value."""


class LikenessError(Exception):
    """Base of every error that a person can act on. The command line and notebooks show its text alone.

    Attributes:
        transient: whether the same work may go well in a moment, because a connection broke.
        exit_code: of a command that ends with it.
    """

    transient, exit_code = False, 2

    def _render_traceback_(self) -> list[str]:
        """Give the lines that a notebook shows: IPython asks an error for them."""
        return [f"{type(self).__name__}: {self}\n"]


def no_project(missing: object) -> str:
    """The message about a folder without a file that every project has."""
    return f"{missing} is missing: go to the folder of a project, or make a project with `likeness new FOLDER`."


class ParamsError(LikenessError):
    """A setting in ``params.yaml`` is unknown, missing or out of range."""


class SchemaError(LikenessError):
    """The public schema is incomplete or contradicts itself.

    Attributes:
        faults: every broken rule of one column, as (key, sentence). The text is the first.
    """

    def __init__(self, text: str, faults: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(text)
        self.faults = faults or (("", text),)


class DataError(LikenessError):
    """A table does not fit its schema. The message names file, column and rule, never a value."""


class PlanError(LikenessError):
    """The queries cannot meet the privacy target."""


class BudgetError(LikenessError):
    """A release would exceed a cap of the population. Nothing was read."""


class NightError(LikenessError):
    """A run of a series ended, and its night is of another day than today: no night was made."""

    exit_code = 4


class LedgerError(LikenessError):
    """The ledger, its anchor or its store of released bytes is missing, damaged or contradicts itself."""


class ReleaseError(LikenessError):
    """A released file contradicts its receipt or the ledger."""


class ArtifactError(LikenessError):
    """A file of an earlier stage is missing or malformed."""


class MissingPackageError(LikenessError, ImportError):
    """A package of an extra is not installed."""


class NotFittedError(LikenessError, ValueError, AttributeError):
    """A synthesizer is used before its fit. The bases are those of scikit-learn's error of this name."""
