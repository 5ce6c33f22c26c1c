"""What a bridge knows of its remotes and how it reaches them, whichever link comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import trio

from vpnrouter import limits
from vpnrouter.bridges.link import dial
from vpnrouter.bridges.remotes import SECOND, Backoff, Remote, Remotes
from vpnrouter.bridges.terms import Half
from vpnrouter.config.listeners import router_of
from vpnrouter.errors import OperationError
from vpnrouter.server.bridges.terms import client_cert_of, expected_router, mapping_of, terms_of
from vpnrouter.server.net.dial import TlsTerms
from vpnrouter.server.net.reactor import flush_ready
from vpnrouter.server.net.tls import passes
from vpnrouter.wire.link.frames import SCRAM

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from vpnrouter.bridges.book import LinkBook
    from vpnrouter.bridges.bridge import Bridge
    from vpnrouter.bridges.inbound import InboundHalf
    from vpnrouter.bridges.link import Link
    from vpnrouter.bridges.terms import BridgeTerms, Owner
    from vpnrouter.config.bridge import Bridge as BridgeConfig
    from vpnrouter.config.bridge import RemoteMsgVpn
    from vpnrouter.config.listeners import ListenerTls
    from vpnrouter.config.msg_vpn import TlsServerCert
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.server.net.dial import Connector
    from vpnrouter.server.net.tls import Secured


SLOWEST_NS: Final = 30 * SECOND
"""Longest delay between two tries, unless SPREAD asks for a longer one."""

SPREAD: Final = 3
"""The longest delay is at least this many times `retry_delay`: with a smaller range many bridges would try in step."""


SHOWN: Final = "mechanism plain shows the password: it needs TLS, and a name that is verified"

NOT_PROVED: Final = "needs a password, or TLS and a name that is verified: nothing else proves that who answers is it"


def now_ns() -> int:
    """Nanoseconds of trio's clock, which tests can turn."""
    return int(trio.current_time() * SECOND)


