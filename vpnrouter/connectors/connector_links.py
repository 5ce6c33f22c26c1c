"""The links of one connector as they run, and what a connection and its loss mean for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.connectors.inward import InwardLink
from vpnrouter.connectors.link_state import LinkCounters
from vpnrouter.connectors.outward import OutwardLink
from vpnrouter.core.guaranteed.endpoint import Endpoint, endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import CONNECTOR_LINK, QUEUE
from vpnrouter.core.mqtt.session import CONNECTOR_PREFIX
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.publisher import Publisher
from vpnrouter.core.subscriber import FRAME_OWN, Subscriber

if TYPE_CHECKING:
    from vpnrouter.connectors.link_state import LinkOwner
    from vpnrouter.connectors.links import LinkSettings
    from vpnrouter.connectors.provider import Loss, Provider
    from vpnrouter.core.vpn import MessageVpn


def own_queue(connector: str, link: str) -> str:
    """Return the name of the link's own queue: of what its topics brought, or of what is set aside."""
    return f"{connector}/{link}"


def parking_queue(connector: str, link: str) -> str:
    """Return the name of the queue where the link sets aside what the provider refuses."""
    return f"{connector}/{link}/parked"


def dead_letter_queue(connector: str, link: str) -> str:
    """Return the name of the queue where a link inward keeps what can never enter, for its dead message queues."""
    return f"{connector}/{link}/dead"


@final
class ConnectorLinks:
    """All links of the connector `name`, or those of the connection that the link `connection` has to itself.
    `counters` has those of each link by name, and outlives the links.

    It counts as one connection of its message VPN while it is up: `publisher` is its own.

    A connection that ended while a message waited for its answer counts against the message when the next attempt
    reaches the provider: `_accusing` is that loss until then. Where an attempt fails, it was the provider that went.
    """

    def __init__(
        self,
        owner: LinkOwner,
        vpn: MessageVpn,
        name: str,
        terms: list[LinkSettings],
        counters: dict[str, LinkCounters],
        connection: str = "",
    ) -> None:
        self.vpn = vpn
        self.name = name
        client_name = CONNECTOR_PREFIX + name
        self.client_name = client_name
        self._counted_as = own_queue(client_name, connection) if connection else client_name
        self.publisher = self._new_publisher()
        self._accusing: Loss | None = None
        self.inward: list[InwardLink] = []
        self.outward: list[OutwardLink] = []
        for each in terms:
            for place in each.failures.dead_msg_queues:
                if place.kind == CONNECTOR_LINK:
                    place.name = own_queue(name, place.name)
            counted = counters.setdefault(each.name, LinkCounters())
            if each.inbound:
                self.inward.append(InwardLink(owner, vpn, self.publisher, each, counted))
            else:
                self.outward.append(OutwardLink(owner, vpn, client_name, each, counted))
        links: list[InwardLink | OutwardLink] = [*self.inward, *self.outward]
        self.all = {link.terms.name: link for link in links}
        self.find_queues()

    def _new_publisher(self) -> Publisher:
        vpn = self.vpn
        name = self.client_name
        outbox = Outbox(vpn.context.ready, 0)
        source = Subscriber(name, outbox, FRAME_OWN, local_name=name, connected=False)
        return Publisher(vpn, source, None, 0, vpn.limits.max_msg_size)

    def find_queues(self) -> None:
        """Find the queues of the links: they come and go with the configuration."""
        found = endpoints_of(self.vpn)
        for inward in self.inward:
            endpoint = found.get((CONNECTOR_LINK, own_queue(self.name, inward.terms.name)))
            if endpoint is not None and inward.aside is None and inward.terms.qos:
                inward.set_aside_in(endpoint)
            dead = found.get((CONNECTOR_LINK, dead_letter_queue(self.name, inward.terms.name)))
            listed = bool(inward.terms.failures.dead_msg_queues)
            if dead is not None and listed and inward.undelivered is None:
                inward.bury_in(dead)
        for outward in self.outward:
            outward.endpoint = self._source_of(found, outward.terms)
            parked = parking_queue(self.name, outward.terms.name)
            outward.parking = found.get((CONNECTOR_LINK, parked))

    def _source_of(
        self, found: dict[tuple[int, str], Endpoint], terms: LinkSettings
    ) -> Endpoint | None:
        if terms.from_queue:
            return found.get((QUEUE, terms.source))
        return (
            None if terms.direct else found.get((CONNECTOR_LINK, own_queue(self.name, terms.name)))
        )

    def connected(self, provider: Provider) -> None:
        """The provider has let the connector in: each link that can be carried carries messages."""
        self.find_queues()
        self._convict()
        self.publisher.subscriber.outbox = provider.connection.outbox
        self.vpn.publishers[self._counted_as] = self.publisher
        for outward in self.outward:
            outward.connected(provider)
        for inward in self.inward:
            inward.connected(provider)

    def pause(self, terms: list[LinkSettings]) -> None:
        """Pause those links that are paused in `terms`, and let the others go on."""
        for each in terms:
            link = self.all[each.name]
            if link.status.paused is not each.paused:
                link.pause(each.paused)

    def disconnected(self, loss: Loss | None = None) -> None:
        """The connection is over: each link waits by itself."""
        for link in self.all.values():
            link.disconnected()
        self._retire()
        inward = None if loss is None else self.all.get(loss.asked)
        if loss is not None and isinstance(inward, InwardLink):
            inward.ended_connection(loss.blame)
        self._accusing = loss

    def attempt_failed(self) -> None:
        """The provider could not be reached."""
        self._accusing = None

    def _convict(self) -> None:
        loss, self._accusing = self._accusing, None
        outward = None if loss is None or not loss.message_id else self.all.get(loss.link)
        if loss is not None and isinstance(outward, OutwardLink):
            outward.ended_connection(loss.message_id, loss.blame, proved=loss.suspected)

    def _retire(self) -> None:
        """Have what was counted over a connection counted by the message VPN."""
        vpn = self.vpn
        publisher = self.publisher
        if vpn.publishers.get(self._counted_as) is not publisher:
            return
        del vpn.publishers[self._counted_as]
        vpn.absorb(publisher)
        self.publisher = self._new_publisher()
        for inward in self.inward:
            inward.publisher = self.publisher

    def close(self) -> None:
        """End all links: the connector is removed, or begins anew under other settings."""
        for link in self.all.values():
            link.close()
        self._retire()
