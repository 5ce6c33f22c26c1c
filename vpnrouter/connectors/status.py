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
    waiting_msg_count: int
    """Guaranteed messages that wait for it, or are on their way: of its queue, or kept of its topics."""
    refused: str = ""
    """Why it carries nothing, or less than it should; "" where it works."""


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
    client_name: str
    """Under which `clients` shows what the connector sends and receives."""
    rx_msg_count: int
    """Messages that came in over the present connection."""
    tx_msg_count: int
    """Messages that went out over it."""
    waiting_msg_count: int
    """Guaranteed messages that wait for its links, or are on their way and not acknowledged."""
    memory_bytes: int
    """Bytes that the router keeps in memory for it: unfinished messages, what waits to be sent, what is not
    acknowledged."""
    links: list[ConnectorLinkStatus] = field(default_factory=list)
