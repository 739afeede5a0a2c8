"""Two self-contained HTML pages from files only: a public one, and an internal one that adds the comparison with rows.

Images and styles are inside the page, there is no script, and a content policy forbids the network. ``render`` adds no
time, path or host name, so equal files give equal public pages.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, UndefinedError
from markupsafe import Markup

from likeness.core.errors import ArtifactError
from likeness.core.paths import ProjectPaths
from likeness.report import curves
from likeness.report.files import (
    LOSS,
    PRIVACY,
    STATEMENT,
    Internal,
    read_internal,
    read_json,
    read_losses,
    read_text,
)
from likeness.report.formats import embed, loss_text, number, percent, spec, unbroken
from likeness.report.headline import write_public
from likeness.report.markup import to_html
from likeness.report.padding import padded_html
from likeness.report.rows import internal_rows
from likeness.report.statement import CARD_WORDS, RELATIONS, VERDICTS, cut_lines, pair_names


def render(
    privacy: Mapping[str, Any],
    statement: str,
    losses: Mapping[str, Sequence[float]],
    internal: Internal | None,
    table: Mapping[str, Any] | None = None,
) -> str:
    """The page as HTML: public if ``internal`` is None.

    Args:
        privacy: ``reports/privacy.json``.
        statement: ``reports/PRIVACY_STATEMENT.md``, Markdown.
        losses: columns of ``loss.csv``, see :func:`read_losses`.
        internal: results that real rows went into, for the internal page only.
        table: the part about the table, see :func:`likeness.report.released_numbers.table_section`; None leaves it out.

    Raises:
        ArtifactError: a field that the page needs is missing.
    """
    if privacy.get("format") != 1:
        raise ArtifactError(f"{PRIVACY}: this version reads format 1. Run `dvc repro account` to write it again.")
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, percent=percent, spec=spec, unbroken=unbroken)
    section = None if internal is None else internal_rows(internal)
    try:
        return environment.get_template("report.html.j2").render(
            privacy=privacy,
            card=[(CARD_WORDS[figure["measure"]], figure) for figure in privacy.get("card", [])],
            epsilon=privacy["total"]["epsilon"],
            factor=_factor(privacy["total"]["epsilon"]),
            statement=Markup(to_html(_without_title(statement), top=3)),
            loss_image=embed(curves.loss_curve(losses)) if losses.get("iteration") else None,
            loss_text=loss_text(losses),
            total_share=_total([query["share"] for query in privacy["queries"]]),
            ledger_share=_ledger_share(privacy["ledger"]["lifetime"]),
            rdp_image=embed(curves.rdp_curve(privacy["rdp_curve"])) if privacy["private"] else None,
            internal=section,
            table=table,
            relations=_relations(privacy.get("relations")),
        )
    except UndefinedError as error:
        raise ArtifactError(f"{PRIVACY}: {error.message}. Run `dvc repro account` to write it again.") from None
    except KeyError as error:
        raise ArtifactError(f"{PRIVACY}: {error} is missing. Run `dvc repro account` to write it again.") from None


def write_report(root: Path | str, table: Mapping[str, Any] | None = None) -> None:
    """Read the artifacts below ``root``, write ``reports/index.html`` and, if there are results, the internal page.

    Numbers and figures of the public page become files too, see :mod:`likeness.report.headline`. The internal page is
    padded, see :mod:`likeness.report.padding`.

    Args:
        root: the project's folder.
        table: see :func:`render`.

    Raises:
        ArtifactError: a file that an earlier stage writes is missing or malformed.
    """
    root = Path(root)
    privacy = read_json(root / PRIVACY, PRIVACY, "account")
    statement = read_text(root / STATEMENT, STATEMENT, "account")
    losses = read_losses(root / LOSS)
    public = root / ProjectPaths.report
    public.parent.mkdir(parents=True, exist_ok=True)
    public.write_text(render(privacy, statement, losses, None, table), encoding="utf-8")
    write_public(root, privacy, losses)
    if (root / ProjectPaths.internal_metrics).exists():
        (root / ProjectPaths.internal).chmod(0o700)  # a person who copied the results back may have opened it to all
        page = render(privacy, statement, losses, read_internal(root / ProjectPaths.evaluation), table)
        (root / ProjectPaths.internal_report).write_bytes(padded_html(page))


def _relations(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What a reader may believe, ready to print; None where the account says nothing."""
    if not found:
        return None
    listed = {word: (len(found[key]), pair_names(found[key])) for key, word in VERDICTS.items()}
    verdicts = [*listed.items(), ("unknown", (found["unknown"], "all others"))]
    return {"verdicts": [(word, *rest) for word, rest in verdicts], "words": RELATIONS, "cut": cut_lines(found)}


def _without_title(statement: str) -> str:
    """The statement without its first line if that is a title: the page has one for it."""
    first, _, rest = statement.lstrip().partition("\n")
    return rest if first.startswith("# ") else statement


def _factor(epsilon: Any) -> str | None:
    """e^ε as text, or None where it says nothing."""
    value = math.inf if epsilon is None else float(epsilon)
    return number(math.exp(value), 3) if value < 12 else None


def _total(shares: Sequence[Any]) -> float | None:
    """Sum of the shares, or None where a query has none."""
    return None if any(share is None for share in shares) else math.fsum(float(share) for share in shares)


def _ledger_share(lifetime: Mapping[str, Any]) -> float | None:
    """Spent epsilon over its cap, or None where either is infinite."""
    spent, cap = (
        math.inf if value is None else float(value) for value in (lifetime["spent_epsilon"], lifetime["cap_epsilon"])
    )
    return spent / cap if math.isfinite(spent) and math.isfinite(cap) and cap > 0 else None
