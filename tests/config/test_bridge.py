import pytest
from pydantic import ValidationError

from vpnrouter.config.bridge import Bridge
from vpnrouter.config.model import model_of
from vpnrouter.config.settings_models import RemoteMsgVpn
from vpnrouter.limits import HOPS
from vpnrouter.settings import bridge
from vpnrouter.settings.address import Address

RemoteConnection = model_of(bridge.RemoteConnection)
RemoteSubscription = model_of(bridge.RemoteSubscription)


def test_defaults() -> None:
    """A bridge is on, and every other default is the field's."""
    bridge = Bridge()
    assert bridge.enabled
    assert bridge.max_ttl == HOPS == 8
    assert bridge.remote_authentication.scheme == "basic"
    connection = bridge.remote_connection
    assert (connection.retry_count, connection.retry_delay) == (0, 3)
    assert (connection.failback_delay, connection.heartbeat_interval) == (30, 5000)
    assert bridge.remote_deliver_to_one_priority == "p1"
    assert (bridge.on_reject, bridge.lane_by) == ("block", "topic")
    assert (bridge.max_parked_msg_spool_usage, bridge.guaranteed_retry_interval) == (100, 1000)


def test_remote_defaults() -> None:
    """A remote message VPN is on, and every other default is the field's."""
    remote = RemoteMsgVpn(name="blue", location="h")
    assert remote.enabled
    assert (remote.connect_order, remote.egress_flow_window_size) == (4, 255)
    assert not remote.tls_enabled
    assert not remote.compressed_data_enabled
    assert remote.authentication_scheme is None
    assert remote.client_cert is None


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


@pytest.mark.parametrize("interval", [0, 100, 600_000])
def test_heartbeat_intervals(interval: int) -> None:
    """No heartbeat, and what routers agree to."""
    written = RemoteConnection.model_validate({"heartbeat_interval": interval})
    assert written.heartbeat_interval == interval


@pytest.mark.parametrize(
    "written",
    [
        {"heartbeat_interval": 99},
        {"heartbeat_interval": 600_001},
        {"heartbeat_interval": -1},
        {"failback_delay": 86_401},
        {"failback_delay": -1},
    ],
)
def test_beyond_bounds(written: dict[str, int]) -> None:
    """One beyond a bound is refused."""
    with pytest.raises(ValidationError):
        RemoteConnection.model_validate(written)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("ECDHE-RSA-AES256-GCM-SHA384:NONSENSE", "'NONSENSE' is no cipher suite of TLS 1.2"),
        ("TLS_AES_256_GCM_SHA384", "is no cipher suite of TLS 1.2"),
        ("", "'' is no cipher suite"),
        (":".join(["ECDHE-RSA-AES256-GCM-SHA384"] * 100), "at most 2048 characters"),
    ],
)
def test_cipher_suites(written: str, said: str) -> None:
    """Each cipher suite has to be one that OpenSSL knows: it would silently ignore others."""
    assert Bridge(tls_cipher_suite_list="ECDHE-RSA-AES256-GCM-SHA384").tls_cipher_suite_list
    with pytest.raises(ValidationError, match=said):
        Bridge(tls_cipher_suite_list=written)
