"""What an operator does to a bridge: drop its connection, begin its counts anew, take an event for seen."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from vpnrouter.management.body import body_of
from vpnrouter.management.bridges import BridgeKey, bridge_of
from vpnrouter.management.context import MonitorHere, MsgVpnHere, acted
from vpnrouter.management.envelope import object_reply
from vpnrouter.management.faults import invalid, not_allowed, not_found
from vpnrouter.management.queue_actions import ACTION, OperatorHere

routes: Final = APIRouter(
    prefix=f"{ACTION}/msgVpns/{{msgVpnName}}/bridges/{{bridgeKey}}", tags=["bridge"]
)

EVENTS: Final = ("ttl-exceeded",)
"""Events of a bridge that stay raised until they are cleared."""


@routes.put("/disconnect", summary="Drop the connection of a bridge", response_model=None)
async def disconnect(
    request: Request,
    caller: OperatorHere,
    monitor: MonitorHere,
    msg_vpn: MsgVpnHere,
    key: BridgeKey,
) -> Response:
    """Drop the connection, with both bridges that may use it. They connect again; to keep one down, disable it."""
    await body_of(request, {})
    name = bridge_of(monitor, msg_vpn, key).bridge_name
    if not monitor.disconnect_bridge(msg_vpn, name):
        raise not_allowed(f"bridge {name} is not connected")
    acted(request, caller, f"dropped the connection of bridge {name}", msg_vpn)
    return object_reply(request, {}, {})


@routes.put("/clearStats", summary="Clear the counts of a bridge", response_model=None)
async def clear_stats(
    request: Request,
    caller: OperatorHere,
    monitor: MonitorHere,
    msg_vpn: MsgVpnHere,
    key: BridgeKey,
) -> Response:
    """Begin the counts anew; what is in flight counts as received, or offered, afterwards."""
    await body_of(request, {})
    name = bridge_of(monitor, msg_vpn, key).bridge_name
    if not monitor.clear_bridge_stats(msg_vpn, name):
        raise not_found(f"bridge {name} in msgVpn {msg_vpn}")
    acted(request, caller, f"cleared the counts of bridge {name}", msg_vpn)
    return object_reply(request, {}, {})


@routes.put("/clearEvent", summary="Clear an event of a bridge", response_model=None)
async def clear_event(
    request: Request,
    caller: OperatorHere,
    monitor: MonitorHere,
    msg_vpn: MsgVpnHere,
    key: BridgeKey,
) -> Response:
    """Take the event `eventName` (`ttl-exceeded`) for seen: it is raised when it happens again."""
    event = (await body_of(request, {"eventName": str})).get("eventName", "")
    if event not in EVENTS:
        raise invalid(f"eventName: one of {', '.join(EVENTS)} is needed")
    name = bridge_of(monitor, msg_vpn, key).bridge_name
    if not monitor.clear_bridge_event(msg_vpn, name, event):
        raise not_found(f"bridge {name} in msgVpn {msg_vpn}")
    acted(request, caller, f"cleared event {event} of bridge {name}", msg_vpn)
    return object_reply(request, {}, {})
