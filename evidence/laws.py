"""What a user looks at first: nine tables with known laws, the default of marginals, and a goal for each figure.

Run: ``python -m evidence.laws [--tables NAME ...] [--draws 3] [--epsilon 1]``. It needs no other data. Each draw is a
release of its own, in a ledger of the benchmark's own. Codebooks are those of a careful stranger: bounds and
categories, no decimals, no spikes, no rules. *Rules* is the same with rules that a codebook says. Resumable: a row
that is in the CSV, of equal commit, table, variant, draw and ε, is not run again. At the end it fills
evidence/TABLES.md with the latest rows.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evidence.common import Results, commit, markdown, on_page, temporary_ledger
from likeness import Synthesizer
from likeness.core import rng
from likeness_histories.schema import HistorySchema

RESULTS = Results(Path("evidence/results/laws.csv"), ["commit", "table", "variant", "figure", "draw", "epsilon"])
PAGE = Path("evidence/TABLES.md")
DELTA = 1e-5
DEFAULT, RULES = "default", "rules"
Random = np.random.Generator
Columns = dict[str, dict[str, Any]]


class Goal(NamedTuple):
    """What a figure should reach, in words, and whether it does, from the real and the synthetic one."""

    words: str
    holds: Callable[[float, float], bool]


def least(value: float) -> Goal:
    """At least so much."""
    return Goal(f"at least {value:g}", lambda real, ours: ours >= value)


def most(value: float) -> Goal:
    """At most so much."""
    return Goal(f"at most {value:g}", lambda real, ours: ours <= value)


def part(share: float) -> Goal:
    """At least this part of the real one."""
    return Goal(f"at least {share:g} of real", lambda real, ours: ours >= share * real)


def near(share: float) -> Goal:
    """As the real one but for a part of it."""
    return Goal(f"within {100 * share:g} %", lambda real, ours: abs(ours - real) <= share * abs(real))


def close(distance: float) -> Goal:
    """As the real one but for so much."""
    return Goal(f"within {distance:g}", lambda real, ours: abs(ours - real) <= distance)


def below(distance: float) -> Goal:
    """Not below the real one by more."""
    return Goal(f"real less {distance:g}", lambda real, ours: ours >= real - distance)


@dataclass(frozen=True)
class Figure:
    """A figure of a table: ``of(table, test)``, with rows that nobody has trained on; digits, and its goal."""

    of: Callable[[pd.DataFrame, pd.DataFrame], float]
    digits: int
    goal: Goal


@dataclass(frozen=True)
class Law:
    """A table with a known law.

    Attributes:
        make: draws rows.
        schema: a stranger's schema, as the content of a file.
        figures: what a user looks at, by name.
        tables: synthetic ones of a release, over which figures are averaged.
        rules: that a codebook says, as sections of the schema; empty: the variant with rules is not run.
    """

    make: Callable[[Random], pd.DataFrame]
    schema: Mapping[str, Any]
    figures: Mapping[str, Figure]
    tables: int = 1
    rules: Mapping[str, Any] = field(default_factory=dict)


def whole(lower: float, upper: float) -> dict[str, Any]:
    """An integer column."""
    return {"kind": "integer", "lower": lower, "upper": upper}


def number(lower: float, upper: float) -> dict[str, Any]:
    """A numeric column."""
    return {"kind": "numeric", "lower": lower, "upper": upper}


def words(*names: str) -> dict[str, Any]:
    """A column of categories."""
    return {"kind": "categorical", "categories": list(names)}


def table_of(columns: Columns, label: str | None = None) -> dict[str, Any]:
    """A schema of one table."""
    task = {"task": "classification", "label": label} if label else {"task": "none"}
    return {"name": "a stranger's table", "source": "evidence/laws.py", **task, "columns": columns}


def likert(random: Random, load: float, factor: np.ndarray, cuts: Sequence[float]) -> np.ndarray:
    """Answers from 1 to 5 to an item that a factor loads on."""
    return np.digitize(load * factor + np.sqrt(1 - load**2) * random.normal(size=len(factor)), cuts) + 1


def spearman(one: str, other: str) -> Callable[[pd.DataFrame, pd.DataFrame], float]:
    """Rank correlation of two columns."""
    return lambda table, _: float(table[one].corr(table[other], method="spearman"))


def scale(place: int) -> Callable[[pd.DataFrame, pd.DataFrame], float]:
    """Mean rank correlation of all pairs of items of one scale of the survey."""
    names = [f"item{item + 1:02}" for item in range(place, 52, 6)]

    def of(table: pd.DataFrame, _: pd.DataFrame) -> float:
        correlations = table[names].astype(float).corr(method="spearman").to_numpy()
        return float(correlations[np.triu_indices(len(names), 1)].mean())

    return of


def mean(name: str, **where: str) -> Callable[[pd.DataFrame, pd.DataFrame], float]:
    """Mean of a column, of rows with some value."""

    def of(table: pd.DataFrame, _: pd.DataFrame) -> float:
        for column, value in where.items():
            table = table[table[column].astype(str) == value]
        return float(table[name].astype(float).mean())

    return of


def cronbach(table: pd.DataFrame, _: pd.DataFrame) -> float:
    """Alpha of all items."""
    items = table.filter(like="q").astype(float)
    count = items.shape[1]
    return float(count / (count - 1) * (1 - items.var().sum() / items.sum(axis=1).var()))


def learned(target: str, inputs: Sequence[str], score: str) -> Callable[[pd.DataFrame, pd.DataFrame], float]:
    """Score on real rows of a model that learns a target from a table: ``auc`` or ``r2``."""

    def of(table: pd.DataFrame, test: pd.DataFrame) -> float:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LinearRegression
        from sklearn.metrics import roc_auc_score

        train, judged = (pd.get_dummies(rows[list(inputs)]).astype(float) for rows in (table, test))
        if score == "r2":
            return float(LinearRegression().fit(train, table[target]).score(judged, test[target]))
        model = HistGradientBoostingClassifier(random_state=0).fit(train, table[target].astype(str))
        return float(
            roc_auc_score(test[target] == "yes", model.predict_proba(judged)[:, list(model.classes_).index("yes")])
        )

    return of


def survey(random: Random) -> pd.DataFrame:
    """Answers of 12,000 people to 52 items of six scales, and their health."""
    n = 12_000
    base, age = random.normal(size=(n, 7)), random.integers(16, 95, n)
    works = random.random(n) < 0.58
    data: dict[str, Any] = {
        "region": np.array([f"r{place}" for place in range(8)])[random.integers(0, 8, n)],
        "age": age,
        "education": np.digitize(base[:, 0], [-1, -0.2, 0.7, 1.4]) + 1,
        "income": np.round(np.exp(7.3 + 0.35 * base[:, 0] + random.normal(0, 0.45, n)), -1).astype(int),
        "works": np.where(works, "yes", "no"),
        "hours": np.where(works, np.clip(random.normal(36, 8, n), 4, 70).round(), 0).astype(int),
    }
    for item in range(52):
        load = 0.82 if item % 6 == 1 else 0.7
        data[f"item{item + 1:02}"] = likert(random, load, base[:, 1 + item % 6], [-1.5, -0.6, 0.4, 1.2])
    health = 0.5 * base[:, 1] - 0.02 * (age - 50) + random.normal(0, 0.8, n)
    data["health"] = np.array(HEALTH)[np.digitize(health, [-1.8, -0.9, 0.1, 1.1])]
    return pd.DataFrame(data)


HEALTH = ("very_bad", "bad", "fair", "good", "very_good")
SURVEY: Columns = {
    "region": words(*(f"r{place}" for place in range(8))), "age": whole(16, 100), "education": whole(1, 5),
    "income": whole(0, 100_000), "works": words("no", "yes"), "hours": whole(0, 100),
    **{f"item{item + 1:02}": whole(1, 5) for item in range(52)}, "health": words(*HEALTH),
}  # fmt: skip


def items(random: Random) -> pd.DataFrame:
    """Answers of 1,000 people to 24 items of one scale."""
    factor = random.normal(size=1_000)
    return pd.DataFrame({f"q{item + 1:02}": likert(random, 0.6, factor, [-1.4, -0.5, 0.4, 1.3]) for item in range(24)})


def stays(random: Random) -> pd.DataFrame:
    """Hospital stays of 12,000 patients."""
    n = 12_000
    elective = random.random(n) < 0.4
    stay = np.round(np.exp(random.normal(np.where(elective, 0.5, 0.9), 0.8)), 1)
    day = random.integers(0, 365, n)
    return pd.DataFrame(
        {
            "admission": np.where(elective, "elective", "emergency"),
            "ward": random.choice(["a", "b", "c", "d"], n),
            "age": np.clip(random.normal(58, 19, n), 0, 105).astype(int),
            "stay": stay,
            "cost": np.round(np.exp(7.2 + 0.6 * np.log(stay) + random.normal(0, 0.4, n)), 2),
            "earlier_visits": np.where(random.random(n) < 0.6, 0, random.poisson(2.5, n)),
            "day_in": day,
            "day_out": day + np.floor(stay).astype(int),
            "died": np.where(random.random(n) < 0.03 + 0.05 * (stay > 12), "yes", "no"),
        }
    )


STAYS: Columns = {
    "admission": words("elective", "emergency"), "ward": words("a", "b", "c", "d"), "age": whole(0, 120),
    "stay": number(0, 365), "cost": number(0, 1_000_000), "earlier_visits": whole(0, 50), "day_in": whole(0, 364),
    "day_out": whole(0, 730), "died": words("no", "yes"),
}  # fmt: skip


def early(first: str, last: str) -> Callable[[pd.DataFrame, pd.DataFrame], float]:
    """Percent of rows with a last day before the first."""
    return lambda table, _: 100 * float((table[last].astype(float) < table[first].astype(float)).mean())


PAGES = ("home", "product", "basket", "help", "blog")


def pages(random: Random) -> pd.DataFrame:
    """Seconds of 12,000 visitors on five pages, of which they open one in five, and whether they buy."""
    n = 12_000
    opened = random.random((n, len(PAGES))) < 0.2
    seconds = np.where(opened, np.exp(random.normal([2.5, 4.0, 3.5, 3.0, 4.5], 1.1, (n, len(PAGES)))), 0)
    likes = np.log1p(seconds) @ [0.1, 0.45, 0.8, -0.35, -0.1] - 1.9
    data: dict[str, Any] = {f"seconds_{name}": seconds[:, place] for place, name in enumerate(PAGES)}
    data["device"] = random.choice(["phone", "tablet", "computer"], n, p=[0.6, 0.1, 0.3])
    data["buys"] = np.where(random.random(n) < 1 / (1 + np.exp(-likes)), "yes", "no")
    return pd.DataFrame(data)


SECONDS = [f"seconds_{name}" for name in PAGES]


def zeros(table: pd.DataFrame, _: pd.DataFrame) -> float:
    """Mean share of zeros of the times."""
    return float((table[SECONDS].astype(float) == 0).mean().mean())


def amounts(random: Random) -> pd.DataFrame:
    """What 8,000 customers spent: log-normal, with 40 % zeros; one in twenty is a company."""
    n = 8_000
    segment = random.choice(["retail", "gold", "corporate"], n, p=[0.7, 0.25, 0.05])
    mu = np.select([segment == "retail", segment == "gold"], [3.4, 5.0], 8.0)
    spent = np.where(random.random(n) < 0.4, 0, np.round(np.exp(random.normal(mu, 1.2)), 2))
    fee = np.where(spent > 0, np.where(random.random(n) < 0.6, 7.5, np.round(spent * 0.02, 2)), 0)
    income = np.round(np.exp(random.normal(10.3, 0.7, n)), -2).astype(int)
    return pd.DataFrame(
        {"segment": segment, "spent": spent, "fee": fee, "income": income, "age": random.integers(18, 90, n)}
    )


AMOUNTS: Columns = {
    "segment": words("retail", "gold", "corporate"), "spent": number(0, 10_000_000), "fee": number(0, 100_000),
    "income": whole(0, 10_000_000), "age": whole(18, 100),
}  # fmt: skip


def risks(random: Random) -> pd.DataFrame:
    """36 answers of 690 women, most of them rare yes or no."""
    n = 690
    age = np.clip(13 + random.gamma(3.0, 4.6, n), 13, 84).astype(int)
    data: dict[str, Any] = {
        "age": age,
        "partners": 1 + random.poisson(1.6, n),
        "first_partner_age": np.clip(random.normal(17, 2.8, n), 10, age).astype(int),
        "pregnancies": random.poisson(0.085 * age),
        "smokes_years": np.where(random.random(n) < 0.15, np.round(random.exponential(8, n), 1), 0),
        "pills_years": np.where(random.random(n) < 0.6, np.round(random.exponential(3.5, n), 1), 0),
    }
    for place in range(30):
        data[f"finding_{place + 1:02}"] = np.where(random.random(n) < 0.01 + 0.003 * place, "yes", "no")
    return pd.DataFrame(data)


RISKS: Columns = {
    "age": whole(0, 120), "partners": whole(0, 100), "first_partner_age": whole(0, 100), "pregnancies": whole(0, 30),
    "smokes_years": number(0, 100), "pills_years": number(0, 100),
    **{f"finding_{place + 1:02}": words("no", "yes") for place in range(30)},
}  # fmt: skip


def runners(random: Random) -> pd.DataFrame:
    """Seconds of 4,300 runners for each of eight parts of a marathon, and for all of it."""
    n = 4_300
    sex, age = np.where(random.random(n) < 0.6, "m", "f"), np.clip(random.normal(41, 10, n), 18, 84).astype(int)
    pace = np.exp(random.normal(7.3 + 0.1 * (sex == "f") + 0.003 * (age - 41), 0.13))
    tired, wall = random.normal(0.02, 0.02, n), random.exponential(0.25, n)
    data: dict[str, Any] = {"sex": sex, "age": age, "country": random.choice(list("abcde"), n)}
    for place in range(8):
        data[f"split_{5 * place + 5}"] = (
            pace * (1 + tired * place + wall * (place > 4)) * np.exp(random.normal(0, 0.02, n))
        ).round()
    data["finish"] = (np.sum([data[name] for name in SPLITS], axis=0) * 42.2 / 40 * random.normal(1, 0.01, n)).round()
    return pd.DataFrame(data).astype({name: int for name in (*SPLITS, "finish")})


SPLITS = [f"split_{5 * place + 5}" for place in range(8)]
RUNNERS: Columns = {
    "sex": words("f", "m"), "age": whole(10, 100), "country": words(*"abcde"),
    **{name: whole(0, 7_200) for name in SPLITS}, "finish": whole(0, 36_000),
}  # fmt: skip


def derived(random: Random) -> pd.DataFrame:
    """Columns of 6,000 orders that follow from others."""
    n = 6_000
    height = np.clip(random.normal(170, 9, n), 130, 210).round().astype(int)
    weight = np.clip((22 + random.gamma(3, 1.6, n)) * (height / 100) ** 2, 35, 200).round().astype(int)
    quantity = random.poisson(3, n) + 1
    price = np.clip(np.exp(random.normal(2.5, 0.8, n)), 0.5, 500).round(2)
    born, town = random.integers(1940, 2005, n), random.integers(0, 30, n)
    return pd.DataFrame(
        {
            "height": height, "weight": weight, "bmi": (weight / (height / 100) ** 2).round(1), "quantity": quantity,
            "price": price, "total": (quantity * price).round(2), "born": born, "age": 2024 - born,
            "town": [f"t{place}" for place in town], "county": [f"c{place // 5}" for place in town],
        }
    )  # fmt: skip


DERIVED: Columns = {
    "height": whole(100, 230), "weight": whole(20, 250), "bmi": number(10, 80), "quantity": whole(1, 50),
    "price": number(0, 1000), "total": number(0, 20_000), "born": whole(1920, 2010), "age": whole(14, 104),
    "town": words(*(f"t{place}" for place in range(30))), "county": words(*(f"c{place}" for place in range(6))),
}  # fmt: skip


def right(table: pd.DataFrame, expected: Callable[[pd.DataFrame], Any], name: str, margin: float) -> float:
    """Percent of rows whose column is what the others say, but for its rounding."""
    numbers = table.drop(columns=["town", "county"]).astype(float)
    return 100 * float(((numbers[name] - expected(numbers)).abs() <= margin + 1e-9).mean())


def right_counties(table: pd.DataFrame) -> float:
    """Percent of rows whose town lies in their county."""
    expected = table["town"].astype(str).map({f"t{place}": f"c{place // 5}" for place in range(30)})
    return 100 * float((expected == table["county"].astype(str)).mean())


CLUBS = tuple(f"club{place:02}" for place in range(40))


def players(random: Random) -> pd.DataFrame:
    """Seasons of 3,000 players. Two thirds stay in their club, the others go to a club by its size."""
    sizes = 1 / np.arange(3, 43)
    sizes /= sizes.sum()
    rows = []
    for player in range(3_000):
        season, club = int(random.integers(2000, 2016)), int(random.choice(40, p=sizes))
        age, position = int(random.integers(17, 30)), str(random.choice(["goal", "back", "middle", "front"]))
        for year in range(int(random.integers(1, 9))):
            if year and random.random() > 0.65:
                club = int(random.choice(40, p=sizes))
            goals = int(random.poisson({"goal": 0.05, "back": 1.5, "middle": 4, "front": 9}[position]))
            rows.append((player, season + year, position, age + year, CLUBS[club], goals))
    return pd.DataFrame(rows, columns=["player", "season", "position", "age", "club", "goals"])


PLAYERS: dict[str, Any] = {
    "name": "players", "source": "evidence/laws.py", "person": "player", "order": "season", "most": 8,
    "fixed": ["position"],
    "events": {
        "season": whole(1990, 2030), "position": words("goal", "back", "middle", "front"), "age": whole(15, 45),
        "club": words(*CLUBS), "goals": whole(0, 60),
    },
}  # fmt: skip


def steps(table: pd.DataFrame) -> pd.DataFrame:
    """Seasons beside the next one of the same player."""
    ordered = table.sort_values(["player", "season"], kind="stable").reset_index(drop=True)
    following = ordered.shift(-1)
    together = ordered.join(following.add_suffix("_next"))
    return together[together["player"] == together["player_next"]]


def same_club(table: pd.DataFrame, _: pd.DataFrame) -> float:
    """Percent of next seasons in the same club."""
    beside = steps(table)
    return 100 * float((beside["club"].astype(str) == beside["club_next"].astype(str)).mean())


def growing(table: pd.DataFrame, _: pd.DataFrame) -> float:
    """Percent of next seasons in which a player is older by as many years as went by."""
    beside = steps(table)
    grown = (beside[f"{name}_next"].astype(float) - beside[name].astype(float) for name in ("age", "season"))
    return 100 * float((next(grown) == next(grown)).mean())


LAWS: dict[str, Law] = {
    "survey, 12,000 × 59": Law(
        survey,
        table_of(SURVEY, "health"),
        {
            "mean Spearman of items, weak scale": Figure(scale(0), 2, part(0.9)),
            "mean Spearman of items, strong scale": Figure(scale(1), 2, part(0.9)),
        },
    ),
    "24 items, 1,000 people": Law(
        items,
        table_of({f"q{item + 1:02}": whole(1, 5) for item in range(24)}),
        {"Cronbach's alpha": Figure(cronbach, 3, least(0.85))},
    ),
    "hospital stays": Law(
        stays,
        table_of(STAYS, "died"),
        {
            "Spearman of stay and cost": Figure(spearman("stay", "cost"), 2, least(0.6)),
            "median stay": Figure(lambda table, _: float(table["stay"].astype(float).median()), 1, near(0.2)),
            "discharged before admission, %": Figure(early("day_in", "day_out"), 1, most(5)),
        },
        rules={"derived": {"day_in to day_out": {"is": "day_out - day_in", "lower": 0}}},
    ),
    "time on pages": Law(
        pages,
        table_of(
            {
                **{name: number(0, 100_000) for name in SECONDS},
                "device": words("phone", "tablet", "computer"),
                "buys": words("no", "yes"),
            },
            "buys",
        ),
        {
            "share of zeros": Figure(zeros, 3, close(0.02)),
            "AUC of a classifier": Figure(learned("buys", [*SECONDS, "device"], "auc"), 3, below(0.05)),
        },
    ),
    "amounts of customers": Law(
        amounts,
        table_of(AMOUNTS),
        {
            "mean of all": Figure(mean("spent"), 0, near(0.2)),
            "mean of companies": Figure(mean("spent", segment="corporate"), 0, near(0.2)),
        },
        tables=10,
    ),
    "690 × 36": Law(
        risks,
        table_of(RISKS),
        {
            "mean age": Figure(mean("age"), 1, near(0.1)),
            "mean number of partners": Figure(mean("partners"), 1, near(0.2)),
            "mean number of pregnancies": Figure(mean("pregnancies"), 1, near(0.2)),
        },
    ),
    "times of runners": Law(
        runners,
        table_of(RUNNERS),
        {
            "sd of a split": Figure(lambda table, _: float(table["split_20"].astype(float).std()), 0, near(0.15)),
            "R² of a model": Figure(learned("finish", ["sex", "age", *SPLITS[:4]], "r2"), 2, below(0.05)),
        },
    ),
    "columns that follow": Law(
        derived,
        table_of(DERIVED),
        {
            "right body mass indices, %": Figure(
                lambda table, _: right(table, lambda row: row["weight"] / (row["height"] / 100) ** 2, "bmi", 0.05),
                0,
                least(80),
            ),
            "right totals, %": Figure(
                lambda table, _: right(table, lambda row: row["quantity"] * row["price"], "total", 0.005), 0, least(80)
            ),
            "right counties, %": Figure(lambda table, _: right_counties(table), 0, least(80)),
            "right ages, %": Figure(
                lambda table, _: right(table, lambda row: 2024 - row["born"], "age", 0), 0, least(80)
            ),
        },
        rules={
            "rules": [
                {"equal": ["bmi", ["weight", "height", "height", 0.0001]], "kind": "ratio"},
                {"equal": ["total", ["quantity", "price"]], "kind": "product"},
                {"determines": ["town", "county"]},
            ]
        },
    ),
    "seasons of players": Law(
        players,
        PLAYERS,
        {
            "same club again, %": Figure(same_club, 0, part(0.9)),
            "right ages a season later, %": Figure(growing, 0, least(80)),
        },
        rules={"rules": [{"equal": ["next age", ["last age", "gap"]]}]},
    ),
}
"""The tables of a stranger, by name."""


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=[*LAWS], choices=[*LAWS])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    arguments = parser.parse_args()
    with temporary_ledger():
        for name in arguments.tables:
            for variant in (DEFAULT, RULES) if LAWS[name].rules else (DEFAULT,):
                for draw in range(arguments.draws):
                    run(name, variant, draw, arguments.epsilon)
    rows = latest(RESULTS.rows.query("epsilon == 1"))
    print(table := page_table(rows))
    on_page(PAGE, {"laws": table})


def run(name: str, variant: str, draw: int, epsilon: float) -> None:
    """The figures of one release, if they are missing."""
    law, version = LAWS[name], commit()
    keys = {figure: [version, name, variant, figure, draw, epsilon] for figure in law.figures}
    if not any(RESULTS.of(*key).empty for key in keys.values()):
        return
    table, test = (law.make(rng.public(seed, f"evidence.laws.{name}")) for seed in (0, 1))
    linked = "events" in law.schema
    schema: Any = law.schema if variant == DEFAULT else {**law.schema, **law.rules}
    schema = HistorySchema.from_dict(schema) if linked else schema
    started = time.process_time()
    model = Synthesizer(
        schema=schema, epsilon=epsilon, delta=DELTA, population=name, cap=(1e3, 1e-2), attempt=str(time.time_ns())
    ).fit(table)
    people = table["player"].nunique() if linked else len(table)
    drawn = [model.sample(people, seed=seed) for seed in range(law.tables)]
    drawn = [one["events"] if isinstance(one, dict) else one for one in drawn]
    seconds = time.process_time() - started
    for figure, key in keys.items():
        of = law.figures[figure].of
        ours = float(np.mean([of(one, test) for one in drawn]))
        RESULTS.add(key, {"real": of(table, test), "ours": ours, "cpu_seconds": seconds})


def latest(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each table and variant, the rows of the commit that came last."""
    last = rows.groupby(["table", "variant"])["commit"].transform("last")
    return rows[rows["commit"] == last]


def page_table(rows: pd.DataFrame) -> str:
    """Real and synthetic figures beside their goals, in Markdown."""
    lines = []
    for name, law in LAWS.items():
        for figure, about in law.figures.items():
            found = rows[(rows["table"] == name) & (rows["figure"] == figure)]
            if found.empty:
                continue
            cells = [f"{found['real'].iloc[0]:.{about.digits}f}"]
            for chosen in (found["variant"] == DEFAULT, found["variant"] == RULES):
                part_of = found[chosen]
                values = [f"{one:.{about.digits}f}" for one in part_of.groupby("variant", sort=False)["ours"].mean()]
                met = [about.goal.holds(*pair) for pair in part_of[["real", "ours"]].itertuples(index=False)]
                cells.append(f"{', '.join(values)} ({sum(met)} of {len(met)})" if values else "")
            lines.append([name, figure, *cells, about.goal.words])
    return markdown(["table", "figure", "real:", "default:", "rules:", "goal"], lines)


if __name__ == "__main__":
    main()
