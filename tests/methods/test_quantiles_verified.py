"""Learned bins as a verifier sees them: computed again from public facts and released counts."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from toy_numbers import CONTEXT, LEARNED, SCHEMA, marginals, section, table

from likeness import Synthesizer
from likeness.data.schema import Schema
from likeness.methods import Context
from likeness.methods.marginals import Marginals
from likeness.methods.quantiles import QUANTILES
from likeness.privacy.home import locate
from likeness.privacy.ledger import Ledger
from likeness.release.released import Released, load_released, to_bytes
from likeness.statement import statement
from likeness.typed import build
from likeness.verifier.bins import bins as check_bins
from likeness.verifier.files import Bundle
from likeness.verifier.verdict import Wrong


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Synthesizer, Path]:
    """A synthesizer with quantiles, and what it saved."""
    folder = tmp_path_factory.mktemp("quantiles")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIKENESS_HOME", str(folder / "ledger"))
        patch.setenv("LIKENESS_ANCHOR", str(folder / "anchor"))
        Ledger.create(locate())
        own = Synthesizer(schema=SCHEMA, identity="people", epsilon=5.0, settings=section(columns="all"))
        own.fit(table(4_000)).save(folder / "saved")
    return own, folder / "saved"


def test_the_synthesizer_draws_from_learned_bins_and_says_so(fitted: tuple[Synthesizer, Path]) -> None:
    synthesizer, _ = fitted
    amounts = synthesizer.sample(4_000)["wide"]
    # In eight bins of equal width, all amounts but the zeros would be spread over 125,000.
    assert np.quantile(amounts[amounts > 0], 0.8) < 1_000_000 / 256
    assert f"- {LEARNED}" in synthesizer.statement.splitlines()
    without = {key: value for key, value in synthesizer.privacy.items() if key != "notes"}
    assert statement({**without, "notes": []}) == statement(without)  # an account of an earlier version


def bundled(folder: Path, schema: Schema, embedding: Released, feature: Any, histogram: Released | None) -> Bundle:
    """As much of a bundle as the check of bins reads, with another map in the embedding's receipt."""
    (folder / "released").mkdir(exist_ok=True)
    (folder / "schema.yaml").write_text(yaml.safe_dump(schema.to_dict()))
    other = dataclasses.replace(embedding, receipt=dataclasses.replace(embedding.receipt, feature=feature))
    for name, one in (("embedding", other), (QUANTILES, histogram)):
        path = folder / f"released/{name}.safetensors"
        path.unlink(missing_ok=True)
        if one is not None:
            path.write_bytes(to_bytes(one))
    return Bundle(folder)


