"""params.yaml: what ships loads; everything else is refused by name, and so is what another version wrote."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import TempPathFactory
from typer.testing import CliRunner

from likeness.bundle.contents import params_of, settings_of
from likeness.bundle.verdict import Wrong
from likeness.cli.app import app
from likeness.config.explain import defaults, keys
from likeness.config.load import load_params, params_from, source_at
from likeness.config.params import Evaluate, LedgerSettings, Params, Sample
from likeness.core.errors import LedgerError, LikenessError, ParamsError, PlanError, ReleaseError
from likeness.core.format import FORMAT, KNOWN
from likeness.core.hashing import json_value
from likeness.data.schema.schema import Schema
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods import METHODS, method_from, resolve_settings
from likeness.pipeline.new_project import write_project
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import Plan
from likeness.privacy.receipt import Receipt
from likeness.synthesizer import Synthesizer
from likeness.verify import ledger

ROOT = Path(__file__).parents[1]


NEEDED: dict[str, Any] = {
    "method": "marginals",
    "privacy": {"epsilon": 1, "delta": 1e-5, "population": "somebody"},
    "ingest": {"source": "t.csv", "schema": "t.yaml"},
}
EXAMPLES = [
    path.parent.name
    for path in sorted((ROOT / "examples").glob("*/params.yaml"))
    if path.with_name("methods.yaml").exists() and load_params(path).method in METHODS
]


def flat(values: Any, where: str) -> dict[str, Any]:
    """Values by the dotted names of their keys."""
    inner = [flat(value, f"{where}.{key}") for key, value in values.items()] if isinstance(values, dict) else []
    return {name: value for part in inner for name, value in part.items()} if inner else {where: values}


def loaded(tmp_path: Path, content: Any) -> Any:
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(content))
    return method_from(load_params(path))


def printed(*words: str) -> str:
    ended = CliRunner().invoke(app, ["params", *words])
    assert ended.exit_code == 0, ended.output
    return ended.output


def difference(values: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of nested mappings whose values are not those of ``base``."""
    parts = {}
    for key, value in values.items():
        other = base.get(key)
        part = difference(value, other) if isinstance(value, dict) and isinstance(other, dict) and value else value
        if part != {} if part is not value else key not in base or value != other:
            parts[key] = part
    return parts


