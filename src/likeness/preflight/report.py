"""The report of ``likeness check``: faults, forecast and verdict, for people and as JSON."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from likeness.core.hashing import json_value
from likeness.methods.expected import RELATION
from likeness.preflight.faults import Fault
from likeness.preflight.forecast import RULE, CategoriesForecast, Forecast

OK, IN_PART, NOT_ENOUGH = "ok", "IN PART", "NOT ENOUGH"
_MOST_MEASURES = 3  # of a query, in the words for a person; of more only the hardest
_LARGE = 3.0  # an epsilon above which no promise is proposed


@dataclass(frozen=True)
class Report:
    """The result of all preflight checks.

    Attributes:
        faults: all of them.
        notes: facts that are no faults.
        forecast: None if faults forbid one.
        refusal: why a run on rows that are new to the ledger would be over budget; empty if it would not.
    """

    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    forecast: Forecast | None
    refusal: str = ""

    @property
    def passes(self) -> bool:
        """No fault, and enough records, or enough in part, if their number is given."""
        return not self.faults and all(word != NOT_ENOUGH for word, _ in _verdicts(self.forecast))

    def to_dict(self) -> dict[str, Any]:
        """JSON form; infinities as text."""
        return {
            "passed": self.passes,
            "faults": json_value(self.faults),
            "notes": [*self.notes, *self._refusals()],
            "forecast": None if self.forecast is None else {**json_value(self.forecast), "rule": RULE},
            "verdicts": [{"word": word, "text": text} for word, text in _verdicts(self.forecast)],
        }

    def text(self) -> str:
        """Give the report as text for a person."""
        lines = []
        if self.faults:
            lines.append(f"{len(self.faults)} to put right:")
            lines += [f"  {fault.file}: {fault.text}" for fault in self.faults]
        lines += [f"note: {note}" for note in (*self.notes, *self._refusals())]
        if self.forecast is not None:
            lines += _forecast_lines(self.forecast)
        lines += self._verdicts()
        if self.forecast is None:
            lines.append("The forecast follows when all of this is right.")
        return "\n".join(lines)

    __str__ = text

    def _verdicts(self) -> list[str]:
        return [f"{word}: {text}" for word, text in _verdicts(self.forecast)]

    def summarize(self) -> str:
        """The verdicts or, without a number of records, the number that the rule needs."""
        lines = self._verdicts()
        if self.forecast is not None and not lines:
            relations, records = self.forecast.relation_records, f"{self.forecast.records:,} training records"
            more = "" if relations is None else f", and {relations:,} for relations of {RELATION} in half of the pairs"
            lines.append(f"{records} are enough for single columns{more}, by rules of thumb.")
        return "\n".join([*lines, *self._refusals()])

    def _refusals(self) -> list[str]:
        text = "unless these rows are on record with these settings, a run is refused"
        return [f"{text}: {self.refusal}"] if self.refusal else []


def _forecast_lines(forecast: Forecast) -> list[str]:
    rows = "not given (--rows)" if forecast.rows is None else f"{forecast.rows:,}, as given"
    lines = [
        f"forecast, nothing spent, no row opened: method {forecast.method}, epsilon {forecast.epsilon:g} at delta "
        f"{forecast.delta:g}, rho {forecast.rho:.4g}, training records {rows}",
        f"  a record is {forecast.width:,} encoded coordinates",
    ]
    most = forecast.rows_of_a_person
    if most > 1:
        wide = f"noise is {most:,} times as wide as with one row a person, and needs {most:,} times the records"
        lines.append(f"  up to {most:,} rows of a person: {wide}")
    alike: dict[CategoriesForecast, list[str]] = {}  # most often all of them are
    for column in forecast.categories:
        alike.setdefault(replace(column, column=""), []).append(f"'{column.column}'")
    for each, names in alike.items():
        every = " each" if len(names) > 1 else ""
        lines.append(
            f"  categories of {', '.join(names)}: private. A value needs about {math.ceil(each.threshold):,} records "
            f"(noise sigma {each.sigma:.4g}), and {each.nearly_always:,} to be released nearly always. At most "
            f"{each.most:,} are released{every}; others become the column's other. Cost: {each.delta:.3g} of delta"
            f"{every}"
        )
    if forecast.bounds is not None:
        unbounded = ", ".join(f"'{name}'" for name in forecast.bounds.columns)
        lines.append(
            f"  bounds of {unbounded}: private. Their histograms cost {forecast.bounds.share:.0%} of rho (noise sigma "
            f"{forecast.bounds.sigma:.4g} records). Sizes that fewer than about {math.ceil(forecast.bounds.sigma):,} "
            "records have may be clipped. Public bounds in the schema are free and sharper"
        )
    for query in forecast.queries:
        lines.append(
            f"  {query.query}: {query.coordinates:,} coordinate{'s' if query.coordinates > 1 else ''}, sensitivity "
            f"{query.sensitivity:.4g}, noise sigma {query.sigma:.4g} on each"
        )
        hardest, count = query.measures, len(query.measures)
        if count > _MOST_MEASURES:
            hardest = (max(query.measures, key=lambda measure: measure.records or 0),)
        for measure in hardest:
            error = "" if len(hardest) == count else f", the hardest of {count}"
            if measure.error is not None:
                average = "" if measure.average is None else f" of an average {measure.average:.2g}"
                error += f": standard error {measure.error:.2g}{average}"
            enough = "" if measure.records is None else f"; enough from {measure.records:,} records"
            lines.append(f"    {measure.of}{error}{enough}")
    lines += _expected_lines(forecast)
    training = _seconds(forecast.training_seconds, "training")
    evaluation = _seconds(forecast.evaluation_seconds, "evaluation")
    memory = f"memory {forecast.memory_bytes / 1e9:.1f} GB"
    lines.append(f"  rough, within a factor of two: {memory}, {training}, {evaluation} (one core; evaluation two)")
    return [*lines, f"  rule of thumb, {RULE}"]


def _seconds(seconds: float | None, what: str) -> str:
    if seconds is None:
        return f"{what} time unknown"
    return f"{what} {max(1, seconds):.0f} s" if seconds < 600 else f"{what} {seconds / 60:.0f} minutes"


def _expected_lines(forecast: Forecast) -> list[str]:
    """Say what noise leaves, and what would leave more."""
    lines = []
    for expected in forecast.expected:
        middle, every = _strength(expected.detectable), _strength(expected.hardest)
        lines.append(
            f"  relations (absolute correlation of ranks, Cramér's V) survive from about {middle} in half "
            f"of {expected.pairs:,} pairs, of {every} in all; hardest: {' and '.join(expected.hardest_pair)}"
        )
        of_column = f"{expected.column_distance:.2g} of the total variation of a column"
        lines.append(f"  noise makes about {of_column}, and {expected.pair_distance:.2g} of that of a pair")
        if expected.mean_error is not None:
            lines.append(f"  the mean of a number errs by about {expected.mean_error:.2g} standard deviations")
        share = expected.class_share
        rare = "" if share is None else f"a class with less than {share:.2g} of the records, or "
        lines.append(f"  noise is a quarter or more of {rare}a category with less than {expected.category_share:.2g}")
    for remedy in forecast.remedies:
        strength = _strength(remedy.expected.detectable)
        lines.append(f"  would help: {remedy.words}: strength {strength}, pairs {remedy.expected.pair_distance:.2g}")
    if not forecast.remedies and any(expected.detectable > 1 for expected in forecast.expected):
        lines.append("  would help: more records, or a table of the few columns that matter most")
    return lines


def _strength(value: float) -> str:
    return f"{value:.2g}" if value <= 1 else "1 (none survives)"


def _verdicts(forecast: Forecast | None) -> Sequence[tuple[str, str]]:
    """A word and a sentence for each rule about the number of records; none without a number."""
    if forecast is None or forecast.rows is None:
        return []
    rows, needed = forecast.rows, forecast.records
    word, text = OK, f"{rows:,} records; the rule for single columns needs {needed:,}"
    if rows < needed:
        epsilon = forecast.epsilon * needed / rows
        more = f"raise privacy.epsilon to about {epsilon:.2g}, " if epsilon <= _LARGE else ""
        word = NOT_ENOUGH
        text += f": {more}merge categories, take fewer columns or bins, or expect to lose rare values"
    lost = sum(expected.lost for expected in forecast.expected)
    pairs = sum(expected.pairs for expected in forecast.expected)
    if lost:
        word = NOT_ENOUGH if word == NOT_ENOUGH or 2 * lost > pairs else IN_PART
        hardest = " and ".join(max(forecast.expected, key=lambda expected: expected.hardest).hardest_pair)
        text += f". A relation of strength {RELATION} is lost in {lost:,} of {pairs:,} pairs, as {hardest}"
    elif pairs:
        text += f". A relation of strength {RELATION} survives in all {pairs:,} pairs"
    delta = f"delta {forecast.delta:g} against 1 / records, {1 / rows:.2g}"
    advice = "A delta of 1 / records would allow the publication of a whole record: lower privacy.delta"
    return [(word, text), (OK, delta) if forecast.delta * rows < 1 else (NOT_ENOUGH, f"{delta}. {advice}")]
