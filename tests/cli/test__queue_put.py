import json
from typing import Any

import pytest

from vpnrouter.cli import app


@pytest.mark.parametrize(("verb", "said", "left"), [("copy", "copied", 25), ("move", "moved", 0)])
def test_all(
    served: Any, verb: str, said: str, left: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """All messages are in the other queue; after a move in it alone."""
    assert app.run(["queue", verb, "orders", "dead"]) == 0
    assert capsys.readouterr().out == f"{said} 25 messages to dead\n"
    queues = served.still.queues.contents
    assert (len(queues["blue", "dead"]), len(queues["blue", "orders"])) == (25, left)


def test_some(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Messages by their ids; one that is not there is exit code 1."""
    move = ["queue", "move", "orders", "dead", "--json"]
    assert app.run([*move, "--msg-id", "1", "--msg-id", "2"]) == 0
    assert json.loads(capsys.readouterr().out) == {"msgCount": 2}
    assert app.run([*move, "--msg-id", "2"]) == 1
    assert json.loads(capsys.readouterr().out) == {"msgCount": 0}


def test_a_full_queue(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, with how far it came and why no further."""
    served.still.queues.refusal = "503 Spool Over Quota"
    assert app.run(["queue", "move", "orders", "dead"]) == 1
    assert capsys.readouterr().err.endswith("the next was refused: 503 Spool Over Quota\n")


def test_no_queue_to_put_them_into(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The queue that is missing is named."""
    assert app.run(["queue", "move", "orders", "nope"]) == 1
    assert capsys.readouterr().err.endswith("queue nope in msgVpn blue\n")
