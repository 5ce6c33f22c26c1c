"""Where links begin: the door that takes those who dial us, and our own dialling."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.bridges.inbound import InboundHalf
from vpnrouter.bridges.link import Link

if TYPE_CHECKING:
    from vpnrouter.bridges.book import LinkBook
    from vpnrouter.bridges.bridge import Bridge
    from vpnrouter.bridges.terms import BridgeTerms, Owner
    from vpnrouter.core.vpn import MessageVpn


@final
class LinkDoor:
    """Makes the acceptor's end for each connection to one link listener; `tls` if it is encrypted."""

    def __init__(self, book: LinkBook, *, tls: bool) -> None:
        self.book = book
        self.tls = tls

    def connection(self, peer: str) -> Link:
        """The connection for a socket accepted from `peer`."""
        return Link(self.book, peer, None, tls=self.tls)


def dial(
    book: LinkBook,
    vpn: MessageVpn,
    peer: str,
    terms: BridgeTerms,
    owner: Owner,
    record: Bridge,
    *,
    tls: bool,
    moves_from: InboundHalf | None = None,
) -> InboundHalf:
    """The bridge's half on a new connection to `peer`; its HELLO waits in the link's outbox."""
    return InboundHalf(Link(book, peer, vpn, tls=tls), terms, owner, record, moves_from)
