"""SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK as objects."""

from vpnrouter.wire.mqtt.packets import (
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
)


def test_each_option_counts_in_equality() -> None:
    """Requests that differ in one option differ."""
    base = SubscriptionRequest("a")
    others = [
        SubscriptionRequest("b"),
        SubscriptionRequest("a", qos=1),
        SubscriptionRequest("a", no_local=True),
        SubscriptionRequest("a", retain_as_published=True),
        SubscriptionRequest("a", retain_handling=1),
    ]
    assert base == SubscriptionRequest("a")
    assert all(base != other for other in [*others, "a"])
    assert repr(base).startswith("SubscriptionRequest(filter='a', qos=0, no_local=False")


def test_packets_of_one_shape_differ_by_type() -> None:
    """SUBACK and UNSUBACK hold the same fields and are not equal."""
    assert Suback(1, [0]) == Suback(1, [0])
    assert Suback(1, [0]) != Unsuback(1, [0])
    assert Subscribe(1, [SubscriptionRequest("a")]) == Subscribe(1, [SubscriptionRequest("a")])
    assert Subscribe(1, [SubscriptionRequest("a")]) != Subscribe(1, [SubscriptionRequest("a", 1)])
    assert Unsubscribe(1, ["a"]) != Unsubscribe(1, ["b"])
