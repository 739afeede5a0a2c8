"""Tell somebody how a run ended: a webhook, a block of Prefect or a command, which ``LIKENESS_NOTIFY`` names.

    https://hooks.example.org/...     JSON is posted there; its field "text" is what Slack and Mattermost show
    block:slack-webhook/statistics    a notification block that is kept in the Prefect server
    command:mail -s likeness me       gets the text on standard input

An address can be a secret, so it stands in the environment only: in no file, no parameter, no message of this program,
and no stage sees it. What is told is what Prefect's database holds too: state and message, nothing private.
"""

import json
import os
import shlex
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun, State
    from prefect.flows import Flow

VARIABLE = "LIKENESS_NOTIFY"
_SECONDS = 20.0


def notify(flow: "Flow[Any, Any]", flow_run: "FlowRun", state: "State[Any]") -> None:
    """A hook of the flow's end. Never raises: a run does not fail because nobody could be told."""
    target = os.environ.get(VARIABLE, "")
    if not target:
        return
    told = {"flow": flow.name, "run": flow_run.name, "state": str(state.name), "message": str(state.message or "")}
    told["text"] = f"likeness: {told['run']}: {told['state']}. {told['message']}"
    try:
        send(target, told)
    except Exception as error:  # whatever goes wrong there; its text may quote the address
        print(
            f"notify: {VARIABLE} could not be used ({type(error).__name__}); the run is not affected", file=sys.stderr
        )


def send(target: str, told: dict[str, str]) -> None:
    """Send what is told to a target, in one of the three forms.

    Raises:
        ValueError: it has none of these forms. Exception: whatever the other side does.
    """
    kind, _, rest = target.partition(":")
    if kind in ("http", "https"):
        request = urllib.request.Request(
            target, json.dumps(told).encode(), {"Content-Type": "application/json", "User-Agent": "likeness"}
        )
        with urllib.request.urlopen(request, timeout=_SECONDS):
            return
    elif kind == "block":
        from prefect.blocks.core import Block

        block: Any = Block.load(rest, _sync=True)  # type: ignore[call-arg]
        block.notify(told["text"], subject=f"likeness: {told['state']}", _sync=True)
    elif kind == "command":
        subprocess.run(
            shlex.split(rest), input=told["text"] + "\n", text=True, timeout=_SECONDS, check=True, capture_output=True
        )
    else:
        raise ValueError("an address, block:TYPE/NAME or command:WORDS")