def test_a_verifier_computes_the_bins_again(fitted: tuple[Synthesizer, Path], tmp_path: Path) -> None:
    _, folder = fitted
    embedding, histogram = (load_released(folder / f"released/{name}.safetensors") for name in ("embedding", QUANTILES))

    def check(feature: Any, counts: Released | None) -> str:
        return check_bins(bundled(tmp_path, SCHEMA, embedding, feature, counts))

    learned, public = embedding.receipt.feature, marginals(columns="all").foreseen_queries(CONTEXT)[-1].spec()
    hidden = dataclasses.replace(histogram, lattice=histogram.lattice // 1_000)  # nothing but noise
    text = "of {} numbers of equal width on the public scale, of {} as the released histogram gives"
    assert check_bins(Bundle(folder)) == check(learned, histogram) == text.format(1, 2)
    assert check(public, None) == check(public, hidden) == check(public, histogram) == text.format(3, 0)
    gaps = {**learned["columns"][2], "edges": [edge + 1 / 999 for edge in learned["columns"][2]["edges"]]}
    moved = {**learned, "columns": [*learned["columns"][:2], gaps, learned["columns"][3]]}
    ten = build(Marginals, {"privatize": {"bins": 10}}, "marginals").embedding_query(CONTEXT, {}).feature.spec()
    several = {**public, "columns": [*public["columns"][:2], ten["columns"][2], public["columns"][3]]}
    some = {**learned, "columns": [learned["columns"][0], public["columns"][1], *learned["columns"][2:]]}
    for feature, counts, message in (
        (moved, histogram, "'gaps': bins other than the released histogram gives"),
        (some, histogram, "bins of more than one setting"),
        (several, None, "bins of more than one setting"),
        (several, histogram, "bins of more than one setting"),
        (learned, hidden, "'wide': bins neither of equal width nor learned"),
        (learned, None, "'wide': bins neither of equal width nor learned"),
    ):
        with pytest.raises(Wrong, match=message):
            check(feature, counts)


def test_a_column_whose_learned_bins_are_those_of_equal_width_is_of_either_kind(tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {
            "name": "even",
            "source": "made up",
            "task": "none",
            "columns": {
                "even": {"kind": "integer", "lower": 0, "upper": 31},
                "skewed": {"kind": "numeric", "lower": 0, "upper": 1_000},
            },
        },
        "even.yaml",
    )
    generator = np.random.default_rng(0)
    rows = pd.DataFrame({"even": np.arange(32_000) % 32, "skewed": generator.lognormal(3, 1, 32_000).clip(0, 1_000)})
    Ledger.create(locate())
    for edges, learned in (("equal_width", 0), ("learned", 2)):
        settings, about = section(columns="all", edges=edges), {"identity": edges, "cap": (20.0, 1e-5)}
        Synthesizer(schema=schema, epsilon=20.0, settings=settings, **about).fit(rows).save(tmp_path / edges)
        rows["skewed"] = rows["skewed"] / 2  # other people
        assert check_bins(Bundle(tmp_path / edges)).endswith(f"of {learned} as the released histogram gives")


def test_a_verifier_asks_for_public_cells_of_the_histogram_and_for_the_schemas_columns(
    fitted: tuple[Synthesizer, Path], tmp_path: Path
) -> None:
    """Edges of cells that follow the rows would be learned for free, and so would bins made of them."""
    embedding, histogram = (
        load_released(fitted[1] / f"released/{name}.safetensors") for name in ("embedding", QUANTILES)
    )
    feature = embedding.receipt.feature
    cells = histogram.receipt.feature["columns"][0]
    moved = {**cells, "edges": [*cells["edges"][:-1], cells["edges"][-1] + 1e-6]}
    asked = {**histogram.receipt.feature, "columns": [moved, *histogram.receipt.feature["columns"][1:]]}
    other = dataclasses.replace(histogram, receipt=dataclasses.replace(histogram.receipt, feature=asked))
    with pytest.raises(Wrong, match="quantiles: cells that are not of equal width"):
        check_bins(bundled(tmp_path, SCHEMA, embedding, feature, other))
    category = {**cells, "start": feature["columns"][0]["start"]}
    asked = {**histogram.receipt.feature, "columns": [category, *histogram.receipt.feature["columns"][1:]]}
    other = dataclasses.replace(histogram, receipt=dataclasses.replace(histogram.receipt, feature=asked))
    with pytest.raises(Wrong, match="quantiles: cells of other columns than the schema's numbers"):
        check_bins(bundled(tmp_path, SCHEMA, embedding, feature, other))
    first, *others = feature["columns"]
    for columns, message in (
        ([first, *others[1:]], "cells of other columns than the schema's"),
        ([first, first, *others[1:]], "cells of other columns than the schema's"),
        ([first, {**others[0], "edges": None, "missing": False}, *others[1:]], "'wide': cells of another kind"),
        ([{**first, "size": 1}, *others], "'c': cells of another kind"),
    ):
        with pytest.raises(Wrong, match=message):
            check_bins(bundled(tmp_path, SCHEMA, embedding, {**feature, "columns": columns}, histogram))


@pytest.mark.parametrize("bins", [2, 16, 300])
def test_a_verifier_knows_bins_of_equal_width_of_every_kind_of_number(
    fitted: tuple[Synthesizer, Path], tmp_path: Path, bins: int
) -> None:
    """An integer with fewer values than bins, and a logarithm whose dense end has fewer."""
    columns = {
        "few": {"kind": "integer", "lower": 0, "upper": 6},
        "amount": {"kind": "integer", "lower": 0, "upper": 99_999, "transform": "log1p", "spikes": [500]},
        "share": {"kind": "numeric", "lower": 0, "upper": 1, "spikes": [0, 1], "nullable": True},
        "day": {"kind": "date", "lower": "1990-01-01", "upper": "2020-12-31"},
    }
    schema = Schema.from_dict({"name": "kinds", "source": "made up", "task": "none", "columns": columns}, "kinds.yaml")
    feature = build(Marginals, {"privatize": {"bins": bins}}, "marginals").embedding_query(
        Context(schema, "add_remove_one", None, 0), {}
    )
    embedding = load_released(fitted[1] / "released/embedding.safetensors")
    assert check_bins(bundled(tmp_path, schema, embedding, feature.spec(), None)).startswith("of 4 numbers")


def test_a_verifier_knows_cells_that_were_rounded_up_beyond_what_may_be_set(tmp_path: Path) -> None:
    """1,024 cells of 600 bins are 1,200."""
    columns = {"a": {"kind": "numeric", "lower": 0, "upper": 1}, "c": {"kind": "categorical", "categories": ["u", "v"]}}
    schema = Schema.from_dict({"name": "fine", "source": "made up", "task": "none", "columns": columns}, "fine.yaml")
    rows = pd.DataFrame({"a": np.random.default_rng(0).random(2_000), "c": ["u", "v"] * 1_000})
    settings = {**section(columns="all", cells=1_024, edges="equal_width"), "privatize": {"bins": 600}}
    Ledger.create(locate())
    Synthesizer(schema=schema, identity="fine", epsilon=5.0, settings=settings).fit(rows).save(tmp_path / "saved")
    asked = load_released(tmp_path / f"saved/released/{QUANTILES}.safetensors").receipt.feature
    assert [column["size"] for column in asked["columns"]] == [1_200]
    assert check_bins(Bundle(tmp_path / "saved")).startswith("of 1 numbers of equal width")
