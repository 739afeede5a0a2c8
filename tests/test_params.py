"""params.yaml: what ships loads; everything else is refused by name."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from likeness.bundle.settings import params_of, settings_of
from likeness.cli.app import app
from likeness.config.explain import defaults, keys
from likeness.config.load import load_params, params_from, source_at
from likeness.config.params import Evaluate, LedgerSettings, Params, Sample
from likeness.core.errors import LikenessError, ParamsError
from likeness.core.hashing import plain
from likeness.data.schema.schema import Schema
from likeness.methods import METHODS, method_from, resolved
from likeness.pipeline.new_project import write_project
from likeness.pipeline.project import Project
from likeness.synthesizer import Synthesizer

ROOT = Path(__file__).parents[1]


NEEDED: dict[str, Any] = {
    "method": "marginals",
    "privacy": {"epsilon": 1, "delta": 1e-5, "population": "somebody"},
    "ingest": {"source": "t.csv", "schema": "t.yaml"},
}
EXAMPLES = ["digits", "mnist", "fashion_mnist", "cifar10", "mixture"]


def shipped() -> dict[str, Any]:
    """The project's params.yaml, and the sections of all methods, with every key below ``expert`` too."""
    content: dict[str, Any] = yaml.safe_load((ROOT / "params.yaml").read_text())
    return {**content, **{name: {"expert": defaults(method)} for name, method in METHODS.items()}}


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


def test_files_without_a_section_projects_and_fits_have_the_same_method(tmp_path: Path) -> None:
    default = plain(METHODS["marginals"]())
    assert plain(method_from(params_from(NEEDED))) == default
    write_project(tmp_path / "new")
    assert "marginals" not in yaml.safe_load((tmp_path / "new/params.yaml").read_text())
    assert plain(method_from(Synthesizer(population="p").params())) == default
    fit = Synthesizer(population="p", settings={"train": {"iterations": 5}}).params()
    assert plain(method_from(fit)) == {**default, "train": {**default["train"], "iterations": 5}}


def test_only_what_a_person_must_decide_is_needed() -> None:
    optional = ("ingest.unit.", "evaluate.card.")  # sections that may be null; whoever writes one writes all of it
    missing = {key.name for key in keys(Params, "") if key.default is None and not key.name.startswith(optional)}
    assert missing == {"method", *(f"{one}.{key}" for one in ("privacy", "ingest") for key in NEEDED[one])}
    params = params_from(NEEDED)
    assert (params.ledger, params.sample, params.evaluate) == (LedgerSettings(), Sample(), Evaluate())
    assert difference(resolved(params), {**defaults(Params), "marginals": defaults(METHODS["marginals"])}) == NEEDED
    for name in missing:
        *outer, last = name.split(".")
        content = copy.deepcopy(NEEDED)
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
    assert plain(read) == defaults(METHODS[name])
    assert max(map(len, text.splitlines())) <= 120


def test_a_printed_section_can_be_pasted() -> None:
    sections = [name for name in defaults(Params) if name not in ("method", "sections")]
    for name in sections:
        assert yaml.safe_load(printed(name)) == {name: defaults(Params)[name]}
    pasted = {name: yaml.safe_load(printed(name))[name] for name in sections if name not in NEEDED}
    assert resolved(params_from({**pasted, **NEEDED})) == resolved(params_from(NEEDED))
    assert "  epsilon: null                   # ? for the whole run" in printed("privacy")
    ended = CliRunner().invoke(app, ["params", "pearll"])
    assert isinstance(ended.exception, ParamsError)
    assert ", ".join(METHODS) in str(ended.exception)
    assert "privacy, ledger, ingest, categories, engine, train" in str(ended.exception)


def test_the_projects_file_is_what_the_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "params.yaml").read_text()
    assert text.endswith(printed()) and len(printed().splitlines()) <= 122
    base = {**defaults(Params), "marginals": defaults(METHODS["marginals"])}
    assert set(difference(resolved(load_params()), base)) == {*NEEDED, "sample"}  # everything else has its default
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load(printed())  # in an empty folder: what is to be decided is a question
    assert content["method"] == "marginals" and content["privacy"]["population"] is None
    assert params_from({**content, **NEEDED}) == params_from({**NEEDED, "marginals": defaults(METHODS["marginals"])})


