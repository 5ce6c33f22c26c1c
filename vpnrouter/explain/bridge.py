"""One bridge of the mesh in memory: the router's own state machine, under the mesh's clock."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, final

from typing_extensions import override

from vpnrouter.bridges.driver import BridgeDriver
from vpnrouter.bridges.half_events import HalfEvent
from vpnrouter.bridges.machine import Machine
from vpnrouter.bridges.remote_links import RemoteLinks
from vpnrouter.config.configured_bridge import ConfiguredBridge
from vpnrouter.config.mesh.remotes import ConfiguredRemote
from vpnrouter.errors import OperationError
from vpnrouter.settings.listener import server_certificate

if TYPE_CHECKING:
    from vpnrouter.bridges.flow_receiver import FlowReceiver
    from vpnrouter.bridges.machine import Dial
    from vpnrouter.bridges.own_half import OwnHalf
    from vpnrouter.config.problem import Path
    from vpnrouter.explain.network import Network
    from vpnrouter.explain.router import MemoryRouter
    from vpnrouter.settings.bridge import RemoteMsgVpn


@final
class MemoryBridge(BridgeDriver):
    """The bridge `name` into message VPN `vpn_name` of `node`.

    `why` says why it is down, "" while it is up; `refused` what the remote said to a subscription that it did not
    grant, `unbound` why its queue is not bound, `stalled` why it takes no guaranteed message, "" where nothing is
    wrong. `dialled` counts its tries.
    """

    def __init__(self, node: MemoryRouter, network: Network, vpn_name: str, name: str) -> None:
        self.node = node
        self.vpn_name = vpn_name
        self.name = name
        vpn_settings = node.loaded.config.msg_vpns[vpn_name]
        bridge = vpn_settings.bridges[name]
        self.vpn = node.router.vpns[vpn_name]
        self._network = network
        self.configured = ConfiguredBridge(
            name,
            bridge,
            vpn_settings.bridging.tls_server_cert,
            server_certificate(node.loaded.config.listeners),
        )
        self._now_ns = node.router.context.now_ns
        # Each remote has one try in a pass, and a bridge that is up stays where it is.
        settings = self.configured.settings(vpn_enabled=self.vpn.enabled)
        machine = Machine(
            self.configured.facts(node.name, vpn_name),
            replace(settings, retry_count=0, failback_delay_ns=0),
            self._now_ns,
        )
        super().__init__(machine, RemoteLinks(node.book, self.vpn, self.configured))
        self._taker = None
        if node.flows is not None:
            self._taker = node.flows.of(self.vpn, name, bridge).taker
        self.dialled = 0
        self.why = ""
        self.refused = ""
        self.unbound = ""
        self.stalled = ""
        self._held = False
        if not bridge.enabled:
            self.why = "the bridge is disabled"
        elif not self.vpn.enabled:
            self.why = f"message VPN {vpn_name} is disabled"
        elif not bridge.remote_msg_vpns:
            self.why = "it has no remote message VPN"
        elif not machine.remotes.all():
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
        enabled = self.configured.bridge.enabled and self.vpn.enabled and not self._held
        return not self.up and enabled and bool(self.machine.remotes.all())

    @property
    def remote(self) -> RemoteMsgVpn | None:
        """The remote in use, or tried."""
        use = self.machine.use
        return None if use is None else self.configured.of(use.remote)

    @property
    def failures(self) -> dict[int, str]:
        """Why each of its remotes does not serve, by place in the configuration."""
        known = self.machine.failures
        return {
            index: why
            for index, remote in enumerate(self.configured.bridge.remote_msg_vpns)
            if (why := known.get((remote.name, remote.location), ""))
        }

    def hold(self, why: str) -> None:
        """Keep the bridge down, since the real one is down."""
        self._held = True
        self.why = self.why or why

    def stall(self, why: str) -> None:
        """Let the bridge take no guaranteed message: the real one is held up by an earlier message."""
        self.stalled = why
        self._taker = None

    def remote_path(self, remote: RemoteMsgVpn) -> Path:
        """Return where a remote of the bridge is in its router's configuration."""
        return (*self.path, "remote_msg_vpns", self.configured.bridge.remote_msg_vpns.index(remote))

    def place_of(self, index: int) -> ConfiguredRemote:
        """Return one of the bridge's remotes, for the checks of a mesh."""
        remote = self.configured.bridge.remote_msg_vpns[index]
        return ConfiguredRemote(
            self.node.loaded, self.remote_path(remote), self.configured.bridge, remote
        )

    # -- connecting ------------------------------------------------------------------------------

    def advance(self) -> None:
        """Do what is to be done now, and let the time pass that the machine waits for.

        What is on its way in between arrives before anything is given up: it takes no time here.
        """
        self.work(0.0)
        self._now_ns = max(self._now_ns, self.machine.wake_ns)

    @override
    def now_ns(self) -> int:
        return self._now_ns

    @property
    @override
    def taker(self) -> FlowReceiver | None:
        return self._taker

    @override
    def begin_dialling(self, action: Dial) -> None:
        machine, number, remote = self.machine, action.number, action.remote
        self.dialled += 1
        configured = self.configured.of(remote)
        try:
            host, port = self.links.address(remote)
            machine.resolved(number, self._now_ns)
            accepted = self._network.reach(
                self.place_of(self.configured.bridge.remote_msg_vpns.index(configured)),
                host,
                tls=remote.tls,
                client_cert=self.configured.client_cert(remote) if remote.tls else None,
            )
        except OperationError as error:
            machine.failed(number, str(error), self._now_ns)
            return
        if machine.reached(number, self._now_ns, self.links):
            half = self.greet(action, host, port)
            self.begun(number, half)
            self._network.join(half.link, accepted)

    @override
    def on_half_event(self, half: OwnHalf, event: HalfEvent, reason: str) -> None:
        if event == HalfEvent.SUBSCRIBED:
            self.refused = self.refused or reason
        elif event == HalfEvent.UNBOUND:
            self.unbound = reason
        elif event == HalfEvent.BOUND:
            self.unbound = ""
        super().on_half_event(half, event, reason)
