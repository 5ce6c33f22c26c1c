"""The links of one router: which peers' bridges are logged in here, and what each is known by.

A bridge looks here before it dials: an incoming link that fits is used instead (remote_settings.py).
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, final

from mypy_extensions import mypyc_attr

from vpnrouter import limits
from vpnrouter.bridges.bridge import Bridge, BridgeFacts, Input
from vpnrouter.bridges.remote_settings import BridgeEnds, incompatible
from vpnrouter.wire.link.frames import NONCE_BYTES

if TYPE_CHECKING:
    from vpnrouter.bridges.counters import Counters
    from vpnrouter.bridges.half_events import HalfCallbacks
    from vpnrouter.bridges.link import Link
    from vpnrouter.core.router import Router
    from vpnrouter.topics.mapping import TopicMapping
    from vpnrouter.wire.link.frames import Hello


@mypyc_attr(allow_interpreted_subclasses=True)
class LinkLog:
    """Reports logins of peers' bridges; this base does nothing."""

    __slots__ = ()

    def peer_up(self, record: Bridge) -> None:
        """A peer's bridge is logged in here."""

    def peer_down(self, record: Bridge, why: str) -> None:
        """A peer's bridge is no longer logged in here."""

    def peer_rejected(self, hello: Hello, peer: str, why: str) -> None:
        """A peer at address `peer` was not let in."""

    def tls_met(self, peer: str) -> None:
        """A peer at address `peer` speaks TLS to a listener without TLS."""


@final
class ListenAddress:
    """Where a router answers links: ports of its plain and its TLS listener, 0 for none. `proved`: the router that
    said so has proved that it is the remote that a bridge means, not only that it may log in.
    """

    __slots__ = ("host", "link_port", "links_port", "proved")

    def __init__(self, host: str, link_port: int, links_port: int) -> None:
        self.host = host
        self.link_port = link_port
        self.links_port = links_port
        self.proved = False


