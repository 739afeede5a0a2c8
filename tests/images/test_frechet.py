import math

import numpy as np
import pytest

from likeness.core.errors import DataError
from likeness_images.fid_kid import fid, fid_bootstrap, frechet_distance, kid, polynomial_mmd


def test_commuting_gaussians_in_closed_form() -> None:
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))
    a, b = np.array([1.0, 4.0, 0.25, 0.0]), np.array([4.0, 1.0, 0.0, 9.0])
    mean = np.array([1.0, 0.0, -2.0, 0.5])
    # squared distance of the means, and of the standard deviations along the common axes
    expected = (mean**2).sum() + ((np.sqrt(a) - np.sqrt(b)) ** 2).sum()
    found = frechet_distance(mean, turn @ np.diag(a) @ turn.T, np.zeros(4), turn @ np.diag(b) @ turn.T)
    assert found == pytest.approx(expected)


def test_two_by_two_in_closed_form() -> None:
    """Tr (A B)^(1/2) = sqrt(Tr AB + 2 sqrt(det AB)) for 2 x 2, commuting or not."""
    a, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, -0.5], [-0.5, 0.5]])
    root = math.sqrt(np.trace(a @ b) + 2 * math.sqrt(np.linalg.det(a @ b)))
    zero = np.zeros(2)
    assert frechet_distance(zero, a, zero, b) == pytest.approx(np.trace(a) + np.trace(b) - 2 * root)
    assert frechet_distance(zero, a, zero, b) == pytest.approx(frechet_distance(zero, b, zero, a))
    assert frechet_distance(zero, a, zero, a) == pytest.approx(0, abs=1e-9)


def test_samples_of_two_gaussians() -> None:
    draw = np.random.default_rng(1)
    a, b = draw.normal(size=(20_000, 3)), draw.normal(0.5, 2.0, size=(20_000, 3))
    expected = 3 * 0.25 + 3 * (2 - 1) ** 2
    assert fid(a, b) == pytest.approx(expected, rel=0.05)  # standard deviation about .05 of 3.75: 3 of them
    assert 0 < fid_bootstrap(a[:500], b[:500]) < 1
    assert fid_bootstrap(a[:500], b[:500], seed=1) != fid_bootstrap(a[:500], b[:500], seed=2)


def test_fewer_rows_look_worse_which_is_why_all_tables_enter_with_equally_many() -> None:
    draw = np.random.default_rng(2)
    a = draw.normal(size=(2000, 20))
    assert fid(a, draw.normal(size=(60, 20))) > 3 * fid(a, draw.normal(size=(1000, 20)))


def test_polynomial_mmd_by_a_double_loop() -> None:
    draw = np.random.default_rng(3)
    a, b = draw.normal(size=(6, 2)), draw.normal(1, size=(5, 2))

    def k(x: np.ndarray, y: np.ndarray) -> float:
        return (sum(u * v for u, v in zip(x, y, strict=True)) / 2 + 1) ** 3

    within = [[k(x, y) for i, x in enumerate(s) for j, y in enumerate(s) if i != j] for s in (a, b)]
    across = [k(x, y) for x in a for y in b]
    assert polynomial_mmd(a, b) == pytest.approx(sum(map(np.mean, within)) - 2 * np.mean(across))


def test_kid_is_0_in_the_mean_for_equal_distributions_and_sees_another() -> None:
    """300 independent pairs of samples of 30. False alarm: 4 standard errors, 1 in 15,000."""
    draw = np.random.default_rng(4)
    values = np.array([polynomial_mmd(draw.normal(size=(30, 5)), draw.normal(size=(30, 5))) for _ in range(300)])
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean()) < 4 * error
    # power: the biased estimate, with the diagonal, lies this far from 0
    diagonal = np.mean([((x @ x) / 5 + 1) ** 3 for x in draw.normal(size=(1000, 5))])
    assert 2 * diagonal / 30 > 20 * error
    mean, deviation = kid(draw.normal(size=(400, 5)), draw.normal(0.7, size=(400, 5)))
    assert mean > 5 * deviation / 10  # 100 subsets: their mean scatters by a tenth of them


def test_subsets_are_public_and_small_sets_serve() -> None:
    draw = np.random.default_rng(5)
    a, b = draw.normal(size=(150, 4)), draw.normal(size=(130, 4))
    assert kid(a, b, seed=1) == kid(a, b, seed=1) != kid(a, b, seed=2) and kid(a[:9], b)[1] > 0
    for measure in (fid, kid, polynomial_mmd):
        with pytest.raises(DataError, match=r"fid and kid: .*fewer than 2"):
            measure(a[:1], b)  # type: ignore[operator]
