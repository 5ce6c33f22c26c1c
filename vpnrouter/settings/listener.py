"""Listeners: the addresses that a router answers on, and their TLS."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from vpnrouter import limits
from vpnrouter.settings import names
from vpnrouter.settings.address import Address, check_bind, parse_bind
from vpnrouter.settings.schema import Effect, Secret, Settings, Text, attribute, group

Protocol = Literal[
    "mqtt",
    "mqtts",
    "ws",
    "wss",
    "amqp",
    "amqps",
    "amqpws",
    "amqpwss",
    "link",
    "links",
    "http",
    "https",
]

TLS_PROTOCOLS: Final = frozenset({"mqtts", "wss", "amqps", "amqpwss", "links", "https"})
"""Protocols that need `tls`; the others must not have it."""

AMQP_PROTOCOLS: Final = frozenset({"amqp", "amqps", "amqpws", "amqpwss"})
"""Protocols of AMQP clients."""

WEBSOCKET_PROTOCOLS: Final = frozenset({"ws", "wss", "amqpws", "amqpwss"})
"""Protocols within a WebSocket."""

CLIENT_PROTOCOLS: Final = frozenset({"mqtt", "mqtts", "ws", "wss"}) | AMQP_PROTOCOLS
"""Protocols that clients log in to a message VPN with; the others serve all message VPNs."""

MANAGEMENT_PROTOCOLS: Final = frozenset({"http", "https"})
"""Protocols of the management API."""

_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s?#@]{1,260}|null", re.IGNORECASE)
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
_STAND_BY: Final = re.compile(
    r"(amqps?|amqpwss?)://([^/:@\s]{1,255}|\[[0-9a-fA-F:.]+\])(?::([0-9]{1,5}))?"
)

_PORTS: Final = {"amqp": 5672, "amqps": 5671, "amqpws": 80, "amqpwss": 443}


def _check_origin(text: str) -> str:
    if text not in {"*", "same-host"} and not _ORIGIN.fullmatch(text):
        raise ValueError(f"{text[:80]} is no origin: SCHEME://HOST[:PORT], same-host or *")
    return text


def _check_host_name(text: str) -> str:
    if not _HOST_NAME.fullmatch(text):
        raise ValueError(f"{text[:80]} is no host name; write it without scheme and port")
    return text


class StandByServer(NamedTuple):
    """A server that AMQP clients may turn to."""

    scheme: str
    host: str
    port: int


def parse_stand_by(text: str) -> StandByServer:
    """Return the parts of an address of `failover_servers`. Raises ValueError for none."""
    found = _STAND_BY.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text[:80]} is no server: amqp[s]://HOST[:PORT] or amqpws[s]://HOST[:PORT]"
        )
    scheme, host, port = found.groups()
    number = _PORTS[scheme] if port is None else int(port)
    if not 0 < number < 65_536:
        raise ValueError(f"{text[:80]}: a port is from 1 to 65535")
    return StandByServer(scheme, host.strip("[]"), number)


def _check_stand_by(text: str) -> str:
    parse_stand_by(text)
    return text


# A handshake that is over is not looked at again.
class ListenerTls(Settings, effect=Effect.IN_PLACE, held=False):
    """Certificate and key of a TLS listener (`mqtts`, `wss`, `amqps`, `amqpwss`, `links`, `https`)."""

    certificate: str = attribute(
        None, text=names.PATH, file=True, examples=("./certs/edge.pem",), required=True
    )
    """PEM file with the listener's certificate and, after it, the chain."""

    key: str = attribute(
        None, text=names.PATH, file=True, examples=("./certs/edge.key",), required=True
    )
    """PEM file with the private key."""

    key_password: Secret | None = attribute(None, text=Text(0, limits.PASSWORD_BYTES))
    """What decrypts the private key."""

    min_version: Literal["1.2", "1.3"] = attribute("1.2")
    """Oldest TLS version that a client may speak."""

    client_ca: str | None = attribute(None, text=names.PATH, file=True)
    """PEM file with the authorities whose client certificates are taken; without it none is asked
    for."""

    client_crl: str | None = attribute(None, text=names.PATH, file=True)
    """PEM file with a revocation list of each authority that issues client certificates; needs
    client_ca."""


class Listener(Settings, effect=Effect.IN_PLACE, held=False):
    """One address and the protocol spoken there."""

    protocol: Protocol = attribute(None, examples=("mqtt",), key=True)
    """mqtt(s): MQTT 3.1.1 and 5; ws(s): MQTT over WebSocket; amqp(s): AMQP 1.0; amqpws(s): AMQP 1.0
    over WebSocket; link(s): bridges; http(s): management. The forms with an s speak TLS."""

    bind: str = attribute(None, check=check_bind, examples=("127.0.0.1:1883",), key=True)
    """HOST:PORT or [IPV6]:PORT. Port 0 lets the system choose; the ready line tells which it
    chose."""

    msg_vpn: str | None = attribute(
        None, text=names.MSG_VPN, examples=("blue",), effect=Effect.NEXT_LOGIN
    )
    """Message VPN of the clients that connect here; without it they log in as user@vpn, AMQP
    clients also with its name as hostname. Client protocols only."""

    enabled: bool = attribute(True, effect=Effect.REBIND)
    """Whether the address is bound."""

    max_connection_count: int = attribute(
        limits.VPN_CONNECTIONS, least=1, most=limits.VPN_CONNECTIONS
    )
    """Connections open at a time on this address; for management, requests at a time. Beyond: closed at once."""

    allowed_origins: tuple[str, ...] = attribute(
        ("same-host",), check=_check_origin, longest=limits.ALLOWED_ORIGINS
    )
    """Whose web pages may connect over WebSocket: origins as browsers send them
    (https://app.example.org), same-host (pages of this host, whatever their port), or * for all.
    A client that sends no Origin is no browser, and is not held up."""

    hosts: tuple[str, ...] = attribute(
        (),
        check=_check_host_name,
        longest=limits.ALLOWED_ORIGINS,
        examples=(["broker.example.org"],),
    )
    """Names of this host that same-host allows on listeners without TLS, besides addresses, localhost, a
    name in bind and the machine's own name: any other name may belong to somebody who makes it lead here."""

    failover_servers: tuple[str, ...] = attribute(
        (),
        check=_check_stand_by,
        longest=limits.FAILOVER_SERVERS,
        examples=(["amqps://standby.example.org:5671"],),
    )
    """Where AMQP clients are told to go when this router is away: SCHEME://HOST[:PORT], in this
    order. Protocols of AMQP only."""

    tls: ListenerTls | None = group(ListenerTls, optional=True, effect=Effect.REBIND)
    """Certificate and key; needed by the protocols with an s, refused by the others."""

    @property
    def address(self) -> Address:
        """`bind` taken apart."""
        return parse_bind(self.bind)


def server_certificate(listeners: Iterable[Listener]) -> ListenerTls | None:
    """Return the server certificate of the router: that of its first TLS listener, links first."""
    order = ("links", "mqtts", "wss", "amqps", "amqpwss", "https")
    with_tls = [
        listener
        for listener in listeners
        if listener.tls is not None and listener.protocol in order
    ]
    with_tls.sort(key=lambda each: order.index(each.protocol))
    return with_tls[0].tls if with_tls else None
