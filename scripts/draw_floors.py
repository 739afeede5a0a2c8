"""Draw docs/img/floors.svg: the layers of the import rules as floors, and which room imports from which.

Run: ``python scripts/draw_floors.py``. It reads the layers in pyproject.toml and the imports of the code. A line goes
from a room to a room below from which it imports, unless a longer way of lines joins the two. Each box counts the rooms
that import from it and the rooms from which it imports. `tests/test_docs.py` compares the file with the code.
"""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs/img/floors.svg"
WIDTH, FLOOR, BOX, WIDE = 440, 60, 40, 104
_STYLE = (
    "text{font:15px system-ui,sans-serif;fill:#17313a}.room{fill:#e3f1f1;stroke:#14746f}"
    ".door{fill:#ffe3d3;stroke:#b3541e}"
    ".line{fill:none;stroke:#14746f;stroke-opacity:.45}.count{font-size:11px;fill:#4a6670}"
    ".floor{fill:#f4f8f8}"
)


def floors() -> list[list[str]]:
    """The layers from the top; a layer may hold several rooms."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    layers = next(rule for rule in tool["importlinter"]["contracts"] if rule["type"] == "layers")["layers"]
    return [[room.strip() for room in layer.split("|")] for layer in layers]


def arrows(rooms: list[str]) -> set[tuple[str, str]]:
    """Pairs of rooms of which the first imports from the second."""
    import grimp

    graph = grimp.build_graph("likeness", "stages", "flows")
    home = {module: room for room in rooms for module in {room, *graph.find_descendants(room)}}
    return {
        (home[module], home[target])
        for module in home
        for target in graph.find_modules_directly_imported_by(module)
        if target in home and home[target] != home[module]
    }


def needed(lines: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The lines that no longer way of lines replaces."""
    below: dict[str, set[str]] = {}
    for start, end in lines:
        below.setdefault(start, set()).add(end)

    def reached(room: str) -> set[str]:
        return below.get(room, set()).union(*(reached(next_) for next_ in below.get(room, ())))

    return {(start, end) for start, end in lines if not any(end in reached(via) for via in below[start] - {end})}


def picture(plan: list[list[str]], lines: set[tuple[str, str]]) -> str:
    """The floors as an SVG."""
    places = {
        room: (WIDTH * (place + 1) / (len(layer) + 1), FLOOR * number + FLOOR / 2)
        for number, layer in enumerate(plan)
        for place, room in enumerate(layer)
    }
    height = FLOOR * len(plan)
    shapes = [
        f'<rect class="floor" y="{FLOOR * number + 3}" width="{WIDTH}" height="{FLOOR - 6}"/>'
        for number in range(len(plan))
    ]
    shapes += [_line(places[start], places[end]) for start, end in sorted(needed(lines))]
    for room, place in places.items():
        shapes.append(
            _box(room, *place, sum(end == room for _, end in lines), sum(start == room for start, _ in lines))
        )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    title = "<title>The floors of Likeness: each room imports from rooms below</title>"
    back = f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
    return "\n".join([head, title, f"<style>{_STYLE}</style>", back, *shapes, "</svg>"]) + "\n"


def _line(start: tuple[float, float], end: tuple[float, float]) -> str:
    """A line from the bottom of a box to the top of another; a long one passes beside the boxes between."""
    (x, y), (to_x, to_y) = start, end
    between = round((to_y - y) / FLOOR) - 1
    first, last = y + BOX / 2, to_y - BOX / 2
    if between < 1:
        return f'<path class="line" d="M{x:.0f} {first:.0f}L{to_x:.0f} {last:.0f}"/>'
    left = x < WIDTH / 2 or (x == WIDTH / 2 and between % 2)
    side = WIDTH / 2 + (172 + 3 * between) * (-1 if left else 1)
    way = f"M{x:.0f} {first:.0f}C{side:.0f} {first:.0f} {side:.0f} {first:.0f} {side:.0f} {first + 30:.0f}"
    way += f"V{last - 30:.0f}"
    return f'<path class="line" d="{way}C{side:.0f} {last:.0f} {side:.0f} {last:.0f} {to_x:.0f} {last:.0f}"/>'


def _box(room: str, x: float, y: float, users: int, used: int) -> str:
    """A room with its name and its two numbers."""
    name = room.rpartition(".")[2]
    kind = "door" if name == "release" else "room"
    box = f'<rect class="{kind}" x="{x - WIDE / 2:.0f}" y="{y - BOX / 2:.0f}" width="{WIDE}" height="{BOX}" rx="6"/>'
    text = f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="middle">{name}'
    count = f'<tspan class="count" x="{x:.0f}" dy="14">used by {users}, uses {used}</tspan>'
    return f"{box}{text}{count}</text>"


def drawn() -> str:
    """The picture of the code as it is."""
    plan = floors()
    return picture(plan, arrows([room for layer in plan for room in layer]))


def main() -> None:
    """Write the picture."""
    sys.path.append(str(ROOT))  # where stages and flows are
    TARGET.write_text(drawn(), encoding="utf-8")


if __name__ == "__main__":
    main()
