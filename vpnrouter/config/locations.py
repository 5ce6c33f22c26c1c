"""Limits where bridges and connectors may connect that a user with limited rights configured over the API.

The locations in the router's own file are the operator's. Without this rule a limited user could make the router
connect to hosts that the user cannot reach: services of the router's machine, or the metadata of its cloud.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final, final

from vpnrouter.config.objects import objects_in, texts_at
from vpnrouter.config.problem import Path, Problem, show_path
from vpnrouter.settings.allowed_location import AllowedLocation, parse_allowed_location
from vpnrouter.settings.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vpnrouter.config.parse import Document
    from vpnrouter.config.problem_list import ProblemList
    from vpnrouter.config.router import Loaded, RouterConfig
    from vpnrouter.settings.kinds import Kind
    from vpnrouter.settings.schema import AttributePath

    IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_OBJECT: Final = 4
"""Steps of a path that lead to an object of a message VPN."""


@final
class Locations:
    """The locations that a configuration allows; without a configuration, all."""

    def __init__(self, loaded: Loaded | None = None) -> None:
        self._patterns: tuple[AllowedLocation, ...] = ()
        self._limited: frozenset[str] = frozenset()
        self._own: frozenset[tuple[str, str]] = frozenset()
        if loaded is not None and loaded.overlay is not None:
            config = loaded.config
            self._patterns = tuple(map(parse_allowed_location, config.bridging.allowed_locations))
            self._limited = _limited(config)
            self._own = frozenset(_written(loaded.base))

    def asks(self, msg_vpn: str, location: str) -> bool:
        """Return whether this location of a bridge or connector of this message VPN has to be allowed."""
        return msg_vpn in self._limited and (msg_vpn, location) not in self._own

    def allow(self, host: str, address: str, port: int) -> bool:
        """Return whether a location may be dialled whose host has this IP address."""
        found = _address(address)
        if found is None:
            return False
        fitting = [pattern for pattern in self._patterns if port in pattern.ports]
        if any(one.network is not None and found in one.network for one in fitting):
            return True
        # The owner of a name may give it the address of this machine at any time.
        if _is_near(found):
            return False
        return not self._patterns or any(one.names(host.lower().rstrip(".")) for one in fitting)

    def may_be_allowed(self, host: str, port: int) -> bool:
        """Return whether a location may turn out to be allowed, before its name is looked up."""
        if _address(host) is not None:
            return self.allow(host, host, port)
        fitting = [pattern for pattern in self._patterns if port in pattern.ports]
        if any(one.network is not None for one in fitting):
            return True
        plain = host.lower().rstrip(".")
        if plain == "localhost" or plain.endswith(".localhost"):
            return False
        return not self._patterns or any(one.names(plain) for one in fitting)


def refused_locations(loaded: Loaded) -> dict[Path, str]:
    """Return the locations that are not allowed, by their paths."""
    rules = Locations(loaded)
    refused = {}
    for kind, place in _dialled():
        for path, each in objects_in(loaded.config, kind):
            value = each
            for key in place.path:
                value = getattr(value, key)
            for inner, text in texts_at(value, ()):
                found = place.attribute.dials(each, text) if place.attribute.dials else None
                if found is None or not rules.asks(str(path[1]), text):
                    continue
                if not rules.may_be_allowed(found.host, found.port):
                    refused[*path, *place.path, *inner] = text
    return refused


def _dialled() -> Iterator[tuple[Kind, AttributePath]]:
    """Yield the attributes that say where the router connects to."""
    for kind in KINDS:
        for place in () if kind.settings is None else kind.settings.places:
            if place.attribute.dials is not None:
                yield kind, place


def location_problems(loaded: Loaded, current: Loaded) -> list[Problem]:
    """Return errors about new locations in a change that are not allowed. Those that were there before may stay."""
    before = {(path[:_OBJECT], text) for path, text in refused_locations(current).items()}
    return [
        Problem(loaded.positions.value_at(path), "error", f"{show_path(path)}: {refusal(text)}")
        for path, text in refused_locations(loaded).items()
        if (path[:_OBJECT], text) not in before
    ]


def check_locations(problems: ProblemList, loaded: Loaded) -> None:
    """Warn of locations that are not allowed: the router starts, but does not dial them."""
    for path, text in refused_locations(loaded).items():
        problems.warning(path, f"{refusal(text)}: it will not be dialled")


def refusal(location: str) -> str:
    """Return the error for a location, the same whatever answers at its address."""
    return f"{location} is no allowed location (bridging.allowed_locations of the router's file)"


def _limited(config: RouterConfig) -> frozenset[str]:
    """Return message VPNs that an admin limited to some message VPNs may change."""
    return frozenset(
        name
        for user in config.management.users.values()
        if user.role == "admin" and user.msg_vpns is not None
        for name in user.msg_vpns
    )


def _written(document: Document | None) -> Iterator[tuple[str, str]]:
    """Yield the message VPN and each location that is written in the router's own file."""
    if document is None:
        return
    for kind, place in _dialled():
        for path, text in texts_at(document.data, (*kind.pattern, *place.path)):
            yield str(path[1]), text


def _address(text: str) -> IpAddress | None:
    """Return the IP address of a text, IPv4 where it is embedded in IPv6; None for a name."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    inner = (
        address.ipv4_mapped or address.sixtofour
        if isinstance(address, ipaddress.IPv6Address)
        else None
    )
    return inner or address


def _is_near(found: IpAddress) -> bool:
    nowhere = isinstance(found, ipaddress.IPv4Address) and found in ipaddress.ip_network(
        "0.0.0.0/8"
    )
    return (
        nowhere
        or found.is_loopback
        or found.is_link_local
        or found.is_unspecified
        or found.is_multicast
    )
