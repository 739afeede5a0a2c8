"""Numbers and names as text for people: the filters and the heat map of the report."""

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

MOST_LISTED = 10
"""Rows of a list of the worst."""
_LONGEST = 120  # characters of one value of a specification; privacy.json has all of them
_SHORT = re.compile(r"(?:(\S{1,14}?\.\.)|(\S{1,14} to) )?((?:[±s] )?\S{1,14}(?: %\)?)?)")
_NO_LOSS = "no loss was recorded"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_LABELS = {
    "roc_auc_hard": "ROC AUC, hard",
    "roc_auc_score": "ROC AUC, score",
    "average_precision_hard": "average precision, hard",
    "average_precision_score": "average precision, score",
    "f1": "F1",
    "pairs_l1": "2-way marginals, L1",
    "fid": "FID",
    "fid_deviation": "FID, deviation of 10 resamplings",
    "kid": "KID",
    "kid_deviation": "KID, deviation of 100 subsets",
    "cnn": "CNN",
    "cnn_long": "CNN, trained longer",
    "resnet": "ResNet",
    "r2": "R²",
    "rmse": "RMSE",
    "lda": "LDA",
    "mlp": "MLP",
    "linear_svm": "linear SVM",
    "adaboost": "AdaBoost",
    "xgboost": "XGBoost",
    "gaussian_naive_bayes": "Gaussian naive Bayes",
    "bernoulli_naive_bayes": "Bernoulli naive Bayes",
}


def label(name: str) -> str:
    """A metric's or an estimator's name for people."""
    return _LABELS.get(name, name.replace("_", " "))


def number(value: Any, digits: int = 4) -> str:
    """A number: ``–`` for none, ``∞``, thousands separators, powers of ten for the very small and very large."""
    if value is None:
        return "–"
    if value in ("inf", "-inf"):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if 1000 <= abs(value) < 1e12:
        return f"{value:,.0f}".replace("-", "−")
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text.replace("-", "−")
    mantissa, exponent = text.split("e")
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPT)
    return power if mantissa == "1" else f"{mantissa.replace('-', '−')} × {power}"


def value_text(value: Any) -> str:
    """A value of a column, as :func:`number`. Below 10,000 it has no comma, because it may be a year."""
    text = number(value)
    return text.replace(",", "") if isinstance(value, int | float) and abs(value) < 1e4 else text


def percent(value: Any) -> str:
    """A share in percent, one digit after the point."""
    return "–" if value is None else f"{100 * float(value):.1f} %"


def unbroken(value: str | int) -> str | Markup:
    """A number, date or short word on one line; a range may break between its ends. Longer texts break anywhere."""
    text = value if isinstance(value, str) else number(value)
    match = _SHORT.fullmatch(text)
    if match is None:
        return text
    before, lower, rest = (part and Markup('<span class="whole">{}</span>').format(part) for part in match.groups())
    return Markup("{}<wbr>{}").format(before, rest) if before else Markup(" ").join(filter(None, (lower, rest)))


def spec(value: Mapping[str, Any]) -> str:
    """A public map's specification in one line of ``key=value``, the name of the map first; long values cut."""
    items = sorted(value.items(), key=lambda pair: pair[0] != "map")
    return ", ".join(f"{key}={_cut(item if isinstance(item, str) else json.dumps(item))}" for key, item in items)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"


def three(value: Any) -> str:
    """A score with three digits after the point; ``–`` for none."""
    return "–" if value in (None, "") else f"{float(value):.3f}".replace("-", "−")


def embed(png: bytes) -> str:
    """PNG bytes as the address of an image inside the page."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def loss_text(losses: Mapping[str, Sequence[float]]) -> str:
    """The loss curve in words, for people who do not see it."""
    names = [name for name in losses if name.startswith("loss")]
    texts = [_curve_text(losses["iteration"], losses[name]) for name in names]
    if len(names) < 2:
        return texts[0] if texts else _NO_LOSS
    return "; ".join(f"{name.replace('_', ' of ')} {curve}" for name, curve in zip(names, texts, strict=True))


def _curve_text(iterations: Sequence[float], losses: Sequence[float]) -> str:
    points = [(at, value) for at, value in zip(iterations, losses, strict=True) if math.isfinite(value)]
    if not points:
        return _NO_LOSS
    (_, first), (last, final) = points[0], points[-1]
    if last == 0:
        return f"{number(final, 3)}: a closed form, nothing was trained"
    end = f"at the last recorded iteration ({number(int(last))})"
    return f"from {number(first, 3)} at the first to {number(final, 3)} {end}"


_TEMPLATES = Path(__file__).parent / "templates"

# Without these rules no text of a statement becomes a tag or reaches the network.
_MARKDOWN = (
    MarkdownIt("commonmark", {"html": False})
    .enable("table")
    .disable(["html_block", "html_inline", "link", "image", "autolink", "reference"])
)


def to_html(text: str, top: int = 3) -> str:
    """HTML of a Markdown text; ``top`` is the level of its highest heading, for one outline of the page."""
    tokens = _MARKDOWN.parse(text)
    levels = [int(token.tag[1]) for token in tokens if token.type == "heading_open"]
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + top - min(levels))}"
        elif token.type in ("th_open", "td_open"):
            right = token.attrs.pop("style", "") == "text-align:right"
            token.attrs |= {"scope": "col"} if token.type == "th_open" else {}
            token.attrs |= {"class": "n"} if right else {}
    page = str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))
    # Only the renderer writes these tags: those of the text are escaped.
    return page.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")


def fill_template(template: str, *folders: Path, **values: Any) -> Markup:
    """A template with its words.

    Args:
        template: name of its file.
        folders: where it is looked for, before the templates of the core.
        values: what it prints.
    """
    loader = FileSystemLoader([*folders, _TEMPLATES])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(number=number, percent=percent, spec=spec, unbroken=unbroken)
    return Markup(environment.get_template(template).render(values))
