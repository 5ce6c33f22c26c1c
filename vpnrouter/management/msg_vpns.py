"""Message VPNs: `/SEMP/v2/monitor/msgVpns`."""

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
from vpnrouter.management.status.msg_vpns import MsgVpnLook, MsgVpnStatus
from vpnrouter.settings.kinds import KINDS
from vpnrouter.settings.shown import fill

COLLECTIONS: Final = sorted(
    [
        *(kind.collection for kind in KINDS if kind.is_of_vpn and kind.monitored and not kind.ours),
        *("clients", "mqttSessions"),
    ]
)
"""What a message VPN has in the field, by the last part of the path."""

routes: Final = APIRouter(prefix=f"{MONITOR}/msgVpns", tags=["msgVpn"])


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
    bridge_count = len(names_of_bridges(context, msg_vpn))
    return fill(MsgVpnStatus, MsgVpnLook(vpn, context.meters, bridge_count))


def _row(context: ApiContext, key: Key) -> Row | None:
    status = status_of(context, *key)
    return None if status is None else row_of(status)


def _links(root: str, key: Key) -> Links:
    uri = f"{root}{MONITOR}/msgVpns/{segment(*key)}"
    return {"uri": uri} | {f"{name}Uri": f"{uri}/{name}" for name in COLLECTIONS}


PAGES: Final = (routes,)
"""What the kind serves."""
