"""Publishes what an HTTP server answers to the Response Topic of the message that it was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.http.requests import properties_of
from vpnrouter.connectors.inward import InwardLink
from vpnrouter.connectors.link_state import LinkCounters, LinkOwner
from vpnrouter.connectors.links import LinkSettings
from vpnrouter.connectors.provider import Receipts
from vpnrouter.core.discard_reasons import MSG_TOO_BIG, TRANSMIT_CONGESTION
from vpnrouter.core.message import Message
from vpnrouter.topics.grammar import MQTT, parse_filter
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.publish_block import message_block

if TYPE_CHECKING:
    from vpnrouter.connectors.http.exchanges import Exchange
    from vpnrouter.connectors.http.provider import HttpProvider
    from vpnrouter.connectors.outward import OutwardLink
    from vpnrouter.wire.http1 import AnswerReader


@final
class NoReceipts(Receipts):
    """Replies are not acknowledged to the server: it has no way to be told."""

    __slots__ = ()

    @override
    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        return


@final
class Replies:
    """The replies to messages of one link. They enter as what links bring in does: in order, and held where a queue is
    full, LINK_WAITING_BYTES of them. What cannot enter is discarded, and counted by the message VPN.
    """

    __slots__ = ("_link", "_place", "_receipts", "counters")

    def __init__(self, provider: HttpProvider, link: OutwardLink) -> None:
        terms = LinkSettings(
            name=link.terms.name, source="", filter=parse_filter("#", MQTT), inbound=True
        )
        self.counters = LinkCounters()
        # Its states are nobody's business: what it holds up is shown by the queue that is full.
        owner = LinkOwner()
        self._link = InwardLink(owner, link.vpn, provider.publisher, terms, self.counters)
        # What waits counts for the connector.
        self._link.provider = provider
        self._place = provider.place
        self._receipts = NoReceipts()

    def answered(self, exchange: Exchange, answer: AnswerReader) -> None:
        """Publish the body of an answer, if its message asks for a reply. The message is not settled yet, so that both
        reach the store in one unit.
        """
        asked = exchange.message.mqtt()
        properties = properties_of(asked.block)
        topic = properties.response_topic
        if not topic:
            return
        said = Properties(correlation_data=properties.correlation_data)
        content_type = answer.content_type.decode("ascii", "replace")
        if content_type:
            said.content_type = content_type[: limits.HTTP_VALUE_BYTES]
        link = self._link
        body = answer.body
        block = message_block(said)
        reply = Message(topic.encode(), body, block, False, link.source)
        guaranteed = exchange.message.qos > 0 or exchange.message.persistent
        reply.qos = 1 if guaranteed else 0
        reply.persistent = guaranteed
        # It is not sent to the server that it comes from.
        reply.path = [self._place]
        reply.hops = 1
        why = link.takes(reply, len(body))
        if not why and answer.size > len(body):
            why = MSG_TOO_BIG
        if why:
            link.discards(reply, why)
        elif guaranteed:
            link.enter(reply, self._receipts, 0)
            if link.shed:
                # Too many wait for a full queue, and nobody sends this one again.
                link.shed = False
                link.vpn.discard(reply, TRANSMIT_CONGESTION)
        else:
            link.enter_direct(reply, exchange.requests.provider.connection)

    def end(self) -> None:
        """Publish nothing more."""
        self._link.close()
