"""Lines of the log."""

import json

from vpnrouter import limits
from vpnrouter.events import table
from vpnrouter.events.log import Event, as_json, readable, rfc3339, shortened

TIME_NS = 1_767_225_599_000_000_042


def test_readable() -> None:
    """The name stands before the text, or a label, or nothing where the text says it all."""
    assert readable(Event(1, 0, table.LINK_UP, "blue", "b", "up")) == (
        "vpnrouter: VPN_BRIDGING_LINK_UP: up"
    )
    assert readable(Event(1, 0, table.RELOAD, "", "", "x")) == "vpnrouter: SIGHUP: x"
    assert readable(Event(1, 0, table.STARTUP, "", "", "up")) == "vpnrouter: up"


def test_colours_are_for_what_is_grave() -> None:
    """Warnings and errors stand out where somebody looks at a terminal."""
    event = Event(1, 0, table.SPOOL_DOWN, "", "", "no")
    assert readable(event, colour=True) == "\x1b[31mvpnrouter: no\x1b[0m"
    assert "\x1b" not in readable(event)
    assert "\x1b" not in readable(Event(1, 0, table.LINK_UP, "", "", "x"), colour=True)


def test_json() -> None:
    """One object with the documented keys."""
    event = Event(3, TIME_NS, table.CONNECT, "blue", 'c"\n', "in → out")
    line = as_json(event, "edge")
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2025-12-31T23:59:59.000000042Z",
        "level": "info",
        "event": "CLIENT_CLIENT_CONNECT",
        "scope": "CLIENT",
        "area": "client",
        "router": "edge",
        "msgVpn": "blue",
        "name": 'c"\\n',
        "text": "in → out",
    }


def test_times_have_nanoseconds() -> None:
    """RFC 3339, UTC."""
    assert rfc3339(0) == "1970-01-01T00:00:00.000000000Z"
    assert rfc3339(TIME_NS + 1_000_000_000) == "2026-01-01T00:00:00.000000042Z"


def test_a_shortened_event_fits_a_line() -> None:
    """Whatever stands in it, in whatever form."""
    hostile = "\U0001f600" * 2_000
    event = shortened(Event(1, TIME_NS, table.PUBLISH_DENIED, hostile[:32], hostile, hostile))
    for line in (readable(event, colour=True), as_json(event, "r" * 64)):
        assert len(line.encode()) < limits.EVENT_LINE_BYTES
    quotes = shortened(Event(1, TIME_NS, table.PUBLISH_DENIED, "", '"' * 2_000, '\\"' * 2_000))
    assert len(as_json(quotes, "r").encode()) < limits.EVENT_LINE_BYTES
