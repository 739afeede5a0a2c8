"""``likeness sample``: more rows from what was published."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from likeness.bundle.files import open_bundle
from likeness.cli.console import JSON, say, say_json
from likeness.core.errors import LikenessError
from likeness.core.files import whole_file
from likeness.core.remote import ending
from likeness.pipeline.synthetic_table import csv_bytes
from likeness.pipeline.where import pairs
from likeness.synthesizer.published import Published


def sample(
    path: Annotated[Path, typer.Argument(help="A bundle (a folder or a zip file), or a project's folder.")],
    out: Annotated[Path, typer.Option(help="A .csv or .parquet file.")],
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
    if ending(out) not in (".csv", ".parquet"):
        raise LikenessError(f"--out {out} must end in .csv or .parquet. Give another name.")
    if not out.parent.is_dir():
        raise LikenessError(f"--out {out}: {out.parent} is not a folder. Make it, or give another path.")
    given = pairs(where or [])
    written = []
    with open_bundle(path) as folder:
        published = Published.read(folder)
        draws: Iterable[Mapping[str, Any]] = (
            [published.tables(rows, seed, given)]
            if replicates is None
            else published.replicates(rows, seed, given, replicates)
        )
        for index, tables in enumerate(draws):
            stem = out.stem if replicates is None else f"{out.stem}_{index}"
            for name, table in tables.items():
                file = out.with_stem(f"{stem}_{name}" if len(tables) > 1 else stem)
                with whole_file(file) as part:
                    if ending(file) == ".csv":
                        part.write_bytes(csv_bytes(table, published.model.tables[name], published.layout))
                    else:
                        table.to_parquet(part, index=False)
                facts = {"rows": len(table), "seed": seed, "where": given, "columns": list(table.columns)}
                written.append({"file": str(file), **facts})
    if as_json:
        say_json(written[0] if len(written) == 1 else written)
    else:
        say("\n".join(f"{one['file']}: {one['rows']:,} rows" for one in written))
