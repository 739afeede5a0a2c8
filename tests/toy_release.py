"""A small table with every sort of cell, its exact sums, and new noise for them from the library's own sampler.

Each number is drawn 200 times with it. Of independent draws at level .95 the number that covers is binomial: below 173
with probability 1e-6. Its mean over six numbers is above 197.5 with probability below 1e-7, five deviations off. The
mean of 200 squared errors in units of the standard error is outside of .6 ... 1.6 with probability 1.7e-6. Of 60 draws
fewer than 47 cover with probability 1.2e-6. So the numbers give a false alarm with probability below 6e-5, and six
coefficients, twice, with one below 4e-5. Without dependence one mean is near .28.
"""

from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from toys import ADD, plan_with, schema_with

from likeness.core.typed import build
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.inference.measurements import Measurements, measurements
from likeness.ledger.home import Home
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Dataset
from likeness.methods.base import Context
from likeness.methods.marginals.method import Marginals
from likeness.privacy.noise import add_discrete_gaussian
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released, from_bytes
from likeness.release.sums.lattice_sum import lattice_sum

SCHEMA = schema_with(
    {
        "c": {"kind": "categorical", "categories": ["u", "v", "w"]},
        "d": {"kind": "categorical", "categories": ["left", "right"], "nullable": True},
        "age": {"kind": "integer", "lower": 0, "upper": 39},
        "money": {"kind": "numeric", "lower": 0, "upper": 1000, "spikes": [0], "nullable": True},
        "amount": {"kind": "integer", "lower": 0, "upper": 5000, "transform": "log1p"},
        "y": {"kind": "categorical", "categories": ["No", "Yes"]},
    },
    "y",
)
ROWS = 3_000
DRAWS, FEWEST, MOST = 200, 173, 197.5
FEW, FEWEST_OF_FEW = 60, 47
LEAST, LARGEST = 0.6, 1.6
Frames = list[pd.DataFrame]


def method(schema: Schema = SCHEMA) -> Marginals:
    """All pairs, whatever they show, and the age with more weight."""
    pairs = combinations([column.name for column in schema.feature_columns], 2)
    settings = {
        "privatize": {"bins": 4, "workload": [{"columns": ["age"], "weight": 2}, *({"columns": [*p]} for p in pairs)]},
        "train": {"num_components": 20, "iterations": 5},
    }
    return build(Marginals, settings, "marginals")


@cache
def table(rows: int = ROWS) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    age = generator.integers(0, 40, rows)
    yes = generator.random(rows) < age / 60
    money = np.where(generator.random(rows) < 0.3, 0, generator.gamma(2, 100, rows)).clip(0, 1000)
    return pd.DataFrame(
        {
            "c": pd.Categorical(np.where(yes, "u", generator.choice(["u", "v", "w"], rows)), ["u", "v", "w"]),
            "d": pd.Categorical(generator.choice(["left", "right", None], rows, p=[0.5, 0.4, 0.1]), ["left", "right"]),
            "age": age,
            "money": pd.Series(money).mask(generator.random(rows) < 0.2),
            "amount": np.floor(np.expm1(generator.random(rows) * 8)).clip(0, 5000).astype(int),
            "y": pd.Categorical(np.where(yes, "Yes", "No"), ["No", "Yes"]),
        }
    )


@cache
def exact() -> tuple[Released, ...]:
    """Sums without noise, with the receipts of a release through the door."""
    return sums_of(SCHEMA, table())


def sums_of(schema: Schema, rows: pd.DataFrame) -> tuple[Released, ...]:
    """The same of another table."""
    encoder = Encoder(schema)
    codes = encoder.encode(rows)
    records = [Records(encoder.expand(codes), encoder.labels(codes))]
    context = Context(schema, str(ADD), None, 0)
    plan = plan_with(method(schema).shares(context), method="marginals")
    sums = []
    with TemporaryDirectory() as folder:
        ledger = Ledger.create(Home(Path(folder) / "ledger", Path(folder) / "anchor", None))
        ledger.declare_population("people", ADD, plan.epsilon, plan.delta)

        def answer(query: Query) -> Released:
            door = Door(plan, ledger, Dataset("people", "digest"), lambda: records)
            released = from_bytes(door.release(query), query.name)
            sums.append(replace(released, lattice=lattice_sum(query, records)))
            return sums[-1]

        answer(method(schema).embedding_query(context, method(schema).ask(context, answer)))
    return tuple(sums)


@cache
def drawn(draws: int) -> tuple[tuple[Released, ...], ...]:
    """The sums with new noise, each time as the receipts say."""
    sums = exact()
    noise = [
        add_discrete_gaussian(np.zeros(draws * one.lattice.size, dtype=np.int64), one.receipt.noise_scale)
        for one in sums
    ]
    return tuple(
        tuple(
            replace(one, lattice=one.lattice + part.reshape(draws, *one.lattice.shape)[draw])
            for one, part in zip(sums, noise, strict=True)
        )
        for draw in range(draws)
    )


@cache
def read_draws(draws: int, total: float | None = None) -> tuple[Measurements, ...]:
    """What a reader makes of them; ``total``: the public number of records."""
    return tuple(measurements(SCHEMA, draw, total) for draw in drawn(draws))


def noisier(one: Released, times: float = 60.0) -> Released:
    """A release of sums that noise hides: its error becomes many times as wide, and its values move as far."""
    generator = np.random.default_rng(1)
    moved = generator.normal(0, times * one.receipt.noise_scale, one.lattice.shape).round().astype(one.lattice.dtype)
    scale = one.receipt.noise_scale * times
    return replace(one, lattice=one.lattice + moved, receipt=replace(one.receipt, noise_scale=scale))


def without_noise(one: Released) -> Released:
    return replace(one, receipt=replace(one.receipt, noise_scale=0.0, rho=np.inf))


def understated(one: Released) -> Released:
    """Its receipt says a third of the noise: of 60 intervals 30 cover, with a deviation of 4."""
    return replace(one, receipt=replace(one.receipt, noise_scale=one.receipt.noise_scale / 3))


def covered(frames: Frames, true: Any) -> np.ndarray:
    """How many draws cover each number."""
    return sum(((frame.low <= true) & (true <= frame.high)).to_numpy().astype(int) for frame in frames)


def squared(frames: Frames, true: Any) -> np.ndarray:
    """Mean square of errors in units of the standard error, number by number; coefficients have no bounds."""
    return np.mean(
        [(((frame.get("unbiased", frame.estimate) - true) / frame.noise_error) ** 2).to_numpy() for frame in frames],
        axis=0,
    )