def changed(content: Mapping[str, Any], keys: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Settings with another value."""
    first, *rest = keys
    return {**content, first: changed(content[first], tuple(rest), value) if rest else value}


EVERY = {**defaults(Params), "method": "marginals"}
del EVERY["sections"]
EVERY["privacy"] |= {**NEEDED["privacy"], "unit": "one person"}
EVERY["ingest"] |= {**NEEDED["ingest"], "unit": {"column": "pid", "max_rows": 5}}
EVERY |= {name: {"expert": defaults(method)} for name, method in METHODS.items()}


def test_files_without_a_section_projects_and_fits_have_the_same_method(tmp_path: Path) -> None:
    default = json_value(METHODS["marginals"]())
    assert json_value(method_from(params_from(NEEDED))) == default
    write_project(tmp_path / "new")
    assert "marginals" not in yaml.safe_load((tmp_path / "new/params.yaml").read_text())
    assert json_value(method_from(Synthesizer(population="p").params())) == default
    fit = Synthesizer(population="p", settings={"train": {"iterations": 5}}).params()
    assert json_value(method_from(fit)) == {**default, "train": {**default["train"], "iterations": 5}}


def test_only_what_a_person_must_decide_is_needed() -> None:
    optional = "ingest.unit."  # a section that may be null; whoever writes it writes all of it
    missing = {key.name for key in keys(Params, "") if key.default is None and not key.name.startswith(optional)}
    assert missing == {"method", *(f"{one}.{key}" for one in ("privacy", "ingest") for key in NEEDED[one])}
    params = params_from(NEEDED)
    assert (params.ledger, params.sample, params.evaluate) == (LedgerSettings(), Sample(), Evaluate())
    assert (
        difference(resolve_settings(params), {**defaults(Params), "marginals": defaults(METHODS["marginals"])})
        == NEEDED
    )
    for name in missing:
        *outer, last = name.split(".")
        content = deepcopy(NEEDED)
        del (content[outer[0]] if outer else content)[last]
        with pytest.raises(ParamsError, match=rf"^{name} is missing"):
            params_from(content)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_the_printed_section_of_a_method_is_that_of_a_new_project(name: str) -> None:
    text, expert = printed(name), {key.name: key for key in keys(METHODS[name], name) if ".expert." in key.name}
    section = yaml.safe_load(text)[name]
    assert section.pop("expert", None) == ({} if expert else None)
    everyday = flat(section, name)
    every = {key: value for key, value in flat(defaults(METHODS[name]), name).items() if value != {}}
    assert all(every[key] == value for key, value in everyday.items())
    assert {key.replace(".expert", "", 1) for key in expert} >= every.keys() - everyday.keys()
    read = method_from(params_from({**NEEDED, "method": name, **yaml.safe_load(text)}))
    assert json_value(read) == defaults(METHODS[name])
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.long
def test_a_printed_section_can_be_pasted() -> None:
    sections = [name for name in defaults(Params) if name not in ("method", "sections")]
    for name in sections:
        assert yaml.safe_load(printed(name)) == {name: defaults(Params)[name]}
    pasted = {name: yaml.safe_load(printed(name))[name] for name in sections if name not in NEEDED}
    assert resolve_settings(params_from({**pasted, **NEEDED})) == resolve_settings(params_from(NEEDED))
    assert "  epsilon: null                   # ? for the whole run" in printed("privacy")
    ended = CliRunner().invoke(app, ["params", "pearll"])
    assert isinstance(ended.exception, ParamsError)
    assert ", ".join(METHODS) in str(ended.exception)
    assert "privacy, ledger, ingest, categories, train" in str(ended.exception)


def test_the_projects_file_is_what_the_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "params.yaml").read_text()
    assert text.endswith(printed()) and len(printed().splitlines()) <= 102
    base = {**defaults(Params), "marginals": defaults(METHODS["marginals"])}
    assert set(difference(resolve_settings(load_params()), base)) == {
        *NEEDED,
        "sample",
    }  # everything else has its default
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load(printed())  # in an empty folder: what is to be decided is a question
    assert content["method"] == "marginals" and content["privacy"]["population"] is None
    section = {key: value for key, value in defaults(METHODS["marginals"]).items() if value}
    assert params_from({**content, **NEEDED}) == params_from({**NEEDED, "marginals": section})


def test_a_project_with_open_questions_can_look_settings_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = changed(EVERY, ("privacy", "epsilon"), 0.3)
    for names in (("privacy", "population"), ("ingest", "unit", "max_rows")):
        Path("params.yaml").write_text(yaml.safe_dump(changed(content, names, None)))
        text = printed()
        assert yaml.safe_load(text)["privacy"]["epsilon"] == 0.3
        assert re.search(rf"^ +{names[-1]}: null +# \? ", text, re.MULTILINE)
        assert text.count("# ? ") == 1
    Path("params.yaml").write_text(yaml.safe_dump(changed(content, ("privacy", "epsilon"), -1)))
    with pytest.raises(ParamsError, match=r"^params\.yaml: privacy\.epsilon must be greater than 0"):
        CliRunner().invoke(app, ["params"], catch_exceptions=False)


def test_every_key_says_what_it_means() -> None:
    listed = [*keys(Params, ""), *(key for name, method in METHODS.items() for key in keys(method, name))]
    silent = {key.name for key in listed if not key.help}
    assert silent == {"sections"}


def test_a_key_alone_leaves_its_neighbours_as_they_are_by_default() -> None:
    assert params_from({**NEEDED, "ledger": {"attempt": "2"}}).ledger == replace(LedgerSettings(), attempt="2")


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_plans_without_a_section(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    params = replace(load_params(), method=name)
    assert sum(share.share for share in method_from(params).shares(Project(Path(), params).context)) == pytest.approx(1)


def test_settings_of_a_bundle_have_the_words_of_params_yaml_and_are_read_back() -> None:
    train = {"kl_penalty": 0.5, "iterations": 7}
    params = params_from({**NEEDED, "ledger": {"attempt": "two"}, "marginals": {"train": train}})
    schema = Schema.load(ROOT / "data/schema/adult.yaml")
    settings = settings_of(Project(ROOT, params, schema))
    assert settings["privacy"]["population"] == "somebody" and settings["attempt"] == "two"
    assert {key: settings["marginals"]["train"][key] for key in train} == train
    again = params_of(settings)
    assert settings_of(Project(ROOT, again, schema)) == settings and method_from(again) == method_from(params)
    assert (again.privacy, again.ledger.attempt) == (params.privacy, "two")


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_hold_what_differs_and_plan(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    folder = Path("examples") / example
    content = yaml.safe_load((folder / "params.yaml").read_text())
    params = load_params(folder / "params.yaml")
    others = {**defaults(Params), params.method: defaults(METHODS[params.method])}
    changed = flat(difference(resolve_settings(params), others), "")
    assert changed == {key.replace(".expert", "", 1): value for key, value in flat(content, "").items()}
    more = yaml.safe_load((folder / "methods.yaml").read_text())
    assert params.method not in more
    for name in [params.method, *(more.keys() & METHODS)]:
        plan = Project(Path(), replace(params_from({**content, **more}), method=name)).plan
        assert plan.private and plan.epsilon == 1.0


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("privacy", "noise"), 1, r"privacy\.noise is not a setting. Settings: epsilon, delta"),
        (("privacy", "epsilon"), "lots", r"privacy\.epsilon must be a number"),
        pytest.param(("privacy", "epsilon"), 10**400, r"privacy\.epsilon must be a number below", id="longer"),
        (("privacy",), 3, r"privacy must be a section"),
        (("method",), "magic", f"method must be one of {', '.join(METHODS)}"),
        (("ledger", "cap"), {"epsilon": 1.0}, r"ledger\.cap\.delta is missing"),  # no default for a half
        (("ledger", "cap"), {"delta": 1e-6}, r"ledger\.cap\.epsilon is missing"),
        (("sample", "rows"), "32000", r"sample\.rows must be auto or a whole number from 1, got '32000'"),
        (("sample", "rows"), 1.5, r"sample\.rows must be of type int"),
        (("privacy", "population"), None, r"privacy\.population is an open question .* Give a value"),
        (("sample", "where"), "income", r"sample\.where must be a mapping"),
        (("sample", "rows"), True, r"sample\.rows must be of type int"),
        (("evaluate", "card"), None, r"evaluate\.card is not a setting\. The public page says at no cost"),
        (("evaluate", "learning_curve_sizes"), [60], r"sizes is not a setting\. Draw tables of several sizes"),
        (("pearll",), {}, r"pearll is not a section"),
    ],
)
def test_wrong_settings_are_refused_by_name(keys: tuple[str, ...], value: Any, message: str) -> None:
    content = {**EVERY, "method": keys[0] if keys[0] in METHODS else "marginals"}
    keys = (keys[0], "expert", *keys[1:]) if keys[0] in METHODS else keys
    with pytest.raises(ParamsError, match=message):
        method_from(params_from(changed(content, keys, value)))


def beyond(section: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each setting with a range, and the values next to the range."""
    hints = get_type_hints(section)
    for item in fields(section):
        inner = next((hint for hint in (hints[item.name], *get_args(hints[item.name])) if is_dataclass(hint)), None)
        if inner is not None:
            yield from beyond(inner, *path, item.name)
        least, most, above, below = item.metadata.get("range", [None] * 4)
        values = [above, below, None if least is None else least - 1, None if most is None else most + 1]
        for value in [*values, "wild" if item.metadata.get("options") else None]:
            if value is not None:
                yield (*path, item.name), [value] if "tuple" in str(hints[item.name]) else value


@pytest.mark.parametrize("name", ["", *METHODS])
def test_every_range_is_kept(name: str) -> None:
    content = {**EVERY, "method": name or "marginals"}
    for path, value in beyond(METHODS[name] if name else Params):
        keys = (name, "expert", *path) if name else path
        with pytest.raises(ParamsError, match=rf"^{'.'.join(filter(None, (name, *path)))} must be .*, got "):
            method_from(params_from(changed(content, keys, value)))


def test_missing_and_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="make a project with `likeness new FOLDER`"):
        load_params(tmp_path / "nothing.yaml")
    (tmp_path / "broken.yaml").write_text("a: [1\n")
    with pytest.raises(ParamsError, match="not valid YAML"):
        load_params(tmp_path / "broken.yaml")
    (tmp_path / "twice.yaml").write_text("privacy:\n  epsilon: 1\n  epsilon: 10\n")
    with pytest.raises(ParamsError, match=r"twice\.yaml: is not valid YAML in line 3: 'epsilon' is given twice"):
        load_params(tmp_path / "twice.yaml")


