"""vpnrouter.cli.queue: `vpnrouter queue replay`."""

import json
from typing import Any

import pytest

from vpnrouter.cli import app


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ("", 0, 0)),
        (["--log", "log", "--from", "2026-01-31T12:00:00Z"], ("log", 1_769_860_800 * 10**9, 0)),
        (["--from", "1970-01-01"], ("", 10**9, 0)),
        (["--after", "4711"], ("", 0, 4711)),
    ],
)
def test_replay(
    served: Any,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    expected: tuple[str, int, int],
) -> None:
    """Begun from where it was wanted, and ended."""
    assert app.run(["queue", "replay", "orders", *options]) == 0
    assert capsys.readouterr().out == "began a replay to queue orders in message VPN blue\n"
    assert served.still.queues.replays == {("blue", "orders"): expected}
    assert app.run(["queue", "replay", "orders", "--cancel", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "msgVpnName": "blue",
        "queueName": "orders",
        "cancelled": True,
    }
    assert served.still.queues.replays == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--from", "noon"], "noon is no date and time of the form"),
        (["--from", "2026-01-31", "--after", "1"], "only one of them"),
        (["--after", "1", "--cancel"], "only one of them"),
        (["--after", "-1"], "--after"),
    ],
)
def test_wrong_options(
    served: Any, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    """Exit code 2, before anything is asked of the router."""
    assert app.run(["queue", "replay", "orders", *options]) == 2
    assert said in capsys.readouterr().err
    assert served.still.queues.replays == {}


def test_refused(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and the field's reason; the same for a replay that is not there."""
    served.still.queues.refusal = "503 Replay Disabled"
    assert app.run(["queue", "replay", "orders"]) == 1
    assert "the replay was refused: 503 Replay Disabled" in capsys.readouterr().err
    assert app.run(["queue", "replay", "orders", "--cancel"]) == 1
    assert "no replay to queue orders runs" in capsys.readouterr().err
