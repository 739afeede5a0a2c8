import base64
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from likeness.core.errors import ArtifactError
from likeness.report.files import Internal, headline, read_internal, read_json, read_losses, write_public
from likeness.report.formats import embed, loss_text, number, percent, spec, three, unbroken, value_text
from likeness.report.pages import render, render_internal, write_internal, write_report

VOID = {"meta", "img", "br", "hr", "link", "input"}
SECRET_SCORE, SECRET_TEXT, SECRET_PNG = 0.7131313, "planted-marker", b"\x89PNG planted picture"
SECRET_DISTANCE, SECRET_GRID = 0.000246813, b"\x89PNG planted grid"
SECRET_SHARE = 0.4281


class Page(HTMLParser):
    """Checks that tags are closed in order, and keeps what they say."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module", autouse=True)
def _no_curve_is_drawn() -> Iterator[None]:
    """Drawing takes most of the time of a page; test_figures sees to the figures themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likeness.report.charts.loss_curve", lambda _: b"\x89PNG a curve")
        yield


@pytest.fixture(scope="module")
def internal() -> Internal:
    one = {"roc_auc_hard": str(SECRET_SCORE), "roc_auc_score": "0.8", "f1": "0.6", "seconds": "1"}
    tables = ("synthetic", "real", "shuffled")
    scores = [{"table": table, "classifier": name, **one} for table in tables for name in ("lda", "mlp")]
    return Internal(
        metrics={
            "not_private": True,
            "scores": {t: {"roc_auc_hard": SECRET_SCORE} for t in tables},
            "marginals": {"synthetic": {"1": 0.2}, "real": {"1": 0.1}, "shuffled": {"1": 0.5}},
            "distances": {t: {"fid": 3.5, "kid": 0.07} for t in tables},
            "image": [28, 28],
        },
        scores=scores,
        marginals=[{"table": "synthetic", "order": "2", "columns": SECRET_TEXT, "total_variation": str(SECRET_SCORE)}],
        figures={name: SECRET_PNG for name in ("means", "association", "samples")},
    )


@pytest.fixture(scope="module")
def pages(privacy: dict[str, Any], losses: dict[str, list[float]], internal: Internal) -> tuple[str, str]:
    statement = "# Privacy statement\n\nOf the **village**."
    return render(privacy, statement, losses), render_internal(internal, "village")


def planted_details() -> dict[str, Any]:
    """Details of one column and a pair with markers."""
    side = {"missing": SECRET_SHARE, "center": SECRET_TEXT, "spread": 1.0}
    shares = {"real": [SECRET_SHARE, 0.1], "synthetic": [0.5, 0.5]}
    column = {"column": "age", "total_variation": SECRET_SCORE, "categories": True, "cells": ["a", "b"]}
    return {
        "columns": [{**column, "shares": shares, "synthetic": side, "held_out": side}],
        "mapped": ["age", "sex"],
        "pairs": [[0, 1, SECRET_SCORE, 0.1, 0.2]],
        "crosstabs": [],
        "groups": [],
        "rare": [[SECRET_TEXT, 3, 0.001, 0.002]],
        "neighbors": None,
    }


def plant(project: Path) -> None:
    """Internal results with markers in every file."""
    folder = project / "reports/internal/evaluation"
    folder.mkdir(parents=True)
    tables = ("synthetic", "real", "shuffled")
    metrics = {
        "not_private": True,
        "scores": {t: {"roc_auc_hard": SECRET_SCORE} for t in tables},
        "marginals": {t: {"1": SECRET_SCORE} for t in tables},
        "distances": {t: {"pairs_l1": SECRET_DISTANCE} for t in tables},
        "image": [2, 2],
        "details": planted_details(),
    }
    (folder / "metrics.json").write_text(json.dumps(metrics))
    rows = "".join(f"{t},{SECRET_TEXT},{SECRET_SCORE}\n" for t in tables)
    (folder / "scores.csv").write_text("table,classifier,roc_auc_hard\n" + rows)
    (folder / "marginals.csv").write_text(
        f"table,order,columns,total_variation\nsynthetic,1,{SECRET_TEXT},{SECRET_SCORE}\n"
    )
    for name in ("means", "association"):
        (folder / f"{name}.png").write_bytes(SECRET_PNG)
    (folder / "samples.png").write_bytes(SECRET_GRID)


