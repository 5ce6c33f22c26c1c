"""Patterns of the locations where bridges may connect: networks, names and domains, with ports."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_PATTERN: Final = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<ports>[0-9-]+))?")
_NAME: Final = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_PORTS: Final = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_LAST_PORT: Final = 65_535


class AllowedLocation(NamedTuple):
    """A network, or a name in lower case (with `*.`: all names below it), and the ports that it allows."""

    network: Network | None
    name: str
    ports: range

    def names(self, host: str) -> bool:
        """Return whether the pattern matches this host name."""
        if self.name.startswith("*."):
            return host.endswith(self.name[1:])
        return bool(self.name) and host == self.name


def parse_allowed_location(text: str) -> AllowedLocation:
    """Return what a pattern allows. Raises ValueError for none."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(
            "an allowed location is NETWORK, HOST or *.DOMAIN, with :PORT or :PORT-PORT behind"
        )
    ports = range(1, _LAST_PORT + 1)
    if match["ports"]:
        bounds = _PORTS.fullmatch(match["ports"])
        first = int(bounds[1]) if bounds else 0
        last = int(bounds[2] or bounds[1]) if bounds else 0
        if not 0 < first <= last <= _LAST_PORT:
            raise ValueError("a port is a number from 1 to 65535, or two with - in between")
        ports = range(first, last + 1)
    host = match["six"] or match["host"]
    try:
        return AllowedLocation(ipaddress.ip_network(host), "", ports)
    except ValueError:
        if match["six"] or not _NAME.fullmatch(host) or re.fullmatch(r"[0-9./]+", host):
            raise ValueError(
                f"{host} is neither a network such as 10.0.0.0/8 nor a host name"
            ) from None
    return AllowedLocation(None, host.lower(), ports)


def check_allowed_location(text: str) -> str:
    """Raise ValueError for what is no pattern; else return it."""
    parse_allowed_location(text)
    return text
