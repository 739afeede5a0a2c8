"""Three tables that the project has never seen, from data that statsmodels bundles: `python make_tables.py FOLDER`.

statsmodels is no dependency of this project: run this in an environment of its own (`pip install statsmodels pyarrow`).

- visits.csv      regression: RAND Health Insurance Experiment (`randhie`), 20,190 person-years; visits to a doctor
- marriage.csv    five classes: Fair's survey on marriages (`fair`), 6,366 women; with semicolons, as offices write it
- marriage.db     the same, as table `answers` of a SQLite database
- air.csv         dates and missing values: weekly carbon dioxide on Mauna Loa (`co2`), 2,284 weeks, 59 without a value,
                  written "NA"; days as 29.03.1958; with the year's sunspots and the month's sea temperature
- countries.csv   several rows a unit: fertility of 219 countries in up to 52 years (`fertility`), wide to long
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pandas as pd
from statsmodels import datasets  # type: ignore[import-not-found, unused-ignore]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    datasets.randhie.load_pandas().data.to_csv(folder / "visits.csv", index=False)
    marriage = datasets.fair.load_pandas().data
    marriage.to_csv(folder / "marriage.csv", index=False, sep=";")
    (folder / "marriage.db").unlink(missing_ok=True)
    database = sqlite3.connect(folder / "marriage.db")
    marriage.to_sql("answers", database, index=False)
    database.close()
    air().to_csv(folder / "air.csv", index=False, na_rep="NA")
    countries().to_csv(folder / "countries.csv", index=False)


def air() -> pd.DataFrame:
    """One row a week: its day, carbon dioxide, the sunspots of its year, the sea temperature of its month."""
    weekly = datasets.co2.load_pandas().data
    sunspots = datasets.sunspots.load_pandas().data.set_index("YEAR")["SUNACTIVITY"]
    sea = datasets.elnino.load_pandas().data.set_index("YEAR")
    return pd.DataFrame(
        {
            "week": weekly.index.strftime("%d.%m.%Y"),
            "season": [("winter", "spring", "summer", "autumn")[day.month % 12 // 3] for day in weekly.index],
            "co2": weekly["co2"].to_numpy(),
            "sunspots": [sunspots[day.year] for day in weekly.index],
            "sea_temperature": [sea.loc[day.year].iloc[day.month - 1] for day in weekly.index],
        }
    )


def countries() -> pd.DataFrame:
    """One row a country and year: births per woman, missing where the World Bank has none."""
    wide = datasets.fertility.load_pandas().data.drop(
        columns=["Country Name", "Indicator Name", "Indicator Code", "2012", "2013"]
    )
    return wide.melt(id_vars="Country Code", var_name="year", value_name="births").sort_values(["Country Code", "year"])


if __name__ == "__main__":
    main()
