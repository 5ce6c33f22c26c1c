"""What monitoring shows of connectors."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ConnectorLinkStatus:
    """One link of a connector."""

    msg_vpn_name: str
    connector_name: str
    link_name: str
    direction: str
    """`in` or `out`."""
    source: str
    target: str
    quality_of_service: str
    enabled: bool
    state: str
    """`disabled`, `down`, `opening`, `up`, `held`, `refused` or `stopped`."""
    state_reason: str
    """Why it carries nothing, or less than it should; "" where it works."""
    state_since: int
    """Seconds since the state began."""
    waiting_msg_count: int
    """Guaranteed messages that wait for it, or are on their way: of its queue, kept of its topics, or set aside."""
    parked_msg_count: int
    """Messages that the provider has refused and the link has parked."""
    msg_count: int
    """Messages that came from the provider, or were taken out to be sent to it."""
    byte_count: int
    """Their bytes."""
    delivered_msg_count: int
    """Those that the other side has accepted, or was sent at most once."""
    duplicate_msg_count: int
    """Those that came again, and were left out."""
    returned_msg_count: int
    """Those that went back to where they came from, to be sent again."""
    dead_letter_msg_count: int
    """Those that the link has given up: dead letters, or parked."""
    discarded_msg_count: int
    """Those that were discarded for the reasons of `discards`."""
    in_flight_msg_count: int
    """Those whose outcome is not known yet."""
    refused_msg_count: int
    """How often the other side has refused a message."""
    average_byte_rate: int
    average_msg_rate: int
    byte_rate: int
    """Of `byte_count`, a second, and the average over a minute; likewise of messages."""
    msg_rate: int
    discards: dict[str, int] = field(default_factory=dict)
    """How many were discarded, by reason."""
    source_type: str = ""
    """`address` at the provider, or `queue` or `topic` of the message VPN."""


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """One connector of a message VPN."""

    msg_vpn_name: str
    connector_name: str
    enabled: bool
    state: str
    """`disabled`, `connecting`, `logging-in`, `up`, `waiting` or `stopped`."""
    provider: str
    """The address that is in use, or is tried next."""
    protocol: str
    """As the provider speaks it, "" before it has answered."""
    uptime: int
    """Seconds since the provider accepted the login, 0 while it is not up."""
    failure: str
    """Why the last attempt or connection ended, "" while it is up."""
    failed_attempts: int
    """Attempts in a row that failed."""
    rx_msg_count: int
    """Messages that its links have brought in."""
    rx_byte_count: int
    """Their bytes."""
    tx_msg_count: int
    """Messages that its links have sent and that were accepted."""
    tx_byte_count: int
    """Bytes of the messages that its links have taken out to be sent."""
    discarded_msg_count: int
    """Messages that were discarded, with those of the provider that no link takes."""
    waiting_msg_count: int
    """Guaranteed messages that wait for its links, or are on their way and not acknowledged."""
    memory_bytes: int
    """Bytes that the router keeps in memory for it: unfinished messages, what waits to be sent, what is not
    acknowledged."""
    average_rx_byte_rate: int
    average_rx_msg_rate: int
    average_tx_byte_rate: int
    average_tx_msg_rate: int
    rx_byte_rate: int
    """Of `rx_byte_count`, a second, and the average over a minute; likewise of the other three."""
    rx_msg_rate: int
    tx_byte_rate: int
    tx_msg_rate: int
    links: list[ConnectorLinkStatus] = field(default_factory=list)
