"""The forecast of noise beside what noise did: total variation of columns and pairs, on tables of the panel.

Run: ``python -m evidence.forecast [--tables NAME ...]``. The noise's part of a table at ε = 1 is its total variation
less that of a table at ε = 500, where only the model errs. The first is a row of evidence/results/panel.csv; the second
is drawn here. ``--page`` prints the table and the share of tables whose forecast is within a factor of 1.5. It draws
docs/img/forecast.png.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from evidence import panel
from evidence.common import Results, temporary_ledger
from likeness.report.style import BLUE, GREY, ORANGE, draw

RESULTS = Results(Path("evidence/results/forecast.csv"), ["table"])
FITTED = (
    *("AER_HMDA", "ggplot2_diamonds", "made_likert", "made_survey", "openintro_yrbss", "psych_bfi", "survival_colon"),
    "wooldridge_k401ksubs",
)
"""Tables that both constants of the forecast were fitted to."""
UNSEEN = (
    *("AER_DoctorVisits", "Ecdat_Benefits", "carData_SLID", "modeldata_attrition", "stevedata_TV16"),
    *("survival_flchain", "wooldridge_gpa2", "stevedata_gss_spending"),
)
MANY, FACTOR = 500.0, 1.5
PICTURE = Path("docs/img/forecast.png")


def main() -> None:
    """Measure what is missing, or print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=[*FITTED, *UNSEEN])
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    if arguments.page:
        page()
        return
    score, noisy = panel.scores(), panel.RESULTS.rows.query("epsilon == 1").drop_duplicates("table", keep="last")
    noisy = noisy.set_index("table")
    with temporary_ledger():
        for name in arguments.tables:
            if RESULTS.of(name).empty:
                exact = panel.measured(score, panel.PANEL / "tables", name, MANY, task=False)
                codebook, train, _ = score.load(panel.PANEL / "tables", name)
                (expected,) = panel.synthesizer_of(codebook, name, 1.0).check(len(train)).forecast.expected
                found = {"rows": len(train), "columns": len(codebook["columns"]), "fitted": name in FITTED}
                for key, forecast in (("tv1", expected.column_distance), ("tv2", expected.pair_distance)):
                    found |= {f"{key}_forecast": forecast, f"{key}_noise": noisy.loc[name, key] - exact[key]}
                RESULTS.add(
                    [name], {**found, "detectable": expected.detectable, "lost": expected.lost / expected.pairs}
                )


def page() -> None:
    """The table in Markdown, and how often the forecast of pairs is near."""
    rows = RESULTS.rows
    ratio = rows["tv2_forecast"] / rows["tv2_noise"].clip(lower=1e-4)
    near = ratio.between(1 / FACTOR, FACTOR)
    print("| table | rows | columns | seen | column: forecast | noise | pair: forecast | noise | strength | lost, % |")
    print("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows.itertuples():
        numbers = (row.tv1_forecast, row.tv1_noise, row.tv2_forecast, row.tv2_noise)
        words = " | ".join(f"{number:.3f}" for number in numbers)
        words += f" | {row.detectable:.3f}" if row.detectable <= 1 else " | none"
        seen = "yes" if row.fitted else "no"
        print(f"| {row.table} | {row.rows:,} | {row.columns} | {seen} | {words} | {100 * row.lost:.0f} |")
    PICTURE.write_bytes(draw(6, 4.2, lambda figure: picture(figure, rows)))
    counts = near.groupby(rows["fitted"]).agg(["sum", "count"])
    print(f"\nWithin a factor of {FACTOR}: {near.sum()} of {len(near)} pairs.", counts.to_dict("index"))


def picture(figure: Figure, rows: pd.DataFrame) -> None:
    """Forecast against noise of pairs, on logarithmic axes; the band is a factor of 1.5."""
    panel, ends = figure.subplots(), np.array([0.008, 0.15])
    panel.fill_between(ends, ends / FACTOR, ends * FACTOR, color=GREY, alpha=0.2, linewidth=0)
    panel.plot(ends, ends, color=GREY, linewidth=0.8)
    for fitted, color, marker, name in ((True, BLUE, "o", "seen"), (False, ORANGE, "s", "unseen")):
        some = rows[rows["fitted"] == fitted]
        panel.loglog(some["tv2_noise"], some["tv2_forecast"], marker, color=color, label=name, markersize=5)
    for row in rows[~(rows["tv2_forecast"] / rows["tv2_noise"]).between(1 / FACTOR, FACTOR)].itertuples():
        panel.annotate(row.table, (row.tv2_noise, row.tv2_forecast), (5, 5), textcoords="offset points", fontsize=7)
    panel.set(xlabel="what noise made of total variation of pairs", ylabel="forecast", xlim=ends, ylim=ends)
    panel.xaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_major_formatter("{x:g}")
    panel.legend(loc="upper left")


if __name__ == "__main__":
    main()