def test_numbers_that_yaml_reads_as_text(tmp_path: Path) -> None:
    text, path = (ROOT / "params.yaml").read_text(), tmp_path / "params.yaml"
    path.write_text(text.replace("delta: 1.0e-05", "delta: 1e-5", 1).replace("epsilon: 1.0 ", "epsilon: inf "))
    assert (load_params(path).privacy.delta, load_params(path).privacy.epsilon) == (1e-5, float("inf"))


KEYS = st.sampled_from(["method", "privacy", "ledger", "ingest", "marginals", "train", "sample", "tracking"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(key=KEYS, value=VALUES)
def test_any_value_gives_settings_or_a_plain_error(tmp_path_factory: TempPathFactory, key: str, value: Any) -> None:
    try:
        loaded(tmp_path_factory.mktemp("fuzz"), {**EVERY, key: value})
    except LikenessError as error:
        assert "params" in str(error) or key in str(error)


def test_in_a_copy_of_the_project_what_git_does_not_hold_is_looked_for_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DVC names the project in DVC_ROOT, also where stages run in a copy of it."""
    home, copy = tmp_path / "home", tmp_path / "copy"
    content = deepcopy(EVERY)
    content["ingest"]["source"], content["ledger"]["home"] = "rows.csv", "ledger"
    content["tracking"]["uri"], content["ingest"]["people"] = "sqlite:///runs.db", "people.csv"
    for folder in (home, copy):
        folder.mkdir()
        (folder / "params.yaml").write_text(yaml.safe_dump(content))
    for name in ("rows.csv", "people.csv"):
        (home / name).touch()
    monkeypatch.setenv("DVC_ROOT", str(home))
    monkeypatch.chdir(home)
    params = load_params()
    assert (params.ingest.source, params.ledger.home, params.tracking.uri) == (
        "rows.csv",
        "ledger",
        "sqlite:///runs.db",
    )
    monkeypatch.chdir(copy)
    params = load_params()
    assert params.ingest.source == str(home / "rows.csv") and params.ledger.home == str(home / "ledger")
    assert params.tracking.uri == f"sqlite:///{home}/runs.db" and params.ingest.people == str(home / "people.csv")
    (copy / "rows.csv").touch()
    assert load_params().ingest.source == "rows.csv"  # what the copy has is its own
    content["tracking"]["uri"] = "http://127.0.0.1:5000"
    content["ledger"]["home"] = "~/ledger"
    (copy / "params.yaml").write_text(yaml.safe_dump(content))
    params = load_params()
    assert (params.ledger.home, params.tracking.uri) == ("~/ledger", "http://127.0.0.1:5000")


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        *(("data/t.csv", "/home/p/data/t.csv"), ("/data/t.csv", "/data/t.csv")),
        *(("sqlite:///data/t.db", "sqlite:////home/p/data/t.db"), ("sqlite:////data/t.db", "sqlite:////data/t.db")),
        ("postgresql+psycopg://ada@db.example.org/people", "postgresql+psycopg://ada@db.example.org/people"),
    ],
)
def test_a_source_as_other_folders_name_it(source: str, seen: str) -> None:
    assert source_at(source, Path("/home/p")) == seen


RECEIPT = Receipt(*"qsm", {}, *"msac", 1, 1, 30, 1.0, 1.0, 1.0, math.inf, *"idspkl", 3)
PLAN = Plan("m", "people", Adjacency.ADD_REMOVE_ONE, 1.0, 1e-5, None, ())
RESERVATION = {key: 0 for key in ledger._BODIES["reserve"][0]} | {"group": "", "backend": "local"}


def settings_of_a_project() -> dict[str, Any]:
    root = Path(__file__).parents[1]
    return settings_of(Project(root, load_params(root / "params.yaml")))


@pytest.mark.parametrize(
    ("value", "read", "error", "keys"),
    [
        (PLAN.to_dict(), Plan.from_dict, PlanError, ["format", "recipe"]),
        (RECEIPT.to_dict(), lambda value: Receipt.from_dict(value, "r"), ReleaseError, ["recipe", "group", "backend"]),
        (settings_of_a_project(), params_of, ParamsError, ["format", "recipe", "requires"]),
        (RESERVATION, lambda body: ledger._check_body("reserve", body, 7, set()), Wrong, ["group", "backend"]),
    ],
    ids=["plan", "receipt", "bundle", "record"],
)
def test_what_another_version_wrote_is_refused_by_name(
    value: Mapping[str, Any], read: Callable[[Any], object], error: type[Exception], keys: list[str]
) -> None:
    assert keys[0] in value and (error is Wrong or read(value))
    for key in keys:
        unknown, words = (["links"], "part 'links'") if key == "requires" else (7, f"{key} 7")
        with pytest.raises(error, match=rf": this version does not know {words}\. Install the Likeness that wrote it"):
            read({**value, key: unknown})


def test_no_file_of_the_open_format_is_taken_for_one_of_format_1(monkeypatch: pytest.MonkeyPatch) -> None:
    written = [(PLAN.to_dict(), Plan.from_dict, PlanError), (settings_of_a_project(), params_of, ParamsError)]
    Ledger.create(locate())
    assert FORMAT == 0
    monkeypatch.setitem(KNOWN, "format", 1)
    for value, read, error in written:
        with pytest.raises(error, match="does not know format 0"):
            read(value)  # type: ignore[operator]
    with pytest.raises(LedgerError, match=r"the ledger at .* does not know format 0\. Install the Likeness"):
        Ledger.open(locate())