@final
class Approach:
    """The remotes of the bridge `name` of `vpn`, which one is next and when, and the way there."""

    def __init__(
        self,
        book: LinkBook,
        connector: Connector,
        vpn: MessageVpn,
        name: str,
        written: BridgeConfig,
        server_cert: TlsServerCert,
    ) -> None:
        self.book = book
        self.connector = connector
        self.vpn = vpn
        self.name = name
        self.remotes = Remotes([])
        self.backoff = Backoff()
        self.written = written
        self.server_cert = server_cert
        # The router's own certificate, for a bridge that logs in by certificate and has none.
        self.identity: ListenerTls | None = None
        self._by_key: dict[tuple[str, str], RemoteMsgVpn] = {}
        self.failures: dict[tuple[str, str], str] = {}
        self._learned: dict[tuple[str, str], str] = {}
        self.take(written, server_cert)

    def take(self, written: BridgeConfig, server_cert: TlsServerCert) -> bool:
        """Take what is written; returns whether the remote in use is still among the remotes."""
        self.forget()
        self.written = written
        self.server_cert = server_cert
        self._by_key = {(each.name, each.location): each for each in written.remote_msg_vpns}
        mapping = mapping_of(written, "out") if written.enabled else None
        if mapping is not None:
            for remote in written.remote_msg_vpns:
                self.book.out_mappings[self._peer(remote)] = mapping
        delay_ns = written.remote_connection.retry_delay * SECOND
        self.backoff = Backoff(delay_ns, max(SLOWEST_NS, SPREAD * delay_ns))
        return self.remotes.replace(
            [
                Remote(each.name, each.location, each.connect_order, each.enabled)
                for each in written.remote_msg_vpns
            ],
            written.remote_connection.retry_count,
        )

    def forget(self) -> None:
        """Stop renaming what goes out to the remotes: the bridge is no more."""
        for remote in self._by_key.values():
            self.book.out_mappings.pop(self._peer(remote), None)

    def _peer(self, remote: RemoteMsgVpn) -> tuple[str, str, str]:
        return (self.vpn.name, expected_router(remote), remote.name)

    @property
    def current(self) -> RemoteMsgVpn:
        """The remote to dial, or in use, as it is written; one must be enabled."""
        current = self.remotes.current
        if current is None:
            raise AssertionError("no remote is enabled")
        return self.of(current)

    def of(self, remote: Remote) -> RemoteMsgVpn:
        """A remote as it is written."""
        return self._by_key[(remote.msg_vpn, remote.location)]

    @property
    def try_s(self) -> int:
        """Seconds that a try has to connect and to shake hands, and as many again to log in."""
        return limits.LINK_TRY_S if self.remotes.hurries else limits.CONNECT_TIMEOUT_S

    def choose(self, remote: Remote | None) -> BridgeTerms | None:
        """Go to `remote`; what the bridge asks of it now, None when it is no more written."""
        if remote is None or remote not in self.remotes.all():
            return None
        self.remotes.choose(remote)
        return self.terms(self.current)

    def learn(self, router: str) -> None:
        """Note the name that the router of the remote in use gave."""
        current = self.remotes.current
        if current is not None:
            self._learned[(current.msg_vpn, current.location)] = router

    def failed(self, why: str) -> None:
        """Why the remote in use, or tried, does not serve; "" when it does."""
        current = self.remotes.current
        if current is not None:
            self.failures[(current.msg_vpn, current.location)] = why

    def terms(self, remote: RemoteMsgVpn) -> BridgeTerms:
        """What the bridge asks of this remote."""
        return terms_of(self.name, self.written, remote, self.server_cert)

    def _proves(self, link: Link, remote: RemoteMsgVpn) -> bool:
        """True when a login over `link` proves that its peer is `remote`, or shows it no secret.

        Where the peer has dialled, both sides have to prove that they know the password. With TLS the peer also
        needs a certificate that would do if it were dialled.
        """
        terms = self.terms(remote)
        if link.dialed:
            return terms.scheme == SCRAM or not terms.password
        if terms.scheme != SCRAM:
            return False
        return not link.tls or passes(
            link.certificate, self.server_cert, self._names(remote), link.plane.wall_ns
        )

    def _names(self, remote: RemoteMsgVpn) -> tuple[str, ...]:
        """The names that the remote's certificate may have."""
        router = expected_router(remote)
        address = remote.address
        return tuple(name for name in (router, "" if address is None else address.host) if name)

    def incoming(self) -> tuple[Remote, Link] | None:
        """The best remote whose own bridge comes in over a link that this bridge can use, and the link."""
        for remote in self.remotes.all():
            link = self._link_to(self.of(remote))
            if link is not None:
                return remote, link
        return None

    def _link_to(self, remote: RemoteMsgVpn) -> Link | None:
        for link in self.book.fitting(self._half(remote)):
            if self._proves(link, remote):
                return link
        return None

    def _half(self, remote: RemoteMsgVpn) -> Half:
        """Our side of the test of compatibility; a router that named itself is remembered."""
        router = expected_router(remote) or self._learned.get((remote.name, remote.location), "")
        return Half(self.book.router.name, self.vpn.name, router, remote.name, remote.tls_enabled)

    def may_be_remote(self, link: Link) -> bool:
        """Whether the peer whose bridge came in over `link` is the remote to dial next, as far as is known."""
        current = self.remotes.current
        if current is None or current.msg_vpn != link.peer_vpn:
            return False
        return expected_router(self.of(current)) in {"", link.peer_router}

    def wants_back(self) -> bool:
        """Whether a remote better than the one in use is to be watched."""
        return self.written.remote_connection.failback_delay > 0 and bool(self.remotes.better())

    def peers_connection(self, link: Link) -> Link | None:
        """The link with the peer's half to use instead of the dialled `link`, where there are two.

        The connection dialled by the side whose "router/vpn" is smaller stays (LINK-39), so we move when ours is the
        larger. We also move when this router dialled both, for two bridges of which one has gone.
        """
        client = link.client
        if not link.dialed or link.outbound is not None or client is None:
            return None
        smaller = self.vpn.vpn_id.encode() < client.vpn_id.encode()
        local = Half(
            self.book.router.name, self.vpn.name, link.peer_router, link.peer_vpn, link.tls
        )
        for other in self.book.fitting(local, dialed=smaller):
            if self._proves(other, self.current):
                return other
        return None

    async def open(
        self,
        remote: RemoteMsgVpn,
        owner: Owner,
        record: Bridge,
        resolved: Callable[[], None],
        begun: Callable[[InboundHalf], None],
        moves_from: InboundHalf | None = None,
    ) -> InboundHalf | None:
        """Dial `remote` and say HELLO.

        None when meanwhile an incoming link came that serves as well, or the configuration changed.
        `begun` is called before the first byte leaves. Raises OperationError that says what failed.
        """
        host, port = self._address(remote)
        written = self.written
        tls = None
        if remote.tls_enabled:
            # A peer may say where a router is, but only a certificate proves which router it is.
            tls = TlsTerms(
                self.server_cert,
                client_cert_of(written, remote, self.identity),
                router_of(remote.location) or "",
                written.tls_cipher_suite_list,
            )
        terms = self.terms(remote)
        if terms.password and terms.scheme != SCRAM and not terms.verified:
            raise OperationError(SHOWN)
        transport: socket.socket | Secured = await self.connector.open(
            host, port, tls, resolved, (self.vpn.name, remote.location)
        )
        overtaken = moves_from is None and self._link_to(remote) is not None
        if self.written is not written or overtaken:
            await self.connector.drop(transport)
            return None
        try:
            self.connector.set_clocks()
            shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            half = dial(
                self.book,
                self.vpn,
                shown,
                terms,
                owner,
                record,
                tls=remote.tls_enabled,
                moves_from=moves_from,
            )
            half.link.address, half.link.interface = self.connector.ends(transport, shown)
            begun(half)
            self.connector.serve(transport, half.link)
        except BaseException:
            await self.connector.drop(transport)
            raise
        flush_ready(half.link.plane)
        return half

    def _address(self, remote: RemoteMsgVpn) -> tuple[str, int]:
        address = remote.address
        if address is not None:
            return address.host, address.port
        name = router_of(remote.location) or ""
        place = self.book.place_of(self.vpn.name, name, tls=remote.tls_enabled)
        if place is None:
            raise OperationError(f"no link to router {name} is up that tells where it is")
        terms = self.terms(remote)
        if name != self.book.router.name and terms.scheme != SCRAM and not terms.verified:
            raise OperationError(f"location v:{name} {NOT_PROVED}")
        return place