@final
class LinkRegistry:
    """The links of one router. `link_port`, `links_port` are the ports of its own listeners, 0 for none.

    `secret` are random bytes from which nonces are made. `rehearsal` is None in a running router; where `explain`
    builds routers within one process, a bridge puts its password there, by its nonce, instead of proving it.
    `records` keeps the operational record of each peer's bridge over its connections. `out_mappings` says, by (VPN,
    peer's router, peer's VPN), how topics are renamed before they leave. `saved_counters` are the counts that peers'
    bridges had before a restart.
    """

    __slots__ = (
        "_drawn",
        "_secret",
        "_watchers",
        "link_port",
        "links_port",
        "listen_addresses",
        "log",
        "out_mappings",
        "records",
        "rehearsal",
        "router",
        "saved_counters",
        "serving",
    )

    def __init__(self, router: Router, secret: bytes = b"") -> None:
        self.router = router
        self._secret = secret
        self._drawn = 0
        self.rehearsal: dict[bytes, str] | None = None
        self.log = LinkLog()
        self.serving: dict[str, Link] = {}
        self.records: dict[str, Bridge] = {}
        self.listen_addresses: dict[str, dict[str, ListenAddress]] = {}
        self.out_mappings: dict[tuple[str, str, str], TopicMapping] = {}
        self.saved_counters: dict[str, Counters] = {}
        self.link_port = 0
        self.links_port = 0
        self._watchers: dict[str, list[HalfCallbacks]] = {}

    def nonce(self) -> bytes:
        """Return unpredictable bytes, different at each call."""
        self._drawn += 1
        return hmac.digest(self._secret, b"nonce %d" % self._drawn, "sha256")[:NONCE_BYTES]

    # -- incoming links --------------------------------------------------------------------------

    def watch(self, vpn: str, watcher: HalfCallbacks) -> None:
        """Notify `watcher` of links that come in to `vpn`, and of those that lose a half and stay open."""
        self._watchers.setdefault(vpn, []).append(watcher)

    def unwatch(self, vpn: str, watcher: HalfCallbacks) -> None:
        """Stop notifying it. Does nothing where it was not registered."""
        known = self._watchers.get(vpn, [])
        if watcher in known:
            known.remove(watcher)

    def peer_logged_in(self, key: str, link: Link) -> None:
        """The peer's bridge `key` (`key_of`) is logged in over `link`."""
        self.serving[key] = link
        self.changed(link)

    def changed(self, link: Link) -> None:
        """Notify watchers that a half of `link` began or ended: a bridge may be able to use this or another link."""
        vpn = link.vpn
        if vpn is not None:
            for watcher in list(self._watchers.get(vpn.name, [])):
                watcher.incoming(link)

    def peer_logged_out(self, key: str, link: Link) -> None:
        """Note that the peer's bridge `key` is no longer logged in over `link`."""
        if self.serving.get(key) is link:
            del self.serving[key]

    def reusable_links(self, local: BridgeEnds, *, dialed: bool = False) -> list[Link]:
        """The links over which the bridge `local` could log in instead of dialling, by what both ends say of
        themselves. The caller still has to check that the peer has proved who it is.

        `dialed`: only those that were dialled here.
        """
        return [
            link
            for link in self.serving.values()
            if (link.dialed or not dialed)
            and link.can_attach()
            and not incompatible(local, link.peer_ends())
        ]

    def out_mapping(self, vpn: str, router: str, peer_vpn: str) -> TopicMapping | None:
        """How topics are renamed that leave `vpn` for a peer; a bridge that names no router means any."""
        mappings = self.out_mappings
        return mappings.get((vpn, router, peer_vpn)) or mappings.get((vpn, "", peer_vpn))

    # -- records ---------------------------------------------------------------------------------

    def record(self, key: str, vpn: str, client_name: str, now_ns: int) -> Bridge:
        """The record of the peer's bridge `key`, made when it is first seen.

        It outlives the connection. Beyond LINK_REMOTE_RECORDS the oldest of a bridge that is gone makes room, of the
        same message VPN where there is one.
        """
        known = self.records.get(key)
        if known is not None:
            return known
        if len(self.records) >= limits.LINK_REMOTE_RECORDS:
            gone = [other for other in self.records if other not in self.serving]
            near = (other for other in gone if self.records[other].facts.msg_vpn == vpn)
            doomed = next(near, gone[0] if gone else "")
            if doomed:
                del self.records[doomed]
        record = Bridge(BridgeFacts(self.router.name, vpn, client_name), now_ns)
        record.handle(Input.ATTACH, now_ns)
        record.establisher = "remote"
        record.counters = self.saved_counters.pop(key, record.counters)
        self.records[key] = record
        return record

    # -- routers by name -------------------------------------------------------------------------

    def learn(self, vpn: str, router: str, place: ListenAddress, *, proved: bool) -> None:
        """Remember the listen address that `router` gave as the peer of a link of `vpn`. An address without a proof
        does not replace one with a proof.
        """
        if not (place.link_port or place.links_port):
            return
        place.proved = proved
        known = self.listen_addresses.setdefault(vpn, {})
        before = known.get(router)
        if before is not None and before.proved and not proved:
            return
        if before is None and len(known) >= limits.LINK_PLACES:
            unproved = [name for name, other in known.items() if not other.proved]
            if not unproved and not proved:
                return
            del known[unproved[0] if unproved else next(iter(known))]
        known[router] = place

    def listen_address(self, vpn: str, router: str, *, tls: bool) -> tuple[str, int] | None:
        """Host and port where `router` answers links, learned from links of `vpn` that were up."""
        if router == self.router.name:
            port = self.links_port if tls else self.link_port
            return ("127.0.0.1", port) if port else None
        place = self.listen_addresses.get(vpn, {}).get(router)
        if place is None:
            return None
        port = place.links_port if tls else place.link_port
        return (place.host, port) if port else None

    def serving_link(self, vpn: str, router: str, peer_vpn: str, bridge: str) -> Link | None:
        """The link over which a peer's bridge is logged in, under any client username."""
        begin = f"{vpn}\0{client_name_of(router, peer_vpn, bridge)}\0"
        for key, link in self.serving.items():
            if key.startswith(begin):
                return link
        return None


def key_of(vpn: str, router: str, peer_vpn: str, bridge: str, username: str) -> str:
    """The key of a peer's bridge here: the VPN that it logs in to, the name that it gives, and its client username
    (LINK-20).
    """
    return f"{vpn}\0{client_name_of(router, peer_vpn, bridge)}\0{username}"


def client_name_of(router: str, peer_vpn: str, bridge: str) -> str:
    """The name of a peer's bridge among the clients of the VPN that it logs in to."""
    return f"#bridge/{router}/{peer_vpn}/{bridge}"
