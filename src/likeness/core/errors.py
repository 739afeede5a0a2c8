"""Errors raised on purpose: each message names the file, the key, the rule and the remedy, never a private value."""


class LikenessError(Exception):
    """Base of every error that a person can act on. Its text is shown as it is, without a traceback."""


class ParamsError(LikenessError):
    """A setting in ``params.yaml`` is unknown, missing or out of range."""


class SchemaError(LikenessError):
    """The public schema is incomplete or contradicts itself.

    Attributes:
        faults: where several rules of one column are broken, all of them, as (key, sentence); the text is the first.
    """

    def __init__(self, text: str, faults: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(text)
        self.faults = faults or (("", text),)


class DataError(LikenessError):
    """A table does not fit its schema. The message names file, column and rule, never a value."""


class PlanError(LikenessError):
    """The privacy target cannot be met by the queries asked for."""


class BudgetError(LikenessError):
    """A release would exceed the lifetime cap of the people in the data. Nothing was read."""


class LedgerError(LikenessError):
    """The ledger, its anchor or its store of released bytes is missing, damaged or contradicts itself."""


class ReleaseError(LikenessError):
    """A released file is not what its receipt, or the ledger, says it is."""


class ArtifactError(LikenessError):
    """A file that an earlier stage should have written is missing or malformed."""


class EngineError(LikenessError):
    """The processes that the passes over rows are divided among are missing, unsafe or lost."""
