"""Finds the links over which a bridge may log in at a remote, and the address where a remote answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.bridges.machine import Links
from vpnrouter.bridges.remote_settings import BridgeEnds
from vpnrouter.errors import OperationError
from vpnrouter.wire.link.frames import SCRAM

if TYPE_CHECKING:
    from vpnrouter.bridges.link import Link
    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.bridges.own_half import OwnHalf
    from vpnrouter.bridges.remote_order import Remote
    from vpnrouter.bridges.remote_settings import RemoteSettings
    from vpnrouter.core.credentials import PeerCertificate
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.topics.mapping import TopicMapping

SHOWN: Final = "mechanism plain shows the password: it needs TLS, and a name that is verified"

NOT_PROVED: Final = "needs a password, or TLS and a name that is verified: nothing else proves that who answers is it"


class ConfiguredRemotes:
    """What the configuration says of the remotes of a bridge."""

    remotes: tuple[Remote, ...] = ()
    out_mapping: TopicMapping | None = None
    """How topics are renamed that leave for a remote."""

    def terms(self, remote: Remote) -> RemoteSettings:
        """Return the settings for this remote. Reads the password from where it is kept."""
        raise NotImplementedError

    def trusts(
        self, certificate: PeerCertificate | None, names: tuple[str, ...], wall_ns: int
    ) -> bool:
        """Return whether this certificate would do for a remote of one of these names."""
        raise NotImplementedError


@final
class RemoteLinks(Links):
    """The remotes of one bridge into `vpn` as the links of the router know them. `halves` are the bridge's own halves
    by the number of their login.
    """

    def __init__(self, book: LinkRegistry, vpn: MessageVpn, configured: ConfiguredRemotes) -> None:
        self.book = book
        self.vpn = vpn
        self.halves: dict[int, OwnHalf] = {}
        self.configured = ConfiguredRemotes()
        self._learned: dict[tuple[str, str], str] = {}
        self.take(configured)

    def take(self, configured: ConfiguredRemotes) -> None:
        """Go on under what is configured now."""
        self.forget()
        self.configured = configured
        if configured.out_mapping is not None:
            for remote in configured.remotes:
                self.book.out_mappings[self._peer(remote)] = configured.out_mapping

    def forget(self) -> None:
        """Stop renaming what goes out to the remotes, since the bridge is removed."""
        for remote in self.configured.remotes:
            self.book.out_mappings.pop(self._peer(remote), None)

    def _peer(self, remote: Remote) -> tuple[str, str, str]:
        return (self.vpn.name, remote.router, remote.msg_vpn)

    def learn(self, remote: Remote, router: str) -> None:
        """Note the name that the router of a remote gave."""
        self._learned[remote.msg_vpn, remote.location] = router

    # -- links that may be used ------------------------------------------------------------------

    def incoming(self) -> tuple[Remote, Link] | None:
        """Return the best remote whose own bridge came in over a link that this bridge can use, and the link."""
        enabled = [remote for remote in self.configured.remotes if remote.enabled]
        for remote in sorted(enabled, key=lambda one: one.connect_order):
            link = self._link_to(remote)
            if link is not None:
                return remote, link
        return None

    def serves(self, remote: Remote) -> bool:
        """Return whether such a link to this remote exists."""
        return self._link_to(remote) is not None

    def peers_connection(self, number: int, remote: Remote) -> Link | None:
        """Return the link with the peer's half to use instead of the dialled link of a login, where there are two.

        The connection dialled by the side whose "router/vpn" is smaller stays (LINK-39), so we move when ours is the
        larger. We also move when this router dialled both, for two bridges of which one has gone.
        """
        link = self.halves[number].link
        client = link.client
        if not link.dialed or link.peer_half is not None or client is None:
            return None
        smaller = self.vpn.vpn_id.encode() < client.vpn_id.encode()
        local = BridgeEnds(
            self.book.router.name, self.vpn.name, link.peer_router, link.peer_vpn, link.tls
        )
        for other in self.book.reusable_links(local, dialed=smaller):
            if self._proves(other, remote):
                return other
        return None

    def heard_ns(self, number: int) -> int:
        """Return when something was received over the link of a login."""
        return self.halves[number].link.heard_ns

    def may_be(self, remote: Remote | None, link: Link) -> bool:
        """Return whether the peer whose bridge came in over `link` may be this remote, as far as is known."""
        if remote is None or remote.msg_vpn != link.peer_vpn:
            return False
        return remote.router in {"", link.peer_router}

    def _link_to(self, remote: Remote) -> Link | None:
        # A router that named itself is remembered.
        router = remote.router or self._learned.get((remote.msg_vpn, remote.location), "")
        local = BridgeEnds(self.book.router.name, self.vpn.name, router, remote.msg_vpn, remote.tls)
        for link in self.book.reusable_links(local):
            if self._proves(link, remote):
                return link
        return None

    def _proves(self, link: Link, remote: Remote) -> bool:
        """Return whether a login over `link` proves that its peer is `remote`, or shows it no secret.

        Where the peer has dialled, both sides have to prove that they know the password. With TLS the peer also
        needs a certificate that would do if it were dialled.
        """
        terms = self.configured.terms(remote)
        if link.dialed:
            return terms.scheme == SCRAM or not terms.password
        if terms.scheme != SCRAM:
            return False
        names = tuple(name for name in (remote.router, remote.host) if name)
        return not link.tls or self.configured.trusts(link.certificate, names, link.context.wall_ns)

    # -- where remotes answer --------------------------------------------------------------------

    def address(self, remote: Remote) -> tuple[str, int]:
        """Return host and port to dial. Raises OperationError where the remote can not be dialled as configured."""
        host, port = remote.host, remote.port
        terms = self.configured.terms(remote)
        if not host:
            name = remote.router_at
            place = self.book.listen_address(self.vpn.name, name, tls=remote.tls)
            if place is None:
                raise OperationError(f"no link to router {name} is up that tells where it is")
            if name != self.book.router.name and terms.scheme != SCRAM and not terms.verified:
                raise OperationError(f"location v:{name} {NOT_PROVED}")
            host, port = place
        if terms.password and terms.scheme != SCRAM and not terms.verified:
            raise OperationError(SHOWN)
        return host, port
