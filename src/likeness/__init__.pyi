from likeness.data.schema.schema import Schema as Schema
from likeness.synthesizer import Synthesizer as Synthesizer

__version__: str
