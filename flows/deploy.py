"""Register the flow with a Prefect server: ``python -m flows.deploy``. `likeness.flows.deploy` says how."""

import sys

from likeness.flows.deploy import main

if __name__ == "__main__":
    sys.exit(main())
