"""The base of a link, as far as its flows and records need it: the peer's names and a way to send control frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter import limits
from vpnrouter.core.connection import Connection

if TYPE_CHECKING:
    from vpnrouter.core.router import Router
    from vpnrouter.core.vpn import MessageVpn


class LinkEnd(Connection):
    """One end of a link. `vpn` is the message VPN here: the dialler's from the start, the acceptor's once the peer has
    logged in. `parted` says that CLOSE was sent, and that what the peer had sent before is still read. Control
    counters are of frames and bytes.
    """

    __slots__ = (
        "_flow_id",
        "control_tx_bytes",
        "control_tx_msgs",
        "dialed",
        "ended",
        "parted",
        "peer_router",
        "peer_vpn",
        "vpn",
    )

    def __init__(self, router: Router, peer: str, vpn: MessageVpn | None) -> None:
        super().__init__(router.context, peer, limits.OUTBOX_BYTES)
        self.vpn = vpn
        self.dialed = vpn is not None
        self.ended = False
        self.parted = False
        self.peer_router = ""
        self.peer_vpn = ""
        self.control_tx_msgs = 0
        self.control_tx_bytes = 0
        self._flow_id = -1 if self.dialed else 0

    def say(self, data: bytes) -> None:
        """Queue one control frame. Nothing is queued behind CLOSE."""
        if self.parted:
            return
        self.control_tx_msgs += 1
        self.control_tx_bytes += len(data)
        self.outbox.control(data)

    def tally(self) -> None:
        """Update the counters of the records of the bridges on this link."""
        raise AssertionError(self)

    def next_flow_id(self) -> int:
        """Return an id that no flow of this connection had: odd ones on the side that dialled (LINK-40)."""
        self._flow_id += 2
        return self._flow_id
