"""The data card of a bundle."""

import json
from pathlib import Path
from typing import Any

from likeness.bundle.contents import CHECKSUMS, LEDGER, PLAN_FILE, PRIVACY, SETTINGS, STATEMENT
from likeness.core.text import in_markdown
from likeness.data.schema.schema import Schema


def data_card(privacy: dict[str, Any], schema: Schema) -> str:
    """A data card as Hugging Face writes it: YAML front matter, then Markdown."""
    rows = privacy["sample"]["rows"]
    sizes = [(10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M")]
    size = next((name for most, name in sizes if rows < most), "n>10M")
    total = privacy["total"]
    tables = [Path(path).stem for path in privacy["outputs"] if path.endswith(".parquet")]
    linked = len(tables) > 1  # people with histories
    things = "rows" if schema.image is None else "images"
    lines = [
        "---",
        f"pretty_name: {json.dumps(f'{schema.name} (synthetic, differentially private)')}",
        "tags: [synthetic, tabular, differential-privacy]",
        f"size_categories: [{json.dumps(size)}]",
        "configs:",
        *(f"- config_name: {name if linked else 'default'}\n  data_files: {name}.parquet" for name in tables),
        "---",
        "",
        f"# {in_markdown(schema.name)}: synthetic {'people' if linked else things}",
        "",
        f"{rows:,} synthetic {'people with their events' if linked else things}; none of them is a person. "
        f"Made by the method `{privacy['method']}` of {privacy.get('plugin', 'Likeness')} from "
        f"{len(privacy['queries'])} noisy statistics, ε = {total['epsilon']:.6g} at δ = {total['delta']:g} "
        f"({privacy['adjacency']}, unit: {in_markdown(privacy['unit'])}). [{STATEMENT}]({STATEMENT}) says what that "
        "promises and what it does not.",
        "",
        f"Source of the public schema: {in_markdown(schema.source)}",
        "",
        "| file | what |",
        "| --- | --- |",
        *(f"| {_files(privacy, name)} | {f'table {name}' if linked else 'the table'} |" for name in tables),
        "| `generator/` | the generator: `likeness sample` draws more rows, at no cost of privacy |",
        "| `released/` | the noisy statistics, each with its receipt |",
        f"| `{PRIVACY}`, `{PLAN_FILE}`, `{SETTINGS}` | the account, the plan and the settings, for machines |",
        f"| `{LEDGER}` | the ledger's chain: entries about these people (who asked, which day); of others the links |",
        f"| `{CHECKSUMS}` | `sha256sum --check {CHECKSUMS}` |",
        "",
        f"Do not trust this bundle. Recompute it: `pip install likeness-dp=={privacy['software']['likeness']}` (not "
        "`likeness`, which is another project), then `likeness verify --retrain --page page.html BUNDLE`. Exit code 0 "
        "says that everything was recomputed. `page.html` draws each column, the pairs and some rows.",
        "",
    ]
    return "\n".join(lines)


def _files(privacy: dict[str, Any], table: str) -> str:
    """The files of a table; images are arrays as Keras stores MNIST, their classes numbers in the schema's order."""
    files = sorted((Path(path) for path in privacy["outputs"] if Path(path).stem == table), reverse=True)
    arrays = " (`x_train`, `y_train`)" if any(file.suffix == ".npz" for file in files) else ""
    return ", ".join(f"`{file.name}`" for file in files) + arrays
