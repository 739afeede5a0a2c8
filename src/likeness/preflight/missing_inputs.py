"""What a first ``fit`` lacks, in one list: a newcomer should meet one refusal, and not one a try.

Each entry is a line of Python to complete and paste, or a sentence with its remedy.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.core.errors import LedgerError, LikenessError, ParamsError, SchemaError
from likeness.core.refusals import refusals_of
from likeness.core.text import normal_text
from likeness.data.schema.draft import SchemaDraft, as_lines
from likeness.data.schema.yaml import read_mapping
from likeness.data.source.cells import check_names
from likeness.data.source.files import IN_FRAME
from likeness.ledger.chain import read_anchor
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.other_ledgers import LedgerReference, refuse_other_ledger
from likeness.preflight.faults import columns_of, faults_of, needed_of

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass
class MissingInputs:
    """Everything that is missing or wrong.

    Attributes:
        lines: of Python, in the order in which they run.
        sentences: faults that no line can mend.
        kinds: of all of them.
    """

    lines: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    kinds: set[type[LikenessError]] = field(default_factory=set)

    def line(self, text: str, kind: type[LikenessError] = ParamsError) -> None:
        """Add lines to paste."""
        self.lines += text.splitlines()
        self.kinds.add(kind)

    def question(self, parameter: str, text: str) -> None:
        """Add a parameter that only a person can give."""
        self.line(as_lines({parameter: text}))

    def add_refusal(self, action: Callable[[], Any]) -> None:
        """Add the refusal of an action, if it refuses."""
        for error in refusals_of(action):
            self._wrong(str(error), type(error))

    def ledger(self, home: str | None, population: str | None, references: Iterable[LedgerReference] = ()) -> None:
        """Add a ledger that is not started or is lost, or is another than these people have.

        ``references`` holds places that name a ledger, beside those of a project here.
        """

        def check() -> None:
            location = locate(home)
            ledger = Ledger.open(location) if Ledger.exists(location) or read_anchor(location) is not None else None
            if population is not None:
                refuse_other_ledger(Path(), population, location, ledger, references)
            if ledger is None:
                start = f"likeness.Ledger.start({'' if home is None else repr(home)})"
                self.line(f"import likeness\n{start}  # once per machine; or run: likeness ledger init", LedgerError)

        self.add_refusal(check)

    def schema(self, schema: Any, frame: "DataFrame | Any") -> None:
        """Add what a schema lacks, and columns that the frame lacks."""
        if schema is None:
            self._wrong("schema is missing. Give a Schema, a mapping, or the path of a schema file.", ParamsError)
        elif isinstance(schema, SchemaDraft) and schema.missing():
            self.line(as_lines(schema.missing()), SchemaError)
            self.lines += [] if schema.label else ["schema.label = None  # or the name of the column to be predicted"]
            self._header(schema.to_dict(), frame)
        else:
            self.add_refusal(lambda: self._content(schema, frame))

    def _content(self, schema: Any, frame: "DataFrame | Any") -> None:
        """Add the faults of a schema that has no open question."""
        where = Path(schema).name if isinstance(schema, str | Path) else "schema"
        content = read_mapping(schema) if isinstance(schema, str | Path) else schema
        content = content if isinstance(content, Mapping) else content.to_dict()
        for text in faults_of(content):
            self._wrong(f"{where}: {text}", SchemaError)
        self._header(content, frame)

    def _header(self, content: Mapping[str, Any], frame: "DataFrame | Any") -> None:
        """Add the columns that the frame lacks."""
        if hasattr(frame, "dtypes") and content.get("image") is None:
            needed = needed_of(columns_of(content))
            present, names = ([normal_text(str(name)) for name in some] for some in (frame.columns, needed))
            self.add_refusal(lambda: check_names(present, names, "the DataFrame", IN_FRAME))

    def _wrong(self, text: str, kind: type[LikenessError]) -> None:
        self.sentences.append(text)
        self.kinds.add(kind)

    def refuse(self) -> None:
        """Refuse, if there is anything.

        Raises:
            LikenessError: of the one kind of all entries, else a ParamsError.
        """
        if not self.kinds:
            return
        first = "Complete each ? from public knowledge, never from the rows, and run these lines first:"
        text = "\n".join([*self.sentences, *([first, *self.lines] if self.lines else [])])
        raise (self.kinds.pop() if len(self.kinds) == 1 else ParamsError)(text)
