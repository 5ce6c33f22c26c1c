"""vpnrouter.core.origin: the key that a peer is counted by."""

from vpnrouter.core.origin import origin_of


def test_origins() -> None:
    """IPv6 addresses count by network, mapped ones as the IPv4 address that they are."""
    assert origin_of("192.0.2.1") == "192.0.2.1"
    assert origin_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert origin_of("2001:db8::1") == origin_of("2001:db8::ffff:2") == "2001:db8::/64"
    assert origin_of("") == ""
