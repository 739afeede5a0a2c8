"""Images with their classes: a table with a column for each pixel. They come out as arrays too."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.core.paths import Outputs
from likeness.data.schema.schema import Schema
from likeness.pipeline.datasets.table import Table

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.config.params import Evaluate, FileFormat
    from likeness.evaluation.classifiers import Factory
    from likeness.pipeline.datasets.model import Tables
    from likeness.release.released import Released

_BYTES_DRAWN, _BYTES_JUDGED = 37, 83  # a value of drawn images, and of images that classifiers see
_JUDGE_START = 30  # seconds: distances
_JUDGE_SECONDS = 15 / 784  # a classifier and pixel, for 10,000 images


class Images(Table):
    """A record is an image."""

    outputs = Outputs(Table.outputs.tables, Table.outputs.generators, "npz")
    endings = ("npz", "parquet", "")

    @staticmethod
    def serves(schema: Any) -> bool:
        """Tell whether the schema says the shape of an image."""
        return isinstance(schema, Schema) and schema.image is not None

    def estimators(self, settings: "Evaluate") -> "dict[str, Factory]":
        """Those of tables, and networks that use neighboring pixels."""
        from likeness_images.convnet import estimators_of

        return estimators_of(self.schema.task, settings.classifiers, self.schema.image or ())

    def judge(
        self,
        train: "DataFrame",
        test: "DataFrame",
        synthetic: "DataFrame",
        settings: "Evaluate",
        folder: Path,
        halved: bool,
    ) -> None:
        """Score images, with their distances and pictures."""
        from likeness_images.evaluation import evaluate_images

        evaluate_images(train, test, synthetic, self.schema, settings, folder, self.schema.image or (), halved)

    def bytes_a_column(self, rows: int, drawn: int, settings: "Evaluate") -> float:
        """Pixels are bytes, until images are drawn or judged."""
        from likeness_images.pixels import MOST_ROWS

        seen = min(max(rows, drawn), settings.max_rows or MOST_ROWS)
        return max(_BYTES_DRAWN * drawn, 8 * drawn + _BYTES_JUDGED * seen)

    def evaluation_seconds(self, rows: int, drawn: int, width: int, settings: "Evaluate") -> float:
        """The judges see synthetic, real and shuffled images."""
        from likeness_images.pixels import MOST_ROWS

        most = settings.max_rows or MOST_ROWS
        scored = (2 * min(rows, most) + min(drawn, most)) / 3
        height, across = (self.schema.image or (0, 0))[:2]
        trainings = 3 * len(self.estimators(settings))
        return _JUDGE_START + trainings * _JUDGE_SECONDS * height * across * scored / MOST_ROWS

    def plain_bytes(self, table: "DataFrame", name: str, layout: "FileFormat") -> bytes:
        """Arrays of numpy."""
        from likeness_images.image_forms import npz_bytes

        return npz_bytes(table, self.schema)

    def write_folder(self, table: "DataFrame", name: str, target: Path) -> None:
        """A PNG file for each image."""
        from likeness_images.image_forms import write_png

        write_png(table, self.schema, target)

    def section(
        self,
        released: "Iterable[Released]",
        total: float | None,
        tables: "Tables",
        most: int | None,
    ) -> dict[str, Any]:
        """Its numbers, and its first images in place of rows."""
        from likeness_images.image_forms import contact_sheet

        (table,) = tables.values()
        section = super().section(released, total, tables, most)
        return {**section, "previews": [], "sheet": contact_sheet(table, self.schema)}
