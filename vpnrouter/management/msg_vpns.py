"""Message VPNs: `/SEMP/v2/monitor/msgVpns`."""

from functools import partial
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from vpnrouter.management.body import not_found
from vpnrouter.management.context import CallerHere, MonitorHere, MsgVpnHere, answers
from vpnrouter.management.rows import AskedMany, AskedOne, Key, Links, Row, root_of, row_of, segment
from vpnrouter.management.sources import Monitor, MsgVpnStatus

MONITOR: Final = "/SEMP/v2/monitor"

COLLECTIONS: Final = (
    *("aclProfiles", "bridges", "clientProfiles", "clientUsernames", "clients"),
    *("mqttSessions", "queues", "topicEndpoints"),
)
"""What a message VPN has, by the last part of the path."""

routes: Final = APIRouter(prefix=f"{MONITOR}/msgVpns", tags=["msgVpn"])


@routes.get(
    "", summary="List message VPNs", responses=answers(MsgVpnStatus, many=True), response_model=None
)
async def msg_vpns(
    request: Request, monitor: MonitorHere, caller: CallerHere, asked: AskedMany
) -> Response:
    """The message VPNs that the user sees."""
    keys = [(name,) for name in monitor.msg_vpn_names() if caller.sees(name)]
    links = partial(_links, root_of(request))
    return await asked.reply(request, keys, partial(_row, monitor), links, MsgVpnStatus)


@routes.get(
    "/{msgVpnName}",
    summary="Get a message VPN",
    responses=answers(MsgVpnStatus, many=False),
    response_model=None,
)
async def msg_vpn(
    request: Request, monitor: MonitorHere, name: MsgVpnHere, asked: AskedOne
) -> Response:
    """One message VPN."""
    key = (name,)
    row = _row(monitor, key)
    if row is None:
        raise not_found(f"msgVpn {name}")
    return asked.reply(request, row, _links(root_of(request), key), MsgVpnStatus)


def _row(monitor: Monitor, key: Key) -> Row | None:
    status = monitor.msg_vpn(*key)
    return None if status is None else row_of(status)


def _links(root: str, key: Key) -> Links:
    uri = f"{root}{MONITOR}/msgVpns/{segment(*key)}"
    return {"uri": uri} | {f"{name}Uri": f"{uri}/{name}" for name in COLLECTIONS}
