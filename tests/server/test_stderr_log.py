"""Which events are written to stderr, and how."""

import io
import json

import pytest

from vpnrouter import limits
from vpnrouter.config.router import Logging
from vpnrouter.events import table
from vpnrouter.events.log import Event
from vpnrouter.events.table import EventType
from vpnrouter.server.events.log import LogWriter, StderrLog


class Rig:
    """A log on a stream in memory, under settings that a test may change."""

    def __init__(self, **written: object) -> None:
        self.stream = io.StringIO()
        self.settings = Logging.model_validate(written)
        self.log = StderrLog("edge", LogWriter(lambda: self.stream), lambda: self.settings)
        self.now_ns = 1_000

    def tell(self, kind: EventType, text: str = "x", name: str = "") -> None:
        """One event."""
        self.log(Event(1, self.now_ns, kind, "blue", name, text))

    def lines(self) -> list[str]:
        """What was written since this was asked last."""
        found = self.stream.getvalue().splitlines()
        self.stream.seek(0)
        self.stream.truncate()
        return found


def test_levels() -> None:
    """What is less grave than the level is left out; an area may have its own."""
    rig = Rig()
    rig.tell(table.CONNECT)
    rig.tell(table.LINK_UP)
    assert rig.lines() == ["vpnrouter: VPN_BRIDGING_LINK_UP: x"]
    rig.settings = Logging.model_validate({"level": "error", "levels": {"client": "info"}})
    rig.tell(table.CONNECT)
    rig.tell(table.LINK_DOWN)
    rig.tell(table.SPOOL_DOWN)
    assert rig.lines() == ["vpnrouter: CLIENT_CLIENT_CONNECT: x", "vpnrouter: x"]


def test_the_form_changes_with_the_settings() -> None:
    """Each line after a reload is what the settings ask for then."""
    rig = Rig()
    rig.tell(table.LINK_UP)
    rig.settings = Logging.model_validate({"format": "json"})
    rig.tell(table.LINK_UP)
    first, second = rig.lines()
    assert first == "vpnrouter: VPN_BRIDGING_LINK_UP: x"
    assert json.loads(second)["event"] == "VPN_BRIDGING_LINK_UP"


def test_rate_limit() -> None:
    """Lines beyond the bound are counted, and told; those of other names go on."""
    rig = Rig(rate_limit=2)
    for _ in range(5):
        rig.tell(table.LINK_UP)
    rig.tell(table.LINK_DOWN)
    assert len(rig.lines()) == 3
    rig.log.tick(5)
    told = "vpnrouter: 3 more VPN_BRIDGING_LINK_UP were not written (logging.rate_limit)"
    assert rig.lines() == [told]
    rig.log.tick(6)
    assert rig.lines() == []


def test_a_reload_is_told_whole() -> None:
    """Changes of the configuration are not limited: who makes them may do worse."""
    rig = Rig(rate_limit=1)
    for number in range(5):
        rig.tell(table.RELOAD, f"{number}")
    assert [line[-1] for line in rig.lines()] == list("01234")


@pytest.mark.parametrize("form", ["readable", "json"])
def test_one_event_is_one_short_line(form: str) -> None:
    """Hostile names and texts neither break a line nor make it longer than a pipe takes at once."""
    rig = Rig(format=form)
    for text in ("a\nvpnrouter: SIGHUP: forged", "\U0001f600" * 5_000, '"\\' * 5_000, "\ud800"):
        rig.tell(table.LINK_UP, text, text)
    lines = rig.lines()
    assert len(lines) == 4
    assert max(len(line.encode()) for line in lines) < limits.EVENT_LINE_BYTES
    if form == "json":
        assert all(json.loads(line)["event"] == "VPN_BRIDGING_LINK_UP" for line in lines)


def test_lost_lines_are_told() -> None:
    """When somebody reads again he learns how much he missed."""
    rig = Rig()
    closed = io.StringIO()
    closed.close()
    stream = closed
    log = StderrLog("edge", LogWriter(lambda: stream), lambda: rig.settings)
    log(Event(1, 1, table.LINK_UP, "", "", "x"))
    stream = rig.stream
    log.tick(2)
    assert rig.lines() == ["vpnrouter: 1 lines were lost: nobody read stderr"]
