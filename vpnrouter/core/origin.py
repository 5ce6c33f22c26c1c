"""The address of a peer, and the key that it is counted by."""

from __future__ import annotations

import ipaddress


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that `text` is, IPv4 for an IPv4-mapped IPv6 address; None where it is no address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def origin_of(peer: str) -> str:
    """The key that attempts are counted by: the address, or in IPv6 its /64 network, all of which a peer may have."""
    if ":" not in peer:
        return peer
    address = address_of(peer)
    if isinstance(address, ipaddress.IPv6Address):
        return f"{ipaddress.IPv6Address(int(address) >> 64 << 64)}/64"
    return peer if address is None else str(address)
