"""Limits where bridges and connectors may connect that a user with limited rights configured over the API.

The locations in the router's own file are the operator's. Without this rule a limited user could make the router
connect to hosts that the user cannot reach: services of the router's machine, or the metadata of its cloud.
"""

from __future__ import annotations

import ipaddress
import json
from typing import TYPE_CHECKING, Final, NamedTuple, final

from vpnrouter.config.objects import objects_in, texts_at
from vpnrouter.config.problem import Path, Problem, show_path
from vpnrouter.settings.allowed_location import AllowedLocation, parse_allowed_location
from vpnrouter.settings.kinds import KINDS, children_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vpnrouter.config.parse import Document, Plain
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
        self._misdirected: frozenset[tuple[str, str]] = frozenset()
        if loaded is not None and loaded.overlay is not None:
            config = loaded.config
            self._patterns = tuple(map(parse_allowed_location, config.bridging.allowed_locations))
            self._limited = _limited(config)
            self._own = frozenset(_written(loaded.base))
            self._misdirected = frozenset(
                (str(path[1]), text) for path, text in misdirected_secrets(loaded).items()
            )

    def forbids(self, msg_vpn: str, location: str) -> bool:
        """Return whether a secret of the router's own file would go to this location, which is not in that file."""
        return (msg_vpn, location) in self._misdirected

    def asks(self, msg_vpn: str, location: str) -> bool:
        """Return whether this location of a bridge or connector of this message VPN has to be allowed."""
        return msg_vpn in self._limited and (msg_vpn, location) not in self._own

    def allow(self, host: str, address: str, port: int, *, own: bool = False) -> bool:
        """Return whether a location may be dialled whose host has this IP address; `own` says that it is one of the
        router's machine.
        """
        found = _address(address)
        if found is None:
            return False
        fitting = [pattern for pattern in self._patterns if port in pattern.ports]
        if any(one.network is not None and found in one.network for one in fitting):
            return True
        # The owner of a name may give it the address of this machine at any time.
        if own or _is_near(found):
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


def misdirected_secrets(loaded: Loaded) -> dict[Path, str]:
    """Return the locations, by their paths, to which the overlay would have a secret of the router's own file sent: a
    limited user could have it sent to himself, and has no right to read it.
    """
    base, merged = loaded.base, loaded.positions
    if base is None or loaded.overlay is None:
        return {}
    limited = _limited(loaded.config)
    found: dict[Path, str] = {}
    for kind in KINDS:
        if not (kind.is_of_vpn and kind.leads_out):
            continue
        for path, _ in objects_in(loaded.config, kind):
            ours, theirs = base.value_of(path), merged.value_of(path)
            if path[1] not in limited or not isinstance(ours, dict) or not isinstance(theirs, dict):
                continue
            secrets = _sent(kind, ours)
            if not secrets & _sent(kind, theirs):
                continue
            known = {(one.text, one.guards) for one in _ways_out(kind, ours)}
            for one in _ways_out(kind, theirs):
                own = one.secret is not None and one.secret not in secrets
                if (one.text, one.guards) not in known and not own:
                    found[*path, *one.path] = one.text
    return found


class _WayOut(NamedTuple):
    """A destination of an object: the path below that, what guards its secret, and a secret for it alone."""

    path: Path
    text: str
    guards: tuple[str, ...]
    secret: str | None


def _levels(kind: Kind) -> Iterator[Kind]:
    """Yield a kind and those below it that declare attributes."""
    yield kind
    yield from (each for each in children_of(kind) if each.settings is not None)


def _places(kind: Kind) -> tuple[AttributePath, ...]:
    return () if kind.settings is None else kind.settings.places


def _below(kind: Kind, level: Kind, written: Plain) -> Iterator[tuple[Path, Plain]]:
    """Yield what is written of each object of a level in an object of `kind`, which may be that itself."""
    if level is kind:
        yield (), written
        return
    inner = _value(written, level.at)
    items = inner.items() if isinstance(inner, dict) else enumerate(inner or ())
    for name, each in items:
        yield (*level.at, name), each


