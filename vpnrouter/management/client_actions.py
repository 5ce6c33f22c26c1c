"""What an operator does to a client: disconnect it, begin its counts anew."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from vpnrouter.management.body import body_of
from vpnrouter.management.clients import ClientHere, ClientsHere
from vpnrouter.management.context import MsgVpnHere, acted
from vpnrouter.management.envelope import object_reply
from vpnrouter.management.faults import not_allowed, not_found
from vpnrouter.management.queue_actions import ACTION, OperatorHere

routes: Final = APIRouter(
    prefix=f"{ACTION}/msgVpns/{{msgVpnName}}/clients/{{clientName}}", tags=["client"]
)


@routes.put("/disconnect", summary="Disconnect a client", response_model=None)
async def disconnect(
    request: Request,
    caller: OperatorHere,
    source: ClientsHere,
    msg_vpn: MsgVpnHere,
    client: ClientHere,
) -> Response:
    """Disconnect a client. An MQTT 5 client is told so (0x98, administrative action); its will is published."""
    await body_of(request, {})
    if not source.disconnect(msg_vpn, client):
        raise not_allowed(f"client {client} is not connected")
    acted(request, caller, f"disconnected client {client}", msg_vpn)
    return object_reply(request, {}, {})


@routes.put("/clearStats", summary="Clear the counts of a client", response_model=None)
async def clear_stats(
    request: Request,
    caller: OperatorHere,
    source: ClientsHere,
    msg_vpn: MsgVpnHere,
    client: ClientHere,
) -> Response:
    """Begin the counts of a client anew; those of its message VPN go on."""
    await body_of(request, {})
    if not source.clear_stats(msg_vpn, client):
        raise not_found(f"client {client} in msgVpn {msg_vpn}")
    acted(request, caller, f"cleared the counts of client {client}", msg_vpn)
    return object_reply(request, {}, {})
