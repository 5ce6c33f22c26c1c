"""Events out of a recorder."""

from vpnrouter.explain.recorded import take_events
from vpnrouter.explain.request import Event
from vpnrouter.trace.events import DISCARD, INGRESS, LINK_UP
from vpnrouter.trace.recorder import Context, Recorder


def test_messages_and_no_links() -> None:
    """What is about a message, traced or not; the times of a clock turned by hand are left out."""
    recorder = Recorder()
    recorder.record(Context(INGRESS, "v", 2, client="c"), 5, b"t", 1, 2, 3, 4, 5, 6)
    recorder.record(Context(LINK_UP, "v"), 5, b"", 0, 0, 0, -1, -1, 0)
    recorder.record(Context(DISCARD, "v", reason="r", path="a/v"), 5, b"t", 0, 0, 1, -1, -1, 0)
    assert take_events("a", recorder) == [
        Event("a", "ingress", "v", "t", "persistent", "c", size=4, message_id=3),
        Event("a", "discard", "v", "t", "direct", reason="r", path=("a/v",)),
    ]
    assert take_events("a", recorder) == []
