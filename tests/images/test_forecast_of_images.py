"""The forecast of the stages of images against what was measured."""

from pathlib import Path

import pytest

from likeness.pipeline.project import Project
from likeness.preflight.forecast import forecast
from tests.onboarding.test_forecast import settings_of


@pytest.mark.long
def test_the_stages_of_images_are_foreseen_within_a_factor_of_two() -> None:
    """Measured on two busy cores: `evaluate` of MNIST has the peak, 1.37 GB, and takes 242 s."""
    expected = forecast(Project(Path(), settings_of("mnist", "moments")), 60_000)
    assert 1.37e9 / 2 < expected.memory_bytes < 1.37e9 * 2
    assert expected.evaluation_seconds is not None and 242 / 2 < expected.evaluation_seconds < 242 * 2
