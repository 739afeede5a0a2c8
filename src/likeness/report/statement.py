"""The privacy statement: the account of a run for a person."""

from collections.abc import Mapping, Sequence
from typing import Any

from likeness.core.text import code_span, escape_markdown
from likeness.privacy.lattice_error import ALLOWANCE
from likeness.report.formats import number, percent, value_text
from likeness.report.in_short import short_paragraphs

_ADJACENCY = {
    "add_remove_one": "one record added or removed; the number of records is itself protected",
    "replace_one": "one record replaced by any other; the number of records is public",
}
_PEOPLE = "one person added or removed with all rows; the number of people and of records is itself protected"


def statement(privacy: dict[str, Any]) -> str:
    """The privacy account for a person, in Markdown."""
    total, target, lifetime = privacy["total"], privacy["target"], privacy["ledger"]["lifetime"]
    several = privacy.get("rows_of_a_person")
    origin = f" of {privacy['plugin']}" if "plugin" in privacy else ""
    neighbors = _PEOPLE if several else _ADJACENCY[privacy["adjacency"]]
    lines = ["# Privacy statement", ""]
    if not privacy["private"]:
        lines += ["**NOT PRIVATE.** This run was made with `epsilon: inf`: no noise was added. Do not publish.", ""]
    else:
        lines += [line for paragraph in short_paragraphs(privacy) for line in (paragraph, "")]
    lines += [
        f"The synthetic table was made by the method **{privacy['method']}**{origin} from "
        f"{len(privacy['queries'])} noisy statistics of the private table, and from nothing else that depends on it.",
        "",
        f"- **Whose data:** {escape_markdown(privacy['identity'])}; "
        f"unit of privacy: {escape_markdown(privacy['unit'])}.",
        f"- **Neighboring tables:** `{privacy['adjacency']}`: {neighbors}.",
        f"- **Guarantee:** ε = {number(total['epsilon'])} at δ = {number(total['delta'])} "
        f"(target ε = {number(target['epsilon'])}, δ = {number(target['delta'])}), {_conversion(total)}, "
        f"total ρ = {number(total['rho'])}.",
        *_categories(privacy),
        *_bounds(privacy),
        f"- **For comparison:** composition of Rényi differential privacy gives ε = {number(total['epsilon_rdp'])}; "
        f"were the noise continuous, exact composition of Gaussians would give {number(total['epsilon_gaussian'])}.",
        f"- **Lifetime of these people in ledger `{privacy['ledger']['id']}`:** "
        f"ε = {number(lifetime['spent_epsilon'])} spent of {number(lifetime['cap_epsilon'])} at "
        f"δ = {number(lifetime['cap_delta'])}{_thresholds_part(lifetime)}.",
        *_describe_files(privacy),
        *_queries(privacy),
        "",
        "Noise: discrete Gaussian on an integer lattice, drawn once by OpenDP from the operating system's generator; "
        "each record is clipped to its declared bound and truncated to the lattice before it is summed, and the "
        "sensitivity counts that." + _rows_of_person(privacy),
        *_notes(privacy),
        *_rules(privacy),
        *_relations(privacy),
        *_not_covered(privacy),
        "",
        "PRIVACY.md tells the threat model and the side channels.",
        "",
    ]
    return "\n".join(lines)


def _queries(privacy: Mapping[str, Any]) -> list[str]:
    """The table of all queries."""
    header = "query | stage | coordinates | L2 sensitivity | noise σ | σ / sensitivity | share of ρ | ρ | ledger entry"
    alignment = "| --- | --- |" + " ---: |" * 7
    rows = [
        f"| {query['query']} | {query['stage']} | {query.get('keys', query['dimension']):,} | "
        f"{number(query['sensitivity'])} | {number(query['noise_scale'])} | {number(query['noise_multiplier'])} | "
        f"{percent(query['share'])} | {number(query['rho'])} | {query['ledger_seq']} |"
        for query in privacy["queries"]
    ]
    return ["", "## Every query", "", f"| {header} |", alignment, *rows]


def _not_covered(privacy: Mapping[str, Any]) -> list[str]:
    """List what the guarantee says nothing about."""
    return [
        "",
        "## What is not covered",
        "",
        f"- What was taken as public: the schema (columns, {_public_bounds(privacy)}, {_public_categories(privacy)}), "
        "the split, the settings in params.yaml."
        " If one of them was read off the rows, this statement does not hold.",
        "- A person with more than one value of the column that names people."
        if privacy.get("rows_of_a_person")
        else "- A person with more than one row, unless the unit above says so.",
        "- Everything under `data/private` and `reports/internal`: exact, not private, not to be published.",
        "- Statistical truth: synthetic rows resemble the population; none of them is a person, and an inference about"
        " a group can be right without anybody's record having been used for it.",
        "- Other releases about the same people that are not in this ledger.",
    ]


def _rows_of_person(privacy: Mapping[str, Any]) -> str:
    """Say what the number of rows of a person does to the noise."""
    several = privacy.get("rows_of_a_person")
    if not several:
        return ""
    if all(query["map"].get("terms") == "each_person" for query in privacy["queries"]):
        return " The rows of a person share one contribution, so the noise does not grow with their number."
    return f" It is {several['max_rows']:,} times that of one record, and so is the noise."


