"""Images: scikit-learn's handwritten digits, 1,797 of 8 x 8 pixels, as a table of integer columns."""

import base64
import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits
from toys import schema_with

from likeness.config.params import Evaluate
from likeness.core.errors import DataError, ParamsError
from likeness.data.schema.schema import Schema
from likeness.evaluation.classifiers import CLASSIFIERS, select
from likeness.evaluation.marginals import marginal_table
from likeness.report.internal import FILES
from likeness_images import figures as image_figures
from likeness_images.convnet import DEFAULT, STEPS, estimators_of, eye
from likeness_images.distances import image_distances
from likeness_images.evaluation import evaluate_images
from likeness_images.image_forms import contact_sheet
from likeness_images.pixels import check_shape, halves, mean_images, pixel_marginals, pixels

pytestmark = pytest.mark.long

SHAPE = (8, 8)
CLASSES = [str(digit) for digit in range(10)]
NAMES = [f"pixel_{place}" for place in range(1, 65)]


@pytest.fixture(scope="module")
def schema() -> Schema:
    columns = {name: {"kind": "integer", "lower": 0, "upper": 16} for name in NAMES}
    columns["digit"] = {"kind": "categorical", "categories": CLASSES}  # type: ignore[dict-item]
    return schema_with(columns, "digit", name="digits")


@pytest.fixture(scope="module")
def digits() -> pd.DataFrame:
    """All rows, in a fixed random order."""
    data = load_digits()
    table = pd.DataFrame(data["data"].astype("int64"), columns=NAMES)
    table["digit"] = pd.Categorical.from_codes(data["target"], CLASSES)
    return table.sample(frac=1, random_state=0, ignore_index=True)


