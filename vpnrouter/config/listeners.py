"""Listeners: the addresses that a router answers on, their TLS, and addresses of remote message VPNs.

Addresses: where a listener binds and where a remote message VPN is found.

Forms: `HOST:PORT`, `[IPV6]:PORT`; a location may leave the port out or name a router, `v:ROUTER`.
No name is looked up here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import AfterValidator, Field

from vpnrouter import limits
from vpnrouter.config.model import FilePath, Many, Model, MsgVpnName
from vpnrouter.config.secrets import Secret


class ListenerTls(Model):
    """Certificate and key of a TLS listener (`mqtts`, `wss`, `links`, `https`)."""

    certificate: Annotated[FilePath, Field(examples=["./certs/edge.pem"])]
    """PEM file with the listener's certificate and, after it, the chain."""

    key: Annotated[FilePath, Field(examples=["./certs/edge.key"])]
    """PEM file with the private key."""

    key_password: Secret | None = None
    """What decrypts the private key."""

    min_version: Literal["1.2", "1.3"] = "1.2"
    """Oldest TLS version that a client may speak."""

    client_ca: FilePath | None = None
    """PEM file with the authorities whose client certificates are taken; without it none is asked
    for."""

    client_crl: FilePath | None = None
    """PEM file with a revocation list of each authority that issues client certificates; needs
    client_ca."""


LINK_PORT: Final = 55555
"""Port of a location that names none, as in the field."""

LINK_TLS_PORT: Final = 55443
"""Port of a location with TLS that names none, as in the field."""

_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_BRACKETED: Final = re.compile(r"\[([^\[\]]*)\](?::(.*))?")
_IPV6: Final = re.compile(r"[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_LAST_PORT: Final = 65535


class Address(NamedTuple):
    """A host name or literal address (IPv6 without brackets) and a port, 0..65535."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bind(text: str) -> Address:
    """Take `HOST:PORT` or `[IPV6]:PORT` apart. Port 0 lets the system choose.

    Raises:
        ValueError: the text has another form.
    """
    host, port = _split(text)
    if port is None:
        raise ValueError("an address needs a port: HOST:PORT or [IPV6]:PORT")
    return Address(host, _port(port))


def parse_location(text: str, *, tls_enabled: bool = False) -> Address:
    """Take `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT` apart.

    Raises:
        ValueError: the text has another form, or port 0, which nothing can dial.
    """
    if len(text) > limits.LOCATION_LENGTH:
        raise ValueError(
            f"a location has {len(text)} characters, at most {limits.LOCATION_LENGTH} are allowed"
        )
    host, port = _split(text)
    if port is None:
        return Address(host, LINK_TLS_PORT if tls_enabled else LINK_PORT)
    number = _port(port)
    if number == 0:
        raise ValueError("a location needs a port from 1 to 65535, not 0")
    return Address(host, number)


def router_of(location: str) -> str | None:
    """The router that a location of the form `v:ROUTER` names; None for any other form."""
    return location[2:] if location.startswith("v:") else None


def _split(text: str) -> tuple[str, str | None]:
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed:
        host, port = bracketed.group(1), bracketed.group(2)
        if ":" not in host or not _IPV6.fullmatch(host) or not _is_ipv6(host):
            raise ValueError("between the brackets there must be an IPv6 address")
        return host, port
    host, colon, rest = text.partition(":")
    if ":" in rest:
        raise ValueError("an IPv6 address stands in brackets: [IPV6]:PORT")
    if not _HOST.fullmatch(host):
        raise ValueError("an address is HOST:PORT or [IPV6]:PORT")
    return host, rest if colon else None


def _is_ipv6(host: str) -> bool:
    # Imported late: most configurations hold no IPv6 address, and start-up time counts.
    import ipaddress

    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


def _port(text: str) -> int:
    if not _PORT.fullmatch(text) or int(text) > _LAST_PORT:
        raise ValueError("a port is a number from 0 to 65535")
    return int(text)


def _check_bind(text: str) -> str:
    parse_bind(text)
    return text


def _check_location(text: str) -> str:
    router = router_of(text)
    if router is None:
        parse_location(text)
    elif not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", router):
        raise ValueError("after v: there must be a router name")
    return text


Bind = Annotated[str, AfterValidator(_check_bind)]
Location = Annotated[str, AfterValidator(_check_location)]


TLS_PROTOCOLS: Final = frozenset({"mqtts", "wss", "links", "https"})
"""Protocols that need `tls`; the others must not have it."""

_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/\\s?#@]{1,260}|null", re.IGNORECASE)

CLIENT_PROTOCOLS: Final = frozenset({"mqtt", "mqtts", "ws", "wss"})
"""Protocols that clients log in to a message VPN with; the others serve all message VPNs."""

MANAGEMENT_PROTOCOLS: Final = frozenset({"http", "https"})
"""Protocols of the management API."""


def _origin(text: str) -> str:
    if text not in {"*", "same-host"} and not _ORIGIN.fullmatch(text):
        raise ValueError(f"{text[:80]} is no origin: SCHEME://HOST[:PORT], same-host or *")
    return text


Origin = Annotated[str, AfterValidator(_origin)]


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

    allowed_origins: Annotated[
        Many[Origin],
        Field(max_length=limits.ALLOWED_ORIGINS),
    ] = ("same-host",)
    """Whose web pages may connect over ws and wss: origins as browsers send them
    (https://app.example.org), same-host (pages of this host, whatever their port), or * for all.
    A client that sends no Origin is no browser, and is not held up."""

    tls: ListenerTls | None = None
    """Certificate and key; needed by the protocols with an s, refused by the others."""

    @property
    def address(self) -> Address:
        """`bind` taken apart."""
        return parse_bind(self.bind)


def server_certificate(listeners: Iterable[Listener]) -> ListenerTls | None:
    """The server certificate of the router: that of its first TLS listener, links first."""
    order = ("links", "mqtts", "wss", "https")
    found = [each for each in listeners if each.tls is not None and each.protocol in order]
    found.sort(key=lambda each: order.index(each.protocol))
    return found[0].tls if found else None
