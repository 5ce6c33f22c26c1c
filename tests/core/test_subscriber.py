"""vpnrouter.core.subscriber: when any frame of the subscriber's protocol will do."""

from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import FRAME_MQTT5, Subscriber, Subscription
from vpnrouter.topics.grammar import SMF, parse_filter


def test_keys() -> None:
    """An exception stands beside the same filter without `!`, however it is made one."""
    subscriber = Subscriber("c", Outbox([], 10), FRAME_MQTT5)
    plain = Subscription(parse_filter("a/b", SMF), subscriber)
    marked = Subscription(parse_filter("!a/b", SMF, exceptions=True), subscriber)
    told = Subscription(parse_filter("a/b", SMF), subscriber, exception=True)
    assert [one.exception for one in (plain, marked, told)] == [False, True, True]
    assert [one.key for one in (plain, marked, told)] == ["a/b", "!a/b", "!a/b"]
