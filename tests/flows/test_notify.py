"""Who is told how a run ended, and that the address is a secret."""

import http.server
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.notify import VARIABLE, send

FAILING = "import sys; print('first: column age breaks a rule', file=sys.stderr); sys.exit(2)\n"


@pytest.fixture
def received() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A webhook on this machine: its address, and what was posted to it."""
    posted: list[dict[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hooks/hush", posted
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_is_told_of_every_end(
    toy: Path,
    prefect_server: None,
    received: tuple[str, list[dict[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from flows.synthesize import synthesize

    address, posted = received
    monkeypatch.setenv(VARIABLE, address)
    (toy / "step.py").write_text(FAILING)
    assert synthesize(return_state=True).is_failed()
    (toy / "step.py").write_text("import os; print(os.environ.get('LIKENESS_NOTIFY'), file=open('a.txt', 'w'))\n")
    assert synthesize(return_state=True).is_completed()
    assert [told["state"] for told in posted] == ["Failed", "Completed"]
    assert posted[0]["message"] == "first: column age breaks a rule" and posted[0]["message"] in posted[0]["text"]
    assert posted[0]["flow"] == "synthesize" and posted[1]["message"] == "first Ran, middle Ran, last Ran"
    assert (toy / "a.txt").read_text().strip() == "None"  # a stage has no need of the secret


def test_a_run_does_not_fail_because_nobody_could_be_told_and_the_address_stays_secret(
    toy: Path, prefect_server: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from flows.synthesize import synthesize

    monkeypatch.setenv(VARIABLE, "http://127.0.0.1:9/hooks/hush")
    assert synthesize(return_state=True).is_completed()
    told = capsys.readouterr()
    assert "LIKENESS_NOTIFY could not be used (URLError)" in told.err and "hush" not in told.err + told.out


def test_a_block_of_prefect_is_told(prefect_server: None, received: tuple[str, list[dict[str, str]]]) -> None:
    from prefect.blocks.notifications import CustomWebhookNotificationBlock

    address, posted = received
    block = CustomWebhookNotificationBlock(
        name="team", url=address, json_data={"subject": "{{subject}}", "body": "{{body}}"}
    )
    block.save("team", _sync=True)  # type: ignore[call-arg]
    send("block:custom-webhook/team", {"text": "it ended", "state": "OverBudget"})
    assert posted == [{"subject": "likeness: OverBudget", "body": "it ended"}]


@pytest.mark.process
def test_a_command_gets_the_text_and_no_other_word_is_understood(tmp_path: Path) -> None:
    script = f"import sys; open({str(tmp_path / 'told')!r}, 'w').write(sys.stdin.read())"
    send(f'command:{sys.executable} -c "{script}"', {"text": "it ended", "state": "Failed"})
    assert (tmp_path / "told").read_text() == "it ended\n"
    with pytest.raises(ValueError, match="block:TYPE/NAME"):
        send("mailto:me@example.org", {"text": "it ended", "state": "Failed"})
