"""Message VPNs: `/SEMP/v2/monitor/msgVpns`."""

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from vpnrouter.management.answers.pages import Key
from vpnrouter.management.answers.query import ListQueryDep, ObjectQueryDep
from vpnrouter.management.answers.replies import root_of
from vpnrouter.management.answers.rows import Links, Row, row_of, segment
from vpnrouter.management.api_context import ApiContext, names_of_bridges
from vpnrouter.management.collections import MONITOR
from vpnrouter.management.dependencies import CallerDep, ContextDep, MsgVpnDep, answers
from vpnrouter.management.errors import not_found
from vpnrouter.management.meters import by_direction

COLLECTIONS: Final = (
    *("aclProfiles", "bridges", "clientProfiles", "clientUsernames", "clients"),
    *("mqttSessions", "queues", "topicEndpoints"),
)
"""What a message VPN has, by the last part of the path."""

routes: Final = APIRouter(prefix=f"{MONITOR}/msgVpns", tags=["msgVpn"])


@dataclass(frozen=True, slots=True)
class MsgVpnStatus:
    """One message VPN as monitoring shows it. Counts are since the router started; those of many clients, and all
    rates, are about a second old.
    """

    msg_vpn_name: str
    enabled: bool
    state: str
    """`up` or `down`."""
    msg_vpn_connections: int
    """Clients that are connected, bridges of other routers included."""
    subscription_count: int
    max_connection_count: int
    max_subscription_count: int
    bridge_count: int
    rx_msg_count: int
    rx_byte_count: int
    tx_msg_count: int
    tx_byte_count: int
    discarded_msg_count: int
    discarded: dict[str, int]
    """Messages by reason of core/discard_reasons.py."""
    rx_discarded_msg_count: int = 0
    tx_discarded_msg_count: int = 0
    """Those among them that were on their way to a client: it had no room, had gone, or had sent them itself."""
    rx_discarded: dict[str, int] = field(default_factory=dict)
    tx_discarded: dict[str, int] = field(default_factory=dict)
    """Each of the two by reason."""
    rejected_msg_count: int = 0
    """Guaranteed messages that were refused: their publishers know."""
    msg_spool_usage: int = 0
    """Bytes in its queues, topic endpoints and sessions."""
    average_rx_byte_rate: int = 0
    average_rx_msg_rate: int = 0
    average_tx_byte_rate: int = 0
    average_tx_msg_rate: int = 0
    rx_byte_rate: int = 0
    rx_msg_rate: int = 0
    tx_byte_rate: int = 0
    tx_msg_rate: int = 0


@routes.get(
    "", summary="List message VPNs", responses=answers(MsgVpnStatus, many=True), response_model=None
)
async def msg_vpns(
    request: Request, context: ContextDep, caller: CallerDep, query: ListQueryDep
) -> Response:
    """The message VPNs that the user sees."""
    keys = [(name,) for name in context.router.vpns if caller.sees(name)]
    links = partial(_links, root_of(request))
    return await query.reply(request, keys, partial(_row, context), links, MsgVpnStatus)


@routes.get(
    "/{msgVpnName}",
    summary="Get a message VPN",
    responses=answers(MsgVpnStatus, many=False),
    response_model=None,
)
async def msg_vpn(
    request: Request, context: ContextDep, name: MsgVpnDep, query: ObjectQueryDep
) -> Response:
    """One message VPN."""
    key = (name,)
    row = _row(context, key)
    if row is None:
        raise not_found(f"msgVpn {name}")
    return query.reply(request, row, _links(root_of(request), key), MsgVpnStatus)


def status_of(context: ApiContext, msg_vpn: str) -> MsgVpnStatus | None:
    """Return the state, counts and rates of one message VPN; None where there is none of that name."""
    vpn = context.router.vpns.get(msg_vpn)
    if vpn is None:
        return None
    sums = context.meters.totals(vpn)
    not_sent, not_taken = by_direction(sums.discards)
    tx_discarded, rx_discarded = sum(not_sent.values()), sum(not_taken.values())
    return MsgVpnStatus(
        msg_vpn_name=vpn.name,
        enabled=vpn.enabled,
        state="up" if vpn.enabled else "down",
        msg_vpn_connections=len(vpn.publishers),
        subscription_count=vpn.subscription_count,
        max_connection_count=vpn.limits.max_connection_count,
        max_subscription_count=vpn.limits.max_subscription_count,
        bridge_count=len(names_of_bridges(context, msg_vpn)),
        rx_msg_count=sums.rx_msg_count,
        rx_byte_count=sums.rx_byte_count,
        tx_msg_count=sums.tx_msg_count,
        tx_byte_count=sums.tx_byte_count,
        discarded_msg_count=rx_discarded + tx_discarded,
        discarded=sums.discards,
        rx_discarded_msg_count=rx_discarded,
        tx_discarded_msg_count=tx_discarded,
        rx_discarded=not_taken,
        tx_discarded=not_sent,
        rejected_msg_count=vpn.rejected,
        msg_spool_usage=vpn.spooled_bytes,
        **context.meters.rates(vpn).attributes(),
    )


def _row(context: ApiContext, key: Key) -> Row | None:
    status = status_of(context, *key)
    return None if status is None else row_of(status)


def _links(root: str, key: Key) -> Links:
    uri = f"{root}{MONITOR}/msgVpns/{segment(*key)}"
    return {"uri": uri} | {f"{name}Uri": f"{uri}/{name}" for name in COLLECTIONS}


PAGES: Final = (routes,)
"""What the kind serves."""
