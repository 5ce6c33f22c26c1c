"""A mesh of routers in memory, made of their configurations.

The routers are the real ones without sockets: the same objects as `run` makes of the same configuration,
their links joined by wires, their stores in memory, under a clock that is turned here.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.config.mesh.remotes import Routers
from vpnrouter.errors import OperationError
from vpnrouter.explain.bridge import MemoryBridge
from vpnrouter.explain.connector import MemoryConnector
from vpnrouter.explain.network import Network
from vpnrouter.explain.observed import Observed
from vpnrouter.explain.providers import Providers
from vpnrouter.explain.request import Event, path_of
from vpnrouter.explain.router import MemoryRouter
from vpnrouter.trace.events import EVENT_NAMES, FIRST_WITHOUT_MESSAGE, MODE_NAMES
from vpnrouter.trace.recorder import RECORD_BYTES
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vpnrouter.config.router import Loaded
    from vpnrouter.explain.network import ConnectionPair
    from vpnrouter.explain.probe import Session
    from vpnrouter.trace.recorder import Block, Recorder

START_NS: Final = 1_000 * SECOND_NS
STEP_NS: Final = 100_000_000


@final
class MemoryMesh:
    """The routers of `mesh`, their bridges and connectors connected as far as they can be. `wall_ns` is UTC since 1970.

    It is in the state that was `observed`: bridges that are down in fact are down. Without `traced` there are no
    events.
    `nodes` are by router's name; `restless` says that messages were still under way when it was left.

    Raises OperationError for two routers of one name, or for too many.
    """

    def __init__(
        self,
        mesh: Sequence[Loaded],
        wall_ns: int,
        observed: Observed | None = None,
        *,
        traced: bool = True,
    ) -> None:
        if len(mesh) > limits.EXPLAIN_CONFIGS:
            raise OperationError(f"more than {limits.EXPLAIN_CONFIGS} configurations")
        self.now_ns = START_NS
        self._wall_ns = wall_ns - START_NS
        self.nodes: dict[str, MemoryRouter] = {}
        self.sessions: list[Session] = []
        self.restless = False
        self._wires: list[ConnectionPair] = []
        observed = observed or Observed()
        rehearsal: dict[bytes, str] = {}
        for number, loaded in enumerate(mesh):
            name = loaded.config.router.name
            if name in self.nodes:
                first = self.nodes[name].loaded.positions.file
                raise OperationError(
                    f"{loaded.positions.file} and {first} both describe router {name}"
                )
            self.nodes[name] = MemoryRouter(loaded, number, self.now_ns, wall_ns, traced=traced)
            self.nodes[name].book.rehearsal = rehearsal
        self._routers = Routers(mesh)
        self.bridges: list[MemoryBridge] = []
        for node in self.nodes.values():
            network = Network(self._routers, self.nodes, self._wires, observed)
            self._set_ports(node)
            for vpn_name, vpn in node.loaded.config.msg_vpns.items():
                self.bridges += [
                    MemoryBridge(node, network, vpn_name, name) for name in vpn.bridges
                ]
        for bridge in self.bridges:
            place = (bridge.node.name, bridge.vpn_name, bridge.name)
            why = observed.down.get(place)
            if why is not None:
                bridge.hold(why)
            why = observed.stalled.get(place)
            if why is not None:
                bridge.stall(why)
        self.providers = Providers()
        self.connectors = [
            MemoryConnector(node, vpn_name, name, observed, self.providers)
            for node in self.nodes.values()
            for vpn_name, vpn in node.loaded.config.msg_vpns.items()
            for name in vpn.connectors
        ]
        self._connect()
        for connector in self.connectors:
            self.providers.add(connector)
            connector.connect()
        self.settle()

    def peer_of(self, bridge: MemoryBridge, index: int) -> str:
        """Return the router that remote `index` of a bridge means, "" where the files do not tell."""
        peer = self._routers.resolve(bridge.place_of(index)).peer
        return "" if peer is None else peer.config.router.name

    @staticmethod
    def _set_ports(node: MemoryRouter) -> None:
        for listener in node.loaded.config.listeners:
            port = listener.address.port
            if not listener.enabled:
                continue
            if listener.protocol == "link" and not node.book.link_port:
                node.book.link_port = port
            elif listener.protocol == "links" and not node.book.links_port:
                node.book.links_port = port

    # -- bridges ---------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Bring up what can be brought up; each bridge tries its remotes in order."""
        for _ in range(limits.EXPLAIN_PASSES):
            before = sum(bridge.up for bridge in self.bridges)
            for bridge in self.bridges:
                if bridge.may_connect:
                    self._try(bridge)
            up = sum(bridge.up for bridge in self.bridges)
            if up == before or up == len(self.bridges):
                break
        self.settle()

    def _try(self, bridge: MemoryBridge) -> None:
        """Let a bridge try each of its remotes once, unless it comes up before."""
        most = bridge.dialled + len(bridge.machine.remotes.all())
        for _ in range(limits.EXPLAIN_ROUNDS):
            bridge.advance()
            self.settle()
            idle = bridge.machine.use is None
            if bridge.up or (idle and (bridge.dialled >= most or bridge.machine.wake_ns < 0)):
                break
        bridge.why = "" if bridge.up else bridge.record.inbound_failure_reason

    # -- time ------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Carry everything that is to be carried, until all is quiet."""
        for _ in range(limits.EXPLAIN_ROUNDS):
            moved = False
            for node in self.nodes.values():
                moved |= node.finish_round()
            for wire in self._wires:
                moved |= wire.pump()
            moved |= self.providers.pump()
            for session in self.sessions:
                moved |= session.pump()
            if not moved:
                self._wires[:] = [wire for wire in self._wires if not wire.over]
                return
        self.restless = True

    def wait(self, milliseconds: int) -> None:
        """Let time pass, so that what is tried again after a while is tried again."""
        end_ns = self.now_ns + milliseconds * 1_000_000
        while self.now_ns < end_ns:
            self.now_ns = min(end_ns, self.now_ns + STEP_NS)
            for node in self.nodes.values():
                node.router.tick(self.now_ns, self.now_ns + self._wall_ns)
            self.settle()

    # -- what happened ---------------------------------------------------------------------------

    def take_events(self) -> list[Event]:
        """Return what the routers recorded since the last call, each router's in order."""
        return [
            event
            for node in self.nodes.values()
            for event in take_events(node.name, node.router.context.recorder)
        ]


