"""Listeners: the addresses that a router answers on."""

from typing import Annotated, Final, Literal

from pydantic import Field

from vpnrouter import limits
from vpnrouter.config.address import Address, Bind, parse_bind
from vpnrouter.config.model import Model
from vpnrouter.config.names import MsgVpnName
from vpnrouter.config.tls import ListenerTls

TLS_PROTOCOLS: Final = frozenset({"mqtts", "wss", "links", "https"})
"""Protocols that need `tls`; the others must not have it."""

CLIENT_PROTOCOLS: Final = frozenset({"mqtt", "mqtts", "ws", "wss"})
"""Protocols that clients log in to a message VPN with; the others serve all message VPNs."""


class Listener(Model):
    """One address and the protocol spoken there."""

    protocol: Annotated[
        Literal["mqtt", "mqtts", "ws", "wss", "link", "links", "http", "https"],
        Field(examples=["mqtt"]),
    ]
    """mqtt(s): MQTT 3.1.1 and 5; ws(s): MQTT over WebSocket; link(s): bridges; http(s): management.
    The forms with an s speak TLS."""

    bind: Annotated[Bind, Field(examples=["127.0.0.1:1883"])]
    """HOST:PORT or [IPV6]:PORT. Port 0 lets the system choose; the ready line tells which it
    chose."""

    msg_vpn: Annotated[MsgVpnName | None, Field(examples=["blue"])] = None
    """Message VPN of the clients that connect here; without it they log in as user@vpn. Client
    protocols only."""

    enabled: bool = True
    """Whether the address is bound."""

    max_connection_count: Annotated[int, Field(ge=1, le=limits.VPN_CONNECTIONS)] = (
        limits.VPN_CONNECTIONS
    )
    """Connections open at a time on this address. Beyond: closed at once."""

    tls: ListenerTls | None = None
    """Certificate and key; needed by the protocols with an s, refused by the others."""

    @property
    def address(self) -> Address:
        """`bind` taken apart."""
        return parse_bind(self.bind)
