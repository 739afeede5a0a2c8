"""``likeness doctor``: what is wrong with the places of a project."""

from pathlib import Path

import typer

from likeness.cli.console import JSON, say, say_json
from likeness.preflight.doctor import examine_places


def doctor(as_json: JSON = False) -> None:
    """Look at ledger, anchor, locks, disks and servers, and name what is wrong with each. Changes nothing.

    Exit code 0, or 1 if something is wrong.
    """
    findings = list(examine_places(Path()))
    if as_json:
        say_json([one._asdict() for one in findings])
    else:
        say(
            "\n".join(
                f"{'WRONG' if one.fault else 'well '}  {one.place}{one.fault and f': {one.fault}'}" for one in findings
            )
        )
    if any(one.fault for one in findings):
        raise typer.Exit(1)
