"""The command line. It starts, to say so, where another project's package ``likeness`` wrote over ours."""

import sys

import likeness
from likeness.core.extras import namesake

if not hasattr(likeness, "__version__"):
    sys.exit(f"likeness: {namesake()}")
