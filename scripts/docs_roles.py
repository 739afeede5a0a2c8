"""Griffe extension: roles of reStructuredText in docstrings (``:class:`X```) become code, as Markdown has none."""

import re
from typing import Any

from griffe import Docstring, Extension, Object

_ROLE = re.compile(r":(?:attr|class|data|func|math|meth|mod):`~?([^`]+)`")


class Roles(Extension):
    """Rewrites every docstring."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Replace the text before it is parsed."""
        if obj.docstring is not None:
            obj.docstring = Docstring(
                _ROLE.sub(r"`\1`", obj.docstring.value),
                lineno=obj.docstring.lineno,
                endlineno=obj.docstring.endlineno,
                parent=obj,
                parser=obj.docstring.parser,
                parser_options=obj.docstring.parser_options,
            )
