"""Defines the receivers of messages: the base of MQTT sessions, links' clients and endpoints.

A `Subscription` ties one filter to one subscriber inside one message VPN; the trie holds subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter.core.message import Source

if TYPE_CHECKING:
    from vpnrouter.core.access import BoundRule
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint_settings import EndpointSettings
    from vpnrouter.core.memory_account import MemoryAccount
    from vpnrouter.core.message import Message
    from vpnrouter.core.outbox import Outbox
    from vpnrouter.selectors import Selector
    from vpnrouter.topics.grammar import Filter
    from vpnrouter.trace.recorder import Context

FRAME_MQTT4: Final = 0
"""The subscriber takes MQTT 3.1.1 PUBLISH frames as they are."""

FRAME_MQTT5: Final = 1
"""The subscriber takes MQTT 5 PUBLISH frames with an empty property block; a link's DIRECT is the same."""

FRAME_OWN: Final = 2
"""Each message is encoded for this subscriber by its `deliver`."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Subscriber(Source):
    """A receiver of messages in a message VPN.

    `connected` is False for a session without a connection: nothing Direct reaches it. `gone`: its subscriptions are
    being removed (MessageVpn.forget). `offered` counts, for a link's client alone, messages that the message VPN handed
    to it. `is_endpoint` marks queues and topic endpoints; `endpoint` is the queue behind the subscriptions of QoS 1 and
    2 of an MQTT session, once it has one. `rule` decides which matching topics it may be sent; None where the ACL
    allows all.
    """

    __slots__ = (
        "connected",
        "delivered",
        "endpoint",
        "frame",
        "gone",
        "is_endpoint",
        "offered",
        "outbox",
        "rule",
        "subscriptions",
    )

    def __init__(
        self,
        client_name: str,
        outbox: Outbox,
        frame: int,
        *,
        local_name: str = "",
        vpn_id: str = "",
        is_endpoint: bool = False,
        connected: bool = True,
        rule: BoundRule | None = None,
    ) -> None:
        super().__init__(client_name, local_name, vpn_id)
        self.outbox = outbox
        self.frame = frame
        self.is_endpoint = is_endpoint
        self.endpoint: EndpointSubscriber | None = None
        self.offered = 0
        self.connected = connected
        self.gone = False
        self.delivered: Context | None = None
        self.rule = rule
        self.subscriptions: dict[str, Subscription] = {}

    def client_connection(self) -> Connection | None:
        """The connection of the client that this is, None while it is away, and for all others."""
        return None

    def give_way(self) -> bool:
        """Leave the name to an MQTT client, whose client id it is; False where the name stays."""
        return False

    def memory(self) -> MemoryAccount | None:
        """The account of the one who subscribes, None where nothing is counted for it."""
        return None

    def deliver(self, message: Message, subscriptions: list[Subscription]) -> None:
        """Encode and queue one message that matched `subscriptions` (at least one)."""
        raise AssertionError(self.client_name)


class EndpointSubscriber(Subscriber):
    """A subscriber that keeps guaranteed messages: the part of `Endpoint` that routes and message VPNs use.

    `takes_from_all`: every client may publish to it, such as an answer to a temporary queue.
    """

    __slots__ = ("settings", "takes_from_all")

    def __init__(
        self, client_name: str, outbox: Outbox, frame: int, settings: EndpointSettings
    ) -> None:
        super().__init__(client_name, outbox, frame, is_endpoint=True)
        self.settings = settings
        self.takes_from_all = False

    def obstacle(self, message: Message, size: int) -> str:
        """Why this message cannot be taken now, "" when it can."""
        raise AssertionError(self.client_name)


@final
class Subscription:
    """One filter of one subscriber. Options as MQTT 5, 3.8.3.1; `identifier` 0 means none.

    `exception` (a filter that begins with `!`) takes topics away from the subscriber's others. `selector`, unless None,
    lets only messages through whose properties it matches. `granted` is the QoS in the SUBACK; `qos` is 0 while the
    right to receive guaranteed messages is taken away. `suspended`: it is in no route (MessageVpn.suspend).
    `configured`: it comes from the configuration, and counts towards no bound of clients. `counted` bytes of its filter
    count in the `account` of its subscriber. `deliver_always`: it gets a
    copy of each deliver-to-one message; so does a link whose `dto_priority` is 0. Links with 1 to 4 are offered the
    message in that order.
    """

    __slots__ = (
        "account",
        "configured",
        "counted",
        "deliver_always",
        "dto_priority",
        "exception",
        "filter",
        "granted",
        "identifier",
        "no_local",
        "qos",
        "retain_as_published",
        "selector",
        "subscriber",
        "suspended",
    )

    def __init__(
        self,
        filter_: Filter,
        subscriber: Subscriber,
        qos: int = 0,
        no_local: bool = False,
        retain_as_published: bool = False,
        identifier: int = 0,
        deliver_always: bool = False,
        exception: bool = False,
        dto_priority: int = 1,
        selector: Selector | None = None,
    ) -> None:
        self.filter = filter_
        self.exception = exception or filter_.exception
        self.subscriber = subscriber
        self.qos = qos
        self.granted = qos
        self.no_local = no_local
        self.retain_as_published = retain_as_published
        self.identifier = identifier
        self.deliver_always = deliver_always
        self.dto_priority = dto_priority
        self.selector = selector
        self.suspended = False
        self.configured = False
        self.counted = 0
        self.account: MemoryAccount | None = None

    @property
    def key(self) -> str:
        """The filter as written, under which the subscriber keeps it; that of an exception has its `!`."""
        filter_ = self.filter
        return filter_.original if self.exception == filter_.exception else f"!{filter_.original}"

    @property
    def plain(self) -> bool:
        """True when any frame of the subscriber's protocol will do, whoever published and however."""
        return not (
            self.no_local or self.retain_as_published or self.identifier or self.deliver_always
        )