def test_every_key_says_what_it_means() -> None:
    listed = [*keys(Params, ""), *(key for name, method in METHODS.items() for key in keys(method, name))]
    silent = {key.name for key in listed if not key.help}
    assert silent == {"sections"}


def test_a_key_alone_leaves_its_neighbours_as_they_are_by_default() -> None:
    """Also where a section has other defaults at its place than its class has."""
    params = params_from({**NEEDED, "ledger": {"attempt": "2"}, "ntk": {"expert": {"train": {"latent_dim": 4}}}})
    assert params.ledger == replace(LedgerSettings(), attempt="2")
    ntk: Any = method_from(replace(params, method="ntk"))
    assert ntk.train == replace(METHODS["ntk"]().train, latent_dim=4) and ntk.train.iterations == 2000


def test_params_yaml_has_expert_settings_in_one_place() -> None:
    section: dict[str, Any] = {"privatize": {"order": 5}, "train": {"iterations": 7}}
    expert = {"privatize": {"product_order": 3}, "train": {"schedule": "cosine"}}
    hp: Any = method_from(params_from({**NEEDED, "method": "hp", "hp": {**section, "expert": expert}}))
    assert (hp.privatize.order, hp.train.iterations, hp.privatize.product_order) == (5, 7, 3)
    assert hp.train.schedule == "cosine" and hp.plan == METHODS["hp"]().plan
    for content, words in (
        ({"train": {"schedule": "cosine"}}, r"^hp\.train\.schedule is .* Write it as hp\.expert\.train\.schedule\."),
        ({"plan": {"shares": {}}}, r"^hp\.plan is an expert setting\. Write it as hp\.expert\.plan\."),
        ({"expert": {"train": {"shedule": "cosine"}}}, r"^hp\.train\.shedule is not a setting\. Did you mean schedule"),
        ({"expert": 3}, r"^hp\.expert must be a section with settings, got 3"),
    ):
        with pytest.raises(ParamsError, match=words):
            method_from(params_from({**NEEDED, "method": "hp", "hp": content}))


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_plans_without_a_section(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    params = replace(load_params(), method=name)
    assert sum(share.share for share in method_from(params).shares(Project(Path(), params).context)) == pytest.approx(1)


def test_settings_of_a_bundle_have_the_words_of_params_yaml_and_are_read_back() -> None:
    train = {"kl_penalty": 0.5, "swap_rounds": 1}
    params = params_from({**NEEDED, "ledger": {"attempt": "two"}, "marginals": {"train": train}})
    schema = Schema.load(ROOT / "data/schema/adult.yaml")
    settings = settings_of(Project(ROOT, params, schema))
    assert settings["privacy"]["population"] == "somebody" and settings["attempt"] == "two"
    assert {key: settings["marginals"]["train"][key] for key in train} == train
    again = params_of(settings)
    assert settings_of(Project(ROOT, again, schema)) == settings and method_from(again) == method_from(params)
    assert (again.privacy, again.ledger.attempt) == (params.privacy, "two")


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_hold_what_differs_and_plan(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    folder = Path("examples") / example
    content = yaml.safe_load((folder / "params.yaml").read_text())
    params = load_params(folder / "params.yaml")
    others = {**defaults(Params), params.method: defaults(METHODS[params.method])}
    changed = flat(difference(resolved(params), others), "")
    assert changed == {key.replace(".expert", "", 1): value for key, value in flat(content, "").items()}
    more = yaml.safe_load((folder / "methods.yaml").read_text())
    assert params.method not in more
    for name in [params.method, *more]:
        plan = Project(Path(), replace(params_from({**content, **more}), method=name)).plan
        assert plan.private and plan.epsilon == 1.0


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("privacy", "noise"), 1, r"privacy\.noise is not a setting. Settings: epsilon, delta"),
        (("privacy", "epsilon"), -1, r"privacy\.epsilon must be greater than 0"),
        (("privacy", "epsilon"), "lots", r"privacy\.epsilon must be a number"),
        pytest.param(("privacy", "epsilon"), 10**400, r"privacy\.epsilon must be a number below", id="longer"),
        (("privacy", "delta"), 2, r"privacy\.delta must be between 0 and 1"),
        (("privacy", "adjacency"), "swap", r"privacy\.adjacency must be one of add_remove_one, replace_one"),
        (("privacy",), 3, r"privacy must be a section"),
        (("method",), "magic", f"method must be one of {', '.join(METHODS)}"),
        (("ledger", "cap"), {"epsilon": 1.0}, r"ledger\.cap\.delta is missing"),  # no default for a half
        (("ledger", "cap"), {"delta": 1e-6}, r"ledger\.cap\.epsilon is missing"),
        (("sample", "rows"), 0, r"sample\.rows must be auto or a whole number from 1, got 0"),
        (("sample", "rows"), "32000", r"sample\.rows must be auto or a whole number from 1, got '32000'"),
        (("sample", "rows"), 1.5, r"sample\.rows must be of type int"),
        (("privacy", "population"), None, r"privacy\.population is an open question .* Give a value"),
        (("sample", "where"), "income", r"sample\.where must be a mapping"),
        (("sample", "rows"), True, r"sample\.rows must be of type int"),
        (("pearl", "train", "hidden"), 128, r"pearl\.train\.hidden must be a list"),
        (("pearl", "train", "schedule"), "wild", r"train\.schedule must be one of constant, cosine"),
        (("pearl", "auxiliary", "num_pairs"), 1000, r"num_pairs must be a power of two"),
        (("evaluate", "row_counts"), [60, 0], r"evaluate\.row_counts must be null or a list .* at least 1"),
        (("evaluate", "row_counts"), 60, r"evaluate\.row_counts must be a list"),
        (("pearl", "auxiliary", "mixture", "components"), 0, r"mixture\.components must be 1 \(no mixture\) to 64"),
        (("pearl", "auxiliary", "mixture", "components"), 3, r"shares\.mixture must be between 0 and 1 while .* is 3"),
        (("pearl", "plan", "shares", "mixture"), 0.1, r"shares\.mixture must be 0 while .*components is 1"),
        (("pearl", "auxiliary", "mixture", "iterations"), 0, r"mixture\.iterations must be from 1 to"),
        (("pearl", "auxiliary", "mixture", "columns"), ["age", "age"], r"a list of different names"),
        (("pearll",), {}, r"pearll is not a section"),
        (("merf", "privatize", "lengthscale"), [0.5, 0], r"merf\.privatize\.lengthscale must be a number greater"),
        (("merf", "privatize", "lengthscale"), [], r"merf\.privatize\.lengthscale must be a number greater than 0"),
        (("merf", "privatize", "lengthscale"), None, r"merf\.privatize\.lengthscale must be a number"),
        (("merf", "privatize", "lengthscale"), ["a"], r"merf\.privatize\.lengthscale\[0\] must be a number"),
        (("merf", "privatize", "lengthscale_weights"), [1.0], r"lengthscale_weights must be a list of numbers"),
        (("merf", "privatize", "lengthscale_weights"), 1.0, r"lengthscale_weights must be a list, got"),
        (("merf", "privatize", "num_frequencies"), 0, r"num_frequencies must be from 1 to"),
        (("merf_ae", "privatize", "encoder"), "private", r"encoder: private is refused: .* preprint's fault"),
        (("merf_ae", "privatize", "encoder"), "dp_sgd", r"encoder: dp_sgd is refused: .* from torch"),
        (("merf_ae", "privatize", "encoder"), "weights.pt", r"encoder must be random or a \.safetensors file"),
        (("merf_ae", "privatize", "encoder"), "public.safetensors", r"encoder_sha256 must be the 64 hexadecimal"),
        (("merf_ae", "privatize", "encoder_sha256"), "0" * 64, r"encoder_sha256 must be null while encoder is random"),
        (("merf_ae", "privatize", "code"), 0, r"merf_ae\.privatize\.code must be from 1 to"),
        (("merf_ae", "privatize", "lengthscale"), 0, r"merf_ae\.privatize\.lengthscale must be greater than 0"),
        (("hp", "privatize", "kernel"), "both", r"hp\.privatize\.kernel must be one of sum, product, combined"),
        (("hp", "privatize", "order"), 201, r"hp\.privatize\.order must be from 0 to 200"),
        (("hp", "privatize", "order"), -1, r"hp\.privatize\.order must be from 0 to 200"),
        (("hp", "privatize", "product_order"), 201, r"hp\.privatize\.product_order must be from 0 to 200"),
        (("hp", "privatize", "lengthscale"), [0.1, 0.001], r"hp\.privatize\.lengthscale must be from 0\.01 to 100"),
        (("hp", "privatize", "input_scale"), 17, r"hp\.privatize\.input_scale must be above 0 and at most 16"),
        (("hp", "privatize", "product_dimension"), 0, r"product_dimension must be at least 1"),
        (("hp", "privatize", "num_subsets"), 0, r"num_subsets must be at least 1"),
        (("hp", "privatize", "product_share"), 1, r"product_share must be between 0 and 1"),
        (("hp", "privatize", "max_coordinates"), 0, r"max_coordinates must be from 1 to"),
        (("hp", "train", "gamma"), 0, r"hp\.train\.gamma must be above 0"),
        (("hp", "train", "gamma"), float("inf"), r"hp\.train\.gamma must be above 0"),
        (("marginals", "privatize", "bins"), 1, r"marginals\.privatize\.bins must be from 2 to"),
        (("marginals", "train", "kl_penalty"), -1, r"kl_penalty must be at least 0"),
        (("marginals", "train", "swap_rounds"), 101, r"swap_rounds must be from 0 to 100"),
        (("train", "precision"), "float16", r"train\.precision must be one of float32, bfloat16"),
    ],
)
def test_wrong_settings_are_refused_by_name(tmp_path: Path, keys: tuple[str, ...], value: Any, message: str) -> None:
    content = {**shipped(), "method": keys[0] if keys[0] in METHODS else "pearl"}
    place = content[keys[0]]["expert"] if keys[0] in METHODS else content
    for key in keys[keys[0] in METHODS : -1]:
        place = place[key]
    place[keys[-1]] = value
    with pytest.raises(ParamsError, match=message):
        loaded(tmp_path, content)