def published_beside(project: Path) -> list[tuple[str, bytes]]:
    """Public files beside the page."""
    paths = [project / "reports/metrics.json", *sorted((project / "reports/figures").iterdir())]
    return [(path.name, path.read_bytes()) for path in paths]


def test_headline_numbers_are_flat_and_named_alike_for_every_method(privacy: dict[str, Any]) -> None:
    numbers = headline(privacy, {"iteration": [1.0, 2.0], "loss": [0.5, 0.25], "spread": [1.0, float("inf")]})
    assert numbers["epsilon"] == privacy["total"]["epsilon"] and numbers["final_loss"] == 0.25
    assert numbers["final_spread"] is None  # JSON knows no infinity
    assert not [value for value in numbers.values() if isinstance(value, dict | list)]


def test_a_closed_form_has_no_figure_of_one_point_and_a_stale_one_goes(project: Path, privacy: dict[str, Any]) -> None:
    figures = project / "reports/figures"
    write_public(project, privacy, {"iteration": [1.0, 2.0], "loss": [0.5, 0.4]})
    assert [path.name for path in figures.iterdir()] == ["loss.png"]
    write_public(project, privacy, {"iteration": [1.0], "loss": [0.5]})
    assert not list(figures.iterdir())


def test_the_public_page_holds_nothing_internal(project: Path) -> None:
    write_report(project)
    without, numbers = (project / "reports/index.html").read_bytes(), published_beside(project)
    assert not (project / "reports/internal").exists()
    assert {name for name, _ in numbers} == {"metrics.json", "loss.png"}
    plant(project)
    write_report(project)
    write_internal(project, "village")
    assert published_beside(project) == numbers
    public = (project / "reports/index.html").read_text()
    inside = (project / "reports/internal/index.html").read_text()
    pictures = [base64.b64encode(png).decode() for png in (SECRET_PNG, SECRET_GRID)]
    for marker in ("0.713", SECRET_TEXT, "42.8 %", "0.000247", "2-way marginals, L1", *pictures):
        assert marker in inside  # power: the marker would be seen
        assert marker not in public
    assert public.encode() == without  # not even whether there are internal results


def test_both_pages_parse_and_are_accessible(pages: tuple[str, str]) -> None:
    for text in pages:
        page = Page(text)
        assert page.all("html") == [{"lang": "en"}]
        assert all(image["alt"] and len(image["alt"]) > 30 for image in page.all("img"))
        assert all(header.get("scope") in ("col", "row", "colgroup") for header in page.all("th"))
        assert len(page.all("caption")) == len(page.all("table")) >= 2
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert len(ids) == len(set(ids))
        targets = [link["href"] for link in page.all("a")] + [
            "#" + str(a["aria-labelledby"]) for _, a in page.tags if "aria-labelledby" in a
        ]
        assert {str(target)[1:] for target in targets} <= set(ids)
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1 and all(b - a <= 1 for a, b in pairwise(levels))


def test_nothing_is_loaded_from_elsewhere(pages: tuple[str, str]) -> None:
    for text in pages:
        page = Page(text)
        assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", re.sub(r"base64,[^\"]+", "", text))
        assert {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "form", "base"} == set()
        assert all(str(image["src"]).startswith("data:image/png;base64,") for image in page.all("img"))
        assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
        policy = [meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
        assert policy == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]


def test_the_privacy_facts_are_on_the_page(pages: tuple[str, str], privacy: dict[str, Any]) -> None:
    public = pages[0]
    facts = [
        *("0.9877", "1.077", "10⁻⁵", "one row is one person", "one unit added or removed", "class_counts"),
        "embedding",
    ]
    facts += ["90.0 %", "100.0 %", "map=characteristic, num_frequencies=8", "opendp 0.16.0", "ab" * 32]
    facts += ["50.0 % of the cap", "village-1900", "In short", "Of the <strong>village</strong>."]
    assert not [fact for fact in facts if fact not in public] and public.count("Privacy statement</h") == 1
    for query in privacy["queries"]:
        assert f"{query['noise_scale']:.4g}" in public


def test_the_internal_page_is_marked_and_warns_where_nothing_is_better_than_independence(
    pages: tuple[str, str], internal: Internal
) -> None:
    public, inside = pages
    assert "INTERNAL – NOT PRIVATE" in inside and "<title>INTERNAL" in inside and "INTERNAL" not in public
    warning = "No better than independence"
    for synthetic, warned in ((0.3, True), (0.28, True), (0.1, False)):
        pairs = {"synthetic": {"2": synthetic}, "real": {"2": 0.02}, "shuffled": {"2": 0.3}}
        page = render_internal(replace(internal, metrics={**internal.metrics, "marginals": pairs}), "village")
        assert (warning in page) is warned and warning not in inside


