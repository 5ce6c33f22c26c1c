"""vpnrouter.core.profile: what a client profile without settings allows."""

from vpnrouter import limits
from vpnrouter.core.profile import ClientProfile


def test_defaults() -> None:
    """No bridges, shared subscriptions, and the bounds that a written one starts with."""
    profile = ClientProfile("default")
    assert not profile.allow_bridge_connections_enabled
    assert profile.allow_shared_subscriptions_enabled
    assert profile.max_outbox_bytes == limits.OUTBOX_BYTES
    assert profile.max_connection_count_per_client_username == limits.VPN_CONNECTIONS
    assert profile.max_subscription_count == limits.CLIENT_SUBSCRIPTIONS
    assert profile.max_keepalive_timeout == 0