def test_missing_and_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="make a project with `likeness new FOLDER`"):
        load_params(tmp_path / "nothing.yaml")
    (tmp_path / "broken.yaml").write_text("a: [1\n")
    with pytest.raises(ParamsError, match="not valid YAML"):
        load_params(tmp_path / "broken.yaml")


def test_numbers_that_yaml_reads_as_text(tmp_path: Path) -> None:
    text, path = (ROOT / "params.yaml").read_text(), tmp_path / "params.yaml"
    path.write_text(text.replace("delta: 1.0e-05", "delta: 1e-5", 1).replace("epsilon: 1.0 ", "epsilon: inf "))
    assert (load_params(path).privacy.delta, load_params(path).privacy.epsilon) == (1e-5, float("inf"))


KEYS = st.sampled_from(["method", "privacy", "ledger", "ingest", "pearl", "train", "sample", "tracking"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(key=KEYS, value=VALUES)
def test_any_value_gives_settings_or_a_plain_error(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: Any
) -> None:
    try:
        loaded(tmp_path_factory.mktemp("fuzz"), {**shipped(), key: value})
    except LikenessError as error:
        assert "params" in str(error) or key in str(error)


def test_in_a_copy_of_the_project_what_git_does_not_hold_is_looked_for_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DVC names the project in DVC_ROOT, also where stages run in a copy of it."""
    home, copy = tmp_path / "home", tmp_path / "copy"
    content = shipped()
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
        ("data/t.csv", "/home/p/data/t.csv"),
        ("/data/t.csv", "/data/t.csv"),
        ("sqlite:///data/t.db", "sqlite:////home/p/data/t.db"),
        ("sqlite:////data/t.db", "sqlite:////data/t.db"),
        ("postgresql+psycopg://ada@db.example.org/people", "postgresql+psycopg://ada@db.example.org/people"),
    ],
)
def test_a_source_as_other_folders_name_it(source: str, seen: str) -> None:
    assert source_at(source, Path("/home/p")) == seen
