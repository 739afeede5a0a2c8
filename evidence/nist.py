"""NIST's own score of our synthetic rows of its ACS excerpts, with and without the public rules of its dictionary.

Run: ``python -m evidence.nist [--state TX] [--rules on|off] [--draws 3] [--sdnist FOLDER]``. Resumable. It fills the
section of evidence/TABLES.md. The scores are those of SDNist 2.4 on PyPI, whose pins are old: it stands in an
environment of its own, in FOLDER, which the first run makes (by default in the user's cache).
``--variant mst --rules off --peers PYTHON`` scores a peer of :mod:`evidence.tables` on the cells of ours.
``--variant earlier --rules off --draws 1`` scores NIST's excerpt of 2018, unchanged, as if it were that of 2019.

Public knowledge is the data dictionary, the lists of codes beside each file, the Census Bureau's ranges of industry
codes, and the published density of each area. All settings are chosen on Texas. ``--variant`` names another choice.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

from evidence.common import SHARED, Table, temporary_ledger
from evidence.pages import Results, cell, markdown, on_page
from evidence.tables import NAMES as METHODS
from evidence.tables import PROGRAMS, run_peer, unlabeled, with_epsilon
from likeness.data.schema.schema import Schema
from likeness.synthesizer import Synthesizer

RESULTS = Results(Path("evidence/results/nist.csv"), ["state", "variant", "rules", "draw"])
PAGE = Path("evidence/TABLES.md")
DATA = SHARED / "acs"
STATES = {"MA": ("massachusetts", "ma2019"), "TX": ("texas", "tx2019")}
DENSITY = {
    **{"25-00503": 2872.7, "25-00703": 2195.3, "25-01000": 2447.1, "25-01300": 1457.2, "25-02800": 3683.9},
    **{"48-02101": 357.4, "48-02102": 450.9, "48-02507": 3731.1, "48-02510": 3092.4, "48-02515": 2134.8},
    "48-02516": 1338.4,
}
# First codes of the industry categories 0 to 18, from the Census Bureau's list for the ACS of 2019.
INDUSTRIES = (
    *(170, 370, 570, 770, 1070, 4070, 4670, 6070, 6470, 6870, 7270, 7860, 7970, 8370, 8560, 8770, 9370, 9670, 9920),
)
NAMES = {"on": "**ours, rules, {}**", "off": "ours, no rules, {}"}


def main() -> None:
    """Run what is missing, write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", choices=STATES)
    parser.add_argument("--rules", choices=NAMES)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--variant", default="column", choices=[*VARIANTS, *PROGRAMS, EARLIER])
    parser.add_argument("--epsilon", type=float, default=1.0)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "likeness-sdnist"
    parser.add_argument("--sdnist", type=Path, default=cache, help="folder of the environment of SDNist")
    parser.add_argument("--peers", default="evidence/.peers/bin/python", help="python of a peer's environment")
    parser.add_argument("--page", action="store_true", help="write the section and run nothing")
    arguments = parser.parse_args()
    for state in () if arguments.page else STATES:
        for rules in NAMES:
            if arguments.state in (None, state) and arguments.rules in (None, rules):
                run(state, rules, arguments)
    on_page(PAGE, {"nist": section(RESULTS.rows)})


def run(state: str, rules: str, arguments: argparse.Namespace) -> None:
    """Every draw that is not in the CSV file."""
    for draw in range(1, arguments.draws + 1):
        keys = [state, arguments.variant, rules, draw]
        if not RESULTS.of(*keys).empty:
            continue
        start = time.monotonic()
        if arguments.variant == EARLIER:
            table = of_the_year_before(state)
        elif arguments.variant in PROGRAMS:
            table = by_peer(arguments.peers, state, arguments.variant, arguments.epsilon)
        else:
            table = synthesize(state, rules == "on", arguments.variant, arguments.epsilon)
        seconds = time.monotonic() - start
        RESULTS.add(keys, {"seconds": seconds, **scored(table, state, arguments.sdnist)})