def test_images_are_told_apart_from_tables(pages: tuple[str, str], internal: Internal) -> None:
    table = render_internal(replace(internal, metrics={**internal.metrics, "image": False}), "village")
    Page(table)
    for words in ("LeNet", "Mean image of every class", "every pixel with the class"):
        assert words in pages[1] and words not in table, words
    assert "twice the total variation" in table and "twice the total variation" not in pages[1] and "FID" in table


def test_a_regression_is_not_told_in_the_words_of_classifiers(pages: tuple[str, str], internal: Internal) -> None:
    measured = {table: {"r2": 0.3, "rmse": 0.1} for table in ("synthetic", "real", "shuffled")}
    scores = [{"table": table, "classifier": "ridge", "r2": "0.3", "rmse": "0.1", "seconds": "1"} for table in measured]
    metrics = {**internal.metrics, "scores": measured, "image": False}
    page = render_internal(replace(internal, metrics=metrics, scores=scores), "village")
    for words in ("What a classifier learns", "“Hard” scores"):
        assert words in pages[1] and words not in page, words
    for words in ("What a regression learns", "RMSE is in units of"):
        assert words in page and words not in pages[1], words


def test_adjacency_changes_the_promise(privacy: dict[str, Any]) -> None:
    page = render({**privacy, "adjacency": "replace_one", "num_records": 32561}, "", {})
    assert "one unit replaced" in page and "the number of records is public: 32,561" in page
    assert "Training loss" not in page


def test_thresholds_and_how_many_categories_passed_them_are_told(privacy: dict[str, Any]) -> None:
    shown = json.loads(json.dumps(privacy))
    shown["total"]["delta_keys"] = 5e-7
    shown["queries"][0].update(dimension=1, keys=4321, delta_keys=5e-7, threshold=84.0)
    page = render(shown, "", {})
    assert "4,321</td>" in page and "is for the thresholds of private categories" in page
    assert "thresholds of private categories" not in render(privacy, "", {})


def test_a_run_without_noise_is_stamped(privacy: dict[str, Any], losses: dict[str, list[float]]) -> None:
    for value in ("inf", None):
        bare = json.loads(json.dumps(privacy))
        bare.update(private=False, rdp_curve={"orders": [], "total": [], "stages": {}})
        bare["total"].update(rho=value, epsilon=value, epsilon_rdp=value, epsilon_gaussian=value)
        bare["target"]["epsilon"] = value
        bare["ledger"]["lifetime"].update(spent_rho=value, spent_epsilon=value)
        for query in bare["queries"]:
            query.update(noise_multiplier=0, noise_scale=0, rho=value, share=None)
        page = render(bare, "", losses)
        Page(page)
        assert '<div class="stamp" aria-hidden="true"><span>NOT PRIVATE</span></div>' in page
        assert "the two differ by at most" not in page and "all of them public" not in page
    assert 'class="stamp"' not in render(privacy, "", losses)


def test_reservations_that_were_never_released_are_told(privacy: dict[str, Any]) -> None:
    ledger = {**privacy["ledger"], "lifetime": {**privacy["ledger"]["lifetime"], "uncommitted": 2}}
    assert "reserved and not released" in render({**privacy, "ledger": ledger}, "", {})
    assert "reserved and not released" not in render(privacy, "", {})


def test_texts_from_files_are_escaped(privacy: dict[str, Any], losses: dict[str, list[float]]) -> None:
    page = render({**privacy, "identity": "<img src=x>", "unit": "a & b"}, "<b>bold</b>", losses)
    assert "<img src=x>" not in page and "<b>bold" not in page and "a &amp; b" in page


def test_missing_files_and_fields_are_named(project: Path, privacy: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match=r"reports/privacy.json: .* format 2\."):
        render({**privacy, "format": 2}, "", {})
    for key in ("total", "ledger", "software", "unit"):
        with pytest.raises(ArtifactError, match=rf"reports/privacy.json: .*{key}.*likeness run"):
            render({name: value for name, value in privacy.items() if name != key}, "", {})
    (project / "reports/PRIVACY_STATEMENT.md").unlink()
    with pytest.raises(ArtifactError, match=r"reports/PRIVACY_STATEMENT.md is missing.*likeness run"):
        write_report(project)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((None, "–"), ("inf", "∞"), (math.inf, "∞"), (math.nan, "–"), (0, "0"), (0.0, "0"), (32561, "32,561")),
        *((0.98765432, "0.9877"), (1e-5, "10⁻⁵"), (2.5e-7, "2.5 × 10⁻⁷"), (-0.5, "−0.5"), (-12345.6, "−12,346")),
        *((2.5e13, "2.5 × 10¹³"), ("text", "text")),
    ],
)
def test_numbers_for_people(value: object, text: str) -> None:
    assert number(value) == text