def _value(written: Plain, path: tuple[str, ...]) -> Plain:
    for key in path:
        written = written.get(key) if isinstance(written, dict) else None
    return written


def _texts(written: Plain, places: Iterable[AttributePath]) -> list[str]:
    """Return the values of attributes as texts that can be compared, those that say nothing left out."""
    found = (_value(written, place.path) for place in places)
    return [json.dumps(each, sort_keys=True, default=str) for each in found if each is not None]


def _sent(kind: Kind, written: Plain) -> set[str]:
    """Return the secrets in what is written of an object that are sent to whoever is dialled."""
    return {
        text
        for level in _levels(kind)
        for _, each in _below(kind, level, written)
        for text in _texts(each, (place for place in _places(level) if place.attribute.sent))
    }


def _ways_out(kind: Kind, written: Plain) -> Iterator[_WayOut]:
    """Yield the destinations in what is written of an object."""
    for level in _levels(kind):
        dialled = [place for place in _places(level) if place.attribute.dials is not None]
        for path, each in _below(kind, level, written) if dialled else ():
            guards = tuple(
                f"{place.name} {_value(at, place.path) or place.attribute.default}"
                for of, at in ((kind, written), (level, each))
                for place in _places(of)
                if place.attribute.guards
            )
            sent = [place for place in _places(level) if place.attribute.sent]
            own = _texts(each, sent) if level is not kind else []
            for place in dialled:
                for inner, text in texts_at(_value(each, place.path), ()):
                    where = (*path, *place.path, *inner)
                    yield _WayOut(where, text, guards, own[0] if own else None)


def location_problems(loaded: Loaded, current: Loaded) -> list[Problem]:
    """Return errors about new locations in a change that are not allowed. Those that were there before may stay."""
    found = []
    for refused, reason in ((refused_locations, refusal), (misdirected_secrets, _misdirection)):
        before = {(path[:_OBJECT], text) for path, text in refused(current).items()}
        found += [
            Problem(loaded.positions.value_at(path), "error", f"{show_path(path)}: {reason(text)}")
            for path, text in refused(loaded).items()
            if (path[:_OBJECT], text) not in before
        ]
    return found


def check_locations(problems: ProblemList, loaded: Loaded) -> None:
    """Warn of locations that are not allowed: the router starts, but does not dial them."""
    for path, text in refused_locations(loaded).items():
        problems.warning(path, f"{refusal(text)}: it will not be dialled")
    for path, text in misdirected_secrets(loaded).items():
        problems.warning(path, f"{_misdirection(text)}; it will not be dialled")


def refusal(location: str) -> str:
    """Return the error for a location, the same whatever answers at its address."""
    return f"{location} is no allowed location (bridging.allowed_locations of the router's file)"


def _misdirection(location: str) -> str:
    return f"{location} is not where the router's file has its password sent: give another password with it"


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


_EMBEDDING: Final = tuple(
    ipaddress.IPv6Network(text) for text in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")
)
"""Networks whose addresses end in one of IPv4 that they lead to (RFC 4291, 2765, 6052)."""

_NEAR: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        # What a host means by itself, and everybody in the segment.
        *("0.0.0.0/8", "255.255.255.255/32"),
        # Translators and tunnels of the site, which lead to any address of IPv4.
        *("64:ff9b:1::/48", "2001::/32"),
        # Addresses of a site, out of use, and where clouds have what a machine may know alone.
        *("fec0::/10", "fd00:ec2::/32", "100.100.100.200/32", "168.63.129.16/32"),
    )
)
"""Networks that lead to the router's own machine or segment, besides those that say so by their kind."""


def _address(text: str) -> IpAddress | None:
    """Return the IP address of a text, IPv4 where it is embedded in IPv6; None for a name."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if any(address in network for network in _EMBEDDING):
        return ipaddress.IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or address


def _is_near(found: IpAddress) -> bool:
    return (
        found.is_loopback
        or found.is_link_local
        or found.is_unspecified
        or found.is_multicast
        or any(found in network for network in _NEAR)
    )
