"""The decisions of a connector: when it dials, which address it takes, and when it stops."""

import pytest

from vpnrouter.connectors.machine import TABLE, Attempts, Event, Machine, State
from vpnrouter.settings.connector import ProviderUrl, parse_url
from vpnrouter.units import SECOND_NS

ONE, TWO = (ProviderUrl("mqtt", name, 1883) for name in ("one", "two"))


def machine(*urls: ProviderUrl, **more: int) -> Machine:
    """A machine that dials now."""
    found = Machine(Attempts(urls or (ONE,), **more), 0)
    assert found.begin(0)
    return found


def test_what_the_table_does_not_list_does_not_happen() -> None:
    """Every pair that is not listed is a fault of the caller; every state can be reached."""
    for state in State:
        for event in Event:
            found = machine()
            found.state = state
            if (state, event) in TABLE:
                found.happened(event, 1)
                assert found.state is TABLE[state, event]
            else:
                with pytest.raises(KeyError):
                    found.happened(event, 1)
    assert set(TABLE.values()) == set(State)


def test_up_and_down() -> None:
    """A connection that is lost is made again at the same address, after the delay with its jitter."""
    for draw, least in ((0.0, 0.75), (0.5, 1.0), (0.999, 1.249)):
        found = machine(ONE, TWO, retry_delay_ns=10 * SECOND_NS)
        found.reached(1)
        found.joined(2)
        found.failed("gone", 100, draw)
        assert (found.state, found.failure, found.url) == (State.WAITING, "gone", ONE)
        assert found.wake_ns == pytest.approx(100 + least * 10 * SECOND_NS, rel=0.001)
        assert not found.due(found.wake_ns - 1)
        assert found.due(found.wake_ns)
        assert found.wake_ns == -1


def test_all_addresses_before_the_delay() -> None:
    """Each address is tried once, and then all again after the delay."""
    found = machine(ONE, TWO, retry_delay_ns=10 * SECOND_NS)
    found.failed("a", 5, 0.5)
    assert (found.url, found.wake_ns) == (TWO, 5)
    assert found.due(5)
    found.failed("b", 6, 0.5)
    assert (found.url, found.wake_ns) == (ONE, 6 + 10 * SECOND_NS)


def test_a_connection_that_nothing_needs() -> None:
    """It is closed when nothing has crossed for so long, and made again at once for what waits."""
    found = machine(idle_timeout_ns=10 * SECOND_NS)
    assert not found.rests(100 * SECOND_NS, busy=False)
    found.reached(101 * SECOND_NS)
    found.joined(102 * SECOND_NS)
    assert not found.rests(109 * SECOND_NS, busy=False)
    assert not found.rests(110 * SECOND_NS, busy=True)
    assert not found.rests(119 * SECOND_NS, busy=False)
    assert found.rests(120 * SECOND_NS, busy=False)
    assert (found.state, found.wake_ns, found.failure) == (State.IDLE, -1, "")
    assert not found.rests(500 * SECOND_NS, busy=False)
    assert not found.due(500 * SECOND_NS)
    assert not found.rests(501 * SECOND_NS, busy=True)
    assert found.due(501 * SECOND_NS)
    assert found.state is State.CONNECTING


@pytest.mark.parametrize("timeout_ns", [0, SECOND_NS])
def test_a_connection_that_is_needed_stays(timeout_ns: int) -> None:
    """Without a time-out it is kept for ever, and with one as long as something crosses or waits."""
    found = machine(idle_timeout_ns=timeout_ns)
    found.reached(1)
    found.joined(2)
    for now_s in range(1, 100):
        assert not found.rests(now_s * SECOND_NS, busy=timeout_ns > 0)
    assert found.state is State.UP


def test_it_stops_after_so_many() -> None:
    """`retry_count` attempts in a row may fail; a login that succeeds begins the count anew."""
    found = machine(retry_count=1)
    found.failed("a", 1, 0.5)
    assert found.due(found.wake_ns)
    found.reached(2)
    found.joined(3)
    found.failed("b", 4, 0.5)
    assert found.due(found.wake_ns)
    found.failed("c", 5, 0.5)
    assert found.state is State.STOPPED
    assert found.failure == "gave up after 2 attempts: c"
    assert not found.begin(6)
    found.configure(Attempts((TWO,)), 7)
    assert found.begin(8)
    assert (found.url, found.failures) == (TWO, 0)


def test_disabled() -> None:
    """A connector that is disabled does not dial, whatever it did before."""
    found = machine()
    found.configure(Attempts((ONE,), enabled=False), 1)
    assert (found.state, found.begin(2)) == (State.DISABLED, False)
    found.configure(Attempts((ONE,)), 3)
    assert found.begin(4)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mqtt://a", "mqtt://a:1883"),
        ("mqtts://a:1", "mqtts://a:1"),
        ("mqtt://[::1]:2/", "mqtt://[::1]:2"),
    ],
)
def test_urls(text: str, shown: str) -> None:
    """A URL names scheme, host and perhaps a port."""
    assert str(parse_url(text)) == shown


@pytest.mark.parametrize(
    "text",
    ["a:1883", "ftp://a", "mqtt://", "mqtt://u:p@a", "mqtt://a/x", "mqtt://a:x", "mqtt://a?b"],
)
def test_what_is_no_url(text: str) -> None:
    """One sentence says what is wrong."""
    with pytest.raises(ValueError, match=r".+"):
        parse_url(text)