_RECORD: Final = Struct("<qQQQqqqII")


def take_events(router: str, recorder: Recorder) -> list[Event]:
    """Take the events of messages out of `recorder`, and return them in order.

    What is refused before anybody asks whether it is traced has rows without a trace: they count too.
    """
    recorder.cut()
    return [event for block in recorder.take() for event in _events(router, block)]


def _events(router: str, block: Block) -> Iterator[Event]:
    topics = list(block.topics)
    for index in range(block.count):
        # The times are those of a clock that is turned by hand.
        _, high, low, number, size, _, _, where, what = _RECORD.unpack_from(
            block.data, index * RECORD_BYTES
        )
        context = block.contexts[where]
        if context.event >= FIRST_WITHOUT_MESSAGE:
            continue
        yield Event(
            router=router,
            event=EVENT_NAMES[context.event],
            vpn=context.vpn,
            topic=topics[what].decode(errors="replace"),
            mode=MODE_NAMES[context.mode],
            client=context.client,
            endpoint=context.endpoint,
            bridge=context.bridge,
            peer_router=context.peer_router,
            peer_vpn=context.peer_vpn,
            hops=context.hops,
            path=path_of(context.path),
            reason=context.reason,
            size=size,
            message_id=number if high or low else 0,
            origin_router=context.origin_router,
            origin_vpn=context.origin_vpn,
            partition=context.partition,
        )
