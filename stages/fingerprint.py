"""fingerprint: notice a changed source without publishing a hash of it.

Reads: the private source, the ledger's key. Writes: data/private/source.json (a keyed hash). Spends: nothing.
"""

from likeness.artifacts import SOURCE, open_ledger, source_digest, write_json
from likeness.data.tables import make_private_folder
from likeness.params import Params
from likeness.stage import run_stage


def main(params: Params) -> None:
    """Hash the source with the ledger's secret key."""
    digest = source_digest(params, open_ledger(params).key)
    make_private_folder(SOURCE.parent)
    write_json(SOURCE, {"hmac": digest})


if __name__ == "__main__":
    run_stage("fingerprint", main)
