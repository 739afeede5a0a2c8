"""fingerprint: notice a changed source without publishing a hash of it.

Reads: the private source, the ledger's key. Writes: data/private/source.json (a keyed hash). Spends: nothing.
"""

from likeness.config.params import Params
from likeness.core.files import make_private_folder
from likeness.core.paths import SOURCE, write_json
from likeness.pipeline.open_ledger import open_ledger
from likeness.pipeline.run_stage import run_stage
from likeness.pipeline.source import source_digest


def main(params: Params) -> None:
    """Hash the source with the ledger's secret key."""
    digest = source_digest(params, open_ledger(params).key)
    make_private_folder(SOURCE.parent)
    write_json(SOURCE, {"hmac": digest})


if __name__ == "__main__":
    run_stage("fingerprint", main)
