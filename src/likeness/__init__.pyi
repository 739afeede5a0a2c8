from likeness.data.schema.schema import Schema as Schema
from likeness.ledger.ledger import Ledger as Ledger
from likeness.preflight.sdv import draft as draft
from likeness.preflight.sdv import from_sdv as from_sdv
from likeness.preflight.sdv import to_sdv as to_sdv
from likeness.report.tables import compare as compare
from likeness.synthesizer import Synthesizer as Synthesizer
from likeness.synthesizer.estimates import running_total as running_total
from likeness_histories.schema import HistorySchema as HistorySchema
from likeness_margins.combine import combine as combine

__version__: str
