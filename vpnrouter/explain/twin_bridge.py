"""One bridge of the mesh in memory: it looks for a link as the router's own task does, and says why it has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.bridges.bridge import Bridge
from vpnrouter.bridges.inbound import InboundHalf
from vpnrouter.bridges.terms import LinkEvent, Owner
from vpnrouter.config.listeners import server_certificate
from vpnrouter.config.mesh.remotes import Place
from vpnrouter.errors import OperationError
from vpnrouter.server.bridges.approach import Approach
from vpnrouter.server.bridges.standing import facts_of

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from vpnrouter.bridges.remotes import Remote
    from vpnrouter.config.bridge import Bridge as BridgeConfig
    from vpnrouter.config.bridge import RemoteMsgVpn
    from vpnrouter.config.problem import Path
    from vpnrouter.explain.cables import Cables
    from vpnrouter.explain.node import Node

_REFUSING: Final = frozenset({LinkEvent.REFUSED, LinkEvent.VERSION_MISMATCH, LinkEvent.LOST})


@final
class TwinBridge(Owner):
    """The bridge `name` into message VPN `vpn_name` of `node`.

    `why` says why it is down, "" while it is up; `failures` why each of its remotes does not serve, by place
    in the configuration; `refused` what the remote said to a subscription that it did not grant, `unbound`
    why its queue is not bound, `stalled` why it takes no guaranteed message, "" where nothing is wrong.
    """

    def __init__(self, node: Node, cables: Cables, vpn_name: str, name: str) -> None:
        self.node = node
        self.vpn_name = vpn_name
        self.name = name
        written_vpn = node.loaded.config.msg_vpns[vpn_name]
        self.written: BridgeConfig = written_vpn.bridges[name]
        vpn = node.router.vpns[vpn_name]
        self._cables = cables
        self.approach = Approach(
            node.book, cables, vpn, name, self.written, written_vpn.bridging.tls_server_cert
        )
        self.approach.identity = server_certificate(node.loaded.config.listeners)
        self.record = Bridge(facts_of(self.approach), node.router.plane.now_ns)
        self.taker = None if node.flows is None else node.flows.of(vpn, name, self.written).taker
        self.half: InboundHalf | None = None
        self.remote: RemoteMsgVpn | None = None
        self.why = ""
        self.failures: dict[int, str] = {}
        self.refused = ""
        self.unbound = ""
        self.stalled = ""
        self._said = ""
        self._held = False
        if not self.written.enabled:
            self.why = "the bridge is disabled"
        elif not vpn.enabled:
            self.why = f"message VPN {vpn_name} is disabled"
        elif not self.written.remote_msg_vpns:
            self.why = "it has no remote message VPN"
        elif not self.approach.remotes.all():
            self.why = "all its remote message VPNs are disabled"

    @property
    def place(self) -> str:
        """The message VPN that it brings messages into, "router/vpn"."""
        return f"{self.node.name}/{self.vpn_name}"

    @property
    def path(self) -> Path:
        """Where it stands in its router's configuration."""
        return ("msg_vpns", self.vpn_name, "bridges", self.name)

    @property
    def up(self) -> bool:
        """Whether it is logged in at a remote."""
        half = self.half
        return half is not None and half.welcomed and not half.over

    @property
    def may_connect(self) -> bool:
        """Whether the bridge is down, enabled, and has a remote to connect to."""
        return not self.up and bool(self.choices()) and self._enabled

    @property
    def _enabled(self) -> bool:
        return self.written.enabled and self.approach.vpn.enabled and not self._held

    def hold(self, why: str) -> None:
        """Keep the bridge down, since the real one is down."""
        self._held = True
        self.why = self.why or why

    def stall(self, why: str) -> None:
        """Let the bridge take no guaranteed message: the real one is held up by an earlier message."""
        self.stalled = why
        self.taker = None

    def remote_path(self, remote: RemoteMsgVpn) -> Path:
        """Where a remote of it stands in its router's configuration."""
        return (*self.path, "remote_msg_vpns", self.written.remote_msg_vpns.index(remote))

    def place_of(self, index: int) -> Place:
        """One of its remotes, as the checks of a mesh look at it."""
        remote = self.written.remote_msg_vpns[index]
        return Place(self.node.loaded, self.remote_path(remote), self.written, remote)

    # -- connecting ------------------------------------------------------------------------------

    def choices(self) -> tuple[Remote, ...]:
        """Its remotes, best first."""
        return self.approach.remotes.all()

    def reuse(self) -> bool:
        """Log in over a link that the peer's bridge has here, if one fits."""
        found = self.approach.incoming()
        if found is None:
            return False
        remote, link = found
        self.approach.remotes.choose(remote)
        written = self.approach.of(remote)
        self._begin(InboundHalf(link, self.approach.terms(written), self, self.record), written)
        return True

    def dial(self, remote: Remote) -> None:
        """Dial one of its remotes."""
        self.approach.remotes.choose(remote)
        written = self.approach.of(remote)
        self._cables.towards(self.place_of(self.written.remote_msg_vpns.index(written)))
        try:
            half = _result(self.approach.open(written, self, self.record, _nothing, self._began))
        except OperationError as error:
            self.failed(written, str(error))
            return
        if half is not None:
            self.remote = written

    def failed(self, remote: RemoteMsgVpn, why: str) -> None:
        """Note that a remote does not serve, and why."""
        self.failures[self.written.remote_msg_vpns.index(remote)] = why
        self.why = why

    def settled(self, remote: RemoteMsgVpn) -> None:
        """Note what the attempt came to, when nothing more comes of it."""
        half = self.half
        if half is not None and half.welcomed and not half.over:
            self.why = ""
            self.failures.pop(self.written.remote_msg_vpns.index(remote), None)
        elif half is not None:
            self.half = None
            self.remote = None
            self.failed(remote, self._said or "the remote does not answer")

    def _begin(self, half: InboundHalf, remote: RemoteMsgVpn) -> None:
        self._said = ""
        self.half = half
        self.remote = remote

    def _began(self, half: InboundHalf) -> None:
        self._begin(half, self.approach.current)

    # -- what the half tells ---------------------------------------------------------------------

    def link_event(self, half: InboundHalf, event: LinkEvent, reason: str) -> None:
        """Handle an event of the half in use."""
        if half is not self.half:
            return
        if event == LinkEvent.WELCOMED:
            self.approach.learn(half.link.peer_router)
            terms = half.terms
            half.want(terms.filters, terms.selectors)
            if self.taker is not None:
                half.carry(self.taker)
        elif event == LinkEvent.SUBSCRIBED:
            self.refused = self.refused or reason
        elif event == LinkEvent.UNBOUND:
            self.unbound = reason
        elif event == LinkEvent.BOUND:
            self.unbound = ""
        elif event in _REFUSING:
            self._said = self._said or reason


def _nothing() -> None:
    """Do nothing, since nobody waits here for a name to be looked up."""


def _result(coroutine: Coroutine[object, None, InboundHalf | None]) -> InboundHalf | None:
    """What an `async` function returns that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: InboundHalf | None = done.value
        return value
    coroutine.close()
    raise AssertionError("it waits for something")
