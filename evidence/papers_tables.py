"""Tables of the papers without a schema file here: Cervical, Credit, Epileptic, Intrusion, Isolet, discretized Adult.

:func:`build` makes a Parquet file with a public schema beside it. Bounds and categories come from descriptions of
the data sets. What the papers leave out is left out here too. The tables are public, so their rows may be looked at.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from likeness.core.rng import public

FILES = {
    "cervical": "cervical.csv",
    "epileptic": "epileptic.parquet",
    "intrusion": "kddcup_10_percent.parquet",
    "adult_discretized": "adult_discretized.parquet",
    "isolet": "isolet.data",
    "credit": "creditcard.csv",
}
_TEST = 0.2  # of the rows
_UNTESTED = ("adult_discretized",)  # its marginals are compared with the rows themselves
_YES_NO = {"kind": "categorical", "categories": [0, 1]}
_READINGS = {"kind": "integer", "lower": -2048, "upper": 2047}  # of a converter of 12 bits (Andrzejak et al. 2001)
_CERVICAL = {  # numbers; the other columns are yes or no
    "Age": (10, 90),
    "Number of sexual partners": (0, 40),
    "First sexual intercourse": (5, 60),
    "Num of pregnancies": (0, 20),
    "Smokes (years)": (0, 80),
    "Smokes (packs/year)": (0, 80),
    "Hormonal Contraceptives (years)": (0, 50),
    "IUD (years)": (0, 50),
    "STDs (number)": (0, 12),
    "STDs: Number of diagnosis": (0, 12),
}
_RARE = ["STDs: Time since first diagnosis", "STDs: Time since last diagnosis"]  # known of one row in twelve
_ATTACKS = {  # of the task's page
    "normal": "normal",
    "dos": "back land neptune pod smurf teardrop",
    "probe": "ipsweep nmap portsweep satan",
    "r2l": "ftp_write guess_passwd imap multihop phf spy warezclient warezmaster",
    "u2r": "buffer_overflow loadmodule perl rootkit",
}
_CONNECTIONS = {  # of the task's page
    "protocol_type": "tcp udp icmp",
    "flag": "SF S0 S1 S2 S3 REJ RSTO RSTR RSTOS0 OTH SH",
    "service": "http smtp finger domain_u auth telnet ftp eco_i ntp_u ecr_i other private pop_3 ftp_data rje time mtp "
    "link remote_job gopher ssh name whois domain login imap4 daytime ctf nntp shell IRC nnsp http_443 exec printer "
    "efs courier uucp klogin kshell echo discard systat supdup iso_tsap hostnames csnet_ns pop_2 sunrpc uucp_path "
    "netbios_ns netbios_ssn netbios_dgm sql_net vmnet bgp Z39_50 ldap netstat urh_i X11 urp_i pm_dump tftp_u tim_i "
    "red_i icmp http_2784 harvest aol http_8001",
}
_FLAGS = ("land", "logged_in", "root_shell", "is_host_login", "is_guest_login")


def build(name: str, source: Path, folder: Path) -> None:
    """Write NAME.parquet and NAME.yaml into a folder, from the file as it was published."""
    header = {"header": None} if source.suffix == ".data" else {}  # as UCI writes it
    raw = pd.read_parquet(source) if source.suffix == ".parquet" else pd.read_csv(source, na_values="?", **header)
    rows, label, columns = _MAKERS[name](raw)
    if name not in _UNTESTED:
        test = public(0, "benchmarks.papers_tables").random(len(rows)) < _TEST
        rows = rows.assign(split=np.where(test, "test", "train"))
    folder.mkdir(parents=True, exist_ok=True)
    rows.to_parquet(folder / f"{name}.parquet", index=False)
    task = {"task": "classification", "label": label} if label else {"task": "none"}
    schema = {"name": name, "source": f"shared/data/papers/{source.name}", **task, "columns": columns}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(schema, sort_keys=False))


Made = tuple[pd.DataFrame, str, dict[str, dict[str, Any]]]


def _cervical(raw: pd.DataFrame) -> Made:
    """753 rows as in DP-MERF: those whose sexually transmitted diseases are known."""
    rows = raw[raw["STDs"].notna()].drop(columns=_RARE)
    columns: dict[str, dict[str, Any]] = {}
    for column in rows:
        kind = _YES_NO
        if column in _CERVICAL:
            low, high = _CERVICAL[column]
            kind = {"kind": "numeric", "lower": low, "upper": high}
        else:
            rows[column] = rows[column].astype("Int64")
        columns[column] = {**kind, **({"nullable": True} if rows[column].isna().any() else {})}
    return rows, "Biopsy", columns


def _epileptic(raw: pd.DataFrame) -> Made:
    columns = {column: _READINGS if column != "seizure" else _YES_NO for column in raw}
    return raw, "seizure", columns


def _intrusion(raw: pd.DataFrame) -> Made:
    """Five classes, and 40 columns: the number of outbound commands is 0 in every row."""
    kinds = {attack: kind for kind, attacks in _ATTACKS.items() for attack in attacks.split()}
    rows = raw.drop(columns="num_outbound_cmds")
    rows["label"] = rows["label"].astype(str).str.rstrip(".").map(kinds)
    columns: dict[str, dict[str, Any]] = {}
    for column in rows.columns:
        if column in _CONNECTIONS or column == "label":
            words = list(_ATTACKS) if column == "label" else _CONNECTIONS[column].split()
            columns[column] = {"kind": "categorical", "categories": words}
        elif column in _FLAGS:
            columns[column] = _YES_NO
        elif column.endswith("_rate"):
            columns[column] = {"kind": "numeric", "lower": 0, "upper": 1}
        elif column in ("count", "srv_count", "dst_host_count", "dst_host_srv_count"):
            columns[column] = {"kind": "integer", "lower": 0, "upper": 255 if "host" in column else 511}
        else:  # seconds of a day, bytes, and numbers of events
            high = 86_400 if column == "duration" else 2**31 if column.endswith("bytes") else 10_000
            columns[column] = {"kind": "integer", "lower": 0, "upper": high, "transform": "log1p"}
    return rows, "label", columns


def _adult_discretized(raw: pd.DataFrame) -> Made:
    """Codes without a codebook. The largest one is taken for the size of a domain."""
    return (
        raw,
        "",
        {column: {"kind": "categorical", "categories": list(range(int(raw[column].max()) + 1))} for column in raw},
    )


def _isolet(raw: pd.DataFrame) -> Made:
    """617 numbers of a spoken letter, scaled to -1 to 1 by those who published it; the label is vowel or not.

    The papers have two classes of the 26 and do not say which.
    """
    rows = raw.rename(columns=lambda place: f"x{place}").rename(columns={f"x{raw.columns[-1]}": "vowel"})
    rows["vowel"] = rows["vowel"].astype(int).isin([1 + "abcdefghijklmnopqrstuvwxyz".index(key) for key in "aeiou"])
    rows["vowel"] = rows["vowel"].astype(int)
    number = {"kind": "numeric", "lower": -1, "upper": 1}
    return rows, "vowel", {column: _YES_NO if column == "vowel" else number for column in rows}


def _credit(raw: pd.DataFrame) -> Made:
    """Card payments of two days: 28 principal components, seconds and amount."""
    columns: dict[str, dict[str, Any]] = {column: {"kind": "numeric", "lower": -20, "upper": 20} for column in raw}
    columns["Time"] = {"kind": "numeric", "lower": 0, "upper": 2 * 86_400}
    columns["Amount"] = {"kind": "numeric", "lower": 0, "upper": 100_000, "transform": "log1p"}
    columns["Class"] = _YES_NO
    return raw, "Class", columns


_MAKERS = {
    "cervical": _cervical,
    "epileptic": _epileptic,
    "intrusion": _intrusion,
    "adult_discretized": _adult_discretized,
    "isolet": _isolet,
    "credit": _credit,
}
