"""``likeness verify``: every claim of a bundle recomputed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from likeness.bundle.verdict import Check
from likeness.cli.console import say, say_json, table
from likeness.verify import MOST_MINUTES
from likeness.verify import verify as checks_of


def verify(
    path: Annotated[Path, typer.Argument(help="A bundle: a folder or a zip file.")],
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train the generator again too. It takes as long as the training.")
    ] = False,
    most_minutes: Annotated[
        float | None, typer.Option(min=0.1, help="Stop after so many minutes: the rest is not tested. Default: 120.")
    ] = None,
    trust_plugin: Annotated[
        list[str] | None, typer.Option(help="A method of another distribution whose code may run; several times.")
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(help="Draw the public page into this .html file, from the bundle, if nothing is wrong."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Recompute every claim of a bundle.

    Exit code 0: everything was recomputed and is right. 1: something is wrong. 2: this is no bundle. 3: nothing is
    wrong, but not everything could be tested.
    """
    checks = checks_of(path, retrain, most_minutes or MOST_MINUTES, trust_plugin or ())
    say_json([vars(check) for check in checks]) if as_json else say(checks_text(checks))
    code = give_verdict(checks, as_json)
    if page is not None and code != 1:
        from likeness.bundle.files import open_bundle  # most verdicts draw no page
        from likeness.synthesizer.published import Published

        with open_bundle(path) as folder:
            Published.from_checked_folder(folder).bundle_page().save(page)
        say(f"public page: {page}", err=as_json)
    if code:
        raise typer.Exit(code)


def checks_text(checks: Sequence[Check]) -> str:
    """The output of ``likeness verify``, one line a check."""
    marks = {True: "ok", False: "WRONG", None: "not tested"}
    return table(("", "check", ""), [(marks[check.passed], check.name, check.text) for check in checks], text_columns=3)


UNTESTED = 3
"""Exit code of a bundle without a wrong check, of which not everything could be tested."""


def give_verdict(checks: Sequence[Check], quiet: bool) -> int:
    """Print whether to trust a bundle.

    Args:
        checks: of the bundle.
        quiet: standard output is JSON.

    Returns:
        the exit code: 0, 1 for a wrong bundle, :data:`UNTESTED`.
    """
    wrong = [check.name for check in checks if check.passed is False]
    untested = [check.name for check in checks if check.passed is None]
    if wrong:
        say(f"verdict: WRONG ({', '.join(wrong)}). Do not trust this bundle.", err=True)
        return 1
    if untested:
        say(f"verdict: nothing is wrong, but not everything was tested ({', '.join(untested)})", err=quiet)
        return UNTESTED
    say("verdict: everything was recomputed and is right", err=quiet)
    return 0
