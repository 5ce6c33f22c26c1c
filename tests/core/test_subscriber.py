"""vpnrouter.core.subscriber: when any frame of the subscriber's protocol will do."""

import pytest

from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import FRAME_MQTT5, Subscriber, Subscription
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter


@pytest.mark.parametrize(
    ("options", "plain"),
    [
        ({}, True),
        ({"qos": 1}, True),
        ({"no_local": True}, False),
        ({"retain_as_published": True}, False),
        ({"identifier": 1}, False),
        ({"deliver_always": True}, False),
        ({"dto_priority": 4}, True),
    ],
)
def test_plain(options: dict[str, int], plain: bool) -> None:
    """No-local, retain as published, an identifier and deliver-always each want frames of their own."""
    subscriber = Subscriber("c", Outbox([], 10), FRAME_MQTT5)
    assert Subscription(parse_filter("a", MQTT), subscriber, **options).plain == plain  # type: ignore[arg-type]


def test_keys() -> None:
    """An exception stands beside the same filter without `!`, however it is made one."""
    subscriber = Subscriber("c", Outbox([], 10), FRAME_MQTT5)
    plain = Subscription(parse_filter("a/b", SMF), subscriber)
    marked = Subscription(parse_filter("!a/b", SMF, exceptions=True), subscriber)
    told = Subscription(parse_filter("a/b", SMF), subscriber, exception=True)
    assert [one.exception for one in (plain, marked, told)] == [False, True, True]
    assert [one.key for one in (plain, marked, told)] == ["a/b", "!a/b", "!a/b"]
