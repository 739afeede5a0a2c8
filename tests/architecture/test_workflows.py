"""Workflows of GitHub may read, run what a digest names, and try each Python that the package claims."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", sorted((ROOT / ".github/workflows").iterdir()), ids=lambda path: path.name)
def test_workflows_may_read_and_name_actions_by_digest(path: Path) -> None:
    content = yaml.safe_load(path.read_text())
    assert content["permissions"] == {"contents": "read"} and "pull_request_target" not in content[True]  # `on`
    assert not [job for job in content["jobs"].values() if "permissions" in job]
    used = [step["uses"] for job in content["jobs"].values() for step in job["steps"] if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name) for name in used)
    versions = [line for line in path.read_text().splitlines() if "uses:" in line]
    assert all(re.search(r" # v\d+\.\d+\.\d+$", line) for line in versions)


def test_tests_run_on_every_python_that_the_package_claims() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    claimed = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == claimed
    assert f">={claimed[0]}" == project["requires-python"]
