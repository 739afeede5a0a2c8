"""Print each error that a person can cause, by module: the texts of raised errors, of faults and of verdicts.

Run: python scripts/errors.py [FOLDER ...]. Placeholders stand in braces. Read each line as the person who gets it: it
names file, key, value, rule and remedy, and no private value.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACES = ("src/likeness", "stages", "flows")
VERDICTS = {"require", "Wrong", "Untestable", "fault", "Fault"}


def errors(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each message of a module.

    A message is the first text in an error, in a call of :data:`VERDICTS`, or in a yielded pair of key and text.
    """
    for node in ast.walk(ast.parse(source)):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Call) and _name(node).endswith("Error"):
            parts = node.args[:1]
        elif isinstance(node, ast.Call) and _name(node) in VERDICTS:
            parts = node.args
        elif isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple):
            parts = node.value.elts[1:]
        yield from ((node.lineno, text) for part in parts if " " in (text := text_of(part)))


def text_of(node: ast.expr) -> str:
    """A message with its placeholders; an expression without a text is one placeholder."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    if isinstance(node, ast.FormattedValue):
        node = node.value
    return "{" + ast.unparse(node).replace(" ", "") + "}"


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def main(places: list[str]) -> None:
    """Print the messages of all modules below some folders."""
    for path in sorted(path for place in places for path in (ROOT / place).rglob("*.py")):
        messages = sorted(set(errors(path.read_text(encoding="utf-8"))))
        if messages:
            print(f"\n{path.relative_to(ROOT)}")
        for line, text in messages:
            print(f"  {line}: {text}")


if __name__ == "__main__":
    main(sys.argv[1:] or list(PLACES))
