"""``likeness sample``: more rows from what was published."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likeness.bundle.files import open_bundle
from likeness.cli.console import JSON, say, say_json
from likeness.core.errors import LikenessError
from likeness.core.files import whole_file
from likeness.core.remote import ending
from likeness.pipeline.where import pairs
from likeness.synthesizer.published import Published

if TYPE_CHECKING:
    from pandas import DataFrame


def sample(
    path: Annotated[Path, typer.Argument(help="A bundle (a folder or a zip file), or a project's folder.")],
    out: Annotated[
        Path,
        typer.Option(help="A .csv or .parquet file; of images a .npz or .parquet file, or a new folder of PNG files."),
    ],
    rows: Annotated[
        int | None, typer.Option(min=1, help="How many rows, at no cost of privacy; by default the noisy count.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Public; the same seed gives the same rows.")] = 0,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="COLUMN=VALUE, COLUMN=30..40, or COLUMN= for missing; several times. Quote a name with = as in CSV."
        ),
    ] = None,
    replicates: Annotated[
        int | None,
        typer.Option(min=2, help="Draw NAME_0.csv, the base, and as many tables under new draws of the noise."),
    ] = None,
    as_json: JSON = False,
) -> None:
    """Draw more rows from a bundle, a saved synthesizer or a project with its generator, on any machine.

    Replicates show how far noise moves a result: analyze them and the table, and pool the results (likeness.combine).
    Of people with histories it draws so many people, into NAME_people.csv and NAME_events.csv.
    """
    if not out.parent.is_dir():
        raise LikenessError(f"--out {out}: {out.parent} is not a folder. Make it, or give another path.")
    conditions = pairs(where or [])
    written = []
    with open_bundle(path) as folder:
        published = Published.read(folder)
        forms = published.model.endings
        if ending(out).lstrip(".") not in forms:
            ends = " or ".join(f".{form}" for form in forms if form)
            ends += ", or be a new folder" if "" in forms else ""
            raise LikenessError(f"--out {out} must end in {ends}. Give another name.")
        drawn = rows, seed, conditions
        draws = [published.tables(*drawn)] if replicates is None else published.replicates(*drawn, replicates)
        for index, tables in enumerate(draws):
            stem = out.stem if replicates is None else f"{out.stem}_{index}"
            for name, table in tables.items():
                file = out.with_stem(f"{stem}_{name}" if len(tables) > 1 else stem)
                _write(published, table, name, file)
                facts = {"rows": len(table), "seed": seed, "where": conditions, "columns": list(table.columns)}
                written.append({"file": str(file), **facts})
    if as_json:
        say_json(written[0] if len(written) == 1 else written)
    else:
        say("\n".join(f"{entry['file']}: {entry['rows']:,} rows" for entry in written))


def _write(published: Published, table: "DataFrame", name: str, target: Path) -> None:
    """Write a table in the form that the name of its file says."""
    if not ending(target):
        published.model.write_folder(table, name, target)
        return
    with whole_file(target) as part:
        if ending(target) == ".parquet":
            table.to_parquet(part, index=False)
        else:
            part.write_bytes(published.model.plain_bytes(table, name, published.project.params.ingest.format))
