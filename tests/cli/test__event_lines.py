"""Events as lines."""

import json

import pytest

from vpnrouter.cli.events import json_line_of, line_of, weighs

ROW = {
    "eventId": 7,
    "timeNs": 1_700_000_000_123_456_789,
    "level": "warning",
    "scope": "VPN",
    "event": "VPN_BRIDGING_LINK_DOWN",
    "msgVpnName": "blue",
    "name": "from-edge",
    "text": "refused [x]",
}


def test_a_line() -> None:
    """When, how grave, what, where, and in words; without a field's name its scope stands there."""
    said = "2023-11-14T22:13:20.123Z warning VPN_BRIDGING_LINK_DOWN blue/from-edge: refused [x]"
    assert line_of(ROW).plain == said
    bare = ROW | {"event": "", "scope": "SYSTEM", "msgVpnName": "", "name": "", "level": "info"}
    assert line_of(bare).plain == "2023-11-14T22:13:20.123Z info    SYSTEM refused [x]"


@pytest.mark.parametrize(
    ("least", "expected"), [("debug", True), ("warning", True), ("error", False)]
)
def test_weight(least: str, expected: bool) -> None:
    """Of a level and above; a level that is not known is not kept back."""
    assert weighs(ROW, least) is expected
    assert weighs(ROW | {"level": "alert"}, least)


def test_json() -> None:
    """One line, everything in it."""
    assert json.loads(json_line_of(ROW)) == ROW
    assert "\n" not in json_line_of(ROW)
