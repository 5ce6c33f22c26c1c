"""Loop control in flight: the path of visited VPNs, and the hop limit behind it (LINK-29, LINK-36).

A VPN is named by its router and its own name together: three VPNs of one router are three places,
and a chain through all of them is no loop.
"""

from collections.abc import Sequence

from vpnrouter import limits
from vpnrouter.core.discards import LOOP_DETECTED, TTL_EXCEEDED


def vpn_id(router: str, vpn: str) -> str:
    """The name of a VPN in a path, "router/vpn".

    Raises ValueError when a path cannot carry it: an empty part, a slash in the router's name (the
    first slash divides), or more than LINK_PATH_ENTRY_BYTES in UTF-8.
    """
    if not router or not vpn or "/" in router:
        raise ValueError(f"{router!r} and {vpn!r} do not name a message VPN in a path")
    name = f"{router}/{vpn}"
    if len(name.encode("utf-8")) > limits.LINK_PATH_ENTRY_BYTES:
        raise ValueError(f"{name!r} is longer than {limits.LINK_PATH_ENTRY_BYTES} bytes")
    return name


def path_for(came_by: Sequence[str], own: str) -> list[str]:
    """The path to send along: the one the message came by, then the sending VPN.

    `came_by` is empty for a message published here.
    """
    return [*came_by, own]


def may_enter(path: Sequence[str], vpn: str) -> bool:
    """Whether a message with this path has not been in `vpn`; asked by sender and by receiver."""
    return vpn not in path


def within_hops(hops: int, max_ttl: int) -> bool:
    """Whether a message that crossed `hops` links may enter over a bridge with `max_ttl`."""
    return hops <= max_ttl


def why_not(path: Sequence[str], hops: int, own: str, max_ttl: int) -> str:
    """The receiver's verdict: "" when the message may enter `own`, else the discard reason.

    A VPN visited before counts before the hops: it is the more precise reason.
    """
    if not may_enter(path, own):
        return LOOP_DETECTED
    if not within_hops(hops, max_ttl):
        return TTL_EXCEEDED
    return ""
