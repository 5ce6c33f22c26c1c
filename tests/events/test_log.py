"""The event log: what it keeps, whom it tells, and one-shot events."""

from itertools import count

from vpnrouter import limits
from vpnrouter.events import table
from vpnrouter.events.log import Event, EventLog


def log_at(*times: int) -> EventLog:
    """A log whose clock gives these times, and then counts on."""
    clock = count(max(times, default=0) + 1)
    given = iter(times)
    return EventLog("edge", lambda: next(given, 0) or next(clock))


def test_events_are_numbered_and_timed() -> None:
    """Ids rise by one; listeners hear each event as it is raised."""
    log = log_at(5, 7)
    heard: list[Event] = []
    log.listeners.append(heard.append)
    log.raise_event(table.CONNECT, "blue", "c", "in")
    log.raise_event(table.DISCONNECT, "blue", "c", "out")
    told = [(e.event_id, e.time_ns, e.kind.name, e.msg_vpn, e.name, e.text) for e in heard]
    assert told == [
        (1, 5, "CLIENT_CLIENT_CONNECT", "blue", "c", "in"),
        (2, 7, "CLIENT_CLIENT_DISCONNECT", "blue", "c", "out"),
    ]
    assert log.last_event_id == 2


def test_pages_follow_each_other() -> None:
    """Events behind an id come in order, whatever their kind, and so do the newest."""
    log = log_at()
    for number in range(10):
        log.raise_event(table.CONNECT if number % 3 else table.LINK_UP, "blue", f"{number}")
    assert [e.event_id for e in log.after(0, 4)] == [1, 2, 3, 4]
    assert [e.event_id for e in log.after(4, 100)] == [5, 6, 7, 8, 9, 10]
    assert log.after(10, 5) == []
    assert [e.event_id for e in log.newest(3)] == [8, 9, 10]


def test_some_see_some_message_vpns() -> None:
    """Events of others, and the router's own, are left out; the page is full all the same."""
    log = log_at()
    for number in range(12):
        log.raise_event(table.LINK_UP, ("blue", "red", "")[number % 3])
    sees = {"blue"}.__contains__
    assert [e.event_id for e in log.after(0, 3, sees)] == [1, 4, 7]
    assert [e.event_id for e in log.newest(2, sees)] == [7, 10]


def test_a_flood_pushes_nothing_else_out() -> None:
    """Each name has room of its own: strangers cannot make the audit trail forgotten."""
    log = log_at()
    log.raise_event(table.CONFIG_CHANGE, "", "operator", "what")
    for _ in range(limits.EVENTS_KEPT + 5):
        log.raise_event(table.CONNECT_FAIL)
    kept = log.after(0, 10 * limits.EVENTS_KEPT)
    assert len(kept) == 1 + limits.EVENTS_KEPT
    assert kept[0].kind is table.CONFIG_CHANGE
    assert kept[1].event_id == 7


def test_one_shot_events_stay_silent_until_cleared() -> None:
    """The second of the same object is not raised; that of another one is."""
    log = log_at()
    assert log.raise_once(table.SPOOL_QUOTA, "blue", "q", "full")
    assert not log.raise_once(table.SPOOL_QUOTA, "blue", "q", "full")
    assert log.raise_once(table.SPOOL_QUOTA, "blue", "other", "full")
    assert log.stands(table.SPOOL_QUOTA, "blue", "q")
    assert log.clear(table.SPOOL_QUOTA, "blue", "q")
    assert not log.clear(table.SPOOL_QUOTA, "blue", "q")
    assert log.raise_once(table.SPOOL_QUOTA, "blue", "q", "full")
    assert log.last_event_id == 3


def test_standing_events_are_bounded() -> None:
    """Beyond the bound the oldest counts as cleared."""
    log = log_at()
    for number in range(limits.EVENTS_STANDING + 1):
        log.raise_once(table.SPOOL_QUOTA, "blue", f"q{number}", "")
    assert not log.stands(table.SPOOL_QUOTA, "blue", "q0")
    assert log.stands(table.SPOOL_QUOTA, "blue", "q1")
