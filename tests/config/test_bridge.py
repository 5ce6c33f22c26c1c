from vpnrouter.config.address import Address
from vpnrouter.config.bridge import Bridge, RemoteMsgVpn, RemoteSubscription
from vpnrouter.limits import HOPS


def test_defaults() -> None:
    """A bridge is on, and every other default is the field's."""
    bridge = Bridge()
    assert bridge.enabled
    assert bridge.max_ttl == HOPS == 8
    assert bridge.remote_authentication.scheme == "basic"
    connection = bridge.remote_connection
    assert (connection.retry_count, connection.retry_delay) == (0, 3)
    assert bridge.remote_deliver_to_one_priority == "p1"


def test_remote_defaults() -> None:
    """A remote message VPN is on, and every other default is the field's."""
    remote = RemoteMsgVpn(name="blue", location="h")
    assert remote.enabled
    assert (remote.connect_order, remote.egress_flow_window_size) == (4, 255)
    assert not remote.tls_enabled
    assert not remote.compressed_data_enabled


def test_remote_address() -> None:
    """The address of a location follows TLS; a location that names a router has none."""
    assert RemoteMsgVpn(name="b", location="h").address == Address("h", 55555)
    assert RemoteMsgVpn(name="b", location="h", tls_enabled=True).address == Address("h", 55443)
    assert RemoteMsgVpn(name="b", location="v:core").address is None


def test_short_and_long_subscriptions() -> None:
    """A filter alone says the same as a mapping with only a topic."""
    bridge = Bridge.model_validate(
        {
            "remote_subscriptions": [
                "a",
                {"topic": "a"},
                {"topic": "b", "deliver_always_enabled": True},
            ]
        }
    )
    assert bridge.remote_subscriptions == (
        RemoteSubscription(topic="a"),
        RemoteSubscription(topic="a"),
        RemoteSubscription(topic="b", deliver_always_enabled=True),
    )
