"""Where models that were logged look for their code: see :mod:`likeness.tracking.serving`."""

from likeness.tracking.serving import *  # noqa: F403
