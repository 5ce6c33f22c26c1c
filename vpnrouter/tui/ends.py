"""The other end of a bridge, among the routers that are looked at. Pure."""

from collections.abc import Mapping, Sequence

from vpnrouter.bridges.book import client_name_of
from vpnrouter.management.rows import Row


def other_end(row: Row, here: str, bridges: Mapping[str, Sequence[Row]]) -> Row | None:
    """The other end of the bridge `row` of the router named `here`; `bridges` are by router name.

    That is the remote's own bridge on the same connection, or what the remote shows of ours: a bridge of
    another router stands there under the name of its client. None while it is not connected, or its remote
    router is none of these.
    """
    msg_vpn = row["remoteMsgVpnName"]
    if not msg_vpn or not here:
        return None
    # Of two bridges of one name, ours may be shown there only as the client that it is.
    names = (
        row["outboundBridgeName"],
        client_name_of(here, row["msgVpnName"], row["bridgeName"]),
    )
    for other in bridges.get(row["remoteRouterName"], ()):
        if (
            other["msgVpnName"] == msg_vpn
            and other["remoteMsgVpnName"] == row["msgVpnName"]
            and other["bridgeName"] in names
            and other["remoteRouterName"] in {here, ""}
        ):
            return other
    return None


def once(rows: Sequence[tuple[str, Row]]) -> list[tuple[str, Row, Row | None]]:
    """Each bridge of several routers once, with its other end; `rows` are router names with their bridges.

    Of two ends that are both own bridges the first is the one, else the bridge that was configured.
    """
    by_router: dict[str, list[Row]] = {}
    for router, row in rows:
        by_router.setdefault(router, []).append(row)
    seconds: set[tuple[str, str, str]] = set()
    found: list[tuple[str, Row, Row | None]] = []
    # Those under the name of a client come last: whose bridge it is may be among the others.
    for router, row in sorted(rows, key=lambda one: is_of_a_peer(one[1])):
        if (router, row["msgVpnName"], row["bridgeName"]) in seconds:
            continue
        other = other_end(row, router, by_router)
        if other is not None:
            place = (row["remoteRouterName"], other["msgVpnName"], other["bridgeName"])
            seconds.add(place)
        found.append((router, row, other))
    return found


def is_of_a_peer(row: Row) -> bool:
    """Whether this is what another router's bridge is here, and none of the router's own configuration."""
    return str(row["bridgeName"]).startswith("#bridge/")
