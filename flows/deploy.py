"""Register the flow with a Prefect server: ``python -m flows.deploy``. `likeness_orchestration.deploy` says how."""

import sys

from likeness_orchestration.deploy import main

if __name__ == "__main__":
    sys.exit(main())
