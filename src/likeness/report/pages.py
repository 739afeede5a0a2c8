"""Two self-contained HTML pages: a public one from released files only, and an internal one about real rows.

Images and styles are inside the page, there is no script, and a content policy forbids the network. A page has no time,
path or host name, so equal files give equal public pages.
"""

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError
from markupsafe import Markup, escape

from likeness.core.errors import ArtifactError
from likeness.core.files import expand_home, make_private_folder
from likeness.core.format import check_known
from likeness.core.paths import ProjectPaths
from likeness.report.charts import MOST_MAPPED, MOST_PAIRS, MOST_TABLED, verdict_map
from likeness.report.files import (
    LOSS,
    PRIVACY,
    STATEMENT,
    Internal,
    drawn_loss,
    read_internal,
    read_json,
    read_losses,
    read_text,
    write_public,
)
from likeness.report.formats import embed, fill_template, loss_text, number, to_html
from likeness.report.in_short import short_paragraphs
from likeness.report.rows import internal_rows
from likeness.report.statement import RELATIONS, VERDICTS, cut_lines, pair_names


@dataclass(frozen=True)
class Page:
    """A self-contained page, which a notebook shows in a frame.

    Attributes:
        html: the page.
    """

    html: str

    def save(self, path: Path | str) -> Path:
        """Write the page to a file.

        Raises:
            OSError: the path cannot be written.
        """
        target = expand_home(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.html, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:48rem;border:0"></iframe>'


def render(
    privacy: Mapping[str, Any],
    statement: str,
    losses: Mapping[str, Sequence[float]],
    table: Mapping[str, Any] | None = None,
) -> str:
    """The public page as HTML.

    Args:
        privacy: ``reports/privacy.json``.
        statement: ``reports/PRIVACY_STATEMENT.md``, Markdown.
        losses: columns of ``loss.csv``, see :func:`read_losses`.
        table: the part about the table, see :func:`likeness.report.released_numbers.table_section`; None leaves it out.

    Raises:
        ArtifactError: a field that the page needs is missing.
    """
    check_known(privacy, ("format",), PRIVACY, ArtifactError)
    try:
        loss = drawn_loss(losses)
        relations = _relations(privacy.get("relations"), (table or {}).get("names", []))
        contents = {"what": "What this is"}
        if table:
            contents |= {"columns": "Columns", **({"pairs": "Pairs"} if relations else {}), "rows": "Rows"}
            contents |= {part["id"]: part["title"] for part in table.get("parts", [])}
        contents |= {"account": "Account", "statement": "Statement", "reading": "Words"}
        return _page(
            "report",
            title=f"Likeness of {privacy['identity']}",
            stamped=not privacy["private"],
            contents=list(contents.items()),
            source="Made from released files and synthetic rows"
            + (", all of them public." if privacy["private"] else "."),
            privacy=privacy,
            in_short=Markup(to_html(short_paragraphs(privacy)[0])) if privacy["private"] else "",
            factor=_factor(privacy["total"]["epsilon"]),
            statement=Markup(to_html(_statement_body(statement), top=3)),
            loss_image=None if loss is None else embed(loss),
            loss_text=loss_text(losses),
            total_share=_total([query["share"] for query in privacy["queries"]]),
            ledger_share=_ledger_share(privacy["ledger"]["lifetime"]),
            table=table,
            relations=relations,
        )
    except UndefinedError as error:
        raise ArtifactError(f"{PRIVACY}: {error.message}. Run `likeness run` to write it again.") from None
    except KeyError as error:
        raise ArtifactError(f"{PRIVACY}: {error} is missing. Run `likeness run` to write it again.") from None


def render_internal(internal: Internal, name: str) -> str:
    """The internal page as HTML. NOT private.

    Args:
        internal: results that real rows went into.
        name: of the data.

    Raises:
        ArtifactError: ``metrics.json`` does not have its sections.
    """
    title = f"INTERNAL, not private: {name}"
    return _page("internal", title=title, stamped=False, name=name, **internal_rows(internal))


def make_internal(paths: ProjectPaths) -> None:
    """Make ``reports/internal`` for a comparison, without that of another run.

    Raises:
        ArtifactError: ``dvc.yaml`` is one of those that record hashes and sizes of the comparison in ``dvc.lock``.
    """
    if paths.stages.exists() and str(ProjectPaths.evaluation) in paths.stages.read_text(encoding="utf-8"):
        raise ArtifactError("dvc.yaml records hashes of reports/internal. Run: likeness new . --upgrade")
    shutil.rmtree(paths.evaluation, ignore_errors=True)
    make_private_folder(paths.internal)
    make_private_folder(paths.evaluation)


def write_internal(root: Path | str, name: str) -> None:
    """Write ``reports/internal/index.html`` from what ``evaluate`` wrote.

    Args:
        root: the project's folder.
        name: of the data.

    Raises:
        ArtifactError: a file is missing or malformed.
    """
    page = render_internal(read_internal(Path(root) / ProjectPaths.evaluation), name)
    (Path(root) / ProjectPaths.internal_report).write_bytes(page.encode())


def write_without_rows(root: Path | str, name: str) -> None:
    """Write in the place of ``reports/internal/index.html`` that rows stay in their database.

    Args:
        root: the project's folder.
        name: of the data.
    """
    page = _page("stayed", title=name, stamped=False, name=name)
    (Path(root) / ProjectPaths.internal_report).write_bytes(page.encode())


def write_report(root: Path | str, table: Mapping[str, Any] | None = None) -> None:
    """Read the artifacts below ``root``, and write ``reports/index.html``.

    Numbers and figures of the page become files too, see :mod:`likeness.report.files`.

    Args:
        root: the project's folder.
        table: see :func:`render`.

    Raises:
        ArtifactError: a file that an earlier stage writes is missing or malformed.
    """
    root = Path(root)
    privacy = read_json(root / PRIVACY, PRIVACY)
    statement = read_text(root / STATEMENT, STATEMENT)
    losses = read_losses(root / LOSS)
    public = root / ProjectPaths.report
    public.parent.mkdir(parents=True, exist_ok=True)
    public.write_text(render(privacy, statement, losses, table), encoding="utf-8")
    write_public(root, privacy, losses)


def _page(template: str, **values: Any) -> str:
    return str(fill_template(f"{template}.html.j2", **values))  # text of a page: where it is shown, it is escaped


def _relations(summary: Mapping[str, Any] | None, names: Sequence[Sequence[str]]) -> dict[str, Any] | None:
    """Describe what a reader may believe, ready to print; None where the account says nothing."""
    if not summary:
        return None
    summary = _drop_repeats(summary)
    listed = {word: summary[key] for key, word in VERDICTS.items() if summary[key] or key != "rules"}
    verdicts = [*((word, len(pairs)) for word, pairs in listed.items()), ("unknown", summary["unknown"])]
    lists = [
        (word, len(pairs), [(" × ".join(pair[:2]), *map("{:.2f}".format, pair[2:])) for pair in pairs[:MOST_PAIRS]])
        for word, pairs in list(listed.items())[:2]
        if pairs
    ]
    judged = [(word, pair) for key, word in VERDICTS.items() for pair in summary[key] if len(pair) == 4]
    pairs = [
        (" × ".join(pair[:2]), _verdict(word, max(pair[2:]) <= summary["small"]), *map("{:.2f}".format, pair[2:]))
        for word, pair in judged
    ]
    return {
        "pairs": pairs[:MOST_TABLED],
        "near": sum("near 0" in pair[1] for pair in pairs),
        "judged": len(pairs),
        "small": summary["small"],
        "verdicts": verdicts,
        "unknown": pair_names(summary["unknown_pairs"][:3], summary["unknown"]) if summary["unknown_pairs"] else "",
        "detectable": summary["detectable"],
        "lists": lists,
        "maps": [verdict_map(group, summary) for group in names if len(group) > 1],
        "mapped": MOST_MAPPED if any(len(group) > MOST_MAPPED for group in names) else None,
        "words": RELATIONS,
        "cut": cut_lines(summary),
    }


def _drop_repeats(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The same with each pair in one list: one of a public rule has its verdict or, without one, stands under rules.

    The statement lists a pair twice. Its words are sealed, because the verifier compares them to the letter.
    """
    judged = [pair[:2] for key in ("kept", "not_kept") for pair in summary[key]]
    rules = [pair for pair in summary["rules"] if pair not in judged]
    unknown = [pair for pair in summary["unknown_pairs"] if pair not in rules]
    return {**summary, "rules": rules, "unknown": summary["unknown"] - len(rules), "unknown_pairs": unknown}


def _verdict(word: str, is_small: bool) -> str:
    return f"{word}: near 0 in both" if word == VERDICTS["kept"] and is_small else word


def _statement_body(statement: str) -> str:
    """The statement without its title and the paragraph that the page begins with."""
    first, _, rest = statement.lstrip().partition("\n")
    lines = rest if first.startswith("# ") else statement
    return "\n".join(line for line in lines.split("\n") if not line.startswith("**In short.**"))


def _factor(epsilon: Any) -> str | None:
    """e^ε as text, or None where it says nothing."""
    value = math.inf if epsilon is None else float(epsilon)
    return number(math.exp(value), 3) if value < 12 else None


def _total(shares: Sequence[Any]) -> float | None:
    """Sum of the shares, or None where a query has none."""
    return None if any(share is None for share in shares) else math.fsum(float(share) for share in shares)


def _ledger_share(lifetime: Mapping[str, Any]) -> float | None:
    """Spent epsilon over its cap, or None where either is infinite."""
    ends = lifetime["spent_epsilon"], lifetime["cap_epsilon"]
    spent, cap = (math.inf if value is None else float(value) for value in ends)
    return spent / cap if math.isfinite(spent) and math.isfinite(cap) and cap > 0 else None
