"""Patients and their visits by a known law: `python make_tables.py` writes data/raw/people.csv and events.csv.

The law is public. A patient has up to six visits, and more of them if older. Who is ill mostly becomes well, and nobody
comes after a death.
"""

from pathlib import Path

import numpy as np
import pandas as pd

PEOPLE = 2000
NEXT = {"well": [0.8, 0.18, 0.02], "ill": [0.6, 0.3, 0.1], "dead": [0.0, 0.0, 1.0]}


def tables(count: int = PEOPLE) -> dict[str, pd.DataFrame]:
    """People and events by name."""
    random = np.random.default_rng(0)
    people = pd.DataFrame({"patient": np.arange(count), "sex": random.choice(["f", "m"], count)})
    people["age"] = random.integers(20, 90, count)
    visits = []
    for patient, age in zip(people["patient"], people["age"], strict=True):
        day, state = int(random.integers(0, 300)), str(random.choice(["well", "ill"]))
        for _ in range(random.binomial(6, age / 120)):
            date = pd.Timestamp("2020-01-01") + pd.Timedelta(days=day)
            visits.append((patient, date.date(), state, round(float(random.gamma(2, 40)), 2)))
            if state == "dead":
                break
            day += int(random.integers(1, 200))
            state = str(random.choice(list(NEXT), p=NEXT[state]))
    return {"people": people, "events": pd.DataFrame(visits, columns=["patient", "day", "state", "cost"])}


if __name__ == "__main__":
    folder = Path("data/raw")  # of the project here; git leaves it out
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables().items():
        table.to_csv(folder / f"{name}.csv", index=False)
