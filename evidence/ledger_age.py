"""What a night costs where a ledger is new, and where it is five years old.

Run: ``python -m evidence.ledger_age [--records 10964] [--times 3]``. It prints the CPU time and the peak memory of
``likeness ledger budget`` and of a stage with nothing to do, on SQLite and PostgreSQL. Records of more nights are like
those of the first one, at a ten thousandth of the cost.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from sqlalchemy import insert

from evidence.common import markdown
from tests.campaigns.fault_field import EPSILON, ROOM, Field, preload
from tests.campaigns.nights import PLACES, database
from likeness.core.rng import secret_bytes
from likeness.ledger.database import RECORDS
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.records import Record, append, row

# A process of its own: memory that this one has taken would count as that of its children.
_MEASURE = """
import json, resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", *sys.argv[1:]], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, done.stderr, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""
COMMANDS = (("likeness", "ledger", "budget"), ("stages.privatize",))


def grow(ledger: Ledger, most: int) -> None:
    """Write records until there are ``most``, night by night, each with other rows and keys."""
    records = ledger.records()
    first, night = len(records), [record for record in records if record.kind in ("reserve", "commit")]
    while len(records) < most:
        names, places, digest = dict[str, str](), dict[str, int](), secret_bytes(32).hex()
        for record in night[: most - len(records)]:
            body = {key: value for key, value in record.body.items() if not key.endswith("_salt")}
            key = names.setdefault(body["key"], secret_bytes(32).hex())
            changed = {"rho": body["rho"] / 1e4, "digest": digest} if record.kind == "reserve" else {}
            changed |= {"reserve_seq": places[key]} if record.kind == "commit" else {}
            places.setdefault(key, len(records) + 1)
            append(records, record.kind, {**body, **changed, "key": key})
    _write(ledger, records[first:])
    ledger.write_anchor(records)


def _write(ledger: Ledger, records: list[Record]) -> None:
    with ledger._engine.begin() as connection:
        connection.execute(insert(RECORDS), [row(record) for record in records])


def cost(field: Field, words: tuple[str, ...], times: int) -> tuple[float, float]:
    """Median CPU seconds and largest peak memory in MB of a command."""
    seconds, peak = [], 0.0
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, *words], cwd=field.root, stdout=subprocess.PIPE, text=True, check=True
        )
        code, errors, used, most = json.loads(done.stdout)
        assert code == 0, errors
        seconds.append(used)
        peak = max(peak, most)
    return statistics.median(seconds), peak


def main() -> int:
    """Measure; 1 if the five years cost more than 1.2 times the first night."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=10_964)
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    preload()
    lines, worst = [], 0.0
    for place in PLACES:
        with database(place) as folder:
            field = Field.make(Path(folder) / "field", EPSILON, ROOM)
            os.environ.update({"LIKENESS_HOME": str(field.home), "LIKENESS_ANCHOR": str(field.anchor)})
            ended = field.spend()
            assert ended.code == 0, ended.output
            before = [cost(field, words, arguments.times) for words in COMMANDS]
            grow(Ledger.open(locate()), arguments.records)
            count = len(Ledger.open(locate()).records())
            for words, first in zip(COMMANDS, before, strict=True):
                last = cost(field, words, arguments.times)
                worst = max(worst, last[0] / first[0])
                row_of = (
                    f"{first[0]:.2f}",
                    f"{last[0]:.2f}",
                    f"{last[0] / first[0]:.2f}",
                    f"{first[1]:.0f}",
                    f"{last[1]:.0f}",
                )
                lines.append([place, f"`{' '.join(words)}`", f"{count:,}", *row_of])
    print(markdown(["ledger", "command", "records:", "first night, CPU s:", "last:", "ratio:", "MB:", "last:"], lines))
    return int(worst > 1.2)


if __name__ == "__main__":
    raise SystemExit(main())
