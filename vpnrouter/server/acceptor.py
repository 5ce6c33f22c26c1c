"""What a listener asks of the protocol behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection


@mypyc_attr(allow_interpreted_subclasses=True)
class Acceptor:
    """Makes the connection for a socket that a listener accepted; subclassed per protocol."""

    kind = "client"
    """What its listeners are called in messages."""

    def accepted(self, peer: str) -> Connection:
        """The connection to feed with what comes from `peer` (an address as text)."""
        raise AssertionError(peer)


def peer_text(address: object) -> str:
    """The address part of a socket address: "192.0.2.1", "2001:db8::1", or "" for a local socket."""
    if isinstance(address, tuple) and address:
        return str(address[0])
    return ""
