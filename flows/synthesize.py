"""One pipeline run as a Prefect flow: ``python -m flows.synthesize``. `likeness_orchestration.synthesize` says how."""

import sys

from likeness_orchestration.synthesize import main, synthesize

__all__ = ["main", "synthesize"]  # a worker loads the flow from this file

if __name__ == "__main__":
    sys.exit(main())
