from likeness.data.histories.schema import HistorySchema as HistorySchema
from likeness.data.schema.schema import Schema as Schema
from likeness.inference.combine import combine as combine
from likeness.ledger.ledger import Ledger as Ledger
from likeness.synthesizer import Synthesizer as Synthesizer

__version__: str
