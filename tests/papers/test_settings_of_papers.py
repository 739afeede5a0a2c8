"""Settings of the papers' methods in params.yaml, and what refuses them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_params import EVERY, NEEDED, changed

from likeness.config.load import params_from
from likeness.core.errors import ParamsError
from likeness.core.hashing import json_value
from likeness.methods import METHODS, method_from
from likeness.pipeline.project import Project
from likeness.preflight.forecast import forecast
from tests.onboarding.test_forecast import settings_of


def test_a_key_alone_leaves_its_neighbours_as_they_are_by_default() -> None:
    """Also where a section has other defaults at its place than its class has."""
    params = params_from({**NEEDED, "ntk": {"expert": {"train": {"latent_dim": 4}}}})
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


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("pearl", "train", "hidden"), 128, r"pearl\.train\.hidden must be a list"),
        (("pearl", "auxiliary", "num_pairs"), 1000, r"num_pairs must be a power of two"),
        (("pearl", "auxiliary", "mixture", "components"), 3, r"shares\.mixture must be between 0 and 1 while .* is 3"),
        (("pearl", "plan", "shares", "mixture"), 0.1, r"shares\.mixture must be 0 while .*components is 1"),
        (("pearl", "auxiliary", "mixture", "columns"), ["age", "age"], r"a list of different names"),
        (("merf", "privatize", "lengthscale"), [0.5, 0], r"merf\.privatize\.lengthscale must be a number greater"),
        (("merf", "privatize", "lengthscale"), [], r"merf\.privatize\.lengthscale must be a number greater than 0"),
        (("merf", "privatize", "lengthscale"), None, r"merf\.privatize\.lengthscale must be a number"),
        (("merf", "privatize", "lengthscale"), ["a"], r"merf\.privatize\.lengthscale\[0\] must be a number"),
    ],
)
def test_wrong_settings_are_refused_by_name(keys: tuple[str, ...], value: Any, message: str) -> None:
    method, *inner = keys
    with pytest.raises(ParamsError, match=message):
        method_from(params_from(changed({**EVERY, "method": method}, (method, "expert", *inner), value)))


@pytest.mark.long
def test_a_residual_network_is_foreseen_within_a_factor_of_two() -> None:
    """Five seconds of one core a step of 1,000 images of CIFAR-10, with 16 channels."""
    params = settings_of("cifar10", "ntk")
    section: Any = json_value(method_from(params))
    ntk = {**section, "train": {**section["train"], "network": "residual", "batch_size": 1000}}
    params = replace(params, sections={"ntk": ntk})
    seconds = forecast(Project(Path(), params), 50_000).training_seconds
    assert seconds is not None and 5 * 1200 / 2 < seconds < 5 * 1200 * 2
