"""A project for a folder of images: ``likeness new`` knows their shape, and the method for them."""

from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest
import yaml
from PIL import Image


@pytest.mark.process  # git
@pytest.mark.parametrize("levels", ["", "cat", "train/cat"])
def test_a_folder_of_images_gets_its_shape_and_a_method_for_images(
    command: Callable[..., tuple[int, str, str]], levels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("photos") / levels
    folder.mkdir(parents=True)
    Image.new("RGB", (6, 4)).save(folder / "secret.png")
    assert command("new", "project", "--table", "photos")[0] == 0
    params = yaml.safe_load(Path("project/params.yaml").read_text())
    schema = yaml.safe_load(Path("project/data/schema/photos.yaml").read_text())
    assert params["method"] == "moments" and params["privacy"]["unit"] == "one row is one image"
    assert ("split" in params["ingest"]) is (levels == "train/cat")
    assert schema["image"] == {"shape": [4, 6, 3]} and schema["task"] == ("classification" if levels else "none")
    assert (schema["columns"] or {}) == ({"label": {"kind": "categorical", "categories": None}} if levels else {})
    made = [path for path in Path("project").rglob("*") if path.is_file() and ".git" not in path.parts]
    assert made and not [path for path in made if "secret" in path.read_text()]
    with chdir("project"):
        told = command("check")[1]
    assert ("column 'label': categories is an open question" in told) is bool(levels) and "beside an image" not in told
