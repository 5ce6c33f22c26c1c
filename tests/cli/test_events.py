"""`vpnrouter events`."""

import json
from typing import Any

import pytest

from vpnrouter.cli import app, events
from vpnrouter.cli.events import line_of, weighs


def event(number: int, level: str = "info") -> dict[str, Any]:
    """One event."""
    return {
        "eventId": number,
        "timeNs": 1_700_000_000_000_000_000 + number,
        "level": level,
        "scope": "VPN",
        "event": f"E{number}",
        "msgVpnName": "blue",
        "name": "",
        "text": "x",
    }


class Log:
    """A log that answers as the router does."""

    def __init__(self) -> None:
        self.rows = [event(number, "error" if number % 2 else "info") for number in range(1, 251)]

    def __call__(self, query: dict[str, str]) -> list[dict[str, Any]]:
        count = int(query["count"])
        if "after" not in query:
            return self.rows[-count:]
        return [row for row in self.rows if row["eventId"] > int(query["after"])][:count]


@pytest.fixture
def log(recorded: Any) -> Log:
    """The log of a router."""
    found = Log()
    recorded.answers["/vpnrouter/v1/events"] = found
    return found


def numbers(captured: pytest.CaptureFixture[str]) -> list[int]:
    """Ids of the events that were printed as JSON."""
    return [json.loads(line)["eventId"] for line in captured.readouterr().out.splitlines()]


def test_the_newest(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    """The last ones, the newest below; as lines, and as JSON."""
    assert app.run(["events", "--count", "2"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "2023-11-14T22:13:20.000Z error   E249 blue: x",
        "2023-11-14T22:13:20.000Z info    E250 blue: x",
    ]
    assert app.run(["events", "--count", "230", "--json"]) == 0
    assert numbers(capsys) == list(range(21, 251))


def test_of_a_level_and_a_msg_vpn(log: Log, recorded: Any, capsys: Any) -> None:
    """The level is looked at here, the VPN by the router."""
    assert app.run(["events", "--count", "4", "--level", "error", "--msg-vpn", "b", "--json"]) == 0
    assert numbers(capsys) == [247, 249]
    assert recorded.asked[0][1].endswith("count=4&msgVpnName=b")


def test_followed(log: Log, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """What is new is printed once, also of a router that was restarted; ^C ends it with 0."""
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            log.rows += [event(number) for number in range(251, 254)]
        elif len(pauses) == 3:
            log.rows = [event(1), event(2)]
        elif len(pauses) == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(events, "sleep", sleep)
    assert app.run(["events", "--follow", "--count", "1", "--json"]) == 0
    assert numbers(capsys) == [250, 251, 252, 253, 1, 2]
    assert set(pauses) == {1.0}


def test_nothing_of_the_past(log: Log, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """--count 0 shows only what happens from now on."""

    def sleep(seconds: float) -> None:
        if log.rows[-1]["eventId"] == 251:
            raise KeyboardInterrupt
        log.rows.append(event(251))

    monkeypatch.setattr(events, "sleep", sleep)
    assert app.run(["events", "--follow", "--count", "0", "--json"]) == 0
    assert numbers(capsys) == [251]


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