def _thresholds(privacy: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [query for query in privacy["queries"] if "threshold" in query]


def _categories(privacy: Mapping[str, Any]) -> list[str]:
    """The columns whose categories were released, with their thresholds."""
    lines = []
    for query in _thresholds(privacy):
        column, other = (code_span(query["map"][key]) for key in ("column", "other"))
        if not privacy["private"]:
            lines.append(f"- **Categories of {column}:** read off the rows, without noise.")
            continue
        lines.append(
            f"- **Categories of {column}:** not taken as public. Released are the {query['keys']:,} "
            f"whose noisy number of records is at least {number(query['threshold'])}"
            + (f" (the {query['map']['most']:,} largest)" if query["keys"] == query["map"]["most"] else "")
            + f"; every other value became {other}. A value that only the records of one person have "
            f"is released with probability at most {number(query['delta_keys'])}, which is part of δ."
        )
    return lines


def _bounds(privacy: Mapping[str, Any]) -> list[str]:
    """The columns whose bounds were released."""
    names = ", ".join(map(code_span, privacy.get("private_bounds", ())))
    if not names:
        return []
    return [
        f"- **Bounds of {names}:** not taken as public. They follow from one noisy histogram of each column on a "
        "public grid. Values beyond them were clipped, so means are those of clipped values."
    ]


def _public_categories(privacy: Mapping[str, Any]) -> str:
    names = ", ".join(code_span(query["map"]["column"]) for query in _thresholds(privacy))
    categories = f"categories but those of {names}" if names else "categories"
    return f"{categories}, rules" if privacy.get("rules") else categories


def _public_bounds(privacy: Mapping[str, Any]) -> str:
    return "bounds but those above" if privacy.get("private_bounds") else "bounds"


def _thresholds_part(lifetime: Mapping[str, Any]) -> str:
    """The part of a lifetime's δ that is reserved for thresholds."""
    if "cap_delta_keys" not in lifetime:
        return ""
    cap, spent = lifetime["cap_delta_keys"], lifetime["spent_delta_keys"]
    return f", of which {number(cap)} is kept for thresholds and {number(spent)} taken"


def _conversion(total: Mapping[str, Any]) -> str:
    """The conversion behind the claim."""
    if total["epsilon"] == total["epsilon_rdp"] or float(total["epsilon"]) > 0.9999999 * float(total["epsilon_rdp"]):
        return "by composition of Rényi differential privacy"
    return f"by exact composition of Gaussians and {number(ALLOWANCE)} for their lattice"


def _describe_files(privacy: dict[str, Any]) -> list[str]:
    """The files of the statement, and whether they hold chosen rows only."""
    files = "; ".join(f"`{path}`, SHA-256 `{sha}`" for path, sha in privacy["outputs"].items())
    lines = [f"- **About:** {files}."] if files else []
    if privacy["sample"]["where"]:
        where = ", ".join(escape_markdown(f"{name} = {value}") for name, value in privacy["sample"]["where"].items())
        lines.append(f"- **Only rows with:** {where}. The table is not like the whole population.")
    return lines


def _notes(privacy: dict[str, Any]) -> list[str]:
    """Facts that were read off released values, at no further cost."""
    notes = privacy["notes"]
    return ["", "Read off these values, at no further cost:", "", *(f"- {note}" for note in notes)] if notes else []


def _rules(privacy: Mapping[str, Any]) -> list[str]:
    """The public rules that rows keep."""
    rules = [f"- {code_span(rule)}" for rule in privacy.get("rules", [])]
    text = (
        "Public rules, taken from the schema. Every synthetic row keeps them. A private row that breaks one counts as "
        "the nearest row that keeps it, by a fixed public map:"
    )
    return ["", text, "", *rules] if rules else []


def _relations(privacy: Mapping[str, Any]) -> list[str]:
    """List what a reader may believe of pairs of columns, and the values that the table does not have."""
    summary = privacy.get("relations")
    if not summary:
        return []
    listed = {word: summary[key] for key, word in VERDICTS.items()}
    lists = [f"**{word}**, {len(pairs):,}: {escape_markdown(pair_names(pairs))}" for word, pairs in listed.items()]
    others = escape_markdown(pair_names(summary["unknown_pairs"], summary["unknown"]))
    lines = [*lists, f"**unknown**, {summary['unknown']:,}: {others}", *map(escape_markdown, cut_lines(summary))]
    return ["", "## What a reader may believe", "", RELATIONS, "", *(f"- {line}" for line in lines)]


RELATIONS = (
    "These verdicts follow from released values and the model, at no further cost. A relation is kept where the "
    "release shows it and the model has at least half of it. It is not kept where the model has less, or more than "
    "twice. It is unknown where noise may hide it, or nothing measured it: then the columns may depend on each other."
)
"""What verdicts mean."""


VERDICTS = {"kept": "kept", "not_kept": "not kept", "rules": "of a public rule"}
"""Words for each list of pairs."""
MOST_PAIRS = 20
"""Pairs of a list that are named."""


def pair_names(pairs: Sequence[Sequence[Any]], count: int | None = None) -> str:
    """The first pairs of a list, by name.

    Args:
        pairs: the list, or its first pairs.
        count: how many pairs there are; None: those of the list.
    """
    shown = [" × ".join(pair[:2]) for pair in pairs[:MOST_PAIRS]]
    left = (len(pairs) if count is None else count) - len(shown)
    return ", ".join(shown) + (f", and {left:,} more" if left else "") or "–"


def cut_lines(relations: Mapping[str, Any]) -> list[str]:
    """The range of each number whose bounds are wider, in words."""
    lines = []
    for cut in relations["cut"]:
        low, high = (end if isinstance(end, str) else value_text(end) for end in (cut["low"], cut["high"]))
        lines.append(f"{cut['column']} has no value outside {low} to {high}.")
    return lines
