from vpnrouter.trace import events
from vpnrouter.trace.events import EVENT_NAMES, MODE_NAMES

MODES = ("DIRECT", "NON_PERSISTENT", "PERSISTENT")


def test_every_event_has_the_name_of_its_constant() -> None:
    """EVENT_NAMES holds each event's constant in lower case, at the place of its number."""
    others = {*MODES, "FIRST_WITHOUT_MESSAGE", "UNKNOWN"}
    numbers = {
        name: value
        for name, value in vars(events).items()
        if name.isupper() and isinstance(value, int) and name not in others
    }
    assert [name.lower() for name in sorted(numbers, key=numbers.__getitem__)] == EVENT_NAMES
    assert sorted(numbers.values()) == list(range(len(EVENT_NAMES)))


def test_every_mode_has_the_name_of_its_constant() -> None:
    """MODE_NAMES holds each mode's constant in lower case, at the place of its number."""
    assert [getattr(events, name) for name in MODES] == [0, 1, 2]
    assert [name.lower() for name in MODES] == MODE_NAMES


def test_events_without_message_come_last() -> None:
    """From FIRST_WITHOUT_MESSAGE on stand exactly the link and subscription events."""
    without = EVENT_NAMES[events.FIRST_WITHOUT_MESSAGE :]
    assert without == ["link_up", "link_down", "subscribe", "unsubscribe", "link_rejected"]
