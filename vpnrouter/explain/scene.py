"""The mesh in memory, as those see it who look for reasons: who is behind a name in a trace row."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.core.guaranteed.session_endpoints import PREFIX
from vpnrouter.core.message import Message
from vpnrouter.errors import TopicError
from vpnrouter.server.bridges.terms import mapping_of
from vpnrouter.topics.algebra import matches
from vpnrouter.wire.mqtt.properties import with_user_properties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vpnrouter.bridges.link import Link
    from vpnrouter.config.load import Loaded
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.route import Route
    from vpnrouter.core.subscriber import Subscriber, Subscription
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.explain.twin import Twin
    from vpnrouter.explain.twin_bridge import TwinBridge
    from vpnrouter.explain.visits import Visit


@final
class Scene:
    """What is known of the mesh: all of `twin`, or nothing when that is None.

    `payload` bytes and user properties `pairs` are those of the message; `all_misses` tells every negative
    answer.
    """

    def __init__(
        self,
        twin: Twin | None,
        payload: bytes = b"",
        pairs: Sequence[tuple[str, str]] = (),
        *,
        all_misses: bool = False,
    ) -> None:
        self.twin = twin
        self.all_misses = all_misses
        self._payload = payload
        self._block = with_user_properties(b"", list(pairs))
        self._out_of: dict[str, list[TwinBridge]] = {}
        self._into: dict[tuple[str, str, str], TwinBridge] = {}
        self._remotes_of: dict[TwinBridge, list[str]] = {}
        for bridge in twin.bridges if twin is not None else ():
            self._into[bridge.node.name, bridge.vpn_name, bridge.name] = bridge
            self._remotes_of[bridge] = list(dict.fromkeys(self._remotes(bridge)))
            for place in self._remotes_of[bridge]:
                self._out_of.setdefault(place, []).append(bridge)

    def _remotes(self, bridge: TwinBridge) -> list[str]:
        """The message VPNs that a bridge may take from, as far as they are known."""
        twin = self.twin
        if twin is None:
            return []
        found = []
        for index, remote in enumerate(bridge.written.remote_msg_vpns):
            peer = twin.peer_of(bridge, index)
            if peer:
                found.append(f"{peer}/{remote.name}")
        return found

    # -- who is meant ----------------------------------------------------------------------------

    def loaded(self, router: str) -> Loaded | None:
        """The configuration of a router."""
        node = self.twin.nodes.get(router) if self.twin is not None else None
        return None if node is None else node.loaded

    def vpn(self, visit: Visit) -> MessageVpn | None:
        """The message VPN of a visit."""
        node = self.twin.nodes.get(visit.router) if self.twin is not None else None
        return None if node is None else node.router.vpns.get(visit.msg_vpn)

    def bridge(self, router: str, msg_vpn: str, name: str) -> TwinBridge | None:
        """The bridge `name` into a message VPN."""
        return self._into.get((router, msg_vpn, name))

    def bridges_out_of(self, visit: Visit) -> list[TwinBridge]:
        """All bridges that have the message VPN of a visit among their remotes."""
        return self._out_of.get(visit.place, [])

    def bridges_into(self, visit: Visit) -> list[TwinBridge]:
        """All bridges that bring messages into the message VPN of a visit."""
        twin = self.twin
        return [] if twin is None else [one for one in twin.bridges if one.place == visit.place]

    def bridges_back(self, bridge: TwinBridge) -> list[TwinBridge]:
        """The bridges of the other side that take from the message VPN of `bridge` what it sends back."""
        remotes = self._remotes_of.get(bridge, [])
        return [one for one in self._out_of.get(bridge.place, []) if one.place in remotes]

    def serving(self, bridge: TwinBridge) -> Link | None:
        """The link over which the other side serves a bridge that is up."""
        half = bridge.half
        remote = bridge.remote
        if self.twin is None or half is None or remote is None or not bridge.up:
            return None
        node = self.twin.nodes.get(half.link.peer_router)
        if node is None:
            return None
        return node.book.served(remote.name, bridge.node.name, bridge.vpn_name, bridge.name)

    # -- the message -----------------------------------------------------------------------------

    def topic(self, visit: Visit) -> str:
        """The topic that the message has in a message VPN: that of the link, renamed on the way in."""
        entered = visit.entered
        if entered is None:
            return visit.events[0].topic if visit.events else ""
        bridge = self.bridge(visit.router, visit.msg_vpn, entered.bridge)
        mapping = None if bridge is None else mapping_of(bridge.written, "in")
        if mapping is None:
            return entered.topic
        try:
            return mapping.apply(entered.topic)
        except TopicError:
            return entered.topic

    def message(self, visit: Visit) -> Message:
        """The message as it is in a message VPN."""
        message = Message(self.topic(visit).encode(), self._payload, self._block)
        message.path = list(visit.path)
        message.hops = len(visit.path)
        message.persistent = not visit.direct
        return message

    def route(self, visit: Visit) -> Route | None:
        """Where the message VPN sends messages of this topic; None where it takes none of the kind."""
        vpn = self.vpn(visit)
        if vpn is None:
            return None
        try:
            return vpn.route(self.topic(visit).encode())
        except TopicError:
            return None

    @staticmethod
    def matching(topic: str, subscriber: Subscriber) -> list[Subscription]:
        """The subscriptions of somebody, those of share groups too, that match a topic."""
        return [one for one in subscriber.subscriptions.values() if matches(one.filter, topic)]

    def endpoint(self, visit: Visit, name: str) -> Endpoint | None:
        """The endpoint of this name in the message VPN of a visit."""
        vpn = self.vpn(visit)
        if vpn is None:
            return None
        found = [one for (_, known), one in vpn.endpoints.items() if known == name]
        return found[0] if found else None


def client_of(endpoint: str) -> str:
    """The client id behind the name of an MQTT session's endpoint, "" for other endpoints."""
    return endpoint.removeprefix(PREFIX) if endpoint.startswith(PREFIX) else ""