def rows_of(state: str) -> pd.DataFrame:
    """NIST's rows as texts."""
    folder, name = STATES[state]
    path = DATA / folder / f"{name}.csv"
    if not path.exists():
        raise SystemExit(f"{path} is missing. Get the Diverse Communities Data Excerpts of NIST.")
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def of_the_year_before(state: str) -> pd.DataFrame:
    """NIST's rows of 2018. A code of an industry that 2019 lacks becomes the nearest one of its category."""
    folder, name = STATES[state]
    rows = pd.read_csv(DATA / folder / f"{name.replace('2019', '2018')}.csv", dtype=str, keep_default_na=False)
    codes = schema_of(state, rules=False).column("INDP").categories
    category = [sum(int(code) >= first for first in INDUSTRIES) for code in codes]
    nearest = {"N": "N"}
    for code in set(rows["INDP"]) - {"N"}:
        group = sum(int(code) >= first for first in INDUSTRIES)
        nearest[code] = min(
            (other for other, at in zip(codes, category, strict=True) if at == group),
            key=lambda other, code=code: abs(int(other) - int(code)),
        )
    return rows.assign(INDP=rows["INDP"].map(nearest))


def schema_of(state: str, rules: bool) -> Schema:
    """The schema from the dictionary and the lists of codes."""
    folder, name = STATES[state]
    codes = json.loads((DATA / folder / f"{name}.json").read_text())["schema"]
    columns = {column: _column(column, spec) for column, spec in codes.items()}
    given = rules_of(columns) if rules else []
    about = {"name": f"acs_{state.lower()}", "source": "data dictionary of NIST's excerpts of the ACS"}
    return Schema.from_dict({**about, "task": "none", "columns": columns, "rules": given}, "nist")