def test_a_year_has_no_comma() -> None:
    assert [value_text(value) for value in (1994.2, 1994, 12345.6, "text")] == ["1994", "1994", "12,346", "text"]


def test_shares_scores_maps_and_images() -> None:
    assert (percent(0.0512), percent(None)) == ("5.1 %", "–")
    assert (three("0.12345"), three(-0.5), three(None), three("")) == ("0.123", "−0.500", "–", "–")
    assert spec({"seed": 7, "map": "x", "parts": [1, 2]}) == "map=x, seed=7, parts=[1, 2]"
    assert spec({"map": "x", "edges": "a" * 500}) == f"map=x, edges={'a' * 120}… (500 characters)"
    assert embed(b"abc") == "data:image/png;base64,YWJj"


def test_the_loss_in_words(privacy: dict[str, Any]) -> None:
    assert loss_text({"iteration": [0, 6000], "loss": [0.92, 0.021]}) == (
        "from 0.92 at the first to 0.021 at the last recorded iteration (6,000)"
    )
    assert loss_text({"iteration": [0], "loss": [0.021]}) == "0.021: a closed form, nothing was trained"
    assert loss_text({}) == "no loss was recorded"
    nan = float("nan")
    two = {"iteration": [8, 16, 8], "loss_people": [3.0, 2.0, nan], "loss_events": [nan, nan, 5.0]}
    assert loss_text(two) == (
        "loss of people from 3 at the first to 2 at the last recorded iteration (16); "
        "loss of events from 5 at the first to 5 at the last recorded iteration (8)"
    )
    assert headline(privacy, two)["final_loss_people"] == 2.0


def test_a_range_breaks_between_its_ends_only() -> None:
    whole = '<span class="whole">{}</span>'.format
    for text, parts in {
        "1968-06-16": whole("1968-06-16"),
        "± 2.3 %": whole("± 2.3 %"),
        "62 to 125.5 %": f"{whole('62 to')} {whole('125.5 %')}",
        "1930-01-01..1937-08-07": f"{whole('1930-01-01..')}<wbr>{whole('1937-08-07')}",
        "<b>..<i>": f"{whole('&lt;b&gt;..')}<wbr>{whole('&lt;i&gt;')}",
        "a category of many words": "a category of many words",
        "averyveryverylongword": "averyveryverylongword",
    }.items():
        assert unbroken(text) == parts
    assert type(unbroken("<b> <i>")) is str  # which Jinja escapes


def test_losses_are_columns_of_numbers(tmp_path: Path) -> None:
    (tmp_path / "loss.csv").write_text("iteration,loss,critic\n0,1.5,\n10,inf,2\n")
    losses = read_losses(tmp_path / "loss.csv")
    assert losses["iteration"] == [0, 10] and losses["loss"] == [1.5, math.inf] and math.isnan(losses["critic"][0])
    (tmp_path / "loss.csv").write_text("iteration,loss\n")
    assert read_losses(tmp_path / "loss.csv") == {}


@pytest.mark.parametrize(
    ("text", "rule"), [("step,loss\n0,1\n", "'iteration' is missing"), ("iteration\nx\n", "number")]
)
def test_bad_losses_are_refused_by_name(tmp_path: Path, text: str, rule: str) -> None:
    (tmp_path / "loss.csv").write_text(text)
    with pytest.raises(ArtifactError, match=f"data/models/loss.csv: .*{rule}.*likeness run"):
        read_losses(tmp_path / "loss.csv")


def test_missing_and_malformed_files_name_their_stage(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"reports/internal/evaluation/metrics.json is missing.*likeness run"):
        read_internal(tmp_path)
    (tmp_path / "privacy.json").write_text("[1]")
    with pytest.raises(ArtifactError, match=r"reports/privacy\.json is not a JSON object"):
        read_json(tmp_path / "privacy.json", "reports/privacy.json")
