"""Addresses of listeners and of remote routers: `HOST:PORT`, `[IPV6]:PORT`, or `v:ROUTER`.

A location may leave the port out. No name is looked up here.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from vpnrouter import limits
from vpnrouter.settings.schema import Text

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
        if host.isdecimal():
            raise ValueError(
                f'an address needs a host: "127.0.0.1:{host}", or "0.0.0.0:{host}" for all addresses'
            )
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
    if "://" in text:
        raise ValueError("an address has no scheme: HOST:PORT or [IPV6]:PORT")
    if ":" in rest:
        raise ValueError("an IPv6 address stands in brackets: [IPV6]:PORT")
    if host in ("", "*") and colon:
        raise ValueError(
            "an address needs a host: 0.0.0.0:PORT for all of IPv4, [::]:PORT for all of IPv6"
        )
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


def check_bind(text: str) -> str:
    """Raise ValueError for what is no address to bind; else return it."""
    parse_bind(text)
    return text


def check_location(text: str) -> str:
    """Raise ValueError for what is no location; else return it."""
    router = router_of(text)
    if router is None:
        parse_location(text)
    elif not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", router):
        raise ValueError("after v: there must be a router name")
    return text


LOCATION: Final = Text(1, limits.LOCATION_LENGTH, check_location)
