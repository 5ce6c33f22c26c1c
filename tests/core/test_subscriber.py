"""vpnrouter.core.subscriber: when any frame of the subscriber's protocol will do."""

import pytest

from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import FRAME_MQTT5, Subscriber, Subscription
from vpnrouter.topics.grammar import MQTT, parse_filter


@pytest.mark.parametrize(
    ("options", "plain"),
    [
        ({}, True),
        ({"qos": 1}, True),
        ({"no_local": True}, False),
        ({"retain_as_published": True}, False),
        ({"identifier": 1}, False),
    ],
)
def test_plain(options: dict[str, int], plain: bool) -> None:
    """No-local, retain as published and an identifier each want frames of their own."""
    subscriber = Subscriber("c", Outbox([], 10), FRAME_MQTT5)
    assert Subscription(parse_filter("a", MQTT), subscriber, **options).plain == plain  # type: ignore[arg-type]