def _column(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """A column by the dictionary: bounds from there, categories from the list of codes."""
    missing = {"nullable": True, "missing_values": ["N"]} if spec.get("has_null") else {}
    if name in NUMBERS:
        return {"kind": "integer", **NUMBERS[name], **missing}
    if name == "DENSITY":
        return {"kind": "numeric", "lower": 16.3, "upper": 52864.7, "decimals": 1}
    return {"kind": "categorical", "categories": [str(code) for code in spec["values"] if code != "N"], **missing}


NUMBERS: dict[str, dict[str, Any]] = {
    "AGEP": {"lower": 0, "upper": 99},
    "NOC": {"lower": 0, "upper": 19},
    "NPF": {"lower": 2, "upper": 20},
    "PINCP": {"lower": 0, "upper": 1341000, "transform": "log1p"},  # a loss becomes 0
    "POVPIP": {"lower": 0, "upper": 501, "spikes": [501]},
    "PWGTP": {"lower": 1, "upper": 9999, "transform": "log1p"},
    "WGTP": {"lower": 0, "upper": 9999, "transform": "log1p"},
}
_AREA = {"privatize": {"workload": [{"columns": ["PUMA"], "weight": 3}]}}
VARIANTS: dict[str, dict[str, Any]] = {
    "area": {"settings": _AREA},
    "many": {"settings": _AREA, "times": 10},
    "column": {},
}
"""More budget for pairs with the area, and ten times the rows; neither. The page has :data:`SHOWN`."""
EARLIER = "earlier"
SHOWN = {"column": "as shipped", "area": "area weighted", "many": "area weighted, ten times the rows"}


def rules_of(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """What the dictionary says: who has a value, who has none, and what follows from what."""
    indp = columns["INDP"]["categories"]
    category = {code: str(sum(int(code) >= first for first in INDUSTRIES) - 1) for code in indp}
    adult = {name: _any(columns[name]) for name in ("MSP", "PINCP", "PINCP_DECILE")}
    return [
        {"if": {"AGEP": "< 15"}, "then": dict.fromkeys(adult)},
        {"if": {"AGEP": ">= 15"}, "then": adult},
        {"if": {"AGEP": "< 16"}, "then": {"INDP": None, "INDP_CAT": None}},
        {"if": {"AGEP": "< 17"}, "then": {"DVET": None}},
        {"if": {"AGEP": "< 3"}, "then": {"EDU": None}},
        {"if": {"AGEP": ">= 3"}, "then": {"EDU": _any(columns["EDU"])}},
        {"if": {"AGEP": "< 5"}, "then": {"DREM": None, "DPHY": None}},
        {"if": {"AGEP": ">= 5"}, "then": {"DREM": ["1", "2"], "DPHY": ["1", "2"]}},
        {"if": {"AGEP": "3..4"}, "then": {"EDU": ["1", "2", "3"]}},
        {"if": {"AGEP": "< 15"}, "then": {"EDU": [None, "1", "2", "3", "4", "5", "6", "7"]}},
        {"if": {"HOUSING_TYPE": ["2", "3"]}, "then": {"OWN_RENT": "0", "NOC": None, "NPF": None, "WGTP": 0}},
        {"if": {"HOUSING_TYPE": "1"}, "then": {"OWN_RENT": ["1", "2"], "NOC": "0..", "WGTP": "1.."}},
        *({"never": {"NOC": f">= {size}", "NPF": f"<= {size}"}} for size in range(2, 20)),
        {"determines": ["PUMA", "DENSITY"], "table": {area: DENSITY[area] for area in columns["PUMA"]["categories"]}},
        {"determines": ["INDP", "INDP_CAT"], "table": category},
    ]


def _any(spec: dict[str, Any]) -> Any:
    """Every value but a missing one."""
    return spec.get("categories", "..")


def synthesize(state: str, rules: bool, variant: str, epsilon: float) -> pd.DataFrame:
    """As many synthetic rows as the variant says, in NIST's codes, from one release in a ledger of its own."""
    rows, schema = rows_of(state), schema_of(state, rules)
    with temporary_ledger():
        options = {"epsilon": epsilon, "population": "acs", "cap": (1000.0, 1e-5)}
        synthesizer = Synthesizer(schema=schema, settings=VARIANTS[variant].get("settings"), **options)
        table = synthesizer.fit(rows).sample(len(rows) * VARIANTS[variant].get("times", 1))
    return table.astype(object).where(table.notna(), "N")


def by_peer(python: str, state: str, method: str, epsilon: float) -> pd.DataFrame:
    """As many synthetic rows by a peer, in NIST's codes. It gets the cells of ours and no rules."""
    table = excerpt(state)
    sample = dataclasses.replace(table.params.sample, rows=len(table.train))
    params = with_epsilon(dataclasses.replace(table.params, sample=sample), epsilon)
    synthetic, _ = run_peer(python, method, params, table)
    return synthetic.astype(object).where(synthetic.notna(), "N")


def excerpt(state: str) -> Table:
    """NIST's rows as a table of the benchmarks, without label and rules."""
    folder, name = STATES[state]
    return unlabeled("acs", DATA / folder / f"{name}.csv", schema_of(state, rules=False))


def scored(table: pd.DataFrame, state: str, environment: Path) -> dict[str, float]:
    """SDNist's scores of a table."""
    python = environment / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "sdnist==2.4"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        table.to_csv(path, index=False)
        command = [python, DATA.resolve() / "score.py", state, path]
        answer = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=folder, env={**os.environ, "MPLBACKEND": "Agg"}
        )
    score = json.loads(answer.stdout.splitlines()[-1])
    names = [str(name) for name in score["percent_contradicting"]]
    percent = dict(
        zip((name.split()[0].lower() for name in names), score["percent_contradicting"].values(), strict=True)
    )
    return {name: score[name] for name in ("k_marginal", "worst_area", "pmse", "unique_matches_percent")} | {
        f"contradicting_{name}": value for name, value in percent.items()
    }


def section(results: pd.DataFrame) -> str:
    """Mean ± standard deviation by state and rules."""
    columns = [
        name for name in results.columns if name not in (*RESULTS.keys, "commit", "seconds", "unique_matches_percent")
    ]
    lines, digits = [], {"pmse": 4, "k_marginal": 0, "worst_area": 0}
    shown = results[results["variant"].isin([*SHOWN, *PROGRAMS, EARLIER])]
    for (state, variant, rules), rows in shown.groupby(["state", "variant", "rules"]):
        cells = [len(rows), *(cell(rows[name], digits.get(name, 1)) for name in columns)]
        fixed = {**METHODS, EARLIER: "the excerpt of 2018, unchanged"}
        title = fixed.get(str(variant)) or NAMES[str(rules)].format(SHOWN[str(variant)])
        lines.append([state, title, *cells])
    return markdown(["state", "method", "draws:", *(f"{name.replace('_', ' ')}:" for name in columns)], lines)


if __name__ == "__main__":
    main()
