"""vpnrouter.server.net.reactor: who connects."""

import pytest

from vpnrouter.server.net.reactor import peer_text


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (("192.0.2.1", 1883), "192.0.2.1"),
        (("2001:db8::1", 1883, 0, 0), "2001:db8::1"),
        ("", ""),
        (b"\0local", ""),
        ((), ""),
    ],
)
def test_peer_text(address: object, text: str) -> None:
    """The address without its port; nothing for a local socket."""
    assert peer_text(address) == text