@pytest.fixture(scope="module")
def parts(digits: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Training, held-out and synthetic rows: others of which 3 in 10 pixels are shuffled and a label in 10 is wrong."""
    synthetic = digits[1100:].reset_index(drop=True)
    draw = np.random.default_rng(0)
    for name in NAMES:
        other = draw.permutation(synthetic[name].to_numpy())
        synthetic[name] = np.where(draw.uniform(size=len(other)) < 0.3, other, synthetic[name])
    wrong = synthetic.index % 10 == 0
    synthetic.loc[wrong, "digit"] = "8"
    return digits[:600], digits[600:1100], synthetic


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, schema: Schema, parts: tuple[pd.DataFrame, ...]) -> Path:
    """One evaluation of images; the tests only read it."""
    out = tmp_path_factory.mktemp("images") / "internal"
    train, test, synthetic = parts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likeness_images.convnet.STEPS", 150)
        evaluate_images(train, test, synthetic, schema, Evaluate(classifiers=("cnn",)), out, SHAPE)
    return out


def test_numbers_of_images_tell_good_from_bad(written: Path) -> None:
    metrics = json.loads((written / "metrics.json").read_text())
    assert metrics["image"] is True and metrics["not_private"] is True
    distances = metrics["distances"]
    assert distances["real"]["fid"] < distances["synthetic"]["fid"] < distances["shuffled"]["fid"]
    assert max(distances["real"]["kid"], distances["synthetic"]["kid"]) < distances["shuffled"]["kid"] / 2
    assert all(table["fid_deviation"] > 0 < table["kid_deviation"] for table in distances.values())
    assert metrics["scores"]["real"]["accuracy"] > 0.8 > 0.4 > metrics["scores"]["shuffled"]["accuracy"]
    marginals = list(csv.DictReader((written / "marginals.csv").read_text().splitlines()))
    assert len(marginals) == 3 * (65 + 64)  # and not 65 · 64 / 2 pairs


def test_images_have_three_judges_by_default_and_all_by_name(schema: Schema) -> None:
    assert list(estimators_of("classification", None, SHAPE)) == list(DEFAULT) == ["logistic_regression", "mlp", "cnn"]
    every = [*CLASSIFIERS, "cnn", "cnn_long", "resnet"]
    assert list(estimators_of("classification", every, SHAPE)) == every
    networks = estimators_of("classification", ["cnn", "cnn_long"], SHAPE)
    steps = {name: network(0).steps for name, network in networks.items()}
    assert steps == {"cnn": STEPS, "cnn_long": 4 * STEPS}
    with pytest.raises(ParamsError, match="'cnn' is not an estimator"):
        select("classification", ["cnn"])  # a table has no neighbors
    assert schema.image is None


def test_the_network_is_a_function_of_its_seed_and_rows(schema: Schema, parts: tuple[pd.DataFrame, ...]) -> None:
    import torch

    x, y = pixels(parts[0], schema)
    state = torch.get_rng_state()
    one, two, other = (eye(x, y, SHAPE, seed, steps=20).features(x[:5]) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)  # no global generator was touched
    assert np.array_equal(one, two) and not np.allclose(one, other) and one.shape == (5, 84)


def test_the_network_of_fid_never_sees_the_images_it_compares(
    schema: Schema, parts: tuple[pd.DataFrame, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from likeness_images import distances

    seen: list[np.ndarray] = []
    compared: list[np.ndarray] = []

    class Spy:
        def features(self, x: np.ndarray) -> np.ndarray:
            compared.append(x)
            return x[:, :5] + x[:, 30:35]

    monkeypatch.setattr(distances, "eye", lambda images, *_: seen.append(images) or Spy())
    real = parts[1].drop_duplicates(NAMES)
    tables = {"synthetic": parts[2], "few": parts[0][:100]}
    found = image_distances(real, tables, schema, SHAPE, 0)
    learned, again, reference = ({row.tobytes() for row in part} for part in (seen[0], *compared[:2]))
    assert learned == again  # for the unit
    assert len(learned) + len(reference) == len(real) and not learned & reference
    assert {len(part) for part in compared[2:]} == {100}  # equally many of every table
    assert set(found["few"]) == {"fid", "fid_deviation", "kid", "kid_deviation"}
    assert image_distances(real[:2], tables, schema, SHAPE, 0) == {"synthetic": {}, "few": {}}


def test_halves_are_a_public_partition() -> None:
    a, b = halves(11, 3)
    assert (len(a), len(b)) == (5, 6) and sorted([*a, *b]) == list(range(11))
    assert np.array_equal(halves(11, 3)[0], a) and not np.array_equal(halves(11, 4)[0], a)


def test_marginals_of_pixels_are_those_of_the_table(schema: Schema, parts: tuple[pd.DataFrame, ...]) -> None:
    real, other = parts[0][:80], parts[2][:90]
    found = pixel_marginals(real, other, schema).set_index(["order", "columns"])["total_variation"]
    every = marginal_table(real, other, schema, orders=(1, 2)).set_index(["order", "columns"])["total_variation"]
    pd.testing.assert_series_equal(found, every.loc[found.index])
    assert (found.loc[2].index.str.contains("digit")).all() and found.max() > 0.2


def test_mean_images_by_hand() -> None:
    images = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    means = mean_images(images, np.array([0, 0, 2]), 4)
    assert means[0].tolist() == [0.5, 0.5] and means[2].tolist() == [0.5, 0.5] and np.isnan(means[[1, 3]]).all()


def test_a_grid_holds_the_first_images_of_each_class_in_order() -> None:
    images = np.arange(5 * 6, dtype=float).reshape(5, 6) / 30
    sheet = image_figures.grid(images, np.array([1, 0, 1, 1, 0]), (2, 3), classes=3, across=2)
    assert sheet.shape == (3 * 3 + 1, 2 * 4 + 1) and np.array_equal(sheet[1:3, 1:4], images[1].reshape(2, 3))
    assert np.array_equal(sheet[1:3, 5:8], images[4].reshape(2, 3))
    assert np.array_equal(sheet[4:6, 1:4], images[0].reshape(2, 3))
    assert np.array_equal(sheet[4:6, 5:8], images[2].reshape(2, 3))  # and not the fourth
    assert np.isnan(sheet[6:]).all() and np.isnan(sheet[0]).all() and np.isnan(sheet[:, 4]).all()


def test_images_without_classes(tmp_path: Path, schema: Schema, parts: tuple[pd.DataFrame, ...]) -> None:
    mapping = {**schema.to_dict(), "task": "none", "label": None}
    mapping["columns"] = [column for column in mapping["columns"] if column["name"] != "digit"]
    train, test, synthetic = (part[:150].drop(columns="digit") for part in parts)
    evaluate_images(train, test, synthetic, Schema.from_dict(mapping, "d.yaml"), Evaluate(), tmp_path, SHAPE)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["scores"] == {} and set(metrics["marginals"]["real"]) == {"1"}
    assert metrics["distances"]["real"]["fid"] < metrics["distances"]["shuffled"]["fid"]
    pictures = {f"{name}.png" for name in ("means", "association", "samples")}
    assert {path.name for path in tmp_path.iterdir()} == {*FILES, *pictures}


def test_a_shape_that_does_not_fit_is_refused(schema: Schema) -> None:
    check_shape(schema, SHAPE)
    with pytest.raises(DataError, match="images of 7 x 8 need 56 numeric feature columns"):
        check_shape(schema, (7, 8))


def test_pictures_show_both_sides(schema: Schema, parts: tuple[pd.DataFrame, ...]) -> None:
    a, b = (pixels(part[:300], schema) for part in (parts[1], parts[2]))
    for figure in (image_figures.sample_grids, image_figures.means_and_values, image_figures.class_association):
        drawn = [Image.open(io.BytesIO(figure(*sides, SHAPE, CLASSES))) for sides in ((a, a), (a, b), (b, a))]
        assert len({picture.size for picture in drawn}) == 1 and drawn[0].width > 500
        assert len({picture.tobytes() for picture in drawn}) == 3  # each side alone changes the picture


def test_images_come_as_a_contact_sheet() -> None:
    columns = {"digit": {"kind": "categorical", "categories": ["one", "two", "none"]}}
    given = {"name": "digits", "source": "made", "task": "classification", "label": "digit", "columns": columns}
    schema = Schema.from_dict({**given, "image": {"shape": [2, 2]}}, "digits.yaml")
    digits = pd.Categorical(["one", "two"], columns["digit"]["categories"])
    rows = pd.DataFrame({name: [0, 255] for name in schema.names[:4]} | {"digit": digits})
    sheet = contact_sheet(rows, schema)
    pictures = [np.asarray(Image.open(io.BytesIO(base64.b64decode(image.partition(",")[2])))) for _, image in sheet]
    assert [name for name, _ in sheet] == ["one", "two", "none"]
    assert not pictures[0][:, :2].any() and (pictures[1] == 255).all() and (pictures[2] == 255).all()
