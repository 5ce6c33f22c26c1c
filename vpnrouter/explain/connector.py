"""One connector of the mesh in memory: the router's own links, over a connection to a provider that takes all."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.config.configured_connector import links_of, place_of, speaks_amqp, urls_of
from vpnrouter.connectors.amqp.brokers import kind_and_name
from vpnrouter.connectors.connector_links import ConnectorLinks
from vpnrouter.connectors.http.exchanges import NO_ADDRESS
from vpnrouter.connectors.link_state import LinkEvent, LinkState
from vpnrouter.connectors.links import LinkTopics
from vpnrouter.connectors.outward import OutwardFlow, OutwardLink
from vpnrouter.connectors.provider import ConnectorCallbacks, Provider
from vpnrouter.connectors.settings import ProviderSettings
from vpnrouter.core.connection import Connection
from vpnrouter.core.discard_reasons import LOOP_DETECTED, NOT_TRANSFORMED, TOPIC_PARSE_ERROR
from vpnrouter.core.tracing import outcome
from vpnrouter.errors import TopicError
from vpnrouter.explain.providers import SHARED, Providers
from vpnrouter.explain.told_transform import ToldTransform

if TYPE_CHECKING:
    from vpnrouter.config.problem import Path
    from vpnrouter.connectors.inward import InwardLink
    from vpnrouter.connectors.links import LinkSettings
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.explain.observed import Observed
    from vpnrouter.explain.router import MemoryRouter


@final
class MemoryConnector(ConnectorCallbacks):
    """The connector `name` of message VPN `vpn_name` of `node`; what leaves by it goes to `providers`.

    `place` is the name of its provider in paths, `address` the one in use. `why` says why it is down, "" while it is
    up. `held` says by link why one that brings messages in sets them aside. `carries_path`: it speaks MQTT 5 or AMQP.
    """

    def __init__(
        self,
        node: MemoryRouter,
        vpn_name: str,
        name: str,
        observed: Observed,
        providers: Providers,
    ) -> None:
        self.node = node
        self.vpn_name = vpn_name
        self.name = name
        self.vpn = node.router.vpns[vpn_name]
        self.configured = node.loaded.config.msg_vpns[vpn_name].connectors[name]
        self.place = place_of(node.name, self.configured)
        seen = observed.connectors.get((node.name, vpn_name, name))
        url, *_ = (*urls_of(self.configured), "")
        self.address = (seen.provider if seen is not None else "") or str(url)
        protocol = seen.protocol if seen is not None else ""
        version = self.configured.provider.mqtt_version
        self.carries_path = version != "3.1.1" and protocol != "MQTT 3.1.1"
        self.speaks_amqp = speaks_amqp(self.configured)
        self.held: dict[str, str] = {}
        self._obstacles: dict[str, str] = {}
        self._providers = providers
        terms = links_of(self.configured)
        for each in terms:
            if each.transform is not None:
                each.transform = ToldTransform(each.transform)
        self.links = ConnectorLinks(self, self.vpn, name, terms, {})
        self.why = self._switched_off() or (seen.why if seen is not None else "")
        if seen is not None:
            for link, (state, reason) in seen.links.items():
                self._take_state(link, state, reason)

    def _switched_off(self) -> str:
        if not self.configured.enabled:
            return "the connector is disabled"
        return "" if self.vpn.enabled else f"message VPN {self.vpn_name} is disabled"

    def _take_state(self, name: str, state: str, reason: str) -> None:
        """Bring a link to the state of the real one."""
        link = self.links.all.get(name)
        if link is None:
            return
        if state == LinkState.HELD:
            self.held[name] = reason
        elif state == LinkState.STOPPED:
            link.status.happened(LinkEvent.STOP, self.vpn.context.now_ns, reason)
        elif state in (LinkState.REFUSED, LinkState.OPENING) or (
            state == LinkState.DOWN and reason
        ):
            self._obstacles[name] = reason or "the provider has not answered for it"

    @property
    def up(self) -> bool:
        """Whether it is logged in at its provider."""
        return not self.why

    @property
    def path(self) -> Path:
        """Where it stands in its router's configuration."""
        return ("msg_vpns", self.vpn_name, "connectors", self.name)

    def connect(self) -> None:
        """Log in, if it is not down."""
        if self.up:
            self.links.connected(MemoryProvider(self, self._providers))

    def obstacle(self, terms: LinkSettings) -> str:
        """Return why its provider does not carry a link, "" where it does."""
        if terms.qos and self.node.spool is None:
            return "guaranteed messages are disabled here"
        return self._obstacles.get(terms.name, "")

    def address_of(self, link: OutwardLink, topic: bytes) -> bytes:
        """Return what a message on `topic` is addressed to at the provider, of MQTT the topic itself."""
        target = link.terms.target
        if not self.speaks_amqp:
            return topic
        if link.terms.one_target:
            return target.encode()
        kind, name = kind_and_name(target)
        return (target.removesuffix(name) if kind else "").encode() + topic

    def link_for(self, topic: bytes, *, own: bool) -> tuple[InwardLink, bytes] | None:
        """Return the link that brings in what is published to `topic` at the provider, and its topic here (b"": none).

        `own`: it is the connector's own message, which comes back to shared subscriptions alone.
        """
        for link in self.links.inward:
            if link.provider is None or (own and not link.terms.source.startswith(SHARED)):
                continue
            name = topic
            if self.speaks_amqp:
                if link.terms.source.encode() != topic:
                    continue
                name = kind_and_name(link.terms.source)[1].encode()
            try:
                image, terms = LinkTopics([link.terms]).of(name)
            except TopicError:
                return link, b""
            if terms is not None:
                return link, image
        return None


