"""track: mirror the run to MLflow, once, from files.

Reads: reports, data/models/loss.csv, the ledger's head. Writes: reports/tracking.json, the tracking store.
Spends: nothing; scores on real rows are left out unless tracking.internal_metrics is true.
"""

from pathlib import Path

from likeness.config.params import Params
from likeness.core.paths import write_json
from likeness.pipeline.run_stage import run_stage
from likeness.tracking.run import track


def main(params: Params) -> None:
    """Log, and note where."""
    write_json(Path("reports/tracking.json"), track(params))


if __name__ == "__main__":
    run_stage("track", main)
