import io
from typing import Any

import pytest

from vpnrouter.cli._tables import (
    Tables,
    direction,
    duration,
    halves,
    is_balanced,
    last_forwarded,
    queue,
    shown,
    words,
)

COUNTS = {
    "dataRxMsgCount": 10,
    "deliveredRxMsgCount": 6,
    "discardedRx": {"loop-detected": 3},
    "discardedRxMsgCount": 3,
    "rxInFlightMsgCount": 1,
    "offeredTxMsgCount": 9,
    "dataTxMsgCount": 4,
    "discardedTx": {},
    "discardedTxMsgCount": 0,
    "txInFlightMsgCount": 5,
}


def test_the_balance() -> None:
    """Each direction is what came minus what went, was discarded and is in flight."""
    assert [half.difference for half in halves(COUNTS)] == [0, 0]
    assert is_balanced(COUNTS)
    assert not is_balanced(COUNTS | {"rxInFlightMsgCount": 0})
    assert not is_balanced(COUNTS | {"discardedRx": {"loop-detected": 2}}), "a reason is missing"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "00:00:00"), (61, "00:01:01"), (86_399, "23:59:59"), (356_521, "4d 03:02:01")],
)
def test_duration(seconds: int, text: str) -> None:
    """Days only where there are some."""
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("rx", "tx", "text"),
    [
        (-1, -1, "never"),
        (0, -1, "0.0 s ago"),
        (-1, 2_149, "2.1 s ago"),
        (59_000, 70_000, "59.0 s ago"),
        (120_999, 3_600_000, "00:02:00 ago"),
    ],
)
def test_last_forwarded(rx: int, tx: int, text: str) -> None:
    """The nearer of both directions counts."""
    assert last_forwarded({"lastRxAgeMs": rx, "lastTxAgeMs": tx}) == text


@pytest.mark.parametrize(
    ("inbound", "outbound", "text"),
    [
        ("ready-in-sync", "ready", "bi"),
        ("ready-in-sync", "not-applicable", "uni"),
        ("not-applicable", "ready", "uni"),
        ("not-ready-wait-next", "not-applicable", "uni"),
    ],
)
def test_direction(inbound: str, outbound: str, text: str) -> None:
    """Both ways where both halves are in use."""
    assert direction({"inboundState": inbound, "outboundState": outbound}) == text


@pytest.mark.parametrize(
    ("bound", "bindings", "text"),
    [(True, ["q"], "bound"), (False, ["", "q"], "unbound"), (False, [""], "-"), (False, [], "-")],
)
def test_queue(bound: bool, bindings: list[str], text: str) -> None:
    """A bridge without queue binding is not unbound."""
    remotes = [{"queueBinding": name} for name in bindings]
    row = {"boundToQueue": bound, "remotes": remotes, "remoteQueueStandby": False}
    assert queue(row) == text
    assert queue(row | {"remoteQueueStandby": True}) == ("standby" if bound else text)


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "yes"), (False, "no"), (1_234, "1,234"), ({"b": 1, "a": 2}, "a 2, b 1"), ("", "-")],
)
def test_values_for_people(value: Any, text: str) -> None:
    """Truth values, numbers, counts by name and texts, each as people read them."""
    assert shown(value) == text


def test_words() -> None:
    """Attribute names become words."""
    assert words("inboundFailureReason") == "inbound failure reason"


def test_output_for_programs_is_not_folded() -> None:
    """Where there is no terminal, a row is one line however long its names are."""
    file = io.StringIO()
    row = COUNTS | {"bridgeName": "b" * 150, "msgVpnName": "[bold]v[/bold]:smile:"}
    Tables(file).balance([row])
    lines = file.getvalue().splitlines()
    assert len(lines) == 4
    assert "b" * 150 in lines[1]
    assert "[bold]v[/bold]:smile:" in lines[2]
    assert "\x1b" not in file.getvalue()