@final
class MemoryProvider(Provider):
    """A connection that was accepted; all that leaves over it is taken at once."""

    def __init__(self, connector: MemoryConnector, providers: Providers) -> None:
        context = connector.vpn.context
        connection = Connection(context, connector.address, limits.OUTBOX_BYTES)
        name = connector.links.client_name
        settings = ProviderSettings(place=connector.place)
        carries_path = connector.carries_path
        super().__init__(connection, connector.vpn, name, "", settings, carries_path=carries_path)
        self.connector = connector
        self.providers = providers

    @override
    def obstacle(self, terms: LinkSettings) -> str:
        return self.connector.obstacle(terms)

    @override
    def ask(self, link: InwardLink) -> None:
        link.opened()

    @override
    def renew(self, why: str) -> None:
        # What was left to the provider does not come again here.
        return

    @override
    def flow(self, link: OutwardLink, endpoint: Endpoint) -> OutwardFlow:
        return MemoryFlow(self, link, endpoint)

    @override
    def send_direct(self, link: OutwardLink, message: Message, topic: bytes) -> str:
        if not _has_address(link, topic):
            return TOPIC_PARSE_ERROR
        there = self.connector.address_of(link, topic)
        self.providers.take(self.connector, link, message, there)
        if message.traced and link.tap is not None:
            outcome(link.vpn, link.tap, message, 1)
        return ""


@final
class MemoryFlow(OutwardFlow):
    """The flow of a link whose provider accepts each message at once."""

    def __init__(self, provider: MemoryProvider, link: OutwardLink, endpoint: Endpoint) -> None:
        super().__init__(link, endpoint, provider.connection, limits.CLIENT_WINDOW)
        self._provider = provider
        self._taken = False

    @override
    def provider_room(self) -> int:
        return limits.CLIENT_WINDOW

    @override
    def send(self, message_id: int, message: Message, count: int) -> None:
        self._taken = False
        super().send(message_id, message, count)
        if not self._taken:
            why = LOOP_DETECTED if self.link.has_been(message) else TOPIC_PARSE_ERROR
            if why == TOPIC_PARSE_ERROR and self.link.terms.transform is not None:
                why = NOT_TRANSFORMED
            provider = self._provider
            name = self.endpoint.name
            provider.providers.leave_out(provider.connector, self.link, message, why, name)

    @override
    def transmit(self, message_id: int, message: Message, topic: bytes) -> None:
        if not _has_address(self.link, topic):
            self.link.give_up(self, message_id, NO_ADDRESS)
            return
        self._taken = True
        provider = self._provider
        there = provider.connector.address_of(self.link, topic)
        provider.providers.take(provider.connector, self.link, message, there, self.endpoint.name)
        self.link.accepted(self, message_id)


def _has_address(link: OutwardLink, topic: bytes) -> bool:
    """Return whether a message on `topic` has a path at an HTTP server; True of other providers."""
    request = link.terms.request
    return request is None or request.path.target(topic.decode(errors="replace")) != ""
