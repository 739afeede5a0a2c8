"""Numbers as text for people: the filters and the heat map of the report."""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

MOST_LISTED = 10
"""Rows of a list of the worst."""
_LONGEST = 120  # characters of one value of a specification; privacy.json has all of them
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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


def percent(value: Any) -> str:
    """A share in percent, one digit after the point."""
    return "–" if value is None else f"{100 * float(value):.1f} %"


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
    values = [value for value in losses.get("loss", ()) if math.isfinite(value)]
    if not values:
        return "no loss was recorded"
    last = losses["iteration"][-1]
    if last == 0:
        return f"{number(values[-1], 3)}: a closed form, nothing was trained"
    first, final = number(values[0], 3), number(values[-1], 3)
    return f"from {first} at the first to {final} at the last recorded iteration ({number(int(last))})"


def heat_map(names: Sequence[str], errors: Mapping[tuple[str, str], float]) -> dict[str, Any]:
    """Squares below the diagonal, their darkness on the scale of this table; and the pairs with the largest errors."""
    largest = max(errors.values()) or 1.0
    squares = [
        {
            "x": names.index(first),
            "y": names.index(second),
            "dark": f"{0.06 + 0.94 * error / largest:.2f}",
            "text": f"{first} × {second}: {error:.4f}",
        }
        for (first, second), error in errors.items()
    ]
    worst = sorted(errors.items(), key=lambda item: (-item[1], item[0]))[:MOST_LISTED]
    rows = [(" × ".join(pair), f"{error:.4f}") for pair, error in worst]
    return {"names": list(names), "squares": squares, "largest": f"{largest:.4f}", "worst": rows}
