"""Binding addresses: what is listened on, and clear words when it cannot be."""

import socket
from typing import Any

import pytest

from vpnrouter.errors import OperationError
from vpnrouter.server.net.listeners import bind, bind_all, shown_address

OPEN = "msg_vpns: {blue: {authentication: {basic: {enabled: false}}}}\n"


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("0.0.0.0", "0.0.0.0")]
)
def test_bind(host: str, shown: str) -> None:
    """An address is bound and listens, non-blocking; it is shown with the port chosen."""
    with bind(host, 0) as sock:
        assert sock.getblocking() is False
        assert shown_address(sock) == f"{shown}:{sock.getsockname()[1]}"
        with socket.create_connection(
            ("::1" if ":" in host else "127.0.0.1", sock.getsockname()[1])
        ):
            pass


def test_both_families_on_one_port() -> None:
    """An IPv6 listener takes IPv6 alone, so that IPv4 may have the same port."""
    with bind("::", 0) as six, bind("0.0.0.0", six.getsockname()[1]) as four:
        assert six.getsockname()[1] == four.getsockname()[1]


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("192.0.2.1", "192.0.2.1:5"),
        ("2001:db8::1", r"\[2001:db8::1\]:5"),
        ("no-such-host.invalid", "no-such-host.invalid:5"),
        ("a" * 64, "a" * 64 + ":5"),
        ("a..b", "a..b:5"),
    ],
)
def test_addresses_that_cannot_be_bound(host: str, shown: str) -> None:
    """Foreign addresses and names of nobody are one OperationError that shows the address."""
    with pytest.raises(OperationError, match=rf"^cannot listen on {shown}: \S"):
        bind(host, 5)


def test_all_or_none(configured: Any) -> None:
    """When one address is taken, those bound before are free again."""
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        free = other.getsockname()[1]
        other.close()
        config = configured(
            f"""
listeners:
  - {{protocol: mqtt, bind: "127.0.0.1:{free}"}}
  - {{protocol: link, bind: "127.0.0.1:{taken.getsockname()[1]}"}}
"""
            + OPEN
        )
        with pytest.raises(OperationError):
            bind_all(config.listeners)
        bind("127.0.0.1", free).close()


def test_what_is_served(configured: Any) -> None:
    """Disabled listeners and protocols of later versions are left out."""
    config = configured(
        """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", enabled: false}
  - {protocol: http, bind: "127.0.0.1:0"}
  - {protocol: link, bind: "127.0.0.1:0"}
"""
        + OPEN
    )
    bound = bind_all(config.listeners)
    assert [one.configured.protocol for one in bound] == ["http", "link"]
    for one in bound:
        one.sock.close()
