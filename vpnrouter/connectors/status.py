"""What monitoring shows of connectors, read from a look at one at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from vpnrouter.connectors.inward import InwardLink
from vpnrouter.connectors.link_state import LinkState
from vpnrouter.connectors.machine import PAUSED, Machine, State
from vpnrouter.settings.schema import Value
from vpnrouter.settings.shown import counter, fill, gauge, label, read
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vpnrouter.connectors.outward import OutwardLink
    from vpnrouter.connectors.provider import Provider
    from vpnrouter.settings.connector import Connector, ConnectorLink

_WAYS: Final = {"in": "rx", "out": "tx"}
"""The directions of links, as all metrics call them."""


class ConnectorLinkLook(NamedTuple):
    """A link as it is `written`, and as it runs over the connection of `machine`; `rates` are by the names of their
    attributes.
    """

    msg_vpn: str
    connector: str
    name: str
    written: ConnectorLink
    running: InwardLink | OutwardLink
    machine: Machine
    rates: Mapping[str, int]
    now_ns: int

    @property
    def direction(self) -> str:
        """Whether it brings messages in or takes them out."""
        return "in" if self.written.inbound else "out"

    @property
    def source(self) -> str:
        """Where its messages come from."""
        source = self.written.source
        return source.address or source.queue or source.topic or ""

    @property
    def target(self) -> str:
        """Where they go."""
        target = self.written.target
        return (target.queue or target.topic) if self.written.inbound else target.address

    @property
    def waiting(self) -> int:
        """How many guaranteed messages wait for it, or are on their way."""
        link = self.running
        if isinstance(link, InwardLink):
            return link.in_flight
        return 0 if link.endpoint is None else link.endpoint.spooled_count

    @property
    def reason(self) -> str:
        """Why it carries nothing, or less than it should; "" where nothing is wrong with the link."""
        status = self.running.status
        alone = self.written.connection == "dedicated" and status.state is LinkState.DOWN
        return status.reason or (self.machine.failure if alone else "")

    @property
    def parked(self) -> int:
        """Messages in its parking lot."""
        lot = None if isinstance(self.running, InwardLink) else self.running.parking
        return 0 if lot is None else lot.spooled_count


class ConnectorLook(NamedTuple):
    """A connector as it is `written`, and as it runs; `provider` is the connection, None for none.

    `carried` are messages and bytes that came in, messages that were sent and accepted, and bytes taken out;
    `unclaimed` messages of the provider that no link takes. `rates` are by the names of their attributes.
    """

    msg_vpn: str
    name: str
    written: Connector
    machine: Machine
    provider: Provider | None
    links: list[ConnectorLinkLook]
    carried: tuple[int, int, int, int]
    unclaimed: int
    memory_bytes: int
    rates: Mapping[str, int]
    now_ns: int

    @property
    def up(self) -> bool:
        """Whether the provider has let it in."""
        return self.machine.state is State.UP

    @property
    def state(self) -> str:
        """What it is doing."""
        return PAUSED if self.up and self.written.paused else self.machine.state.value

    @property
    def url(self) -> str:
        """The address that is in use, or is tried next, "" for none."""
        return str(self.machine.url) if self.machine.attempts.urls else ""

    @property
    def discarded(self) -> int:
        """Messages that were discarded."""
        counted = [link.running.counters.discarded.total() for link in self.links]
        return sum(counted) + self.unclaimed


def _rate(name: str) -> Value:
    return read(lambda one: one.rates[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorLinkStatus:
    """One link of a connector, read from a ConnectorLinkLook. Its messages are the sum of all outcomes and of what is
    in flight.
    """

    msg_vpn_name: str = read(lambda one: one.msg_vpn, "", label("msg_vpn"))
    connector_name: str = read(lambda one: one.connector, "", label("connector"))
    link_name: str = read(lambda one: one.name, "", label("link"))
    direction: str = read(
        lambda one: one.direction, "", label("direction", lambda one: _WAYS[one.direction])
    )
    """`in` or `out`."""
    source: str = read(lambda one: one.source, "")
    target: str = read(lambda one: one.target, "")
    quality_of_service: str = read(lambda one: one.written.quality_of_service, "")
    enabled: bool = read(lambda one: one.written.enabled, True)
    connection: str = read(lambda one: one.written.connection, "")
    """`shared` with other links of the connector, or `dedicated`."""
    connection_state: str = read(lambda one: one.machine.state.value, "")
    """What its connection is doing, as a connector's `state`."""
    paused: bool = read(lambda one: one.running.status.paused, False)
    """Whether nothing crosses by it, since it is paused, or its connector."""
    state: str = read(
        lambda one: one.running.status.state.value,
        "",
        metric=gauge(
            "vpnrouter_connector_link_state",
            "What the link is doing, 1: up, opening, paused, held, refused, stopped, down, disabled.",
            "state",
        ),
    )
    """`disabled`, `down`, `opening`, `up`, `paused`, `held`, `refused` or `stopped`."""
    state_reason: str = read(lambda one: one.reason, "")
    """Why it carries nothing, or less than it should; "" where it works."""
    state_since: int = read(
        lambda one: max(0, one.now_ns - one.running.status.since_ns) // SECOND_NS
    )
    """Seconds since the state began."""
    waiting_msg_count: int = read(
        lambda one: one.waiting,
        metric=gauge(
            "vpnrouter_connector_link_waiting_messages",
            "Guaranteed messages that wait for the link, or are on their way.",
            after="vpnrouter_connector_link_in_flight_messages",
        ),
    )
    """Guaranteed messages that wait for it, or are on their way: of its queue, kept of its topics, or set aside."""
    parked_msg_count: int = read(
        lambda one: one.parked,
        metric=gauge(
            "vpnrouter_connector_link_parked_messages",
            "Messages that the provider has refused and the link has parked.",
            sparse=True,
            after="vpnrouter_connector_link_waiting_messages",
        ),
    )
    """Messages that the provider has refused and the link has parked."""
    msg_count: int = read(
        lambda one: one.running.counters.messages,
        metric=counter(
            "vpnrouter_connector_link_messages_total",
            "Messages that came from the provider, or were taken out to be sent to it.",
        ),
    )
    """Messages that came from the provider, or were taken out to be sent to it."""
    byte_count: int = read(
        lambda one: one.running.counters.bytes_,
        metric=counter("vpnrouter_connector_link_bytes_total", "Bytes of these."),
    )
    """Their bytes."""
    delivered_msg_count: int = read(
        lambda one: one.running.counters.delivered,
        metric=counter(
            "vpnrouter_connector_link_delivered_messages_total",
            "Those that the other side has accepted, or was sent at most once.",
        ),
    )
    """Those that the other side has accepted, or was sent at most once."""
    duplicate_msg_count: int = read(
        lambda one: one.running.counters.duplicates,
        metric=counter(
            "vpnrouter_connector_link_duplicate_messages_total",
            "Those that came again, and were left out.",
        ),
    )
    """Those that came again, and were left out."""
    returned_msg_count: int = read(
        lambda one: one.running.counters.returned,
        metric=counter(
            "vpnrouter_connector_link_returned_messages_total",
            "Those that went back to where they came from, to be sent again.",
        ),
    )
    """Those that went back to where they came from, to be sent again."""
    dead_letter_msg_count: int = read(
        lambda one: one.running.counters.dead_letters,
        metric=counter(
            "vpnrouter_connector_link_dead_letter_messages_total",
            "Those that the link has given up: dead letters, or parked.",
        ),
    )
    """Those that the link has given up: dead letters, or parked."""
    discarded_msg_count: int = read(lambda one: one.running.counters.discarded.total())
    """Those that were discarded for the reasons of `discards`."""
    in_flight_msg_count: int = read(
        lambda one: one.running.in_flight,
        metric=gauge(
            "vpnrouter_connector_link_in_flight_messages",
            "Messages whose outcome is not known yet.",
            after="vpnrouter_connector_link_refused_messages_total",
        ),
    )
    """Those whose outcome is not known yet."""
    refused_msg_count: int = read(
        lambda one: one.running.counters.refused,
        metric=counter(
            "vpnrouter_connector_link_refused_messages_total",
            "How often the other side has refused a message.",
            after="vpnrouter_connector_link_discarded_messages_total",
        ),
    )
    """How often the other side has refused a message."""
    average_byte_rate: int = _rate("average_byte_rate")
    average_msg_rate: int = _rate("average_msg_rate")
    byte_rate: int = _rate("byte_rate")
    """Of `byte_count`, a second, and the average over a minute; likewise of messages."""
    msg_rate: int = _rate("msg_rate")
    discards: dict[str, int] = read(
        lambda one: dict(one.running.counters.discarded.counts),
        {},
        metric=counter(
            "vpnrouter_connector_link_discarded_messages_total",
            "Those that were discarded, by reason.",
            "reason",
            after="vpnrouter_connector_link_dead_letter_messages_total",
        ),
    )
    """How many were discarded, by reason."""
    source_type: str = read(lambda one: one.written.source.kind, "")
    """`address` at the provider, or `queue` or `topic` of the message VPN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStatus:
    """One connector of a message VPN, read from a ConnectorLook."""

    msg_vpn_name: str = read(lambda one: one.msg_vpn, "", label("msg_vpn"))
    connector_name: str = read(lambda one: one.name, "", label("connector"))
    up: ClassVar = gauge(
        "vpnrouter_connector_up",
        "1 while the provider has let the connector in.",
        reader=lambda one: int(one.up),
    )
    enabled: bool = read(lambda one: one.written.enabled, True)
    paused: bool = read(lambda one: one.written.paused, False)
    """Whether all its links are paused by it."""
    state: str = read(
        lambda one: one.state,
        "",
        metric=gauge("vpnrouter_connector_state", "What the connector is doing, 1.", "state"),
    )
    """`disabled`, `connecting`, `logging-in`, `up`, `paused` (and up), `waiting`, `idle` or `stopped`. Where links have
    connections of their own: of all its connections the state that is furthest from `up`."""
    provider: str = read(lambda one: one.url, "")
    """The address that is in use, or is tried next; of several connections by that whose state is shown."""
    protocol: str = read(
        lambda one: one.provider.protocol if one.up and one.provider is not None else "", ""
    )
    """As the provider speaks it, "" before it has answered."""
    uptime: int = read(
        lambda one: (one.now_ns - one.machine.since_ns) // SECOND_NS if one.up else 0
    )
    """Seconds since the provider accepted the login, 0 while it is not up."""
    failure: str = read(lambda one: one.machine.failure, "")
    """Why the last attempt or connection ended, "" while it is up."""
    failed_attempts: int = read(
        lambda one: one.machine.failures,
        metric=gauge("vpnrouter_connector_failed_attempts", "Attempts in a row that failed."),
    )
    """Attempts in a row that failed."""
    rx_msg_count: int = read(lambda one: one.carried[0])
    """Messages that its links have brought in."""
    rx_byte_count: int = read(lambda one: one.carried[1])
    """Their bytes."""
    tx_msg_count: int = read(lambda one: one.carried[2])
    """Messages that its links have sent and that were accepted."""
    tx_byte_count: int = read(lambda one: one.carried[3])
    """Bytes of the messages that its links have taken out to be sent."""
    discarded_msg_count: int = read(lambda one: one.discarded)
    """Messages that were discarded, with those of the provider that no link takes."""
    waiting_msg_count: int = read(
        lambda one: sum(link.waiting for link in one.links),
        metric=gauge(
            "vpnrouter_connector_waiting_messages",
            "Guaranteed messages that wait for its links, or are on their way.",
        ),
    )
    """Guaranteed messages that wait for its links, or are on their way and not acknowledged."""
    refused_links: ClassVar = gauge(
        "vpnrouter_connector_refused_links",
        "Links that carry nothing, or less than they should.",
        reader=lambda one: sum(link.reason != "" for link in one.links),
    )
    memory_bytes: int = read(
        lambda one: one.memory_bytes,
        metric=gauge(
            "vpnrouter_connector_memory_bytes",
            "What the router keeps in memory for the connector: unfinished messages, what waits to be sent.",
        ),
    )
    """Bytes that the router keeps in memory for it: unfinished messages, what waits to be sent, what is not
    acknowledged."""
    average_rx_byte_rate: int = _rate("average_rx_byte_rate")
    average_rx_msg_rate: int = _rate("average_rx_msg_rate")
    average_tx_byte_rate: int = _rate("average_tx_byte_rate")
    average_tx_msg_rate: int = _rate("average_tx_msg_rate")
    rx_byte_rate: int = _rate("rx_byte_rate")
    """Of `rx_byte_count`, a second, and the average over a minute; likewise of the other three."""
    rx_msg_rate: int = _rate("rx_msg_rate")
    tx_byte_rate: int = _rate("tx_byte_rate")
    tx_msg_rate: int = _rate("tx_msg_rate")
    links: list[ConnectorLinkStatus] = read(
        lambda one: [fill(ConnectorLinkStatus, each) for each in one.links], []
    )
